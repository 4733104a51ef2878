# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The two halves of the tally joined, case by case; knows results folders only."""

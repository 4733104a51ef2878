# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The tables and claims of the source papers, each *published | here*."""

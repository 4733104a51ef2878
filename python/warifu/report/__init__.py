# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a results folder says, for people: tables and one self-contained page."""

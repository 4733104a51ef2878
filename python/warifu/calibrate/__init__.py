# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Calibration: times this machine and writes a device profile from it."""

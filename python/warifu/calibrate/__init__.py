# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Calibration: times this machine and writes a device profile from it."""

from warifu.calibrate.errors import CalibrateError
from warifu.calibrate.profile import DEFAULT_PROFILE, DEVICE

__all__ = ["DEFAULT_PROFILE", "DEVICE", "CalibrateError"]

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What holds for every test."""

from __future__ import annotations

import os

from warifu.calibrate import build

# Calibration's own tests run on the build that all tests share; what they write says so.
os.environ[build.VARIABLE] = "1"

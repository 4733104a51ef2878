# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What can go wrong in calibration."""

from __future__ import annotations


class CalibrateError(Exception):
    """Calibration failed; the text is one line that says what to do. Nothing was overwritten."""

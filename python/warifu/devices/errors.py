# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What goes wrong with an import or with a profile to be made."""

from __future__ import annotations


class DeviceError(Exception):
    """An input that gives no profile; its text is one line that names file, line or option, and the
    fix."""

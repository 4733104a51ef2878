# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What was checked, what was found, and a hint how to fix it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Status = Literal["ok", "missing", "warning"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    area: str
    name: str
    status: Status
    found: str
    hint: str = ""

    def row(self) -> dict[str, str]:
        """For tables and JSON."""
        return {key: str(value) for key, value in asdict(self).items()}

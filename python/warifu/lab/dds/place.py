# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Where an end of a DDS exchange runs, and what the machine has to have for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SOCKET_BYTES = 4 << 20
"""Socket buffers that both middlewares ask for (fastdds.cpp, kSocketBytes)."""

_LIMITS = Path("/proc/sys/net/core")


@dataclass(frozen=True)
class Place:
    """Where an end runs."""

    folder: Path
    namespace: str | None
    processor: int | None
    address: str
    peer: str

    @property
    def counters(self) -> Path:
        """Where Warifu's plugin says what it was called for."""
        return self.folder / "plugin.jsonl"

    @property
    def writes(self) -> Path:
        """Where a probe says how long its writes took."""
        return self.folder / "writes"


def missing_buffers(sample_bytes: int) -> str | None:
    """What to know of large samples where the kernel gives sockets less than is asked for; None if
    nothing."""
    wanted = min(sample_bytes, SOCKET_BYTES)
    least = {name: limit for name in ("rmem_max", "wmem_max") if (limit := _limit(name)) < wanted}
    if not least:
        return None
    have = " and ".join(f"net.core.{name} is {limit}" for name, limit in least.items())
    settings = " ".join(f"net.core.{name}={SOCKET_BYTES}" for name in least)
    return (
        f"{have}: samples of more than that overflow a socket and are sent again in parts, which "
        f"takes longer; allow more with: sysctl -w {settings}"
    )


def _limit(name: str) -> int:
    try:
        return int((_LIMITS / name).read_text())
    except (OSError, ValueError):
        return SOCKET_BYTES

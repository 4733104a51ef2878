# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The lines of a benchmark's output, as a serial terminal, a shell or an editor saves it."""

from __future__ import annotations

import math
import re

#: A serial terminal's log of days; the longest known output has 15 kB.
MOST_BYTES = 4_000_000
#: A line of a benchmark has some 100 characters; pqm4's tables are wider.
_MOST_CHARACTERS = 1_000
#: Cursor movements and colours (ECMA-48 section 5.4), and what a terminal answers to.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
#: What moves a cursor or the order of letters.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
_UTF_16 = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))

#: The longest time of a call that is believed, ns: SPHINCS+ signs for minutes on a Cortex-M4.
LONGEST_NS = 1e12
#: The longest time of a byte, ns: ten of them a second.
LONGEST_BYTE_NS = 1e8
#: Clocks that a profile can have (crates/core/model/src/profile/machine.rs).
CLOCKS_HZ = (32_000, 10**11)


def lines(content: bytes) -> list[str]:
    """Its lines without what moves a cursor; what is no text becomes the replacement character."""
    # PowerShell's `>` writes UTF-16.
    coding = next((name for mark, name in _UTF_16 if content.startswith(mark)), "utf-8")
    text = _ESCAPES.sub("", content.decode(coding, errors="replace"))
    cut = re.split(r"\r\n|\n|\r", text)
    return [CONTROL.sub("", line) for line in cut if len(line) <= _MOST_CHARACTERS]


def number(text: str) -> float | None:
    """A number above 0 that a benchmark may print, `1,234.5` too; None for any other."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None


def time_ns(value: float | None) -> float | None:
    """A time that a call may take; None for one that no benchmark has."""
    return value if value is not None and 0 < value <= LONGEST_NS else None

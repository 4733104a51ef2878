# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Output where the terminal or the locale does not know every sign: it is written plainer."""

from __future__ import annotations

import codecs
import io
from typing import TextIO

#: What stands for the signs that tables and notes use.
_PLAIN = {
    "\N{MIDDLE DOT}": "-",
    "\N{PLUS-MINUS SIGN}": "+-",
    "\N{INFINITY}": "inf",
    "\N{GREATER-THAN OR EQUAL TO}": ">=",
    "\N{LESS-THAN OR EQUAL TO}": "<=",
    "\N{MULTIPLICATION SIGN}": "x",
    "\N{MICRO SIGN}": "u",
    "\N{GREEK SMALL LETTER MU}": "u",
    "\N{EN DASH}": "-",
    "\N{EM DASH}": "-",
    "\N{HORIZONTAL ELLIPSIS}": "...",
    "\N{NO-BREAK SPACE}": " ",
    "\N{NARROW NO-BREAK SPACE}": " ",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
}
_HANDLER = "warifu.plain"


def never_fail(stream: TextIO) -> None:
    """Makes a stream write a plainer sign for each that its encoding lacks, and `?` for others.

    Without it a table ends in UnicodeEncodeError where the locale is POSIX, or Latin-1.
    """
    codecs.register_error(_HANDLER, _plainer)
    # A stream that a test or another program put in its place has its own way.
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors=_HANDLER)


def _plainer(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(sign, "?") for sign in lacking), error.end

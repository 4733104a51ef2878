# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Text of a file, a name or another program as a terminal may have it."""

from __future__ import annotations

import re

#: What moves a cursor, changes the order in which letters are shown, or ends a line: C0, DEL and C1
#: (ECMA-48), the bidirectional controls (Unicode Standard Annex 9), the separators of lines and
#: paragraphs; and lone surrogates, which stand for bytes of a name that are no UTF-8.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str, keep: str = "") -> str:
    r"""The same text with each such character written as Python writes it, but for those to `keep`.

    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """

    def escaped(found: re.Match[str]) -> str:
        letter = found[0]
        return letter if letter in keep else letter.encode("unicode_escape").decode("ascii")

    return _UNSAFE.sub(escaped, text)


def is_utf8(text: str) -> bool:
    """Whether a name that came from the system is UTF-8, which libraries take alone."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


#: An escape of JSON that may be half of a letter.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def lone_surrogate(text: str, value: object) -> str | None:
    """The key under which ``value``, read from the JSON ``text`` in UTF-8, holds half a letter, or
    whose name does; None for none. JSON can write one, and nothing can be done with it."""
    if _HALF.search(text) is None:
        return None
    # No recursion: whoever wrote the file may have nested it as deep as the parser goes.
    left: list[tuple[str, object]] = [("", value)]
    while left:
        key, one = left.pop()
        if isinstance(one, str) and not is_utf8(one):
            return key or "the value"
        if isinstance(one, list):
            left += [(f"{key}[{place}]", each) for place, each in enumerate(one)]
        elif isinstance(one, dict):
            for name, each in one.items():
                inner = clipped(f"{key}.{name}" if key else name)
                if not is_utf8(name):
                    return inner
                left.append((inner, each))
    return None


#: Letters of a value that a mistake repeats.
_MOST_LETTERS = 80


def clipped(text: str) -> str:
    """A text of a file for one line of a mistake: printable, and not however long."""
    if len(text) > _MOST_LETTERS:
        text = f"{text[:_MOST_LETTERS]}..."
    return printable(text)

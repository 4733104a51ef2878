# SPDX-License-Identifier: Apache-2.0 OR MIT
"""An answer as text for terminals."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from warifu.answer.model import Answer
from warifu.printable import printable
from warifu.report.table import Format, render

#: Sentences are no wider than this, which is read best; tables may be.
_SENTENCES = 80


def as_text(found: Answer, width: int, rows: int) -> str:
    """Question, sentences, table, badge; no line is longer than ``width``."""
    return f"{opening(found, width, found.warnings)}\n{below(found, width, rows)}"


def below(found: Answer, width: int, rows: int) -> str:
    """The table of at most ``rows`` cases, and the badge."""
    parts = []
    if rows and len(found.rows) > 1:
        table = found.table(rows)
        # The heading is the question above.
        parts.append(render([table], Format.TABLE, width).split("\n", 2)[2])
    parts.append(paragraph(found.badge.text, min(width, _SENTENCES)))
    return "\n".join(parts)


def opening(found: Answer, width: int, warnings: Sequence[str] = ()) -> str:
    """The question and what was found, with what a reader must know first."""
    width = min(width, _SENTENCES)
    lines = [paragraph(f"{found.study}: {found.question}", width)]
    every = [*warnings, *found.sentences, *found.not_included]
    return lines[0] + "\n" + "".join(paragraph(one, width, "- ") for one in every)


def paragraph(text: str, width: int, lead: str = "") -> str:
    """Wrapped with a hanging indent; control characters are escaped."""
    indent = " " * len(lead)
    return (
        textwrap.fill(
            printable(text),
            width,
            initial_indent=lead,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
        + "\n"
    )

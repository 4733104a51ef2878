# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Pieces of HTML, escaped once, here."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping

from warifu.printable import printable
from warifu.report.table import Table
from warifu.results import KINDS

_MARKS = {
    "pass": ("pass", "✓"),
    "holds": ("pass", "✓"),
    "accepted": ("pass", "✓"),
    "fail": ("fail", "✗"),
    "fails": ("fail", "✗"),
    "rejected": ("fail", "✗"),
    "undecided": ("undecided", "?"),
}


_UNIT = re.compile(r"(?<=\d) (?=(?:%|[num]?s|B|[KM]iB)(?![\w/]))")


def text(value: object) -> str:
    """Text as HTML, in the order of its letters."""
    return html.escape(printable(str(value), keep="\n\t"), quote=True)


def flowing(value: object) -> str:
    """Text as HTML whose lines break nowhere between a number and its unit."""
    return _UNIT.sub("&nbsp;", text(value))


def prose(value: object) -> str:
    """Text as HTML, with what stands between backticks as code, which can be copied."""
    parts = re.split(r"`([^`]+)`", str(value))
    return "".join(
        f"<code>{text(part)}</code>" if index % 2 else flowing(part)
        for index, part in enumerate(parts)
    )


def badge(word: str) -> str:
    """A verdict or a kind: a word with a mark and a colour; never the colour alone."""
    if word in _MARKS:
        style, mark = _MARKS[word]
        return f'<span class="badge {style}">{mark} {text(word)}</span>'
    style = word if word == "assumed" else ""
    return f'<span class="badge {style}">{text(word)}</span>'


def paragraph(words: str) -> str:
    """A paragraph of plain text; commands stand between backticks."""
    return f"<p>{prose(words)}</p>"


def section(key: str, title: str, body: str) -> str:
    """A section that the page's navigation leads to."""
    return f'<section id="{key}"><h2>{text(title)}</h2>{body}</section>'


def warning(words: str) -> str:
    """What must be read first."""
    return f'<p class="lead warning" role="note">{prose(words)}</p>'


def bullets(items: Iterable[str]) -> str:
    """A list of plain texts; commands stand between backticks."""
    return "<ul>" + "".join(f"<li>{prose(item)}</li>" for item in items) + "</ul>"


def definitions(pairs: Mapping[str, object]) -> str:
    """Names and what they stand for; the empty ones are left out."""
    rows = (
        f"<dt>{text(name)}</dt><dd>{text(value)}</dd>"
        for name, value in pairs.items()
        if value not in (None, "", [], {})
    )
    return f"<dl>{''.join(rows)}</dl>"


def table(content: Table, caption: str, rows: int | None = None) -> str:
    """A table that scrolls on its own where it is wider than the page."""
    heads = "".join(
        f'<th scope="col"{_number(column.number)}>{text(column.head)}</th>'
        for column in content.columns
    )
    body = "".join(_row(content, cells) for cells in content.cells[:rows])
    left = len(content.cells) - len(content.cells[:rows])
    if left:
        caption += (
            f" The first {rows} of {len(content.cells)}; `warifu report --format csv` has all."
        )
    label = text(caption.replace("`", ""))
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">'
        f"<table><caption>{prose(caption)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(content: Table, cells: list[str]) -> str:
    parts = []
    for index, (cell, column) in enumerate(zip(cells, content.columns, strict=True)):
        # A narrow screen shows a row as a list, each cell behind its column's name.
        head = f' data-head="{text(column.head)}"'
        if index == 0:
            parts.append(f'<th scope="row">{flowing(cell)}</th>')
        elif column.head in {"verdict", "kind", "method", "rests on"}:
            word, _, rest = cell.partition(" ")
            shown = badge(word) if word in _MARKS or word in KINDS else text(word)
            parts.append(f"<td{head}><span>{shown} {flowing(rest)}</span></td>")
        elif column.head in {"source", "remark"} and cell:
            parts.append(f'<td class="wide"{head}><span>{flowing(cell)}</span></td>')
        else:
            parts.append(f"<td{_number(column.number)}{head}><span>{flowing(cell)}</span></td>")
    return f"<tr>{''.join(parts)}</tr>"


def _number(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def folded(summary: str, content: str) -> str:
    """What only some want to see."""
    return f"<details><summary>{text(summary)}</summary>{content}</details>"

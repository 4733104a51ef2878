# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A table once, in every format that people and programs ask for."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from warifu.printable import printable

Value = str | int | float | bool | None


class Format(StrEnum):
    """How a table is printed."""

    TABLE = "table"
    MD = "md"
    CSV = "csv"
    JSON = "json"
    LATEX = "latex"


@dataclass(frozen=True)
class Column:
    """A column for people; numbers stand to the right."""

    head: str
    number: bool = True
    wrap: int | None = None
    """In terminals, text longer than this goes on in further lines."""
    whole: bool = False
    """Whether its text is never broken, as of a name that is typed as it stands."""


@dataclass
class Table:
    """Rows for people (``cells``, as wide as ``columns``) and for programs (``records``).

    People get rounded figures with units in the head, programs every digit in base units.
    """

    title: str
    columns: Sequence[Column]
    cells: list[list[str]] = field(default_factory=list)
    records: list[Mapping[str, Value]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: What programs find it by among several.
    name: str = ""

    def add(self, cells: Sequence[str], record: Mapping[str, Value]) -> None:
        """Adds a row."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.title}: {len(cells)} cells for {len(self.columns)} columns")
        self.cells.append(list(cells))
        self.records.append(record)


def render(
    tables: Sequence[Table],
    form: Format,
    width: int | None = None,
    answer: Mapping[str, object] | None = None,
) -> str:
    """Tables as text that ends with a line break and moves no terminal's cursor.

    JSON begins with the ``answer``, if there is one.

    For people in terminals text is broken into lines so that a table fits ``width`` columns; where
    its numbers alone do not, it goes on below with its first columns repeated, or with the numbers
    of its rows.
    """
    if form is not Format.JSON:
        tables = [_printable(table) for table in tables]
    match form:
        case Format.MD:
            return "\n".join(map(_markdown, tables))
        case Format.CSV:
            return "\n".join(map(_csv, tables))
        case Format.JSON:
            return _json(tables, answer)
        case Format.LATEX:
            return "\n".join(map(_latex, tables))
    if width is not None:
        tables = [_fitted(table, width) for table in tables]
    return "\n".join(_plain(table, width) for table in tables)


#: A column of text is made no narrower than this.
_NARROWEST = 8


def _fitted(table: Table, width: int) -> Table:
    """The same with its title, its notes and its widest columns of text broken into lines."""
    columns = list(table.columns)
    rows = [[column.head for column in columns], *table.cells]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    widths = [min(of, column.wrap or of) for of, column in zip(widths, columns, strict=True)]
    texts = [at for at, column in enumerate(columns) if not (column.number or column.whole)]
    while texts and sum(widths) + 2 * (len(widths) - 1) > width:
        widest = max(texts, key=lambda at: widths[at])
        if widths[widest] <= max(_NARROWEST, len(columns[widest].head)):
            break
        widths[widest] -= 1
        columns[widest] = replace(columns[widest], wrap=widths[widest])
    if sum(widths) + 2 * (len(widths) - 1) > width:
        # It goes on below, so that text need not be that narrow.
        columns = list(table.columns)
        for at in texts:
            most = min(columns[at].wrap or width, max(_NARROWEST, width // 3))
            columns[at] = replace(columns[at], wrap=most)
    notes = [textwrap.fill(note, width, break_on_hyphens=False) for note in table.notes]
    title = textwrap.fill(table.title, width, break_on_hyphens=False)
    return replace(table, title=title, columns=columns, notes=notes)


def _printable(table: Table) -> Table:
    """Control characters as Python writes them: a label, a figure's source and what a program calls
    its symbols may hold any. JSON has its own way."""
    return Table(
        printable(table.title),
        [replace(column, head=printable(column.head)) for column in table.columns],
        [[printable(cell) for cell in cells] for cells in table.cells],
        [
            {
                printable(key): printable(one) if isinstance(one, str) else one
                for key, one in row.items()
            }
            for row in table.records
        ],
        [printable(note) for note in table.notes],
        table.name,
    )


def _plain(table: Table, width: int | None) -> str:
    """Aligned columns, for terminals and files alike; nothing is cut off."""
    parts = [_aligned(part) for part in _side_by_side(table, width)]
    notes = ["", *table.notes] if table.notes else []
    return "\n".join([table.title, "", "\n\n".join(parts), *notes]) + "\n"


def _side_by_side(table: Table, width: int | None) -> list[Table]:
    """The table in parts that fit the width, each with the columns that come before the numbers;
    where those are wide, with the first alone, or the row's number where that tells no rows apart.
    """
    widths = [_width(table, at) for at in range(len(table.columns))]
    if width is None or sum(widths) + 2 * (len(widths) - 1) <= width:
        return [table]
    first = next((at for at, column in enumerate(table.columns) if column.number), 1)
    lead = list(range(max(1, first)))
    if sum(widths[at] + 2 for at in lead) > width // 2:
        lead = [0]
        if len({row[0] for row in table.cells}) < len(table.cells):
            table = _numbered(table)
            widths = [_width(table, at) for at in range(len(table.columns))]
    parts: list[list[int]] = []
    used = 0
    for at in range(len(lead), len(widths)):
        if not parts or (used + 2 + widths[at] > width and len(parts[-1]) > len(lead)):
            parts.append(list(lead))
            used = sum(widths[of] + 2 for of in lead) - 2
        parts[-1].append(at)
        used += 2 + widths[at]
    if not parts:
        # One column alone, which nothing can stand below.
        return [table]
    return [
        replace(
            table,
            columns=[table.columns[at] for at in part],
            cells=[[row[at] for at in part] for row in table.cells],
        )
        for part in parts
    ]


def _numbered(table: Table) -> Table:
    """The same with the number of each row before it."""
    cells = [[str(at), *row] for at, row in enumerate(table.cells, start=1)]
    return replace(table, columns=[Column("#"), *table.columns], cells=cells)


def _width(table: Table, at: int) -> int:
    column = table.columns[at]
    lines = (
        line
        for row in table.cells
        for line in (_lines(row[at], column.wrap) if column.wrap else [row[at]])
    )
    return max(len(column.head), *map(len, lines), 0)


def _aligned(table: Table) -> str:
    heads = [column.head for column in table.columns]
    rows = [_wrapped(cells, table.columns) for cells in table.cells]
    # Rows of several lines need a line between them to be told apart.
    if any(len(row) > 1 for row in rows):
        rows = [[*row, [""] * len(heads)] for row in rows[:-1]] + rows[-1:]
    every = [line for row in rows for line in row]
    widths = [max(map(len, each)) for each in zip(heads, *every, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if column.number else cell.ljust(width)
            for cell, width, column in zip(cells, widths, table.columns, strict=True)
        )
        return "  ".join(padded).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([line(heads), rule, *map(line, every)])


def _wrapped(cells: Sequence[str], columns: Sequence[Column]) -> list[list[str]]:
    """The lines of a row."""
    parts = [
        _lines(cell, column.wrap) if column.wrap else [cell]
        for cell, column in zip(cells, columns, strict=True)
    ]
    return [list(line) for line in itertools.zip_longest(*parts, fillvalue="")]


def _lines(text: str, width: int) -> list[str]:
    """Broken at spaces, and at hyphens and underscores where a name alone is too long."""
    long = max(map(len, text.split()), default=0) > width
    if not (long and "_" in text):
        return textwrap.wrap(text, width, break_on_hyphens=long) or [""]
    lines = [""]
    for word in text.split():
        gap = " " if lines[-1] else ""
        for piece in [word] if len(word) <= width else _PIECES.findall(word):
            if len(lines[-1]) + len(gap) + len(piece) <= width:
                lines[-1] += gap + piece
            else:
                lines += textwrap.wrap(piece, width)
            gap = ""
    return [line for line in lines if line] or [""]


#: A part of a name, with the sign that ends it.
_PIECES = re.compile(r"[^_-]*[_-]+|[^_-]+")


def _markdown(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(map(_cell, cells)) + " |"

    rule = line(["---:" if column.number else ":---" for column in table.columns])
    lines = [f"**{_text(table.title)}**", "", line([column.head for column in table.columns]), rule]
    lines += map(line, table.cells)
    for note in table.notes:
        lines += ["", _text(note)]
    return "\n".join(lines) + "\n"


#: A code span (CommonMark 0.31.2, section 6.1): from a run of backticks to the next one as long.
_CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")
#: What Markdown takes for HTML, a table's bar, an escaped character, a link, or emphasis that ends
#: here (sections 2.4, 2.5, 6.2, 6.3 and 6.6; GFM, section 4.10). Names hold them: `f<int>(char*)`,
#: `operator[](int)`, `__init__`.
_MARKUP = re.compile(r"[&<>|*]|\\(?=[!-/:-@\[-`{-~]|$)|\](?=[(:])|_(?=_*(?:\W|$))")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def _text(text: str) -> str:
    """Markdown that is shown as the text, but for its code spans, which stay: notes have commands
    in them."""
    return _escaped(text, lambda code: code)


def markdown(text: str) -> str:
    """A line of text as Markdown that is shown as it is."""
    return _text(printable(text))


def _cell(text: str) -> str:
    """The same for a table, where a bar ends the cell in code as well."""

    def in_code(code: str) -> str:
        # `\|` is a bar there, so that no code can show both: it becomes plain text.
        if "\\|" in code:
            return _without_markup(code).replace("`", "\\`")
        return code.replace("|", "\\|")

    return _escaped(text, in_code)


def _escaped(text: str, in_code: Callable[[str], str]) -> str:
    parts, at = [], 0
    for code in _CODE.finditer(text):
        parts += [_without_markup(text[at : code.start()]), in_code(code[0])]
        at = code.end()
    return "".join([*parts, _without_markup(text[at:])])


def _without_markup(text: str) -> str:
    return _MARKUP.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), text)


def _csv(table: Table) -> str:
    """Comma-separated (RFC 4180, with bare line feeds); an unknown figure is empty, and no text a
    formula of a spreadsheet."""
    keys = list(dict.fromkeys(key for record in table.records for key in record))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_csv_word(with_unit(key)) for key in keys)
    for record in table.records:
        writer.writerow([_csv_word(_typed(key, record.get(key))) for key in keys])
    return text.getvalue()


def _json(tables: Sequence[Table], answer: Mapping[str, object] | None) -> str:
    """One object with a list of tables, whatever the verb; infinite ends of intervals are null
    (docs/reference/output.schema.json)."""
    objects = [
        ({"name": table.name} if table.name else {})
        | {
            "title": table.title,
            "rows": [
                {with_unit(key): _typed(key, one) for key, one in row.items()}
                for row in table.records
            ],
            "notes": table.notes,
        }
        for table in tables
    ]
    whole = ({} if answer is None else {"answer": answer}) | {"tables": objects}
    return json.dumps(whole, indent=2) + "\n"


def _typed(key: str, value: Value) -> Value:
    """A value for programs: no infinity, no 20000.0 for a count, and nanoseconds, the clock's unit,
    without the fraction that arithmetic gives them."""
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        return None
    if key.endswith("_ns"):
        return round(value)
    value = _without_noise(key, value)
    return int(value) if value.is_integer() else value


def _without_noise(key: str, value: float) -> float:
    """A mean of bytes to a tenth of a thousandth: differences of two have other digits behind it
    than what they are differences of."""
    return round(value, 4) if key.endswith("_b") else value


def frame_value(key: str, value: Value) -> Value:
    """A value for a data frame, where a column has one type: nanoseconds without their fraction,
    bytes without the digits that arithmetic gave them."""
    if isinstance(value, float) and math.isfinite(value):
        return float(round(value)) if key.endswith("_ns") else _without_noise(key, value)
    return value


#: Settings whose columns of observations have no unit in their name (`columns.rs`).
_WITH_UNIT = {
    "mtu": "mtu_b",
    "request_body": "request_body_b",
    "response_body": "response_body_b",
    "psk_identity_bytes": "psk_identity_b",
}


def with_unit(key: str) -> str:
    """A column's name for programs, with its unit last."""
    return _WITH_UNIT.get(key, key)


def _csv_word(value: Value) -> Value:
    """Flags in the words that other programs have for them; a text that a spreadsheet would compute
    with an apostrophe before it, which says that it is text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and _FORMULA.match(value):
        return f"'{value}"
    return value


#: What a formula begins with, in either width, but for a number; tabs and line ends are escaped by
#: then (`_printable`).
_FORMULA = re.compile(
    r"(?![-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$)[=+\-@\uff1d\uff0b\uff0d\uff20]"
)


_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "·": r"$\cdot$",
    "≥": r"$\geq$",
    "∞": r"$\infty$",
}


def _latex(table: Table) -> str:
    """A `table` that needs the package booktabs only; its caption is the title alone, and the notes
    stand below."""

    def escape(text: str) -> str:
        return "".join(_LATEX.get(letter, letter) for letter in text)

    def line(cells: Sequence[str]) -> str:
        text = " & ".join(map(escape, cells))
        # After `\\`, `\toprule` and `\midrule` it would be theirs: a length, or a star.
        begins = "{}" if text.lstrip().startswith(("[", "*")) else ""
        return f"    {begins}{text} \\\\"

    layout = "".join("r" if column.number else "l" for column in table.columns)
    # As wide as the text: a long note must not make the table wider.
    notes = [
        rf"  \par\smallskip\parbox{{\linewidth}}{{\footnotesize {escape(note)}}}"
        for note in table.notes
    ]
    lines = [
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{escape(table.title)}.}}",
        rf"  \begin{{tabular}}{{{layout}}}",
        r"    \toprule",
        line([column.head for column in table.columns]),
        r"    \midrule",
        *map(line, table.cells),
        r"    \bottomrule",
        r"  \end{tabular}",
        *notes,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"

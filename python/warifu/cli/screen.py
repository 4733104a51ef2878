# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What people see: tables on stdout, everything else on stderr."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, TextIO

import typer

from warifu.cli.formats import Format
from warifu.printable import is_utf8, printable

if TYPE_CHECKING:
    from warifu.report.table import Table

#: Columns that a usual terminal has, and those of what is no terminal.
WIDTH = 80
#: And those that every terminal is taken to have.
_NARROWEST = 40
#: Plain progress says something at most this often, s.
_PLAIN_EVERY_S = 10.0

FormatOption = Annotated[
    Format,
    typer.Option("--format", "-f", help="How tables are printed.", case_sensitive=False),
]


def named(text: str) -> Path:
    """The path that a flag gives; an empty one would silently stand for the folder one is in."""
    if not text:
        raise typer.BadParameter("is empty: name a file or a folder")
    if not is_utf8(text):
        raise typer.BadParameter("is not UTF-8 text: choose another name")
    return Path(text)


def counted(count: int, what: str, whats: str | None = None) -> str:
    """A number with its noun: `1 leak`, `2 leaks`."""
    return f"{count:,} {what if count == 1 else whats or what + 's'}"


def say(text: str) -> None:
    """A line for people, on stderr; what would end it or move the cursor is escaped."""
    print(fitted(printable(text), sys.stderr), file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """A warning, which says what to do next."""
    say(f"warning: {text}")


def show(
    tables: Sequence[Table],
    form: Format,
    stream: TextIO | None = None,
    answer: Mapping[str, object] | None = None,
    width: int | None = None,
) -> None:
    """Prints tables as the user asked, on stdout unless that is another's; for people they fit
    ``width`` columns, or those of the terminal that they go to."""
    from warifu.report import table as room

    stream = stream or sys.stdout
    text = room.render(list(tables), room.Format(form.value), width or columns(stream), answer)
    stream.write(coloured(text, stream) if form is Format.TABLE else text)
    stream.flush()


def columns(stream: object) -> int | None:
    """How wide a terminal is; None for a file or a pipe, which has no width."""
    if not getattr(stream, "isatty", lambda: False)():
        return None
    return max(_NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns)


def width(stream: object) -> int:
    """How wide an answer may be: as a terminal is, and usual ones where there is none."""
    return columns(stream) or WIDTH


def fitted(text: str, stream: object, indent: int = 0) -> str:
    """Text whose longer lines go on below, that far from the left, so that they fit the terminal
    that they go to; as it is for a file or a pipe."""
    most = columns(stream)
    if most is None:
        return text
    return "\n".join(
        textwrap.fill(
            line,
            most,
            subsequent_indent=" " * indent,
            # A path or a command stays in one piece, to be pasted.
            break_on_hyphens=False,
            break_long_words=False,
        )
        if len(line) > most
        else line
        for line in text.split("\n")
    )


def coloured(text: str, stream: object) -> str:
    """Text with its verdicts in colour, where that is welcome."""
    return _coloured(text) if colourful(stream) else text


def colourful(stream: object) -> bool:
    """Whether colour is welcome: a terminal, and NO_COLOR (no-color.org) is not set."""
    is_terminal = bool(getattr(stream, "isatty", lambda: False)())
    dumb = os.environ.get("TERM") == "dumb"
    return is_terminal and not dumb and not os.environ.get("NO_COLOR")


_COLOURS = {
    "pass": "32",
    "holds": "32",
    "met": "32",
    "missed": "1;31",
    "fail": "1;31",
    "fails": "1;31",
    "undecided": "33",
}


def _coloured(text: str) -> str:
    """Colours verdicts; the words stay, so nothing is lost without colour."""
    import re

    words = "|".join(sorted(_COLOURS, key=len, reverse=True))
    return re.sub(
        rf"(?<=  )({words})(?=\s|$)",
        lambda found: f"\x1b[{_COLOURS[found[1]]}m{found[1]}\x1b[0m",
        text,
        flags=re.MULTILINE,
    )


class Report(Protocol):
    """Says how far the work is."""

    def __call__(
        self, done: int, total: int, detail: str = "", *, seconds_left: float | None = None
    ) -> None:
        """``done`` of ``total``. Where nobody says how many seconds are left, that follows from the
        pace so far."""


@contextmanager
def progress(what: str) -> Iterator[Report]:
    """A bar with the time left on a terminal, a line now and then elsewhere."""
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        with _bar(what) as report:
            yield report
    else:
        yield _lines(what)


@contextmanager
def _bar(what: str) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        # A study's name and a label are text, whatever brackets they hold.
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.fields[detail]}", markup=False),
    )
    console = Console(stderr=True, no_color=not colourful(sys.stderr))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(printable(what), total=None, detail="", left="")
        clock = TimeLeft()

        def report(
            done: int, total: int, detail: str = "", *, seconds_left: float | None = None
        ) -> None:
            left = clock.left(done, total, time.monotonic())
            left = left if seconds_left is None else seconds_left
            shown = "" if left is None else f"{_span(left)} left"
            bar.update(task, completed=done, total=total, detail=printable(detail), left=shown)

        yield report


def _lines(what: str) -> Report:
    last = time.monotonic()
    clock = TimeLeft()

    def report(
        done: int, total: int, detail: str = "", *, seconds_left: float | None = None
    ) -> None:
        nonlocal last
        now = time.monotonic()
        seconds = clock.left(done, total, now)
        seconds = seconds if seconds_left is None else seconds_left
        if now - last < _PLAIN_EVERY_S:
            return
        last = now
        left = "" if seconds is None else f", about {_span(seconds)} left"
        say(f"{what}: {done} of {total}{left}{f'; {detail}' if detail else ''}")

    return report


class TimeLeft:
    """How long work will take, by its pace so far.

    An end is foreseen when something is done, and comes nearer until the next is: what takes longer
    than the others makes it no later while it lasts.
    """

    def __init__(self) -> None:
        """Nothing is known before the first call."""
        # What an earlier run did says nothing of this one's pace.
        self._first: tuple[float, int] | None = None
        self._done = -1
        self._end = 0.0

    def left(self, done: int, total: int, now: float) -> float | None:
        """Seconds from ``now`` until all is done; None while nothing is, and beyond the end."""
        since, before = self._first = self._first or (now, done)
        if done <= before:
            return None
        if done != self._done:
            self._done = done
            self._end = now + (now - since) / (done - before) * (total - done)
        return self._end - now if self._end > now or done == total else None


def _span(seconds: float) -> str:
    # A negative one, of work that is about to end, would be `-0 s`.
    seconds = max(0.0, seconds)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

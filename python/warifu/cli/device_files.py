# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Where a profile that was made goes, and what people are told of it."""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from warifu.cli import screen
from warifu.cli.errors import naming
from warifu.cli.screen import WIDTH
from warifu.files import refuse_to_replace, replace_text

if TYPE_CHECKING:
    from warifu.devices.figures import LeftOut, Output
    from warifu.devices.making import Made
    from warifu.devices.scaling import Corpus

#: What answers in the place of a server that nobody named: this machine need not be calibrated.
_SERVER = "xeon-2-5-ghz-vm"
#: How many names of a long list are said.
_SAID = 4
#: How many reasons: those that quote a row may be as many as rows.
_REASONS = 12


def corpus() -> Corpus:
    """The devices to scale from: those that came with Warifu. One's own are none of them: a slip
    in one, such as a wrong clock, would widen the bands of all that come after it."""
    from warifu import study
    from warifu.devices import catalog
    from warifu.devices.scaling import Corpus

    texts = study.profile_texts(study.shipped_folders())
    return Corpus(catalog.devices(texts))


def library(wanted: str | None, read: str | None) -> str | None:
    """The library to state: what is wanted, or None for what was read; what stands in where there
    are no recipes of it. Raises typer.BadParameter for one that is wanted."""
    from warifu import study
    from warifu.devices.making import STAND_IN

    texts = study.profile_texts(study.profile_folders())
    known = sorted(name for kind, name, _, _ in texts if kind == "recipe")
    if wanted is not None and wanted not in known:
        raise typer.BadParameter(f"--library {wanted}: expected one of {', '.join(known)}")
    return STAND_IN if wanted is None and read is not None and read not in known else wanted


def say_stand_in(read: str | None, taken: str | None) -> None:
    """A word about a library whose recipes stand in for those of what was read."""
    if read is not None and taken is not None and taken != read:
        screen.warn(
            f"there are no recipes of {read}: {taken}'s stand in for them; see profiles/recipes"
        )


def write(made: Made, dry_run: bool) -> Path | None:
    """Writes a profile where `predict` finds it, or prints it; whether its name is taken was asked
    before."""
    from warifu import study

    if dry_run:
        sys.stdout.write(made.text)
        return None
    file = study.own_folder("devices") / f"{made.name}.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    refuse_to_replace(file)
    with naming(file):
        replace_text(file, made.text)
    return file


@contextmanager
def while_somebody_reads() -> Iterator[None]:
    """What is said inside is about a file that is there: whoever closes the pipe takes nothing from
    it."""
    try:
        yield
    except BrokenPipeError:
        # Python must not complain when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def refuse_taken(name: str) -> None:
    """Raises DeviceError where a profile of that name would be replaced or hidden."""
    from warifu import study
    from warifu.devices.errors import DeviceError

    file = study.own_folder("devices") / f"{name}.toml"
    if file.exists():
        raise DeviceError(
            f"{file}: is there already: choose another name, or overwrite it with --force"
        )
    for kind, other, _, where in study.profile_texts(study.profile_folders()):
        if (kind, other) == ("device", name) and Path(where).resolve() != file.resolve():
            raise DeviceError(f"{file}: would hide {where}: choose another name, or add --force")


def say_recognised(output: Output) -> None:
    """The tool, and how much of its output is of use."""
    count = screen.counted(len(output.figures), "figure")
    _say(f"recognised: {output.source}; {count} that a case uses")


def say_added(made: Made) -> None:
    """What is assumed: what follows from measured figures, what was scaled, from which device, and
    how far to trust it."""
    derived = [one.figure for one in made.draft.given if not one.figure.is_read]
    if derived:
        screen.say(f"derived from what was measured, and so assumed ({len(derived)}):")
    for figure in derived:
        _say(figure.derived, f"  {figure.primitive:<28}")
    scaled = made.completed.scaled
    if scaled:
        screen.say(f"scaled from other devices, and so assumed ({len(scaled)}):")
    for one in scaled:
        how = "by the clock" if one.by == "clock" else f"by {one.by}"
        band = f", within {one.band()}" if math.isfinite(one.factor) else ""
        _say(f"from {one.origin.name} {how}{band}", f"  {one.primitive:<28}")
    if made.code_by is not None:
        _say(_code(made))
    price = made.completed.instruction_ns
    _say(
        f"assumed: {price:.3g} ns an instruction (from {made.completed.instruction_why}), and by "
        "it parsing a certificate and the TCP/IP stack"
    )


#: What people call the kinds of code.
_CODES = {"c": "portable C", "assembly": "assembly", "hardware": "hardware"}


def _code(made: Made) -> str:
    """What public-key arithmetic was taken to be written in, and how to say otherwise."""
    code = str(made.draft.code)
    others = " or ".join(f"--code {one}" for one in _CODES if one != code)
    if made.code_by:
        return (
            f"assumed: public-key arithmetic in {_CODES[code]}, by {made.code_by}; {others} says "
            "otherwise"
        )
    return (
        f"assumed: public-key arithmetic in {_CODES[code]}, since no figure of P-256 tells; "
        f"assembly is up to ten times as quick, and {others} says so"
    )


def say_left_out(left_out: Sequence[LeftOut]) -> None:
    """What was left out, by the reason."""
    names: dict[str, dict[str, None]] = {}
    for one in left_out:
        names.setdefault(one.why, {})[one.what] = None
    counts = Counter(one.why for one in left_out)
    for why, count in counts.most_common(_REASONS):
        said = list(names[why])[:_SAID]
        more = f", and {len(names[why]) - _SAID} more" if len(names[why]) > _SAID else ""
        _say(f"left out ({count}), {why}: {', '.join(said)}{more}")
    others = counts.most_common()[_REASONS:]
    if others:
        rows = sum(count for _, count in others)
        _say(f"left out ({rows}), for {screen.counted(len(others), 'other reason')}")


def say_written(file: Path, name: str) -> None:
    """Where it is, and the command that asks the first question, in one line, to be copied."""
    screen.say(f"wrote {file}")
    screen.say(f"next: warifu predict --device {name} --server {_SERVER} --link nb-iot")


def _say(text: str, lead: str = "") -> None:
    """A sentence for people, in lines that fit a terminal; later ones begin below its text."""
    from warifu.answer.text import paragraph

    for line in paragraph(text, WIDTH, lead).splitlines():
        screen.say(line)

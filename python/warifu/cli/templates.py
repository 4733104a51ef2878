# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Study templates with comments."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from warifu.cli import screen
from warifu.cli.errors import naming
from warifu.files import refuse_to_replace, replace_text

if TYPE_CHECKING:
    from warifu.report.table import Table

_FOLDER = Path(__file__).resolve().parents[1] / "templates"


def names() -> list[str]:
    """The templates that there are."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def table() -> Table:
    """Every template with its first sentence."""
    from warifu.report.table import Column, Table

    found = Table("templates", [Column("name", number=False), Column("about", number=False)])
    for name in names():
        about = _about((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
        found.add([name, about], {"name": name, "about": about})
    return found


def write(name: str, file: Path, force: bool) -> None:
    """Writes a template as a study, or prints it for `-`; an existing file stays without
    ``force``."""
    if name not in names():
        raise typer.BadParameter(f"--template {name}: expected one of {', '.join(names())}")
    text = (_FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    if str(file) == "-":
        sys.stdout.write(text)
        return
    if force:
        refuse_to_replace(file)
        with naming(file):
            replace_text(file, text)
    else:
        _create(file, text)
    screen.say(f"wrote {file}; next: warifu run {file}")


def _create(file: Path, text: str) -> None:
    """Writes a file that is not there yet, whole or not at all."""
    try:
        # Takes the name, whoever else wants it; the text follows in one piece.
        file.open("x").close()
    except FileExistsError:
        raise typer.BadParameter(
            f"{file}: is there already: name another file, or overwrite it with --force"
        ) from None
    try:
        with naming(file):
            replace_text(file, text)
    except BaseException:
        file.unlink(missing_ok=True)
        raise


def _about(text: str) -> str:
    """The first sentence of the first comment after the licence."""
    words: list[str] = []
    for line in text.splitlines():
        comment = line.removeprefix("#").strip()
        if not line.startswith("#") or (words and not comment):
            break
        if comment and not comment.startswith("SPDX"):
            words.append(comment)
    sentence, _, _ = " ".join(words).partition(". ")
    return sentence.rstrip(".") + "." if sentence else ""

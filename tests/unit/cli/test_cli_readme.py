# SPDX-License-Identifier: Apache-2.0 OR MIT
"""README names every command and links every page."""

from __future__ import annotations

from typing import Any

import typer

from support.paths import ROOT
from warifu.cli.app import app

README = (ROOT / "README.md").read_text(encoding="utf-8")
#: A command's row.
ROWS = [line for line in README.splitlines() if line.startswith("| `warifu ")]


def commands(of: object) -> dict[str, Any]:
    """Those of a group that `--help` shows."""
    return {name: one for name, one in getattr(of, "commands", {}).items() if not one.hidden}


def named(path: list[str]) -> bool:
    """In a row of its own, or, under its group, in that of the group."""
    own = any(line.startswith(f"| `{' '.join(['warifu', *path])}") for line in ROWS)
    *group, name = path
    start = f"| `{' '.join(['warifu', *group])}`"
    return own or any(line.startswith(start) and f"`{name}`" in line for line in ROWS)


def test_readme_names_every_command() -> None:
    paths = []
    for name, command in commands(typer.main.get_command(app)).items():
        paths += [[name, below] for below in commands(command)] or [[name]]
    assert len(paths) > 20
    assert [path for path in paths if not named(path)] == []


def test_readme_links_the_pages() -> None:
    """By the start of them, which lists the rest (tests/unit/test_docs.py)."""
    assert "](docs/index.md)" in README

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A device for each module of tests; the versions of all programs at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from support import programs
from support.programs import Authority, Device


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who issues every certificate."""
    folder = tmp_path_factory.mktemp("authority")
    folder.chmod(0o755)
    return Authority(folder)


@pytest.fixture(scope="session")
def operator(authority: Authority) -> tuple[Path, Path]:
    """Certificate and key of the other side, in files."""
    return authority.pair(programs.OPERATOR)


@pytest.fixture
def device(tmp_path: Path, authority: Authority) -> Iterator[Device]:
    """A served card of its own for each test, and its trace."""
    made = Device(tmp_path, authority)
    with made.server:
        yield made


@pytest.fixture
def on_record(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Puts a foreign program and its version on record, for the table at the end."""

    def record(name: str, command: Iterable[object], pattern: str) -> None:
        programs.version(name, command, pattern)
        record_property("program", f"{name} {programs.VERSIONS[name]}")

    return record


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    rows = [
        (str(value), outcome)
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        for name, value in report.user_properties
        if name == "program"
    ]
    if rows:
        width = max(len(name) for name, _ in rows)
        terminalreporter.section("foreign programs with the card's key")
        for name, outcome in sorted(rows, key=lambda row: row[0].lower()):
            terminalreporter.write_line(f"{name:{width}}  {outcome}")
    if programs.VERSIONS:
        found = ", ".join(f"{name} {text}" for name, text in sorted(programs.VERSIONS.items()))
        terminalreporter.write_line(f"programs that used the card: {found}")

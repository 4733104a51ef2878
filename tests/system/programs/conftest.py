# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A device for each test; at the end all versions, and a row for each foreign program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from support import programs
from support.programs import Authority, Device
from warifu.printable import printable


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
def on_record(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Callable[..., None]:
    """Puts the version of the foreign program that a test is marked with on record."""
    name = _program(request.node)
    assert name is not None, "mark the test with the program's name"

    def record(command: Iterable[object], pattern: str) -> None:
        programs.version(name.partition(",")[0], command, pattern)
        record_property("version", programs.VERSIONS[name.partition(",")[0]])

    return record


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "foreign(name): a program that has a row in the table")


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[_NAMED] = {
        item.nodeid: name for item in session.items if (name := _program(item)) is not None
    }
    modules = {item.getparent(pytest.Module) for item in session.items}
    session.config.stash[_NOT_HERE] = [
        (name, "-", f"not run: {reason}")
        for module in modules
        if module is not None
        for name, reason in getattr(module.obj, "NOT_HERE", {}).items()
    ]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    named = config.stash.get(_NAMED, {})
    if named:
        rows = [*_rows(named, terminalreporter.stats), *config.stash[_NOT_HERE]]
        rows.sort(key=lambda row: row[0].lower())
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        terminalreporter.section("foreign programs with the card's key")
        for program, version, outcome in rows:
            terminalreporter.write_line(f"{program:{widths[0]}}  {version:{widths[1]}}  {outcome}")
    if programs.VERSIONS:
        found = ", ".join(f"{name} {text}" for name, text in sorted(programs.VERSIONS.items()))
        terminalreporter.write_line(f"programs that used the card: {found}")


#: Which program each test that was chosen is for.
_NAMED = pytest.StashKey[dict[str, str]]()
#: Rows of programs for which there can be no test; a module says so in `NOT_HERE`.
_NOT_HERE = pytest.StashKey[list[tuple[str, str, str]]]()


def _program(item: pytest.Item) -> str | None:
    mark = item.get_closest_marker("foreign")
    return None if mark is None else str(mark.args[0])


def _rows(
    named: dict[str, str], stats: dict[str, list[pytest.TestReport]]
) -> Iterator[tuple[str, str, str]]:
    """Program, version and result of every test that is for a program, whether or not it ran."""
    outcomes: dict[str, str] = {}
    versions: dict[str, str] = {}
    # What comes later counts: a test that passed may have left something that does not end.
    for outcome in ("passed", "skipped", "failed", "error"):
        for report in stats.get(outcome, []):
            outcomes[report.nodeid] = _outcome(outcome, report)
            found = dict(report.user_properties).get("version")
            if found is not None:
                versions[report.nodeid] = str(found)
    for test, program in named.items():
        yield program, versions.get(test, "-"), outcomes.get(test, "not run")


def _outcome(outcome: str, report: pytest.TestReport) -> str:
    """What became of a test, and why."""
    if outcome == "passed":
        return outcome
    if isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
    else:
        crash = getattr(report.longrepr, "reprcrash", None)
        reason = getattr(crash, "message", report.longreprtext)
    first = next(iter(reason.strip().splitlines()), "no reason given")
    return f"{outcome}: {printable(first[:_REASON])}"


#: Characters of a reason; pytest shows the rest.
_REASON = 160

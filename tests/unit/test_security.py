# SPDX-License-Identifier: Apache-2.0 OR MIT
"""SECURITY.md's tables name tests and files that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from support.paths import ROOT

#: Where a file may be that is named without its folder.
FOLDERS = ("", "tests/system", "crates/iotsafe", "fuzz/fuzz_targets")


def named() -> Iterator[str]:
    """What the last column of each row names."""
    for line in (ROOT / "SECURITY.md").read_text().splitlines():
        if line.startswith("| ") and not line.startswith("| asset"):
            column = line.rstrip("| ").rpartition("|")[2]
            found = re.findall(r"`([^`]+)`", column)
            assert found, f"no test is named: {line}"
            yield from found


def names_of_tests() -> set[str]:
    """Every function of the tests in both languages."""
    found: set[str] = set()
    rooms = ("crates", "dds", "fuzz/checks")
    rust = [path for room in rooms for path in (ROOT / room).rglob("*.rs")]
    sources = [*(ROOT / "tests").rglob("*.py"), *rust]
    for path in sources:
        found |= set(re.findall(r"\b(?:def|fn) (\w+)", path.read_text(encoding="utf-8")))
    return found


def exists(name: str, tests: set[str]) -> bool:
    if name == "make fuzz" or name in tests:
        return True
    paths = [Path(folder, name) for folder in FOLDERS]
    return any((ROOT / one).exists() or (ROOT / f"{one}.rs").exists() for one in paths)


def test_every_test_that_a_table_names_exists() -> None:
    tests = names_of_tests()
    missing = [one for one in named() if not exists(one, tests)]
    assert missing == []


def test_test_that_nobody_wrote_is_missing() -> None:
    assert not exists("test_of" + "_nothing", names_of_tests())

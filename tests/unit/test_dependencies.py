# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What others have written is taken by hash alone, and no lock names where it was taken from."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from support.paths import ROOT

FOREIGN = ROOT / "tests" / "system" / "programs" / "others"
LOCKS = [
    ROOT / "requirements.lock",
    ROOT / "scripts" / "conformance.lock",
    FOREIGN / "requirements.lock",
]
#: A command of pip that brings packages, with what stands behind it: other lines go on with it.
_PIP = re.compile(r'\bpip(?:\[@\]\})?"?,? (?:"|--\w[\w-]* )*"?(?:install|download)\b(?s:.{0,200})')
_SAFE = ("--require-hashes", "--no-index")


def programs() -> list[Path]:
    """Scripts, and the Python that runs pip."""
    found = [ROOT / "Makefile", *ROOT.glob("scripts/*"), *ROOT.glob("bench/*")]
    found += [*(ROOT / "tests").rglob("*.py"), *(ROOT / "python").rglob("*.py")]
    return [one for one in found if one.is_file() and one != Path(__file__)]


def unsafe(text: str) -> list[str]:
    """Commands of pip that would take a package whatever its content is."""
    return [one for one in _PIP.findall(text) if not any(word in one for word in _SAFE)]


def test_pip_takes_packages_by_hash_alone() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {command}"
        for path in programs()
        for command in unsafe(path.read_text(encoding="utf-8", errors="ignore"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('"${pip[@]}"; pip install "a==1" b', 1),
        ("pip install --quiet \\\n  --require-hashes -r x", 0),
        ("pip download --no-deps \\\n  a", 1),
        ("python -m pip install --no-index a", 0),
    ],
)
def test_commands_of_pip_that_take_anything_are_found(text: str, count: int) -> None:
    assert len(unsafe(text)) == count


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.parent.name)
def test_every_locked_package_has_a_hash(lock: Path) -> None:
    text = lock.read_text()
    names = re.findall(r"^([\w.-]+)==", text, re.MULTILINE)
    entries = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert len(names) == len(entries) > 0
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in "\n".join(line for line in text.splitlines() if not line.startswith("#"))


def test_packages_of_other_registries_have_hashes() -> None:
    lock = json.loads((FOREIGN / "package-lock.json").read_text())
    packages = {name: one for name, one in lock["packages"].items() if name}
    assert packages
    assert [name for name, one in packages.items() if "integrity" not in one] == []
    sums = (FOREIGN / "go.sum").read_text()
    wanted = re.findall(
        r"^\s*(?:require )?(\S+/\S+) (v\S+)", (FOREIGN / "go.mod").read_text(), re.M
    )
    assert wanted
    assert [one for one in wanted if f"{one[0]} {one[1]} h1:" not in sums] == []


def test_every_crate_is_locked_with_its_checksum() -> None:
    for lock in (ROOT / "Cargo.lock", ROOT / "fuzz" / "Cargo.lock"):
        packages = tomllib.loads(lock.read_text())["package"]
        assert [one["name"] for one in packages if "source" in one and "checksum" not in one] == []

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What others have written is taken by hash alone, and no lock names where it was taken from."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from support.paths import ROOT

FOREIGN = ROOT / "tests" / "system" / "programs" / "others"
LOCKS = [
    ROOT / "requirements.lock",
    ROOT / "scripts" / "conformance.lock",
    ROOT / "scripts" / "docs.lock",
    FOREIGN / "requirements.lock",
    FOREIGN / "ros2.lock",
]
#: A command of pip that brings packages, with what stands behind it: other lines go on with it.
_PIP = re.compile(r'\bpip(?:\[@\]\})?"?,? (?:"|--\w[\w-]* )*"?(?:install|download)\b(?s:.{0,200})')
_SAFE = ("--require-hashes", "--no-index")


def programs() -> list[Path]:
    """Scripts, and the Python that runs pip."""
    found = [ROOT / "Makefile", ROOT / "Dockerfile", *ROOT.glob("scripts/*"), *ROOT.glob("bench/*")]
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


def own_root(folder: Path, script: str, *programs: Path) -> None:
    """A folder with one of our scripts, and programs that write down what they were asked."""
    (folder / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / script, folder / "scripts")
    for one in programs:
        (folder / one).parent.mkdir(parents=True, exist_ok=True)
        (folder / one).write_text(
            f'#!/bin/sh\necho {one.name} "$@" >>"{folder}/asked"\n'
            f'[ "$1" != --version ] || echo {one.name} "$VERSION"\n[ {one.name} != python3 ]\n'
        )
        (folder / one).chmod(0o755)


def asked(folder: Path, script: str, **variables: str) -> list[str]:
    """What a script asked of those programs."""
    environment = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", **variables}
    subprocess.run([folder / "scripts" / script], env=environment, check=False, timeout=30)
    log = folder / "asked"
    return log.read_text().splitlines() if log.exists() else []


LOCK = "python-pkcs11==0.10.1\n"


@pytest.mark.parametrize(
    ("installed", "again"),
    [(None, True), ("another lock\n", True), (LOCK, False)],
    ids=["broken off", "another lock", "this lock"],
)
def test_conformance_installs_what_the_lock_says(
    tmp_path: Path, installed: str | None, again: bool
) -> None:
    """The folder alone says nothing of what is in it."""
    own_root(tmp_path, "conformance", Path("bin/python3"))
    (tmp_path / "scripts" / "conformance.lock").write_text(LOCK)
    home = tmp_path / "target" / "conformance"
    (home / "python_pkcs11-0.10.1").mkdir(parents=True)
    if installed is not None:
        digest = hashlib.sha256(installed.encode()).hexdigest()
        (home / "installed.sha256").write_text(f"{digest}\n")
    assert bool(asked(tmp_path, "conformance")) == again


def test_dependencies_of_both_workspaces_are_checked(tmp_path: Path) -> None:
    deny = Path("target/tools/bin/cargo-deny")
    own_root(tmp_path, "dependencies", deny, Path("bin/cargo"))
    text = (ROOT / "scripts" / "dependencies").read_text()
    version = re.search(r"^DENY=(.+)$", text, re.MULTILINE)
    assert version
    checks = [one for one in asked(tmp_path, "dependencies", VERSION=version[1]) if "check" in one]
    manifests = [re.findall(r"--manifest-path (\S+)", one) for one in checks]
    assert manifests == [["Cargo.toml"], ["fuzz/Cargo.toml"]]
    assert all({"licenses", "bans", "sources"} <= set(one.split()) for one in checks)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""munacl's assembly with an instruction changed: its portable twins must see it."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.paths import ROOT
from warifu.reproduce import munacl_checks as checks

MUNACL = ROOT / "firmware" / "munacl"
#: A carry or a borrow forgotten, and a sign mistaken: what chance hides best.
CHANGES = {"adcs": "adds", "adc": "add", "sbcs": "subs", "sbc": "sub", "adds": "subs"}
CHANGE = re.compile(rf"^(\s+)({'|'.join(CHANGES)})\b")
FILES = (
    "fe25519/armv7m.S",
    "fe25519/product.inc",
    "scalarmult_curve25519/ladder_armv7m.S",
    "onetimeauth_poly1305/blocks_armv7m.S",
    "hash_sha512/blocks_armv7m.S",
)
#: Of each file. Of 140 tried once two survived for good: no input carries there.
TRIED = 6


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("twins") / "munacl"
    shutil.copytree(MUNACL, folder, ignore=shutil.ignore_patterns("build"))
    return folder


def build(folder: Path) -> Path:
    program = folder / "out" / "fast" / "twins.elf"
    command = ["make", "--silent", "-C", str(folder), f"BUILD={folder / 'out'}", "PROFILE=fast"]
    subprocess.run([*command, str(program)], check=True, timeout=120)
    return program


def changed(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The numbers of some lines, with what they are changed to."""
    there = [number for number, line in enumerate(lines) if CHANGE.match(line)]
    for number in random.Random(12).sample(there, TRIED):
        yield number, CHANGE.sub(lambda found: found[1] + CHANGES[found[2]], lines[number])


@pytest.mark.parametrize("name", FILES)
def test_changed_assembly_differs_from_its_twins(copy: Path, name: str) -> None:
    file = copy / "src" / name
    text = file.read_text()
    assert checks.twins(build(copy)).problems == ()
    survivors = []
    for number, line in changed(text.splitlines()):
        lines = text.splitlines()
        lines[number] = line
        file.write_text("\n".join(lines) + "\n")
        # Make goes by whole seconds, and knows nothing of what assembly includes.
        for made in (copy / "out").rglob("*.o"):
            if made.with_suffix(".S").name in {path.name for path in copy.rglob("*.S")}:
                made.unlink()
        if checks.twins(build(copy)).holds:
            survivors.append(f"{name}:{number + 1}: {line.strip()}")
    file.write_text(text)
    assert len(survivors) <= 1, survivors

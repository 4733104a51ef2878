# SPDX-License-Identifier: Apache-2.0 OR MIT
"""munacl on the simulated chip: published answers that take minutes, those of four MiB,
and the inputs that its fuzz target begins with."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support import munacl_seeds, needs
from support.paths import ROOT
from warifu import m3
from warifu.reproduce import munacl_checks as checks

VECTORS = ROOT / "vectors"
DIGESTS = checks.read_vectors(VECTORS, "nacl", "digests.txt")


@pytest.mark.parametrize("name", checks.SOURCES)
def test_all_published_vectors_of_the_small_profile(build: Callable[..., Path], name: str) -> None:
    expected = checks.read_vectors(VECTORS, name)
    found = checks.vectors(build("small", "answers.elf"), expected)
    assert found == checks.Check(f"{len(expected):,} vectors", ())


@pytest.mark.parametrize(("call", "digest"), DIGESTS, ids=[call.split()[0] for call, _ in DIGESTS])
def test_four_mebibytes_of_a_stream_have_nacls_digest(
    build: Callable[..., Path], profile: str, call: str, digest: str
) -> None:
    sha = hashlib.sha256()
    size = 0

    def take(text: bytes) -> None:
        nonlocal size
        size += len(text) // 2
        sha.update(bytes.fromhex(text.decode()))

    options = m3.Options(input=call.encode() + b"\n")
    run = m3.run(str(build(profile, "long.elf")), options, take)
    assert (run.code, size) == (0, 4 << 20)
    assert sha.hexdigest() == digest


@needs.program("valgrind")
@pytest.mark.parametrize("name", checks.SOURCES)
def test_published_vectors_under_valgrind(
    build_host: Callable[..., Path], profile: str, name: str
) -> None:
    expected = checks.read_vectors(VECTORS, name)
    expected = [(call, result) for call, result in expected if checks.LONG not in call]
    expected = expected[:: max(1, len(expected) // 60)]
    done = subprocess.run(
        ["valgrind", "--quiet", "--error-exitcode=9", build_host(profile, "plain")],
        input="\n".join(call for call, _ in expected) + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [result for _, result in expected]


@needs.program("clang")
def test_seeds_of_the_fuzz_target_open_and_keep_its_rules(
    build_host: Callable[..., Path], profile: str, tmp_path: Path
) -> None:
    valid = munacl_seeds.write(tmp_path)
    command = [build_host(profile, "fuzz"), *sorted(tmp_path.iterdir())]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert valid >= 30
    (line,) = re.findall("fuzz: (\\d+) of (\\d+) foreign inputs opened", done.stderr)
    # The fuzzer runs an empty input first, and the first file twice.
    assert valid <= int(line[0]) <= valid + 1
    assert int(line[1]) > valid + 20

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The device profile of munacl that is shipped: what the benchmark of its primitives gives."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from support.paths import ROOT

Build = Callable[..., Path]
Run = Callable[..., tuple[int, str, str]]


def test_shipped_profile_is_what_the_benchmark_gives(
    warifu: Run, build: Build, tmp_path: Path
) -> None:
    elf = build("fast", "primitives-lpc1768.elf")
    # The chip, clock and wait states of `make bench`.
    makefile = (ROOT / "firmware" / "munacl" / "Makefile").read_text()
    found = re.search(r"calibrate m3 \S+ (.*?)--out ../../(\S+)", makefile, re.DOTALL)
    assert found is not None
    options = found[1].replace("\\\n", "").split()
    file = tmp_path / Path(found[2]).name
    code, _, err = warifu("calibrate", "m3", elf, *options, "--out", file)
    assert code == 0, err
    assert file.read_text() == (ROOT / found[2]).read_text(), "make -C firmware/munacl bench"

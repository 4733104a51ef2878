# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What `make bench` shows of the link's precision, whichever way it ends."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from support.paths import ROOT

TABLE = "check  n  expected  measured  passes  verdict"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """bench/bench.py, whose programs are in a folder of the test's."""
    spec = importlib.util.spec_from_file_location("bench", ROOT / "bench" / "bench.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look their module up.
    monkeypatch.setitem(sys.modules, "bench", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "BIN", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return module


def ending(folder: Path, code: int, *, measured: bool) -> None:
    """A program with the real one's interface, since no machine misses a bound when asked to."""
    program = folder / "warifu-link"
    lines = ["#!/bin/sh", '[ "$1 $2" = "precision --output" ] || exit 2']
    lines += ['echo "{}" > "$3"', f'echo "{TABLE}"'] if measured else ["echo refused >&2"]
    program.write_text("\n".join([*lines, f"exit {code}"]) + "\n")
    program.chmod(0o755)


@pytest.mark.parametrize("code", [0, 1])
def test_table_is_shown_also_where_a_check_missed(
    bench: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str], code: int
) -> None:
    ending(tmp_path, code, measured=True)
    bench.link(bench.QUICK)
    assert TABLE in capfd.readouterr().out


@pytest.mark.parametrize("code", [1, 2])
def test_what_could_not_be_measured_is_said(bench: ModuleType, tmp_path: Path, code: int) -> None:
    ending(tmp_path, code, measured=False)
    with pytest.raises(bench.MissingError, match=r"precision"):
        bench.link(bench.QUICK)

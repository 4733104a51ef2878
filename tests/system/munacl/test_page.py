# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What docs/reference/munacl.md shows, files and commands, in a clone without anything built."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import needs
from support.paths import ROOT

MUNACL = ROOT / "firmware" / "munacl"
PAGE = (ROOT / "docs" / "reference" / "munacl.md").read_text(encoding="utf-8")
#: Blocks with the last line before each.
_BLOCK = re.compile(r"([^\n]*)\n\n```(\w+)\n(.*?)```", re.DOTALL)
#: What other tests run, or nobody without a board can: the benchmark and `reproduce` write
#: profiles and take minutes (test_make.py, test_reproduce.py).
_ELSEWHERE = ("bench  ", "bench\n", "reproduce", "--port", "cells estimate")


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## )", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None, title
    return found[1]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    shutil.copytree(
        MUNACL, tmp_path / "firmware" / "munacl", ignore=shutil.ignore_patterns("build")
    )
    return tmp_path


def shell(script: str, folder: Path) -> str:
    start = "import sys; from warifu.cli import main; sys.exit(main())"
    function = f'warifu() {{ "{sys.executable}" -c "{start}" "$@"; }}\n'
    environment = {key: value for key, value in os.environ.items() if key != "WARIFU_PROFILES"}
    done = subprocess.run(
        ["bash", "-ec", function + script], cwd=folder, env=environment, capture_output=True,
        text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, (script, done.stdout, done.stderr)
    return done.stdout


def test_page_shows_the_first_program_as_it_is() -> None:
    ((where, code),) = [
        (before, code) for before, kind, code in _BLOCK.findall(section("A first program"))
        if kind == "c"
    ]  # fmt: skip
    name = where.strip("`:")
    assert code == (ROOT / name).read_text()


@needs.program("cmake")
@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=needs.program("clang"))])
def test_first_program_is_built_in_each_way_of_the_page(clone: Path, compiler: str) -> None:
    runs, printed = 0, ""
    for before, kind, code in _BLOCK.findall(section("A first program")):
        if kind == "sh":
            script = code
            if compiler == "clang":
                # As the page says.
                script = script.replace("gcc.cmake", "clang.cmake")
                script = script.replace(
                    "make -C firmware/munacl\n", "make -C firmware/munacl CC=clang\n"
                )
            printed += shell(script, clone)
            runs += code.count("warifu m3 run ")
        elif kind != "c":
            name = re.search(r"`(first/\S+)`", before)
            assert name is not None, before
            (clone / name[1]).write_text(code)
    assert runs == 3
    assert printed.count("opened: hello\nforged: refused\n") == runs
    # NaCl's own names, by the installed library.
    main = clone / "first" / "main.c"
    main.write_text(
        main.read_text().replace('"munacl.h"', "<crypto_box.h>\n#include <crypto_scalarmult.h>")
    )
    again = "cmake --build B && warifu m3 run B/first.elf --chip lpc1768"
    assert "opened: hello" in shell(again.replace("B", "first/build-small"), clone)


def test_commands_of_the_page_run(clone: Path) -> None:
    """Those of the other sections that need no board and no minutes."""
    rest = PAGE.replace(section("A first program"), "")
    blocks = [code.replace("\\\n", " ") for _, kind, code in _BLOCK.findall(rest) if kind == "sh"]
    lines = [f"{line}\n" for code in blocks for line in code.splitlines()]
    ours = [line for line in lines if not any(word in line for word in _ELSEWHERE)]
    assert len(ours) >= 4 and any("m3 run" in line for line in ours)
    assert "# end rows=29" in shell("".join(ours), clone)

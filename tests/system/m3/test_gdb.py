# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The real gdb at `warifu m3 run --gdb`."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support import needs
from support.gdb import Halted, halted
from support.m3_programs import BARE, compiled
from support.paths import ROOT
from warifu import m3

pytestmark = needs.program("gdb-multiarch")

SOURCE = """
int counter;
int table[4] = {1, 2, 3, 4};
void print(const char *text);
__attribute__((noipa)) int add(int a, int b)
{
    counter += a;
    return a + b;
}
int main(void)
{
    int sum = 0;
    for (int i = 1; i <= 5; i++)
        sum = add(i, sum);
    print("done\\n");
    return sum == 15 ? 7 : 1;
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Calls `add` five times, prints a line, and exits with 7."""
    source = tmp_path / "calls.c"
    source.write_text(SOURCE)
    return compiled(tmp_path / "calls.elf", *BARE, "-Og", str(source))


def gdb(elf: Path, one: Halted, *commands: str) -> str:
    """What gdb prints to commands, after it has connected."""
    command = ["gdb-multiarch", "-nx", "-batch", str(elf), "-ex", f"target remote :{one.port}"]
    for each in ("set confirm off", "set width 0", *commands):
        command += ["-ex", each]
    pipe = subprocess.PIPE
    done = subprocess.run(
        command, stdout=pipe, stderr=subprocess.STDOUT, text=True, timeout=120, check=False
    )
    assert "Remote" not in done.stdout.replace("Remote target", ""), done.stdout
    return done.stdout


@pytest.mark.smoke
def test_breakpoints_steps_watchpoints_and_exit_code(program: Path) -> None:
    with halted(program, "--format", "csv") as one:
        shown = gdb(
            program,
            one,
            "break add",
            "continue",
            "info args",
            "backtrace",
            "finish",
            "delete",
            "watch counter",
            "continue",
            "delete",
            "stepi",
            "hbreak print",
            "continue",
            "print counter",
            "info registers control",
            "delete",
            "continue",
        )
        exit_code, out, err = one.ended()
    assert "a = 1\nb = 0\n" in shown
    assert re.search(r"#1 +0x\w+ in main \(\) at .*calls\.c:14", shown)
    assert "Value returned is $1 = 1" in shown
    assert "Old value = 1\nNew value = 3" in shown
    assert "$2 = 15" in shown
    assert re.search(r"control +0x0", shown)
    assert "exited with code 07]" in shown
    plain = m3.run(program)
    assert (exit_code, out) == (7, "done\n")
    assert f"cycles,{plain.cycles.low},{plain.cycles.high}" in err


def test_registers_memory_and_monitor_commands(program: Path) -> None:
    with halted(program) as one:
        shown = gdb(
            program,
            one,
            "break add",
            "continue",
            "print table",
            "set var table[1] = 77",
            "print table",
            "x/xw 0xe000ed00",
            "print $msp == $sp",
            "monitor cycles",
            "monitor reset",
            "maintenance flush register-cache",
            "print $pc == (long) start_c & ~1",
            "monitor cycles",
            "set var $r0 = 3",
            "print $r0",
            "kill",
        )
        exit_code, _, err = one.ended()
    assert "{1, 2, 3, 4}" in shown
    assert "{1, 77, 3, 4}" in shown
    assert "0x412fc231" in shown
    assert "$3 = 1" in shown
    assert "0 cycles, 0 instructions since reset" in shown
    assert re.search(r"^[1-9]\d*( to \d+)? cycles, \d+ instructions since reset", shown, re.M)
    assert "$5 = 3" in shown
    assert (exit_code, "killed by the debugger" in err) == (137, True)


def test_load_after_a_run_begins_it_anew(program: Path) -> None:
    """On a chip with flash, which gdb erases and writes."""
    script = ROOT / "crates" / "m3" / "test-programs" / "mps2-an385.ld"
    text = script.read_text().replace("0x20000000, LENGTH = 4M", "0x20000000, LENGTH = 20K")
    text = text.replace("0x00000000, LENGTH = 4M", "0x08000000, LENGTH = 128K")
    (program.parent / "stm32f103.ld").write_text(text)
    flags = [str(program.parent / "stm32f103.ld") if "ld" in one else one for one in BARE]
    elf = compiled(program.parent / "f103.elf", *flags, str(program.parent / "calls.c"))
    with halted(elf, "--chip", "stm32f103") as one:
        shown = gdb(
            elf,
            one,
            "break main",
            "continue",
            "info mem",
            "load",
            "monitor reset",
            "maintenance flush register-cache",
            "continue",
            "delete",
            "continue",
        )
        exit_code, out, _ = one.ended()
    assert re.search(r"0x08000000 0x08020000 flash", shown), shown
    assert "Loading section .text" in shown
    assert shown.count("Breakpoint 1, main") == 2
    assert (exit_code, out) == (7, "done\n")


def test_fault_is_a_signal_with_its_reason(tmp_path: Path) -> None:
    elf = compiled(tmp_path / "wild.elf", *BARE, "command-line/ends.c", "-DEND=WILD_JUMP")
    with halted(elf) as one:
        shown = gdb(elf, one, "continue", "monitor why", "kill")
        exit_code, out, _ = one.ended()
    assert "wild jump to 0x30000000, where there is no memory" in shown
    assert "Program received signal SIGSEGV" in shown
    assert (exit_code, out) == (137, "begins\n")


def test_backtrace_of_an_exception_handler(tmp_path: Path) -> None:
    elf = compiled(tmp_path / "sleep.elf", *BARE, "programs/sleep.c")
    with halted(elf) as one:
        shown = gdb(
            elf, one, "break sys_tick", "continue", "backtrace", "print $xpsr & 511", "kill"
        )
        one.ended()
    assert "<signal handler called>" in shown
    assert re.search(r"#2 +0x\w+ in main|#2 +main", shown), shown
    assert "$1 = 15" in shown


def test_examples_of_the_manual(program: Path, tmp_path: Path) -> None:
    manual = (ROOT / "docs" / "reference" / "m3.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", manual, re.MULTILINE | re.DOTALL)
    used = [block for block in blocks if "--gdb" in block or "--trace" in block]
    assert len(used) == 2
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "hello.elf").write_bytes(program.read_bytes())
    (tmp_path / "warifu").write_text(f'#!/bin/sh\nexec {sys.executable} -m warifu.cli "$@"\n')
    (tmp_path / "warifu").chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = [
        subprocess.run(
            ["sh", "-c", block.replace("3333", str(port))],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        for block in used
    ]
    debugged, traced = done
    assert "Breakpoint 1, main" in debugged.stdout, debugged
    assert "instructions since reset" in debugged.stderr
    assert "done\n" in debugged.stdout
    assert traced.returncode == 7, traced
    assert "main" in (tmp_path / "trace.txt").read_text()

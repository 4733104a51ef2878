# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Instructions a second of the simulated Cortex-M3, plain and following secrets, beside QEMU's.

The same program runs in all of them, in turns; what QEMU needs to start is taken off by a program
that ends at once. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "crates" / "m3" / "test-programs"
EXAMPLES = ROOT / "target" / "release" / "examples"
TARGETS = {"plain": 100.0, "taint": 25.0}
QEMU = (
    *("qemu-system-arm", "-M", "mps2-an385", "-cpu", "cortex-m3", "-display", "none"),
    *("-monitor", "none", "-serial", "none", "-chardev", "stdio,id=console"),
    *("-semihosting-config", "enable=on,target=native,chardev=console", "-kernel"),
)


def compiled(source: Path, folder: Path) -> Path:
    """One of the test programs as an ELF file."""
    elf = folder / f"{source.stem}.elf"
    flags = ("-mcpu=cortex-m3", "-mthumb", "-O2", "-ffreestanding", "-nostartfiles")
    linked = ("-T", PROGRAMS / "mps2-an385.ld", PROGRAMS / "start.c", source, "-o", elf)
    subprocess.run(["arm-none-eabi-gcc", *flags, *linked], check=True)
    return elf


def ours(example: str, elf: Path) -> tuple[float, float, str]:
    """Millions of instructions, of them a second, and what the program printed."""
    command = [EXAMPLES / example, elf]
    out = subprocess.run(
        command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    ).stdout
    found = re.search(r"([\d.]+) M instructions.* ([\d.]+) M/s", out)
    if not found:
        raise SystemExit(f"{example} printed no speed: {out!r}")
    return float(found[1]), float(found[2]), out.splitlines()[0]


def qemu_s(elf: Path) -> tuple[float, str]:
    """Seconds that QEMU takes in all, and what the program printed."""
    begin = time.perf_counter()
    done = subprocess.run(
        [*QEMU, elf], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    return time.perf_counter() - begin, done.stdout.strip()


def main() -> int:
    """Runs all in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="runs of each")
    runs = parser.parse_args().runs
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        if shutil.which(tool) is None:
            print(f"{tool} is missing: run scripts/setup --with bench", file=sys.stderr)
            return 1
    build = ["cargo", "build", "--quiet", "--release", "--locked", "-p", "warifu-m3", "--examples"]
    subprocess.run(build, cwd=ROOT, check=True)
    speeds: dict[str, list[float]] = {"plain": [], "taint": [], "qemu": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        elf = compiled(PROGRAMS / "bench" / "mixed.c", folder)
        (folder / "nothing.c").write_text("int main(void) { return 0; }\n")
        nothing = compiled(folder / "nothing.c", folder)
        printed: set[str] = set()
        for _ in range(runs):
            for example, key in (("run", "plain"), ("taint", "taint")):
                millions, speed, text = ours(example, elf)
                speeds[key].append(speed)
                printed.add(text)
            took_s, text = qemu_s(elf)
            speeds["qemu"].append(millions / (took_s - qemu_s(nothing)[0]))
            printed.add(text)
        if len(printed) != 1:
            raise SystemExit(f"the simulators do not agree: {printed}")
    median: Callable[[list[float]], float] = statistics.median
    figures = {
        key: {
            "median": round(median(values), 1),
            "least": min(values),
            "most": max(values),
            "n": runs,
        }
        for key, values in speeds.items()
    }
    result = {"millions_of_instructions": millions, "targets": TARGETS, "m_per_s": figures}
    print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Programs on a Cortex-M3 in software, which counts cycles as the chip does (crates/warifu-m3).

    from warifu import m3
    run = m3.run("program.elf")
    print(run.cycles.high, run.output.decode())

Every figure is *emulated*: the program is real, the chip is ours.
"""

from warifu.m3.running import CHIPS, Cycles, Mark, Options, Run, run

__all__ = ["CHIPS", "Cycles", "Mark", "Options", "Run", "run"]

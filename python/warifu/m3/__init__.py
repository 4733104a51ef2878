# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A Cortex-M3 simulator with cycle counts (crates/m3).

    from warifu import m3
    run = m3.run("program.elf")
    print(run.cycles.high, run.output.decode())
    for function in m3.profile("program.elf").functions[:10]:
        print(function.name, function.exclusive)

Every figure is *emulated*: the program is real, the chip is simulated.
"""

from warifu.m3.allowing import AllowList
from warifu.m3.chips import CHIPS, Chip, chip
from warifu.m3.debugging import debugger
from warifu.m3.profiling import Profile, profile
from warifu.m3.running import KIND, MAX_OUTPUT, Cycles, Mark, Options, Run, run
from warifu.m3.sizing import Sizes, size
from warifu.m3.tainting import Leak, Taint, taint
from warifu.m3.tracing import Part, Trace, trace

__all__ = [
    "CHIPS",
    "KIND",
    "MAX_OUTPUT",
    "AllowList",
    "Chip",
    "Cycles",
    "Leak",
    "Mark",
    "Options",
    "Part",
    "Profile",
    "Run",
    "Sizes",
    "Taint",
    "Trace",
    "chip",
    "debugger",
    "profile",
    "run",
    "size",
    "taint",
    "trace",
]

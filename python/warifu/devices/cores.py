# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Cores by the names that profiles have, and which of them are alike."""

from __future__ import annotations

#: The instruction set decides what a multiplication of two words takes, and so a curve.
_FAMILIES = {
    "armv6-m": ("cortex-m0", "cortex-m0plus", "cortex-m1", "cortex-m23"),
    "armv7-m": ("cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m35p", "cortex-m55"),
    "armv7-a": ("cortex-a5", "cortex-a7", "cortex-a8", "cortex-a9", "cortex-a15"),
    "armv8-a": ("cortex-a35", "cortex-a53", "cortex-a55", "cortex-a72", "cortex-a76"),
    "xtensa": ("xtensa-lx6", "xtensa-lx7"),
    "riscv32": ("rv32imc", "rv32imac"),
    "riscv64": ("rv64gc",),
    "x86": ("x86-64",),
}
FAMILY = {core: family for family, cores in _FAMILIES.items() for core in cores}
KNOWN = tuple(FAMILY)
#: Families whose cores begin one instruction in a cycle; a Cortex-M7 begins two.
ONE_A_CYCLE = ("armv6-m", "armv7-m", "xtensa", "riscv32")

#: Arm's own spelling, and what people type.
_ALSO = {
    "cortex-m0+": "cortex-m0plus",
    "m0+": "cortex-m0plus",
    "esp32": "xtensa-lx6",
    "esp32-c3": "rv32imc",
    "rv32": "rv32imc",
    "aarch64": "cortex-a53",
    "amd64": "x86-64",
    "x86_64": "x86-64",
}


def named(text: str) -> str:
    """The name in profiles for what people call a core: `Cortex-M4F`, `m4`."""
    word = text.strip().lower().replace("_", "-").replace(" ", "-")
    if word in _ALSO or word in FAMILY:
        return _ALSO.get(word, word)
    for spelled in (word, f"cortex-{word}"):
        # M4F is an M4 with a floating-point unit.
        for one in (spelled, spelled.removesuffix("f")):
            if one in FAMILY:
                return one
    return word


def family(core: str | None) -> str | None:
    """The family of a core; None of one that is not known."""
    return FAMILY.get(core or "")

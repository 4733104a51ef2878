# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The longest instruction that each of munacl's functions may run, by the library's disassembly,
and the table of docs/reference/munacl.md that says so beside the stack of each.

An interrupt waits for the instruction in progress, except that a Cortex-M3 continues loads and
stores of several registers afterwards, and begins divisions again (its Technical Reference Manual,
DDI 0337I, section 3.9.1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

#: Cycles of a pipeline refill, at most (DDI 0337I section 3.3.1).
REFILL = 3
#: What masks interrupts or waits: none may be there.
MASKING = ("cps", "msr", "wfi", "wfe", "svc", "bkpt", "isb", "dsb", "dmb")
_SECTION = re.compile(r"Disassembly of section (\S+):")
_MEMBER = re.compile(r"(\S+):\s+file format elf32")
_SYMBOL = re.compile(r"[0-9a-f]{8} (..).{5} (\S+)\t[0-9a-f]{8} (?:\.hidden )?(\S+)")
_RELOCATION = re.compile(r"\s+[0-9a-f]+: R_ARM_\w+\t([^\s+]+)")
_INSTRUCTION = re.compile(r"\s+[0-9a-f]+:\t[0-9a-f ]+\t([^\t]+)\t?([^@;]*)")


@dataclass
class Section:
    """A function's code: its own longest instruction, and the symbols that it refers to."""

    cycles: int = 0
    of: str = ""
    """The mnemonic of the longest."""
    symbols: set[str] = field(default_factory=set)


def cycles(mnemonic: str, operands: str) -> int:
    """For how long an instruction keeps an interrupt waiting, at zero wait states, at most."""
    name = mnemonic.split(".")[0]
    to_pc = operands.strip().startswith("pc") or re.search(r"\{[^}]*pc\}", operands)
    if name.startswith(("ldm", "stm", "push", "pop")):
        # One register's transfer, and the next instructions where PC is the last.
        return 2 + REFILL if to_pc else 2
    if name.startswith(("tbb", "tbh")):
        return 2 + REFILL
    if name.startswith(("ldrd", "strd")):
        return 3
    if name.startswith(("ldr", "str")):
        return 2 + REFILL if to_pc else 2
    if name.startswith(("mla", "mls")):
        return 2
    if name.startswith(("umull", "smull")):
        return 5
    if name.startswith(("umlal", "smlal")):
        return 7
    if re.fullmatch(r"(b|bl|bx|blx)(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|lo|hs)?|cbn?z", name):
        return 1 + REFILL
    return 1 + REFILL if to_pc and name.startswith(("mov", "add")) else 1


def instructions(listing: str) -> list[tuple[str, str]]:
    """Every instruction's mnemonic and operands, of an archive or a program."""
    found = (_INSTRUCTION.match(line) for line in listing.splitlines())
    return [(one[1], one[2]) for one in found if one and not one[1].startswith(".")]


def masking(listing: str) -> list[str]:
    """Instructions that mask interrupts, or wait for something."""
    return [name for name, _ in instructions(listing) if name.startswith(MASKING)]


def longest(listing: str) -> dict[str, tuple[int, str]]:
    """By global function of an archive (`munacl_builds.listing`): the cycles of the longest
    instruction that a call of it may run, libc's functions apart, and its mnemonic."""
    sections: dict[tuple[str, str], Section] = {}
    named: dict[tuple[str, str], tuple[str, str]] = {}
    everywhere: dict[str, tuple[str, str]] = {}
    member, current = "", Section()
    for line in listing.splitlines():
        if match := _MEMBER.match(line):
            member = match[1]
        elif match := _SYMBOL.match(line):
            binding, section, name = match.groups()
            if section.startswith(".text"):
                named[member, name] = (member, section)
                if binding[0] == "g" or binding[1] == "w":
                    everywhere[name] = (member, section)
        elif match := _SECTION.match(line):
            current = sections.setdefault((member, match[1]), Section())
            named[member, match[1]] = (member, match[1])
        elif match := _RELOCATION.match(line):
            current.symbols.add(match[1])
        elif (match := _INSTRUCTION.match(line)) and not match[1].startswith("."):
            count = cycles(match[1], match[2])
            if count > current.cycles:
                current.cycles, current.of = count, match[1]
    result = {}
    for name, start in everywhere.items():
        reached, to_do = {start}, [start]
        while to_do:
            one = to_do.pop()
            for symbol in sections[one].symbols:
                target = named.get((one[0], symbol)) or everywhere.get(symbol)
                if target in sections and target not in reached:
                    reached.add(target)
                    to_do.append(target)
        worst = max((sections[one] for one in reached), key=lambda section: section.cycles)
        result[name] = (worst.cycles, worst.of)
    return result


def table(stacks: Mapping[str, Mapping[str, int]], listings: Mapping[str, str]) -> list[str]:
    """The lines of the page's table, of each profile's stack by function and `listing`."""
    waits = {profile: longest(listing) for profile, listing in listings.items()}
    lines = [
        "| call | stack of `fast`, B | of `small`, B | longest wait for an instruction, cycles |",
        "|---|---|---|---|",
    ]
    for name, fast in stacks["fast"].items():
        wait = max(waits[profile][name][0] for profile in listings)
        lines.append(f"| `{name}` | {fast:,} | {stacks['small'][name]:,} | {wait} |")
    return lines

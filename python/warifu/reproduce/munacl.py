# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The paper on a NaCl for the Cortex-M3 beside munacl (firmware/munacl) on the simulated chip."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

from warifu import m3
from warifu.report.table import Column, Table
from warifu.reproduce import munacl_checks as checks

PROFILES = ("fast", "small")
#: Whose map the programs for wait states have.
CHIP = "lpc1768"
ZERO_WAIT = "simulated at zero wait states; the paper's figures are a board's"
#: FIPS 140-2 (change notice 1): the runs of each length, 6 standing for all longer ones, that
#: 20,000 random bits have.
_RUNS = {
    1: (2315, 2685),
    2: (1114, 1386),
    3: (527, 723),
    4: (240, 384),
    5: (103, 209),
    6: (103, 209),
}
_BITS = 20_000
#: What no run in the simulator says of a board, and why.
_UNPROMISED = {
    "cycles from flash": (
        "the band is at zero wait states; with them (--wait-states) it is assumed: no board has "
        "confirmed the model of line buffers and prefetch"
    ),
    "constants in flash": (
        "published programs with tables in flash were up to 3 % slower on boards than here; "
        "boards/ram puts the constants into RAM"
    ),
    "other bus masters": (
        "DMA and peripherals that share a bus or a memory delay the core; nothing else uses them "
        "here"
    ),
    "interrupts": (
        "none is taken here; on a board each adds its own time, and where code is interrupted may "
        "be seen from outside"
    ),
    "equal cycles": (
        "they are equal by the rules of crates/m3/src/timing/rules.toml, which follow Arm's manual "
        "and published measurements; a chip that differs from them is not covered"
    ),
    "power and radiation": "not simulated: equal time says nothing of either, nor of faults",
    "random numbers": (
        "the simulator's memory has no power-up state: millibits_per_cell needs captures of the "
        "chip (`warifu cells`)"
    ),
}
#: The paper's figure for the first is that of a refused box; sealing does as much as opening.
_OPEN = "crypto_secretbox_xsalsa20poly1305_open"
_SEAL = "crypto_secretbox_xsalsa20poly1305"
#: What the columns of other libraries are.
_PEERS = {
    "monocypher": (
        "Monocypher, from MUNACL_PEERS: with UMULL, whose time depends on secrets here; EdDSA with "
        "BLAKE2b, boxes XChaCha20-Poly1305"
    ),
    "bearssl": "BearSSL, from MUNACL_PEERS: m15 and ctmul32, boxes ChaCha20-Poly1305",
}


@dataclass(frozen=True)
class Programs:
    """What `make -C firmware/munacl programs` builds: a folder with one folder for each profile."""

    folder: Path
    peers: tuple[str, ...] = ()
    """Other libraries that `make peers` built, each one's benchmark in the folder `peers`."""

    def run(self, profile: str, name: str, options: m3.Options | None = None) -> m3.Run:
        """A program's run, which must succeed."""
        done = m3.run(str(self.folder / profile / f"{name}.elf"), options or m3.Options())
        if done.code != 0:
            raise RuntimeError(f"{profile}/{name}.elf failed: {done.stop}")
        return done

    def code_bytes(self, profile: str, name: str = "bench") -> int:
        """Code and constants of the library that the benchmark links."""
        sizes = m3.size(str(self.folder / profile / f"{name}.elf"))
        return next(one.bytes for one in sizes.sections if one.name == ".munacl")


@dataclass(frozen=True)
class Row:
    """A call that was timed."""

    cycles: m3.Cycles
    stack: int


def published() -> dict[str, Any]:
    """The paper's figures."""
    return tomllib.loads(files("warifu.reproduce").joinpath("munacl.toml").read_text())


def lines(run: m3.Run) -> list[list[str]]:
    """What a program printed, as words; without its comments."""
    printed = run.output.decode().splitlines()
    return [line.split() for line in printed if not line.startswith("#")]


def rows(
    programs: Programs, profile: str, name: str = "bench", options: m3.Options | None = None
) -> dict[str, Row]:
    """The benchmark's rows; the chip's counter runs by the high reading, then by the low one."""
    options = options or m3.Options()
    high = lines(programs.run(profile, name, options))
    low = lines(programs.run(profile, name, replace(options, low_reading=True)))
    return {
        name: Row(m3.Cycles(int(least), int(most)), int(stack))
        for (name, _, most, stack), (_, _, least, _) in zip(high, low, strict=True)
    }


def table3(programs: Programs, compiler: str) -> Table:
    """The paper's Table 3, with stack and code."""
    paper = published()
    heads = ["call", "bytes", "AVR", "paper's ARM", "fast", "small", "paper/fast", "paper/small"]
    columns = [Column(heads[0], number=False), *map(Column, heads[1:])]
    columns += [Column("stack fast"), Column("stack small"), *map(Column, programs.peers)]
    table = Table("Table 3: cycles", columns)
    here = {profile: rows(programs, profile) for profile in PROFILES}
    peers = {peer: rows(programs, "peers", peer) for peer in programs.peers}
    for name, fast in here["fast"].items():
        small = here["small"][name]
        size, avr, arm = paper["rows"].get(name, (None, None, None, None))[:3]
        # What is compared, and a mark where that is another row.
        like, mark = arm, ""
        if name == _OPEN:
            like, mark = paper["rows"][_SEAL][2], " (seal)"
        table.add(
            [
                name,
                str(size or ""),
                _count(avr),
                _count(arm),
                str(fast.cycles),
                str(small.cycles),
                f"{like / fast.cycles.high:.2f}{mark}" if like else "",
                f"{like / small.cycles.high:.2f}{mark}" if like else "",
                str(fast.stack),
                str(small.stack),
                *(str(peer[name].cycles) if name in peer else "" for peer in peers.values()),
            ],
            {
                "call": name,
                "message_bytes": size,
                "avr_cycles": avr,
                "paper_cycles": arm,
                "fast_cycles_low": fast.cycles.low,
                "fast_cycles_high": fast.cycles.high,
                "small_cycles_low": small.cycles.low,
                "small_cycles_high": small.cycles.high,
                "fast_stack_bytes": fast.stack,
                "small_stack_bytes": small.stack,
                **{
                    f"{peer}_cycles_{end}": getattr(found[name].cycles, end)
                    for peer, found in peers.items()
                    if name in found
                    for end in ("low", "high")
                },
            },
        )
    code = {profile: programs.code_bytes(profile) for profile in PROFILES}
    table.notes += [
        f"Here: {ZERO_WAIT}. Ratios are of the high end.",
        (
            f"Code and constants: AVR {paper['code_bytes']['avr']:,} B, the paper's ARM "
            f"{paper['code_bytes']['arm']:,} B, fast {code['fast']:,} B, small {code['small']:,} B."
        ),
        (
            f"The paper's {_OPEN} costs less than half of sealing, as refusing a box does. Here it "
            "is a box that opens, and (seal) compares it with the paper's sealing."
        ),
        f"Compiler: {compiler}",
    ]
    for peer in programs.peers:
        size = programs.code_bytes("peers", peer)
        table.notes.append(f"{_PEERS[peer]}; {size:,} B for the calls in its column, at -O2.")
    return table


def waiting(programs: Programs, wait_states: Mapping[str, int]) -> Table:
    """Table 3's cycles with wait states, the library's constants in flash and in RAM."""
    columns = [Column("call", number=False), Column("fast, no wait states")]
    found = {}
    options = m3.Options(chip=CHIP, wait_states=wait_states)
    for profile in PROFILES:
        for where, name in (("flash", f"bench-{CHIP}"), ("RAM", f"bench-ram-{CHIP}")):
            columns.append(Column(f"{profile}, constants in {where}"))
            found[f"{profile}_{where.lower()}"] = rows(programs, profile, name, options)
    none = rows(programs, "fast", f"bench-{CHIP}", m3.Options(chip=CHIP))
    waits = ", ".join(f"{memory}={cycles}" for memory, cycles in wait_states.items())
    table = Table(f"Table 3 on {CHIP} with wait states {waits}: cycles", columns)
    for call, row in none.items():
        table.add(
            [call, str(row.cycles), *(str(there[call].cycles) for there in found.values())],
            {
                "call": call,
                "none_cycles_low": row.cycles.low,
                "none_cycles_high": row.cycles.high,
                **{
                    f"{what}_cycles_{end}": getattr(there[call].cycles, end)
                    for what, there in found.items()
                    for end in ("low", "high")
                },
            },
        )
    table.notes.append(
        "Kind: assumed: no board has confirmed cycles with wait states. Code stays in flash; "
        "constants are in RAM where the linker map puts them there (boards/ram)."
    )
    return table


def _count(value: int | None) -> str:
    return f"{value:,}" if value else ""


def table2(programs: Programs) -> Table:
    """The paper's Table 2: instructions."""
    table = Table(
        "Table 2: cycles of an instruction",
        [Column("instruction", number=False), Column("paper"), Column("here")],
    )
    high = lines(programs.run("fast", "instructions"))
    low = lines(programs.run("fast", "instructions", m3.Options(low_reading=True)))
    here: dict[str, list[int]] = {}
    for name, cycles in [*high, *low]:
        here.setdefault(name, []).append(int(cycles))
    for name, (least, most) in published()["instructions"].items():
        found = (min(here[name]), max(here[name]))
        table.add(
            [name, span(least, most), span(*found)],
            {
                "instruction": name,
                "paper_low": least,
                "paper_high": most,
                "here_low": found[0],
                "here_high": found[1],
            },
        )
    table.notes.append(
        "The paper's (s/u)mull, (s/u)div and (s/u)sat are a row for each. Here: with small and "
        "with large operands, by both readings of the rules."
    )
    return table


def span(least: int, most: int) -> str:
    """Cycles from the least to the most, one figure if they are equal."""
    return str(least) if least == most else f"{least} to {most}"


def gains(third: Table) -> Table:
    """Table 3's last column: cycles of the AVR by those of the ARM, beside munacl's."""
    heads = ["call", "paper", "from its cycles", *PROFILES]
    columns = [Column(heads[0], number=False), *map(Column, heads[1:])]
    table = Table("Gains over the AVR: the cycles of its NaCl, in percent of the ARM's", columns)
    here = {record["call"]: record for record in third.records}
    for name, (_, on_avr, on_arm, gain) in published()["rows"].items():
        ours = {one: int(str(here[name][f"{one}_cycles_high"])) for one in PROFILES}
        percent = {one: 100 * on_avr / cycles for one, cycles in ours.items()}
        follows = abs(100 * on_avr / on_arm - gain) <= 1
        table.add(
            [
                name,
                f"{gain} %",
                f"{100 * on_avr / on_arm:.0f} %{'' if follows else ' (!)'}",
                *(f"{percent[one]:,.0f} %" for one in PROFILES),
            ],
            {
                "call": name,
                "paper_percent": gain,
                "paper_cycles_percent": 100 * on_avr / on_arm,
                "follows": follows,
                **{f"{one}_percent": percent[one] for one in PROFILES},
            },
        )
    table.notes += [
        f"fast, small: {ZERO_WAIT}; the AVR's cycles are the paper's.",
        "(!): the paper's percentage is not that of its own cycles, by more than 1.",
        f"{_OPEN}: the paper's cycles are of a refused box, ours of one that opens.",
    ]
    return table


@dataclass(frozen=True)
class Rotation:
    """One of the paper's algorithms for 64-bit rotations (section 3.2), by 0 to 63 bits."""

    wrong: int
    least: int
    most: int
    bytes: int


def rotation_figures(programs: Programs) -> dict[str, Rotation]:
    """The algorithms, with the value in registers (`algorithm1`) and in memory
    (`algorithm1_memory`)."""
    found = {line[0]: line[1:] for line in lines(programs.run("fast", "rotations"))}
    sizes = m3.size(str(programs.folder / "fast" / "rotations.elf")).symbols
    size = {symbol.name: symbol.bytes for symbol in sizes}
    return {
        name: Rotation(int(figures[0]), int(figures[1]), int(figures[2]), size[name])
        for name, figures in found.items()
        if name.startswith("algorithm")
    }


def rotations(programs: Programs) -> Table:
    """The paper's Algorithms 1 to 3: 64-bit rotations."""
    heads = ["rotation", "cycles", "bytes", "wrong, of 64"]
    columns = [Column(heads[0], number=False), *map(Column, heads[1:])]
    table = Table("Algorithms 1 to 3: 64-bit rotations to the right, by 0 to 63 bits", columns)
    for name, found in rotation_figures(programs).items():
        number, _, memory = name.removeprefix("algorithm").partition("_")
        where = "memory" if memory else "registers"
        table.add(
            [
                f"Algorithm {number}, value in {where}",
                span(found.least, found.most),
                str(found.bytes),
                str(found.wrong),
            ],
            {
                "algorithm": int(number),
                "value_in": where,
                "cycles_low": found.least,
                "cycles_high": found.most,
                "bytes": found.bytes,
                "wrong": found.wrong,
            },
        )
    table.notes += [
        f"In C, with the call: {ZERO_WAIT.partition(';')[0]}. The paper gives no figures for them.",
        "Registers have no index, so that Algorithm 3 puts the halves into memory.",
    ]
    return table


def checked_table(checked: checks.Checked) -> Table:
    """How the library is shown to be right and constant time."""
    columns = [Column("checked", number=False), *(Column(name) for name in PROFILES)]
    table = Table("How it was checked", [*columns, Column("verdict", number=False)])
    for what, found in checked.checks.items():
        problems = checked.problems(what)
        verdict = "fails" if problems else "holds"
        table.add(
            [what, *(str(found[profile]) for profile in PROFILES), verdict],
            {
                "checked": what,
                **{f"{profile}_cases": found[profile].cases for profile in PROFILES},
                **{f"{profile}_wrong": len(found[profile].problems) for profile in PROFILES},
                "verdict": verdict,
            },
        )
        if problems:
            table.notes.append(f"{what} fails: {some(problems)}")
    table.notes += [
        "On the ARM programs of firmware/munacl/tests, in the simulator, and on the disassembly.",
        (
            "`make test` runs all vectors and RFC 7748's 1,000 iterations in fast, `make soak` "
            "those in small and 1,000 random secrets for each call."
        ),
    ]
    return table


def some(problems: list[str]) -> str:
    """The first three of the problems, and how many more there are."""
    more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
    return "; ".join(problems[:3]) + more


def unpromised() -> Table:
    """What no run in the simulator says of a board."""
    columns = [Column("what", number=False, wrap=24), Column("why", number=False, wrap=54)]
    table = Table("What the band cannot promise on a board", columns)
    for what, why in _UNPROMISED.items():
        table.add([what, why], {"what": what, "why": why})
    return table


def random_bits(programs: Programs) -> str:
    """Salsa20's first 20,000 bits under an all-zero key, as text of 0 and 1."""
    size = _BITS // 8
    call = f"stream_salsa20 {size.to_bytes(2, 'little').hex()} {'00' * 8} {'00' * 32}\n"
    done = programs.run("fast", "answers", m3.Options(input=call.encode()))
    output = bytes.fromhex(done.output.decode().split()[1])
    return "".join(f"{byte:08b}" for byte in output)


@dataclass(frozen=True)
class Statistic:
    """One of the statistical tests of FIPS 140-2."""

    name: str
    low: float
    high: float
    """The least and the most that passes."""
    found: float

    @property
    def passes(self) -> bool:
        """Whether the bits look random by this test."""
        return self.low <= self.found <= self.high


def fips_140_2(bits: str) -> list[Statistic]:
    """The statistical tests of FIPS 140-2 (section 4.9.1, change notice 1) on 20,000 bits."""
    nibbles = [bits[at : at + 4] for at in range(0, _BITS, 4)]
    squares = sum(nibbles.count(one) ** 2 for one in set(nibbles))
    counts = _runs(bits)
    return [
        Statistic("ones", 9726, 10274, bits.count("1")),
        # X is a multiple of 0.0032 between 2.16 and 46.17, neither of which it can be.
        Statistic("poker, X", 2.16, 46.17, 16 / 5000 * squares - 5000),
        *(
            Statistic(
                f"runs of {length}{' or more' if length == 6 else ''}, {name}",
                low,
                high,
                counts[bit, length],
            )
            for bit, name in (("0", "zeros"), ("1", "ones"))
            for length, (low, high) in _RUNS.items()
        ),
        Statistic("longest run", 1, 25, max(len(list(run)) for _, run in groupby(bits))),
    ]


def statistics(programs: Programs) -> Table:
    """FIPS 140-2's statistics of the generator under a seed without any entropy."""
    heads = ["test", "passes", "all-zero seed", "verdict"]
    columns = [Column(heads[0], number=False), Column(heads[1]), Column(heads[2])]
    columns.append(Column(heads[3], number=False))
    table = Table("FIPS 140-2's tests of 20,000 bits of Salsa20 under an all-zero seed", columns)
    for one in fips_140_2(random_bits(programs)):
        verdict = "passes" if one.passes else "fails"
        limits = f"{one.low:,} to {one.high:,}"
        found = f"{one.found:,.2f}" if isinstance(one.found, float) else f"{one.found:,}"
        table.add(
            [one.name, limits, found, verdict],
            {
                "test": one.name,
                "low": one.low,
                "high": one.high,
                "found": one.found,
                "verdict": verdict,
            },
        )
    table.notes.append(
        "The paper says that its 20,000 bits passed, without figures (section 3.4.1). These pass "
        "without any entropy, so that passing says nothing of the seed."
    )
    return table


def _runs(bits: str) -> Counter[tuple[str, int]]:
    """How many runs of a bit there are by length, 6 standing for all longer ones."""
    return Counter((bit, min(len(list(run)), 6)) for bit, run in groupby(bits))

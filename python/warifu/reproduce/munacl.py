# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The paper on a NaCl for the Cortex-M3 beside munacl (firmware/munacl) on the simulated chip."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
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


def _lines(run: m3.Run) -> list[list[str]]:
    lines = run.output.decode().splitlines()
    return [line.split() for line in lines if not line.startswith("#")]


def rows(
    programs: Programs, profile: str, name: str = "bench", options: m3.Options | None = None
) -> dict[str, Row]:
    """The benchmark's rows; the chip's counter runs by the high reading, then by the low one."""
    options = options or m3.Options()
    high = _lines(programs.run(profile, name, options))
    low = _lines(programs.run(profile, name, replace(options, low_reading=True)))
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
        table.add(
            [
                name,
                str(size or ""),
                _count(avr),
                _count(arm),
                str(fast.cycles),
                str(small.cycles),
                f"{arm / fast.cycles.high:.2f}" if arm else "",
                f"{arm / small.cycles.high:.2f}" if arm else "",
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
            "The paper's crypto_secretbox_xsalsa20poly1305_open costs less than half of sealing, "
            "as refusing a box does; here it is a box that opens."
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
    high = _lines(programs.run("fast", "instructions"))
    low = _lines(programs.run("fast", "instructions", m3.Options(low_reading=True)))
    here: dict[str, list[int]] = {}
    for name, cycles in [*high, *low]:
        here.setdefault(name, []).append(int(cycles))
    for name, (least, most) in published()["instructions"].items():
        found = (min(here[name]), max(here[name]))
        table.add(
            [name, _range(least, most), _range(*found)],
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


def _range(least: int, most: int) -> str:
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
    found = {line[0]: line[1:] for line in _lines(programs.run("fast", "rotations"))}
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
                _range(found.least, found.most),
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
            table.notes.append(f"{what} fails: {_some(problems)}")
    table.notes += [
        "On the ARM programs of firmware/munacl/tests, in the simulator, and on the disassembly.",
        (
            "`make test` runs all vectors and RFC 7748's 1,000 iterations in fast, `make soak` "
            "those in small and 1,000 random secrets for each call."
        ),
    ]
    return table


def unpromised() -> Table:
    """What no run in the simulator says of a board."""
    columns = [Column("what", number=False, wrap=24), Column("why", number=False, wrap=54)]
    table = Table("What the band cannot promise on a board", columns)
    for what, why in _UNPROMISED.items():
        table.add([what, why], {"what": what, "why": why})
    return table


def _some(problems: list[str]) -> str:
    more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
    return "; ".join(problems[:3]) + more


def _by(checked: checks.Checked, what: str, holds: str) -> str:
    """A verdict by a check."""
    problems = checked.problems(what)
    return f"not reproduced: {_some(problems)}" if problems else f"reproduced: {holds}"


def _if(holds: bool, otherwise: str, why: str = "") -> str:
    """A verdict by a comparison."""
    if not holds:
        return f"not reproduced: {otherwise}"
    return f"reproduced: {why}" if why else "reproduced"


def claims(programs: Programs, table: Table, checked: checks.Checked) -> Table:
    """What the paper says beside its tables."""
    paper = published()
    widths = {"claim": 25, "paper": 13, "here": 17, "verdict": 19}
    columns = [Column(head, number=False, wrap=width) for head, width in widths.items()]
    result = Table("Claims", columns)

    def say(claim: str, there: str, here: str, verdict: str) -> None:
        result.add(
            [claim, there, here, verdict],
            {"claim": claim, "paper": there, "here": here, "verdict": verdict},
        )

    _claim_constant_time(say, checked, len(table.cells))
    _claim_products(say, programs, checked)
    _claim_rotations(say, programs, paper)
    _claim_gains(say, programs, table, paper)
    _claim_randomness(say, programs, checked, paper)
    _claim_encoding(say, checked)
    say(
        "6,000 lines of the AVR's assembly (section 3)",
        "about 6,000",
        "",
        "not testable: no source",
    )
    say("cycles of Table 3 on the board", "", "", "not testable: no board and no source")
    return result


Say = Callable[[str, str, str, str], None]


def _claim_constant_time(say: Say, checked: checks.Checked, calls: int) -> None:
    fast = [checked.checks[what]["fast"].cases for what in checked.sources]
    wrong = [problem for what in checked.sources for problem in checked.problems(what)]
    say(
        "the primitives of Table 1",
        "Curve25519, Salsa20, Ed25519, Poly1305, SHA-512",
        f"the same, {calls} calls",
        _if(
            not wrong,
            _some(wrong),
            f"{sum(int(one.split()[0].replace(',', '')) for one in fast):,} published vectors",
        ),
    )
    leaks = checked.problems(checks.BRANCHES)
    cases = " and ".join(str(one) for one in checked.checks[checks.BRANCHES].values())
    addresses = [one for one in leaks if "-address in " in one]
    say(
        "load addresses may depend on secrets, for want of a cache (section 2.1)",
        "relied on",
        f"relied on: {_some(addresses)}" if addresses else "not relied on",
        "not needed: in the taint run secrets reach no address"
        if not leaks
        else f"not shown: {_some(leaks)}",
    )
    say(
        "branch prediction needs no cure beyond constant branches (section 2.1)",
        "",
        cases,
        _by(checked, checks.BRANCHES, "in the taint run secrets reach no branch"),
    )
    say(
        "no UMULL where secrets flow (section 3.1)",
        "none",
        ", ".join(checked.problems(checks.INSTRUCTIONS)) or "none in the whole library",
        _by(checked, checks.INSTRUCTIONS, "by the disassembly"),
    )
    cycles = checked.checks[checks.CYCLES]
    say(
        "time does not depend on the input (section 3.1)",
        "constant",
        " and ".join(str(one) for one in cycles.values()),
        _by(checked, checks.CYCLES, "equal cycles over random secrets"),
    )


def _claim_products(say: Say, programs: Programs, checked: checks.Checked) -> None:
    """How the paper multiplies (section 3.1), beside what munacl does. That its way is right is
    for the twins."""
    say(
        "products of 16 by 16 bits by MUL alone (section 3.1)",
        "all",
        "all",
        _by(checked, checks.INSTRUCTIONS, "no long multiplication in the disassembly"),
    )
    cycles: dict[str, list[int]] = {}
    for name, found in _lines(programs.run("fast", "instructions")):
        cycles.setdefault(name, []).append(int(found))
    product, umull = cycles["product"], cycles["umull"]
    say(
        "such products take more cycles than UMULL's (section 3.1)",
        "more, constant",
        f"{_range(min(product), max(product))} for {_range(min(umull), max(umull))} cycles, 32 by "
        "32 bits alone",
        _if(
            min(product) == max(product) > max(umull) > min(umull),
            "its cycles are not more, or depend on operands",
        ),
    )
    say(
        "256 bits by Karatsuba from 128 (section 3.1)",
        "Karatsuba of one level",
        "the same in fast",
        _by(checked, checks.TWINS, "it equals its C twin"),
    )
    say(
        "128 bits by unrolled schoolbook (section 3.1)",
        "unrolled",
        "the same, by rows of MUL and ADC",
        _by(checked, checks.TWINS, "it equals its C twin"),
    )
    say(
        "136 bits by unrolled schoolbook, for Poly1305 (section 3.1)",
        "17 by 17 bytes",
        "128 by 128 bits, the top bits apart",
        "not used: 128 bits suffice"
        if not checked.problems(checks.TWINS)
        else _by(checked, checks.TWINS, ""),
    )


def _claim_rotations(say: Say, programs: Programs, paper: dict[str, Any]) -> None:
    avr = paper["rows"]["crypto_hash_sha512"][1]
    gain = paper["rotations_gain"]
    found = {line[0]: line[1] for line in _lines(programs.run("fast", "rotations"))}
    bitwise = avr / int(found["bitwise"])
    say(
        "SHA-512 with rotations bit by bit gains little over the AVR (section 3.2)",
        f"{gain} times",
        f"{bitwise:.1f} times",
        _if(
            abs(bitwise - gain) < 0.1,
            "a C version whose rotations and shifts go bit by bit; the paper's first version is "
            "not public",
        ),
    )
    rotates = rotation_figures(programs)
    for number, how in enumerate(
        ("by two shifts of 64 bits", "halves exchanged by a branch", "halves by an index"), 1
    ):
        wrong = sum(found.wrong for name, found in rotates.items() if f"m{number}" in name)
        say(
            f"Algorithm {number}: {how} (section 3.2)",
            "rotates right by 0 to 63",
            f"{wrong} of 128 wrong" if wrong else "right by 0 to 63",
            _if(not wrong, "wrong results"),
        )
    say(
        "Algorithm 2 is faster than Algorithm 1 (section 3.2)",
        "faster",
        _compared(rotates, "1", "2"),
        _if(_less(rotates, "2", "1", lambda one: one.most), "not for all bits"),
    )
    say(
        "Algorithm 3 has no branch, and so is safer than Algorithm 2 (section 3.2)",
        "safer",
        f"{_cycles_of(rotates['algorithm3'])} cycles for any bits, "
        f"{_cycles_of(rotates['algorithm2'])} by the bits",
        _if(
            all(one.least == one.most for name, one in rotates.items() if "m3" in name)
            and rotates["algorithm2"].least < rotates["algorithm2"].most,
            "its cycles depend on the bits",
            "but rotations in SHA-512 are by constants",
        ),
    )
    say(
        "Algorithm 3 is faster than Algorithm 2 (section 3.2)",
        "faster",
        _compared(rotates, "2", "3"),
        _if(_less(rotates, "3", "2", lambda one: one.most), "not for a value in registers"),
    )
    say(
        "Algorithm 3 is smaller than Algorithm 2 (section 3.2)",
        "smaller",
        " and ".join(
            f"{rotates[f'algorithm3{where}'].bytes} for {rotates[f'algorithm2{where}'].bytes} B"
            for where in ("", "_memory")
        ),
        _if(_less(rotates, "3", "2", lambda one: one.bytes), "larger here"),
    )


def _cycles_of(found: Rotation) -> str:
    return _range(found.least, found.most)


def _compared(rotates: Mapping[str, Rotation], before: str, after: str) -> str:
    where = {"": "in registers", "_memory": "in memory"}
    return ", ".join(
        f"{_cycles_of(rotates[f'algorithm{after}{key}'])} for "
        f"{_cycles_of(rotates[f'algorithm{before}{key}'])} cycles {text}"
        for key, text in where.items()
    )


def _less(
    rotates: Mapping[str, Rotation], one: str, other: str, figure: Callable[[Rotation], int]
) -> bool:
    """Whether an algorithm's figure is less than another's, in registers and in memory."""
    return all(
        figure(rotates[f"algorithm{one}{where}"]) < figure(rotates[f"algorithm{other}{where}"])
        for where in ("", "_memory")
    )


def _claim_gains(say: Say, programs: Programs, table: Table, paper: dict[str, Any]) -> None:
    by_name = {str(record["call"]): record for record in gains(table).records}
    wrong = [name for name, record in by_name.items() if not record["follows"]]
    say(
        "gains of Table 3's last column",
        "147 % to 396 %",
        f"{len(by_name) - len(wrong)} of {len(by_name)} follow from its cycles",
        _if(not wrong, "the table of gains marks which do not"),
    )
    calls = paper["rows"].values()
    long = [on_avr / on_arm for size, on_avr, on_arm, _ in calls if size or on_arm > 1_000_000]
    least, most = min(long), max(long)
    say(
        "three to four times as fast as on the AVR (section 3.4.2)",
        "3 to 4 times",
        f"{least:.1f} to {most:.1f} times by its own cycles, verify_16 and _32 apart",
        _if(least >= 2.95 and most < 4.05, "its cycles give others"),
    )
    size = paper["code_bytes"]
    shares = {name: programs.code_bytes(name) / size["avr"] for name in PROFILES}
    say(
        "about half of the AVR's code (section 3.4.2)",
        f"{size['arm'] / size['avr']:.0%}",
        ", ".join(f"{name} {share:.0%}" for name, share in shares.items()),
        _if(max(shares.values()) <= size["arm"] / size["avr"], "more than the paper's"),
    )
    duell = paper["duell_cycles"]
    ladder = paper["rows"]["crypto_scalarmult_curve25519"][2]
    here = next(
        record["fast_cycles_high"]
        for record in table.records
        if record["call"] == "crypto_scalarmult_curve25519"
    )
    say(
        "Duell et al. on a Cortex-M0 are 1.7 times as fast (section 4)",
        f"{duell:,} cycles",
        f"{ladder / duell:.2f} times by these figures; fast takes {here:,} cycles",
        _if(abs(ladder / duell - 1.7) < 0.05, "the figures give another"),
    )


def _claim_encoding(say: Say, checked: checks.Checked) -> None:
    shares = {one: checks.narrow(text) for one, text in checked.listings.items()}
    say(
        "most instructions could be held to 16 bits (section 3.4.2)",
        "no figure",
        ", ".join(f"{one} {share:.0%}" for one, share in shares.items()),
        _if(
            min(shares.values()) > 0.5,
            "fewer than half",
            "of this library; the paper's is not public",
        ),
    )


def _claim_randomness(
    say: Say, programs: Programs, checked: checks.Checked, paper: dict[str, Any]
) -> None:
    keys = {
        one
        for listing in checked.listings.values()
        for one in checks.callers(listing, "randombytes")
    }
    others = sorted(one for one in keys if not one.endswith("_keypair"))
    say(
        "random numbers are used for keys alone (section 3.4.1)",
        "32 bytes a key",
        f"{len(keys)} functions ask for them",
        _if(bool(keys) and not others, ", ".join(others), "those that make key pairs"),
    )
    sizes = {one: checks.member_bytes(text, "random.o") for one, text in checked.listings.items()}
    say(
        "a generator by Salsa20 costs little code, as Salsa20 is there (section 3.3)",
        "no figure",
        f"{max(sizes.values()):,} B with health tests, seed record and wiping",
        _if(
            max(sizes.values()) < paper["code_bytes"]["arm"] / 10,
            "more than a tenth of the paper's code",
            "less than a tenth of the paper's code",
        ),
    )
    cells, share, key_bits = paper["cells"], paper["percent_per_cell"], 256
    seed = cells * share / 100
    say(
        "the seed has 1.5 times the key's bits (section 3.4.1)",
        f"{cells:,} cells at {share} %",
        f"{seed:.0f} bits, {seed / key_bits:.1f} times",
        _if(seed >= 1.5 * key_bits, "fewer", "if the percentage holds"),
    )
    failed = [one.name for one in fips_140_2(random_bits(programs)) if not one.passes]
    say(
        "20,000 bits of Salsa20 from SRAM pass FIPS 140-2 (section 3.4.1)",
        "passed",
        f"an all-zero seed fails {', '.join(failed)}"
        if failed
        else "an all-zero seed passes as well",
        _if(not failed, "it fails", "the test says nothing of the seed's entropy"),
    )
    say(
        "SRAM of an LPC1768 has 3 % of entropy a bit (section 3.4.1)",
        "3 %, from another chip",
        "",
        "not testable: needs captures of boards (`warifu cells`)",
    )
    say(
        "an oscillator's jitter gives a byte a second (section 3.3)",
        "1 byte/s",
        "",
        "not testable: another paper's figure, of hardware",
    )


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


def tables(programs: Programs, compiler: str, checked: checks.Checked) -> list[Table]:
    """All of them."""
    third = table3(programs, compiler)
    return [
        third,
        gains(third),
        table2(programs),
        rotations(programs),
        statistics(programs),
        checked_table(checked),
        claims(programs, third, checked),
        unpromised(),
    ]

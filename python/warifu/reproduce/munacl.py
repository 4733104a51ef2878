# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The paper on a NaCl for the Cortex-M3 beside munacl (firmware/munacl) on the simulated chip."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from warifu import m3
from warifu.report.table import Column, Table

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
    table.notes.append("Here: with small and with large operands, by both readings of the rules.")
    return table


def _range(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def claims(programs: Programs, table: Table) -> Table:
    """What the paper says beside its tables."""
    paper = published()
    columns = [Column(head, number=False) for head in ("claim", "paper", "here", "verdict")]
    result = Table("Claims", columns)

    def say(claim: str, there: str, here: str, verdict: str) -> None:
        result.add(
            [claim, there, here, verdict],
            {"claim": claim, "paper": there, "here": here, "verdict": verdict},
        )

    say(
        "the primitives of Table 1",
        "Curve25519, Salsa20, Ed25519, Poly1305, SHA-512",
        f"the same, {len(table.cells)} calls",
        "reproduced: a test's published vectors",
    )
    say(
        "load addresses may depend on secrets, for want of a cache (section 2.1)",
        "relied on",
        "not relied on: secrets reach no address",
        "not needed: a test's taint run",
    )
    avr = paper["rows"]["crypto_hash_sha512"][1]
    bitwise = int(_lines(programs.run("fast", "rotations"))[0][0])
    say(
        "SHA-512 with rotations bit by bit gains little over the AVR (section 3.2)",
        f"{paper['rotations_gain']} times",
        f"{avr / bitwise:.1f} times",
        "reproduced in kind: a C version, since the paper's code is not public",
    )
    wrong = [
        name
        for name, (_, on_avr, on_arm, gain) in paper["rows"].items()
        if abs(100 * on_avr / on_arm - gain) > 1
    ]
    say(
        "gains of Table 3's last column",
        "147 % to 396 %",
        "all follow from its cycles" if not wrong else f"do not follow: {', '.join(wrong)}",
        "reproduced" if not wrong else "not reproduced",
    )
    calls = paper["rows"].values()
    long = [on_avr / on_arm for size, on_avr, on_arm, _ in calls if size or on_arm > 1_000_000]
    say(
        "three to four times as fast as on the AVR (section 3.4.2)",
        "3 to 4 times",
        f"{min(long):.1f} to {max(long):.1f} times by its own cycles, verify_16 and _32 apart",
        "reproduced",
    )
    size = paper["code_bytes"]
    say(
        "about half of the AVR's code (section 3.4.2)",
        f"{size['arm'] / size['avr']:.0%}",
        f"fast {programs.code_bytes('fast') / size['avr']:.0%}, "
        f"small {programs.code_bytes('small') / size['avr']:.0%}",
        "reproduced",
    )
    duell = paper["duell_cycles"]
    ladder = paper["rows"]["crypto_scalarmult_curve25519"][2]
    here = table.records[
        next(
            index
            for index, record in enumerate(table.records)
            if record["call"] == "crypto_scalarmult_curve25519"
        )
    ]["fast_cycles_high"]
    say(
        "Duell et al. on a Cortex-M0 are 1.7 times as fast (section 4)",
        f"{duell:,} cycles",
        f"{ladder / duell:.2f} times by these figures; fast takes {here:,} cycles",
        "reproduced",
    )
    cells, share, key_bits = paper["cells"], paper["percent_per_cell"], 256
    say(
        "the seed has 1.5 times the key's bits (section 3.4.1)",
        f"{cells:,} cells at {share} %",
        f"{cells * share // 100} bits, {cells * share / 100 / key_bits:.1f} times",
        "reproduced, if the percentage holds",
    )
    bits = random_bits(programs)
    failed = fips_140_2(bits)
    say(
        "20,000 bits of Salsa20 from SRAM pass FIPS 140-2 (section 3.4.1)",
        "passed",
        "an all-zero seed passes as well" if not failed else f"fails {', '.join(failed)}",
        "reproduced: the test says nothing of the seed's entropy",
    )
    say("no UMULL where secrets flow (section 3.1)", "none", "none", "reproduced: a test's gate")
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
    say(
        "6,000 lines of the AVR's assembly (section 3)",
        "about 6,000",
        "",
        "not testable: no source",
    )
    say(
        "branch prediction needs no cure beyond constant branches (section 2.1)",
        "",
        f"{len(table.cells)} calls, secrets reach no branch",
        "reproduced: a test's taint run",
    )
    say("cycles of Table 3 on the board", "", "", "not testable: no board and no source")
    return result


def random_bits(programs: Programs) -> str:
    """Salsa20's first 20,000 bits under an all-zero key, as text of 0 and 1."""
    size = _BITS // 8
    call = f"stream_salsa20 {size.to_bytes(2, 'little').hex()} {'00' * 8} {'00' * 32}\n"
    done = programs.run("fast", "answers", m3.Options(input=call.encode()))
    output = bytes.fromhex(done.output.decode().split()[1])
    return "".join(f"{byte:08b}" for byte in output)


def fips_140_2(bits: str) -> list[str]:
    """The statistical tests of FIPS 140-2, section 4.9.1, that 20,000 bits fail."""
    failed = []
    if not 9725 < bits.count("1") < 10275:
        failed.append("monobit")
    nibbles = [bits[at : at + 4] for at in range(0, _BITS, 4)]
    squares = sum(nibbles.count(one) ** 2 for one in set(nibbles))
    if not 2.16 < 16 / 5000 * squares - 5000 < 46.17:
        failed.append("poker")
    counts: Mapping[tuple[str, int], int] = _runs(bits)
    if not all(
        low <= counts.get((bit, length), 0) <= high
        for bit in "01"
        for length, (low, high) in _RUNS.items()
    ):
        failed.append("runs")
    if "0" * 26 in bits or "1" * 26 in bits:
        failed.append("long runs")
    return failed


def _runs(bits: str) -> dict[tuple[str, int], int]:
    counts: dict[tuple[str, int], int] = {}
    at = 0
    while at < len(bits):
        end = at
        while end < len(bits) and bits[end] == bits[at]:
            end += 1
        key = (bits[at], min(end - at, 6))
        counts[key] = counts.get(key, 0) + 1
        at = end
    return counts


def tables(programs: Programs, compiler: str) -> list[Table]:
    """All of them."""
    third = table3(programs, compiler)
    return [third, table2(programs), claims(programs, third)]

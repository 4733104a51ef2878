# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the paper on a NaCl for the Cortex-M3 claims beside its tables, with a verdict for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from warifu import m3
from warifu.report.table import Column, Table
from warifu.reproduce import munacl_checks as checks
from warifu.reproduce.munacl import (
    PROFILES,
    Programs,
    Rotation,
    fips_140_2,
    gains,
    lines,
    published,
    random_bits,
    rotation_figures,
    some,
    span,
)


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
            some(wrong),
            f"{sum(int(one.split()[0].replace(',', '')) for one in fast):,} published vectors",
        ),
    )
    leaks = checked.problems(checks.BRANCHES)
    cases = " and ".join(str(one) for one in checked.checks[checks.BRANCHES].values())
    addresses = [one for one in leaks if "-address in " in one]
    say(
        "load addresses may depend on secrets, for want of a cache (section 2.1)",
        "relied on",
        f"relied on: {some(addresses)}" if addresses else "not relied on",
        "not needed: in the taint run secrets reach no address"
        if not leaks
        else f"not shown: {some(leaks)}",
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


@dataclass(frozen=True)
class Product:
    """How a product of 256 bits is made of products of 128."""

    passes: int
    """Runs of munacl_mul128."""
    multiplications: int
    """MUL instructions that one of them executes."""
    places: int
    """Different ones of these: as many, if it is unrolled."""


def product_figures(programs: Programs) -> Product:
    """Of the first munacl_fe_mul in a trace of the benchmark. Raises WarifuError."""
    text = BytesIO()
    # More than a product has, and fewer than two have.
    part = m3.Part(call="munacl_fe_mul", limit=1_500)
    m3.trace(programs.folder / "fast" / "bench.elf", text, part)
    # Cycle, address, place, instruction, and what it wrote.
    every = [line.split() for line in text.getvalue().decode().splitlines() if line[0] != "#"]
    traced = [one[1:4] for one in every]
    begins = [number for number, one in enumerate(traced) if one[1] == "munacl_fe_mul"]
    one_product = traced[begins[0] : begins[1]] if len(begins) > 1 else traced
    passes = sum(place == "munacl_mul128" for _, place, _ in one_product)
    inside = [
        at for at, place, what in one_product if what == "mul" and place.startswith("munacl_mul128")
    ]
    return Product(passes, len(inside) // max(passes, 1), len(set(inside)))


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
    for name, found in lines(programs.run("fast", "instructions")):
        cycles.setdefault(name, []).append(int(found))
    product, umull = cycles["product"], cycles["umull"]
    say(
        "such products take more cycles than UMULL's (section 3.1)",
        "more, constant",
        f"{span(min(product), max(product))} for {span(min(umull), max(umull))} cycles, 32 by "
        "32 bits alone",
        _if(
            min(product) == max(product) > max(umull) > min(umull),
            "its cycles are not more, or depend on operands",
        ),
    )
    made = product_figures(programs)
    say(
        "256 bits by Karatsuba from 128 (section 3.1)",
        "Karatsuba of one level",
        f"{made.passes} products of 128 bits, traced in fast",
        _by(checked, checks.TWINS, "schoolbook has 4; it equals its C twin")
        if made.passes == 3
        else "not reproduced: Karatsuba has 3",
    )
    say(
        "128 bits by unrolled schoolbook (section 3.1)",
        "unrolled",
        f"{made.multiplications} MUL at {made.places} places, traced in fast",
        _by(checked, checks.TWINS, "8 by 8 halves of words, each once; it equals its C twin")
        if made.multiplications == made.places == 64
        else "not reproduced: unrolled schoolbook has 64 at as many",
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
    found = {line[0]: line[1] for line in lines(programs.run("fast", "rotations"))}
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
    return span(found.least, found.most)


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


def _by(checked: checks.Checked, what: str, holds: str) -> str:
    """A verdict by a check."""
    problems = checked.problems(what)
    return f"not reproduced: {some(problems)}" if problems else f"reproduced: {holds}"


def _if(holds: bool, otherwise: str, why: str = "") -> str:
    """A verdict by a comparison."""
    if not holds:
        return f"not reproduced: {otherwise}"
    return f"reproduced: {why}" if why else "reproduced"

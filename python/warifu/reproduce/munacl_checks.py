# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How munacl is shown to be right and constant time, on the simulated chip.

Each function runs one program of firmware/munacl/tests, or reads the library's disassembly, and
says how many cases there were and what is wrong. The tests of tests/unit/munacl use them too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from warifu import m3

#: The sources of published vectors, folders of vectors/.
SOURCES = (
    "rfc7748-x25519",
    "rfc8032-ed25519",
    "rfc8439-poly1305",
    "rfc4231-hmac-sha512",
    "nist-sha512",
    "nacl",
    "ed25519-sign-input",
    "wycheproof-x25519",
    "wycheproof-ed25519",
    "wycheproof-hmac-sha512",
)
#: RFC 7748's 1,000 iterations, which take half a minute in `small`.
LONG = "iterate e803"
#: The most vectors of a source that `check_all` runs in `small`, spread over all of them.
MOST_SMALL = 60
#: What is checked.
BRANCHES = "no branch or address by secrets"
RESIDUE = "no secret left behind"
CYCLES = "equal cycles, random secrets"
INSTRUCTIONS = "no variable-time instruction"
TWINS = "assembly equals its C twins"
#: Instructions whose time depends on their operands (Cortex-M3 Technical Reference Manual, table
#: 3-1), with any condition and width after the name.
_VARIABLE_TIME = ("umull", "umlal", "smull", "smlal", "udiv", "sdiv")
#: What compilers call instead: libgcc's and the run-time ABI's multiplications and divisions.
_HELPERS = re.compile(r"__(?:aeabi_\w*(?:mul|div)\w*|u?(?:div|mod|divmod|mul)[sdt]i\d)")
_FUNCTION = re.compile(r"[0-9a-f]{8} <(\w+)>:")
_VECTORS = "vectors, "
_ROUTINE = re.compile(r"munacl_\w+")
_CALLS = re.compile(r"(\d+) calls, \d+ rounds")


@dataclass(frozen=True)
class Check:
    """What was checked, how often, and what is wrong."""

    cases: str
    """The number of cases, with its unit."""
    problems: tuple[str, ...]
    """Empty if it holds."""

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __str__(self) -> str:
        """`28 calls`, or `28 calls: 2 wrong`."""
        return self.cases if self.holds else f"{self.cases}: {len(self.problems)} wrong"


@dataclass(frozen=True)
class Checked:
    """All checks, by what is checked and profile."""

    checks: Mapping[str, Mapping[str, Check]]
    listings: Mapping[str, str]
    """The library's disassembly by profile, as `instructions` reads it."""

    def problems(self, what: str) -> list[str]:
        """What is wrong, in any profile."""
        return [
            f"{profile}: {problem}"
            for profile, check in self.checks[what].items()
            for problem in check.problems
        ]

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong at all."""
        return not any(map(self.problems, self.checks))

    @property
    def sources(self) -> list[str]:
        """The checks against published vectors."""
        return [what for what in self.checks if what.startswith(_VECTORS)]


def check_all(
    programs: Path,
    listings: Mapping[str, str],
    vectors_folder: Path,
    progress: Callable[[str], None] = lambda _: None,
) -> Checked:
    """Runs every check on a folder with one folder for each profile (`make checks programs`).

    `listings` has what `objdump -d -r -t` prints of each profile's library. RFC 7748's 1,000
    iterations are left to the tests, and most of the long sources in `small`. Raises WarifuError
    and OSError.
    """
    calls: dict[tuple[str, str], Callable[[], Check]] = {}
    for profile, listing in listings.items():
        folder = programs / profile
        calls[BRANCHES, profile] = partial(taint, folder / "taint.elf")
        calls[RESIDUE, profile] = partial(residue, folder / "residue.elf")
        calls[CYCLES, profile] = partial(equal_cycles, folder / "cycles.elf")
        calls[INSTRUCTIONS, profile] = partial(instructions, listing)
        calls[TWINS, profile] = partial(twins, folder / "twins.elf")
        for source in SOURCES:
            every = read_vectors(vectors_folder, source)
            most = MOST_SMALL if profile == "small" else len(every)
            calls[_VECTORS + source, profile] = partial(
                _some_vectors, folder / "answers.elf", every, most
            )

    def one(what: str, profile: str) -> Check:
        progress(f"{profile}: {what}")
        return calls[what, profile]()

    # The simulator runs without Python's lock.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(calls, pool.map(lambda key: one(*key), calls), strict=True))
    checks: dict[str, dict[str, Check]] = {}
    for (what, profile), check in found.items():
        checks.setdefault(what, {})[profile] = check
    return Checked(checks, listings)


def taint(program: Path) -> Check:
    """Secrets followed through all calls (taint.elf): none reaches a branch, an address, a
    condition or a long multiplication. Problems are `KIND in FUNCTION`, kinds as `m3.Leak` has."""
    return _leaks(m3.taint(str(program)))


def residue(program: Path) -> Check:
    """What calls leave in the stack below them and in registers (residue.elf): nothing secret."""
    return _leaks(m3.taint(str(program)))


def equal_cycles(program: Path, options: m3.Options | None = None) -> Check:
    """Cycles of each call over random secrets (cycles.elf): the same in all rounds."""
    run = m3.run(str(program), options or m3.Options())
    *lines, last = run.output.decode().splitlines() or [""]
    calls = _calls(last)
    problems = lines if run.code in (0, 1) else [run.message]
    if calls is None or bool(problems) != bool(run.code):
        problems = [*problems, f"the program did not end as it should: {run.message}"]
    return Check(calls or "no calls", tuple(problems))


def twins(program: Path, options: m3.Options | None = None) -> Check:
    """The profile's assembly against its portable twins (twins.elf), edges and random inputs."""
    run = m3.run(str(program), options or m3.Options())
    *lines, last = run.output.decode(errors="replace").splitlines() or [""]
    routines = [line for line in lines if _ROUTINE.fullmatch(line)]
    problems = [line for line in lines if line not in routines]
    if not routines or problems or (run.code, last) != (0, "twins: equal"):
        problems.append(last or run.message)
    return Check(f"{len(routines)} routines", tuple(problems))


def instructions(listing: str) -> Check:
    """The library's code: no instruction takes time by its operands, and no helper of the
    compiler's that has one is called."""
    mnemonics = [mnemonic for _, mnemonic in _decoded(listing)]
    problems = {one for one in mnemonics if one.startswith(_VARIABLE_TIME)}
    for line in listing.splitlines():
        if "*UND*" in line and _HELPERS.fullmatch(line.split()[-1]):
            problems.add(f"calls {line.split()[-1]}")
    if not mnemonics:
        problems.add("no instruction was found")
    return Check(f"{len(mnemonics):,} instructions", tuple(sorted(problems)))


def narrow(listing: str) -> float:
    """Of the library's instructions, the share that 16 bits encode."""
    codes = [code.split() for code, _ in _decoded(listing)]
    return sum(len(code) == 1 for code in codes) / len(codes)


def callers(listing: str, name: str) -> list[str]:
    """The functions of the library that call one."""
    function, found = "", []
    for line in listing.splitlines():
        if begin := _FUNCTION.fullmatch(line):
            function = begin[1]
        elif "R_ARM_THM_" in line and line.split()[-1] == name:
            found.append(function)
    return found


def member_bytes(listing: str, member: str) -> int:
    """The bytes of an object's functions."""
    _, _, rest = listing.partition(f"\n{member}:")
    symbols = rest.partition("\nDisassembly")[0].splitlines()
    return sum(int(line.split("\t")[1].split()[0], 16) for line in symbols if " F " in line)


def read_vectors(folder: Path, source: str, file: str = "vectors.txt") -> list[tuple[str, str]]:
    """A source's calls with their results. Raises OSError."""
    lines = (folder / source / file).read_text().splitlines()
    pairs = [line.split(" = ") for line in lines if line and not line.startswith("#")]
    return [(call, result) for call, result in pairs]


def answers(program: Path, calls: Iterable[str]) -> list[str]:
    """Results of calls, by answers.elf. Raises RuntimeError if it does not succeed."""
    done = m3.run(str(program), m3.Options(input="\n".join(calls).encode() + b"\n"))
    if done.code != 0:
        raise RuntimeError(f"{program} failed: {done.message}")
    return done.output.decode().splitlines()


def vectors(program: Path, expected: list[tuple[str, str]]) -> Check:
    """Published answers (answers.elf)."""
    try:
        got = answers(program, [call for call, _ in expected])
    except RuntimeError as error:
        return Check(f"{len(expected):,} vectors", (str(error),))
    if len(got) != len(expected) or not expected:
        problems = [f"{len(got)} answers to {len(expected)} calls"]
    else:
        problems = [
            f"{call[:200]}: {result[:200]} expected, {answer[:200]}"
            for (call, result), answer in zip(expected, got, strict=True)
            if answer != result
        ]
    return Check(f"{len(expected):,} vectors", tuple(problems))


def _some_vectors(program: Path, every: list[tuple[str, str]], most: int) -> Check:
    """At most about `most` of the vectors, spread over all, and RFC 7748's iterations left out."""
    some = [one for one in every if LONG not in one[0]]
    some = some[:: max(1, -(-len(some) // most))]
    check = vectors(program, some)
    if len(some) == len(every):
        return check
    return Check(f"{len(some):,} of {len(every):,} vectors", check.problems)


def _decoded(listing: str) -> Iterator[tuple[str, str]]:
    """Each instruction's code and mnemonic; constants between them are left out."""
    for line in listing.splitlines():
        fields = line.split("\t")
        if len(fields) > 2 and fields[0] and not fields[2].startswith("."):
            yield fields[1], fields[2].strip()


def _leaks(found: m3.Taint) -> Check:
    # Taint runs make one round.
    *_, last = found.run.output.decode(errors="replace").splitlines() or [""]
    calls = _calls(last)
    problems = [f"{leak.kind} in {leak.at.function}" for leak in found.leaks]
    if calls is None or found.run.code != 0:
        problems.append(f"the program did not end as it should: {found.run.message}")
    if found.poisoned == 0:
        problems.append("nothing was secret")
    return Check((calls or "no calls").split(",")[0], tuple(problems))


def _calls(line: str) -> str | None:
    match = _CALLS.fullmatch(line)
    return None if match is None or match[1] == "0" else match[0]

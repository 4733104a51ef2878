# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Running a program: what goes in, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, SupportsIndex

from warifu import _core

CHIPS: tuple[str, ...] = tuple(_core.m3_chips())
"""The chips whose memory maps are known."""

DEFAULT_CHIP = "mps2-an385"
MAX_INSTRUCTIONS = 10_000_000_000
"""About a minute on one core; a program that has not ended by then is taken for an endless loop."""
MOST_WAIT_STATES = 1000
"""More than any memory needs, few enough that no sum of cycles overflows."""
MOST_ARGUMENTS = 254
"""Bytes of a command line: newlib's start-up keeps 255, the last of them zero
(libgloss/arm/crt0.S), and gives `main` no argument at all if there are more."""
_MOST_INSTRUCTIONS = 2**64 - 1

KIND = "emulated"
"""Of figures here: the program is real, the chip is ours."""
ASSUMED = "assumed"
"""The same with wait states, which no board has confirmed."""

MOST_OUTPUT: int = _core.M3_MOST_OUTPUT
"""16 MiB: so many bytes of a program's output are kept where nobody takes it as it comes."""

Output = Callable[[bytes], object]
"""Takes what a program prints, as it comes."""


@dataclass(frozen=True)
class Cycles:
    """Cycles by two readings of the chip's rules; the high end is what is judged."""

    low: int
    high: int

    def __str__(self) -> str:
        """`1,204` or `1,204 to 1,310`."""
        if self.low == self.high:
            return f"{self.high:,}"
        return f"{self.low:,} to {self.high:,}"

    def __sub__(self, other: Cycles) -> Cycles:
        """Each reading by itself."""
        return Cycles(self.low - other.low, self.high - other.high)

    def milliseconds(self, mhz: float) -> tuple[float, float]:
        """How long they take at a clock rate, ms."""
        return self.low / mhz / 1e3, self.high / mhz / 1e3


@dataclass(frozen=True)
class Options:
    """How a program is run."""

    chip: str = DEFAULT_CHIP
    max_instructions: int = MAX_INSTRUCTIONS
    wait_states: Mapping[str, int] = field(default_factory=dict)
    """Cycles that each access waits, by the name of a memory. *Assumed*: no board has confirmed
    them."""
    deliver_faults: bool = False
    """Whether faults go to the program's own handlers; else the first one ends the run."""
    low_reading: bool = False
    """Whether the program's own counters (SysTick, CYCCNT) count the low reading."""
    input: bytes = b""
    """What the program reads from its console."""
    arguments: str = ""
    """Its command line, `MOST_ARGUMENTS` bytes at most. newlib's start-up makes words of it, of
    which the first is `argv[0]`; a word in quotes goes to the next such quote or to the end."""

    def __post_init__(self) -> None:
        """Raises ValueError or TypeError, which name the field and the mend."""
        whole("max_instructions", self.max_instructions, 1, _MOST_INSTRUCTIONS)
        for memory, cycles in self.wait_states.items():
            whole(f"wait_states[{memory!r}]", cycles, 0, MOST_WAIT_STATES)
        _of_type("input", self.input, (bytes, bytearray), "bytes, such as text.encode()")
        _of_type("arguments", self.arguments, (str,), "a str, such as 'program -v'")
        _refuse_arguments(self.arguments)

    def request(self) -> dict[str, Any]:
        """As `_core` takes them."""
        return {
            "chip": self.chip,
            "max_instructions": self.max_instructions,
            "wait_states": list(self.wait_states.items()),
            "deliver_faults": self.deliver_faults,
            "low_reading": self.low_reading,
            "input": bytes(self.input),
            "arguments": self.arguments,
        }


def whole(field: str, value: object, least: int, most: int) -> None:
    """Raises TypeError or ValueError where a field is no whole number from `least` to `most`."""
    expected = f"expected a whole number from {least} to {most}"
    if not isinstance(value, SupportsIndex):
        raise TypeError(f"{field} is {value!r}: {expected}")
    if not least <= value.__index__() <= most:
        raise ValueError(f"{field} is {value!r}: {expected}")


def _of_type(field: str, value: object, types: tuple[type, ...], expected: str) -> None:
    if not isinstance(value, types):
        raise TypeError(f"{field} is of type {type(value).__name__}: expected {expected}")


def _refuse_arguments(arguments: str) -> None:
    """What a program would not get, or not as it is."""
    try:
        line = arguments.encode()
    except UnicodeEncodeError:
        raise ValueError("arguments: is not UTF-8 text: a program gets UTF-8") from None
    if b"\0" in line:
        raise ValueError("arguments: has a zero byte, which ends a command line: leave it out")
    if len(line) > MOST_ARGUMENTS:
        raise ValueError(
            f"arguments: has {len(line)} bytes, and a program gets {MOST_ARGUMENTS} at most "
            "(SYS_GET_CMDLINE): shorten it, or give the rest as input"
        )


@dataclass(frozen=True)
class Mark:
    """A moment that the program marked (`WARIFU_MARK`, crates/m3/include)."""

    name: str
    """Its first 256 bytes."""
    at: Cycles
    stack_pointer: int


@dataclass(frozen=True)
class Run:
    """How a run ended and what it took."""

    program: Path
    options: Options
    stop: str
    """`exit`, or what ended it: `fault`, `lockup`, `exception-entry`, `breakpoint`, `asleep`,
    `reset`, `stack-overflow`, `unknown-semihosting`, `instruction-limit`."""
    code: int | None
    """The program's exit code, where it ended itself."""
    address: int | None
    """Of the instruction at which it ended, where it did not end itself."""
    message: str
    """One line: why, address, symbol, registers."""
    instructions: int
    cycles: Cycles
    registers: tuple[int, ...]
    """R0 to R15."""
    xpsr: int
    marks: tuple[Mark, ...]
    lost_marks: int
    """Later marks, which were too many to be kept."""
    output: bytes
    """What the program printed, unless somebody took it as it came: its first `MOST_OUTPUT`
    bytes."""
    lost_output: int
    """Bytes that it printed later, which were not kept."""

    @property
    def ok(self) -> bool:
        """Whether the program ended itself with code 0."""
        return self.stop == "exit" and self.code == 0

    @property
    def kind(self) -> str:
        """Of every figure here: the weakest among what went in."""
        return ASSUMED if any(self.options.wait_states.values()) else KIND

    @staticmethod
    def of(program: Path, options: Options, found: Mapping[str, Any]) -> Run:
        """From what `_core` tells."""
        return Run(
            program,
            options,
            found["stop"],
            found["code"],
            found["address"],
            found["message"],
            found["instructions"],
            Cycles(*found["cycles"]),
            tuple(found["registers"]),
            found["xpsr"],
            tuple(Mark(name, Cycles(*at), stack) for name, at, stack in found["marks"]),
            found.get("lost_marks", 0),
            found["output"],
            found["lost_output"],
        )


def run(program: Path | str, options: Options | None = None, output: Output | None = None) -> Run:
    """Runs an ELF file until it ends or something ends it.

    `output` takes what it prints as it comes; without it the first `MOST_OUTPUT` bytes of that are
    the result's `output`, and `lost_output` says how many more there were.

    Raises WarifuError where there is nothing to run (no ELF file, not for this chip), and OSError.
    """
    path, options = Path(program), options or Options()
    with naming(path):
        found = _core.m3_run(path.read_bytes(), options.request(), output)
    return Run.of(path, options, found)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Puts the file's name before what is wrong with it."""
    try:
        yield
    except _core.WarifuError as error:
        raise _core.WarifuError(f"{path}: {error}") from None

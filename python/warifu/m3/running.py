# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Running a program: options and results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, SupportsIndex

from warifu import _core
from warifu.files import FileRefused, opened
from warifu.m3.chips import DEFAULT_CHIP, text_of

MAX_INSTRUCTIONS = 10_000_000_000
"""About a minute on one core; a program that runs longer is assumed to be in an endless loop."""
MAX_WAIT_STATES = 1000
"""More than any memory needs, and few enough that no sum of cycles overflows."""
MAX_ARGUMENTS = 254
"""Bytes of a command line: newlib's start-up keeps 255, the last of them zero
(libgloss/arm/crt0.S), and gives `main` no argument at all if there are more."""
MAX_FILE_BYTES = 256 << 20
"""Bytes of an ELF file, with debugging information."""
MAX_U64 = 2**64 - 1

KIND = "emulated"
"""The kind of figures here: the program is real, the chip is simulated."""
ASSUMED = "assumed"
"""The kind with wait states, which no board has confirmed, and of programs for another core."""

MAX_OUTPUT: int = _core.M3_MAX_OUTPUT
"""16 MiB: bytes of a program's output that are kept if there is no `output` callback."""

Output = Callable[[bytes], object]
"""Receives a program's output as it is printed."""


@dataclass(frozen=True)
class Cycles:
    """Cycles by two readings of the chip's rules; comparisons use the high end."""

    low: int
    high: int

    def __str__(self) -> str:
        """`1,204` or `1,204 to 1,310`."""
        if self.low == self.high:
            return f"{self.high:,}"
        return f"{self.low:,} to {self.high:,}"

    def __sub__(self, other: Cycles) -> Cycles:
        """The difference of each reading."""
        return Cycles(self.low - other.low, self.high - other.high)

    def milliseconds(self, mhz: float) -> tuple[float, float]:
        """Their duration at a clock rate, ms."""
        return self.low / mhz / 1e3, self.high / mhz / 1e3


@dataclass(frozen=True)
class Options:
    """Options of a run."""

    chip: str = DEFAULT_CHIP
    """A built-in chip (`CHIPS`), or a file `FILE.toml` that describes one."""
    max_instructions: int = MAX_INSTRUCTIONS
    wait_states: Mapping[str, int] = field(default_factory=dict)
    """Wait states by the name of a memory. *Assumed*: no board has confirmed them."""
    plain_wait_states: bool = False
    """Whether each code word and each data access waits; otherwise a flash reads lines and fetches
    the next one ahead, where the chip's file says so."""
    deliver_faults: bool = False
    """Whether faults go to the program's handlers; otherwise the first one ends the run."""
    low_reading: bool = False
    """Whether the chip's counters (SysTick, CYCCNT) count by the low reading."""
    input: bytes = b""
    """Console input."""
    arguments: str = ""
    """The command line, `MAX_ARGUMENTS` bytes at most. newlib's start-up splits it into words, the
    first of which is `argv[0]`; a quoted word extends to the next such quote or to the end."""
    any_core: bool = False
    """Whether a program for another core of Arm's is run, by a Cortex-M3's instructions and timing;
    otherwise it is refused."""

    def __post_init__(self) -> None:
        """Raises ValueError or TypeError, which name the field and the expected value."""
        whole_number("max_instructions", self.max_instructions, 1, MAX_U64)
        for memory, cycles in self.wait_states.items():
            whole_number(f"wait_states[{memory!r}]", cycles, 0, MAX_WAIT_STATES)
        _of_type("input", self.input, (bytes, bytearray), "bytes, such as text.encode()")
        _of_type("arguments", self.arguments, (str,), "a str, such as 'program -v'")
        _refuse_arguments(self.arguments)

    def files(self) -> tuple[Path, ...]:
        """The files that these options name: that of the chip."""
        return (Path(self.chip),) if self.chip.endswith(".toml") else ()

    def request(self) -> dict[str, Any]:
        """The options as `_core` expects them."""
        return {
            "chip": self.chip,
            "chip_file": text_of(self.chip),
            "max_instructions": self.max_instructions,
            "wait_states": list(self.wait_states.items()),
            "plain_wait_states": self.plain_wait_states,
            "deliver_faults": self.deliver_faults,
            "low_reading": self.low_reading,
            "input": bytes(self.input),
            "arguments": self.arguments,
            "any_core": bool(self.any_core),
        }


def whole_number(field: str, value: object, least: int, most: int) -> None:
    """Raises TypeError or ValueError unless a field is a whole number from `least` to `most`."""
    expected = f"expected a whole number from {least} to {most}"
    if not isinstance(value, SupportsIndex):
        raise TypeError(f"{field} is {value!r}: {expected}")
    if not least <= value.__index__() <= most:
        raise ValueError(f"{field} is {value!r}: {expected}")


def _of_type(field: str, value: object, types: tuple[type, ...], expected: str) -> None:
    if not isinstance(value, types):
        raise TypeError(f"{field} is of type {type(value).__name__}: expected {expected}")


def _refuse_arguments(arguments: str) -> None:
    """Raises ValueError for a command line that a program would not receive unchanged."""
    try:
        line = arguments.encode()
    except UnicodeEncodeError:
        raise ValueError("arguments: is not valid UTF-8 text") from None
    if b"\0" in line:
        raise ValueError("arguments: has a zero byte, which would end the command line: remove it")
    if len(line) > MAX_ARGUMENTS:
        raise ValueError(
            f"arguments: has {len(line)} bytes: expected at most {MAX_ARGUMENTS}, which newlib's "
            "start-up keeps; pass the rest as input"
        )


@dataclass(frozen=True)
class Mark:
    """A mark of the program (`WARIFU_MARK`, crates/m3/include)."""

    name: str
    """Its first 256 bytes."""
    at: Cycles
    stack_pointer: int


@dataclass(frozen=True)
class Run:
    """The result of a run."""

    program: Path
    options: Options
    stop: str
    """`exit`, or the stop reason: `fault`, `lockup`, `exception-entry`, `breakpoint`, `asleep`,
    `reset`, `stack-overflow`, `unknown-semihosting`, `unmapped-semihosting`,
    `instruction-limit`."""
    code: int | None
    """The program's exit code; None if it did not exit."""
    address: int | None
    """The address of the instruction that stopped it; None if it exited."""
    message: str
    """One line: stop reason, address, symbol, registers."""
    instructions: int
    cycles: Cycles
    registers: tuple[int, ...]
    """R0 to R15."""
    xpsr: int
    marks: tuple[Mark, ...]
    lost_marks: int
    """Marks dropped because there were too many."""
    output: bytes
    """The program's output if there was no `output` callback: its first `MAX_OUTPUT` bytes."""
    lost_output: int
    """Bytes of output beyond that, which were dropped."""
    other_core: str | None = None
    """The core that the program was built for, if it is not a Cortex-M3: cycles are not that
    core's."""

    @property
    def ok(self) -> bool:
        """Whether the program exited with code 0."""
        return self.stop == "exit" and self.code == 0

    @property
    def kind(self) -> str:
        """The kind of every figure here, that of the weakest input."""
        waits = any(self.options.wait_states.values())
        return ASSUMED if waits or self.other_core else KIND

    @staticmethod
    def of(program: Path, options: Options, found: Mapping[str, Any]) -> Run:
        """From the result of `_core`."""
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
            found.get("other_core"),
        )


def run(program: Path | str, options: Options | None = None, output: Output | None = None) -> Run:
    """Runs an ELF file until the program exits or is stopped.

    `output` receives its output as it is printed; without it the result has the first `MAX_OUTPUT`
    bytes as `output`, and the number of further bytes as `lost_output`.

    Raises WarifuError if the file is not a program for this chip, and OSError.
    """
    path, options = Path(program), options or Options()
    request = options.request()
    with naming(path):
        found = _core.m3_run(read_program(path), request, output)
    return Run.of(path, options, found)


def read_program(path: Path) -> bytes:
    """Reads an ELF file. Raises WarifuError for a device, a pipe, a huge file and what is no ELF
    file, and OSError."""
    try:
        with opened(path) as file:
            found = os.fstat(file.fileno()).st_size
            # It may grow.
            content = b"" if found > MAX_FILE_BYTES else file.read(MAX_FILE_BYTES + 1)
    except FileRefused:
        raise _core.WarifuError("not a regular file: expected an ELF file") from None
    if max(found, len(content)) > MAX_FILE_BYTES:
        raise _core.WarifuError(
            f"has {max(found, len(content))} bytes: expected an ELF file of at most "
            f"{MAX_FILE_BYTES}"
        )
    if not content.startswith(b"\x7fELF"):
        raise _core.WarifuError(
            "is not an ELF file: name a linked program, such as arm-none-eabi-gcc writes with -o"
        )
    return content


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Prefixes errors with the file name."""
    try:
        yield
    except _core.WarifuError as error:
        raise _core.WarifuError(f"{path}: {error}") from None

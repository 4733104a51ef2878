# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The benchmark that an output is of, by its content."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from warifu.devices import text
from warifu.devices.errors import DeviceError
from warifu.devices.figures import LeftOut, Output
from warifu.devices.formats import bearssl, mbedtls, mupq, openssl, plain, wolfcrypt

_READERS: tuple[Callable[[Sequence[str], int | None], Output | None], ...] = (
    wolfcrypt.read,
    mbedtls.read,
    openssl.read,
    bearssl.read,
    mupq.read,
    plain.read,
)
KNOWN = (
    "wolfCrypt's benchmark, Mbed TLS's benchmark, openssl speed, BearSSL's testspeed, the tables "
    "of pqm4 and pqm3, or CSV with the head primitive,value,unit"
)


def recognise(
    content: bytes, name: str, *, clock_hz: int | None = None, run: int | None = None
) -> Output:
    """The figures of an output; `name` begins the error's text. `run` is the number, from 1, of a
    run in a file of several. Raises DeviceError."""
    lines = text.lines(content)
    lines = _one_run(lines, name, run)
    found = [one for read in _READERS if (one := read(lines, clock_hz)) is not None]
    if not found:
        raise DeviceError(f"{name}: is the output of no benchmark that is known: expected {KNOWN}")
    # A log may hold lines that look like another tool's.
    best = _believed(max(found, key=lambda one: (len(one.figures), one.lines)))
    if not best.figures:
        kept = ", ".join(one.what for one in best.left_out[:3])
        why = best.left_out[0].why if best.left_out else "it has no row with a figure"
        raise DeviceError(
            f"{name}: {best.tool}: nothing in it is of use to a case ({kept}: {why}): scale a "
            "device from its clock with `warifu init device NAME --core CORE --clock CLOCK`"
        )
    return best


def _believed(output: Output) -> Output:
    """Without what no board can have: a profile with it could not be read."""
    wrong = [
        one
        for one in output.figures
        if not 0 <= one.call_ns <= text.LONGEST_NS or not 0 <= one.byte_ns <= text.LONGEST_BYTE_NS
    ]
    left_out = [LeftOut(one.primitive, "no call takes so long") for one in wrong]
    slowest, fastest = text.CLOCKS_HZ
    clock_hz = output.clock_hz
    return replace(
        output,
        figures=tuple(one for one in output.figures if one not in wrong),
        left_out=(*output.left_out, *left_out),
        clock_hz=clock_hz if clock_hz and slowest <= clock_hz <= fastest else None,
    )


def _one_run(lines: list[str], name: str, run: int | None) -> list[str]:
    runs = wolfcrypt.runs(lines)
    if len(runs) < 2 and run in {None, 1}:
        return lines
    if run is not None and len(runs) < 2:
        raise DeviceError(f"{name}: holds one run: leave out --run {run}")
    if run is None or not 1 <= run <= len(runs):
        listed = "; ".join(
            f"{index} {heading}" for index, (heading, _, _) in enumerate(runs[:8], 1)
        )
        more = f"; .. {len(runs)}" if len(runs) > 8 else ""
        raise DeviceError(
            f"{name}: has {len(runs)} runs, perhaps of several boards: choose one with --run "
            f"({listed}{more})"
        )
    _, start, end = runs[run - 1]
    # What ESP-IDF prints before a run says what chip it is.
    return lines[(0 if run == 1 else start) : end]

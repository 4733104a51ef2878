# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A profile from what somebody has: the output of a benchmark, or figures of a data sheet."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from warifu import _core
from warifu.devices import cores
from warifu.devices.catalog import Device
from warifu.devices.errors import DeviceError
from warifu.devices.figures import Code, Output
from warifu.devices.profile import Completed, Draft, Given, Stated, complete, toml
from warifu.devices.scaling import Corpus

#: Whose recipes hold where those of a device's own library are not there.
STAND_IN = "mbedtls-3.6"
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}")
#: Which figures tell assembly from portable C: the same curve on the same core differs by ten.
_TELLING = ("sign.ecdsa_secp256r1", "ecdh.derive.secp256r1", "verify.ecdsa_secp256r1")


@dataclass(frozen=True)
class Machine:
    """What is said of a device beside its figures; what is not said is None."""

    library: str | None = None
    core: str | None = None
    clock_hz: int | None = None
    code: Code | None = None
    ram: str | None = None
    flash: str | None = None


@dataclass(frozen=True)
class Made:
    """A profile that was made."""

    name: str
    text: str
    draft: Draft
    completed: Completed
    code_by: str | None
    """The figure that the kind of code is told by; empty where none tells, None where it was
    given."""


def checked_name(name: str) -> str:
    """A name that a profile can have. Raises DeviceError."""
    if not _NAME.fullmatch(name):
        raise DeviceError(
            f"--name {name!r}: expected lower-case letters, digits, - and ., such as my-board"
        )
    return name


def name_of(file: str) -> str:
    """A profile's name from a file's; empty where nothing of it can be one."""
    words = re.sub(r"[^a-z0-9.]+", "-", file.lower()).strip("-.")
    return words[:63].rstrip("-.")


def from_output(
    name: str, output: Output, machine: Machine, corpus: Corpus, file: str, date: str
) -> Made:
    """From a benchmark's output; `file` and `date` are for its source. Raises DeviceError."""
    source = f"{file}: {output.source}, imported {date}"
    given = [Given(one, source, "measured" if one.is_read else "assumed") for one in output.figures]

    def stated(own: str | None, read: str | None) -> Stated | None:
        if own is not None:
            return Stated(own)
        return None if read is None else Stated(read, source, "measured")

    clock_hz = machine.clock_hz or output.clock_hz
    draft = Draft(
        name,
        f"{name}, from {output.tool}",
        given,
        library=stated(machine.library, output.library) or Stated(STAND_IN),
        core=stated(machine.core, output.core),
        clock_hz=clock_hz,
        clock=stated(_clock(machine.clock_hz), _clock(output.clock_hz)),
        code=machine.code,
        ram=stated(machine.ram, None),
        flash=stated(machine.flash, None),
    )
    return _made(draft, corpus, f"Written by `warifu import` on {date}, from {source}.")


def from_figures(
    name: str,
    given: list[Given],
    machine: Machine,
    corpus: Corpus,
    description: str = "",
) -> Made:
    """From figures that somebody typed. Raises DeviceError."""
    about = ", ".join(filter(None, (machine.core, _clock(machine.clock_hz))))
    draft = Draft(
        name,
        description or f"{name} ({about})",
        given,
        library=Stated(machine.library or STAND_IN),
        core=(machine.core and Stated(machine.core)) or None,
        clock_hz=machine.clock_hz,
        clock=(_clock(machine.clock_hz) and Stated(str(_clock(machine.clock_hz)))) or None,
        code=machine.code,
        ram=(machine.ram and Stated(machine.ram)) or None,
        flash=(machine.flash and Stated(machine.flash)) or None,
    )
    return _made(draft, corpus, "Written by `warifu init device`.")


def _made(draft: Draft, corpus: Corpus, head: str) -> Made:
    if draft.clock_hz is None:
        raise DeviceError(
            f"{draft.name}: its clock is not known, and what is missing is scaled by it: add "
            "--clock, such as --clock 64MHz"
        )
    code_by = None
    if draft.code is None:
        draft.code, code_by = _code(draft.device(), corpus)
    # Its own, earlier profile is no other device.
    completed = complete(draft, corpus.without(draft.name))
    if completed.missing or completed.instruction_ns is None:
        lacking = ", ".join(
            [*completed.missing, *(["instruction"] * (completed.instruction_ns is None))]
        )
        raise DeviceError(
            f"{draft.name}: no device has {lacking} to scale from: are the shipped profiles in "
            "reach? `warifu devices` lists them"
        )
    lines = [
        head,
        "What is measured is the benchmark's. All that is scaled is assumed: see its note.",
    ]
    text = toml(draft, completed, lines)
    try:
        _core.device(draft.name, text, "it")
    except _core.WarifuError as error:
        # No file has it yet, so that its text names none that could be mended.
        raise DeviceError(
            f"{draft.name}: at a clock of {_clock(round(draft.clock_hz))} no profile can be made "
            f"({error}): check --clock and the figures that were given"
        ) from None
    return Made(draft.name, text, draft, completed, code_by)


def _code(device: Device, corpus: Corpus) -> tuple[Code, str]:
    """The kind of code that a device's P-256 figures are of: that of the device, of the same core
    or else family, whose cycles are nearest; and the figure that tells. Portable C where none
    does."""
    best = (math.inf, Code.C)
    by = ""
    for primitive in _TELLING:
        known = device.primitives.get(primitive)
        if known is None or device.clock_hz is None:
            continue
        for other in corpus.devices:
            theirs = other.firm(primitive)
            if theirs is None or theirs.code is None or other.clock_hz is None:
                continue
            alike = other.core == device.core or (
                cores.family(other.core) == cores.family(device.core)
            )
            ratio = known.call_ns * device.clock_hz / (theirs.call_ns * other.clock_hz)
            # A stranger counts where nobody alike is near.
            distance = abs(math.log(ratio)) + (0 if alike else 3)
            best, by = min(best, (distance, theirs.code)), primitive
        break
    return best[1], by


def _clock(hz: int | None) -> str | None:
    if hz is None:
        return None
    unit, scale = ("MHz", 1e6) if hz >= 1e6 else ("kHz", 1e3)
    return f"{hz / scale:.6g} {unit}"

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reading and writing `replay.json`: measured connections, each simulated once more with the fates
that its packets met on the link.

It lies beside the two halves that it is of, names both runs and has the SHA-256 of its cases, so
that one that was changed is not read. A case's lists have an entry for each connection;
`replayed_ns` is null where the replay came to nothing. Divergent connections, in which one half
sent a packet that the other did not, are marked and never left out. Bare acknowledgements carry
nothing, and are told apart (`other_acknowledgements`, which is not of every replay).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warifu.files import RESULTS_BYTES, FileRefused, read_text, replace_text
from warifu.printable import clipped, printable
from warifu.results.distribution import Floats
from warifu.results.manifest import ResultsDamaged, refuse_elsewhere

FILE_NAME = "replay.json"
VERSION = 2
_LISTS = ("trials", "part", "replayed_ns", "measured_ns", "same_sequence", "divergent")
#: A list that older archives lack.
_ACKNOWLEDGEMENTS = "other_acknowledgements"
#: Thirty years: no connection takes longer.
_MOST = 10**18
#: How far apart a time and the archived one may be, ns: each is rounded.
_ARCHIVED_NS = 1_000.0
#: What to do about one that is not usable. Of a restored folder none is made again.
_AGAIN = "remove it and run `warifu compare` again, or restore its archive anew if it came from one"


@dataclass(frozen=True)
class ReplayOfCase:
    """The replayed connections of a case, an entry of each array for one."""

    trials: NDArray[np.int64]
    #: The part of the measurement in which each was measured.
    part: NDArray[np.int64]
    #: Infinite where the replay came to nothing.
    replayed_ns: Floats
    measured_ns: Floats
    #: Whether both halves sent the same segments again, in the same order.
    same_sequence: NDArray[np.bool_]
    #: Whether one half sent a packet that the other did not: data, SYN or FIN.
    divergent: NDArray[np.bool_]
    #: Whether one half sent a bare acknowledgement that the other did not; None where that is not
    #: known.
    other_acknowledgements: NDArray[np.bool_] | None = None


def read_replay(folder: Path, predicted_run: str, measured_run: str) -> Mapping[str, ReplayOfCase]:
    """By case id; empty where nothing was replayed.

    Raises ResultsDamaged for a file that is none, and for one of other runs.
    """
    file = folder / FILE_NAME
    try:
        refuse_elsewhere(folder, file)
        value = json.loads(read_text(file, RESULTS_BYTES))
    except FileNotFoundError:
        return {}
    except (FileRefused, OSError, ValueError, RecursionError) as error:
        what = str(error) if isinstance(error, FileRefused) else "cannot be read as JSON"
        raise _not_usable(file, what) from None
    match value:
        case {
            "version": int(version),
            "predicted_run": str(predicted),
            "measured_run": str(measured),
            "sha256": sha256,
            "cases": dict(cases),
        }:
            pass
        case {"version": other} if type(other) is not int or other != VERSION:
            raise _not_usable(file, f"version is {clipped(str(other))}: expected {VERSION}")
        case _:
            what = "has no version, predicted_run, measured_run, sha256 or cases"
            raise _not_usable(file, what)
    if type(version) is bool or version != VERSION:
        raise _not_usable(file, f"version is {clipped(str(version))}: expected {VERSION}")
    if (predicted, measured) != (predicted_run, measured_run):
        of, here = (
            f"{clipped(printable(one))} and {clipped(printable(other))}"
            for one, other in ((predicted, measured), (predicted_run, measured_run))
        )
        raise _not_usable(file, f"is of the runs {of}, but the halves beside it are {here}")
    found = {case_id: _case(file, one, f"cases.{case_id}") for case_id, one in cases.items()}
    if sha256 != seal(cases):
        raise _not_usable(file, "was changed after it was written (its SHA-256 differs)")
    return found


def seal(cases: Mapping[str, Any]) -> str:
    """SHA-256 of what was replayed, hexadecimal, however it is laid out."""
    return hashlib.sha256(json.dumps(cases, sort_keys=True).encode()).hexdigest()


def refuse_other_parts(
    folder: Path, replays: Mapping[str, ReplayOfCase], parts: Callable[[str], int]
) -> None:
    """Raises ResultsDamaged where a replay names a part that its case was not measured in, of as
    many as ``parts`` says; 0 where that is not known."""
    for case_id, one in replays.items():
        count, last = parts(case_id), int(one.part.max(initial=0))
        if 0 < count <= last:
            key = f"cases.{clipped(printable(case_id))}.part"
            what = f"{key} has part {last}, and the case was measured in {count} parts, from 0 on"
            raise _not_usable(folder / FILE_NAME, what)


def refuse_other_times(
    folder: Path,
    case_id: str,
    replay: ReplayOfCase,
    measured_ns: Floats,
    part: NDArray[np.int64] | None,
) -> None:
    """Raises ResultsDamaged where a replay's connections are not those that were measured and got
    their response, one for one: in each part with the same times, to a microsecond, which is what
    an archive keeps of them. ``part`` is None where it is not known."""
    got = np.isfinite(measured_ns)
    if part is None:
        part = np.zeros(measured_ns.size, dtype=np.int64)
        replay = replace(replay, part=np.zeros(replay.part.size, dtype=np.int64))
    where = f"{folder / FILE_NAME}: cases.{clipped(printable(case_id))}"
    for one in np.union1d(part[got], replay.part):
        theirs = np.sort(measured_ns[got & (part == one)])
        ours = np.sort(replay.measured_ns[replay.part == one])
        if theirs.size != ours.size:
            what = f"{ours.size} connections of part {one}, of which {theirs.size} were measured"
        elif theirs.size and np.abs(theirs - ours).max() > _ARCHIVED_NS:
            at = int(np.abs(theirs - ours).argmax())
            what = f"a connection of part {one} with {ours[at]:,.0f} ns, measured {theirs[at]:,.0f}"
        else:
            continue
        raise ResultsDamaged(f"{where} has {what}: {_AGAIN}")


def write_replay(
    folder: Path, predicted_run: str, measured_run: str, cases: Mapping[str, ReplayOfCase]
) -> Path:
    """Writes it beside the halves, whole or not at all; `replayed_ns` that is infinite as null."""
    plain: dict[str, dict[str, list[Any]]] = {
        case_id: {
            "trials": one.trials.tolist(),
            "part": one.part.tolist(),
            "replayed_ns": [int(ns) if np.isfinite(ns) else None for ns in one.replayed_ns],
            "measured_ns": one.measured_ns.astype(np.int64).tolist(),
            "same_sequence": one.same_sequence.tolist(),
            "divergent": one.divergent.tolist(),
        }
        for case_id, one in cases.items()
    }
    for case_id, one in cases.items():
        if one.other_acknowledgements is not None:
            plain[case_id][_ACKNOWLEDGEMENTS] = one.other_acknowledgements.tolist()
    runs = {"version": VERSION, "predicted_run": predicted_run, "measured_run": measured_run}
    path = folder / FILE_NAME
    replace_text(path, json.dumps(runs | {"sha256": seal(plain), "cases": plain}) + "\n")
    return path


def _case(file: Path, value: object, key: str) -> ReplayOfCase:
    if not isinstance(value, dict) or not all(isinstance(value.get(one), list) for one in _LISTS):
        raise _not_usable(file, f"{key} has not all of {', '.join(_LISTS)}")
    acknowledgements = value.get(_ACKNOWLEDGEMENTS)
    if not isinstance(acknowledgements, list | None):
        raise _not_usable(file, f"{key}.{_ACKNOWLEDGEMENTS} is no list")
    lists = [value[name] for name in _LISTS]
    lists += [] if acknowledgements is None else [acknowledgements]
    if len(set(map(len, lists))) > 1:
        raise _not_usable(file, f"the lists of {key} differ in length")
    numbers = {
        name: _numbers(file, value[name], f"{key}.{name}", nullable=name == "replayed_ns")
        for name in _LISTS[:4]
    }
    for name in ("trials", "part"):
        if (numbers[name] % 1 != 0).any():
            raise _not_usable(file, f"{key}.{name} has numbers that are not whole")
    flags = {name: _flags(file, value[name], f"{key}.{name}") for name in _LISTS[4:]}
    others = None
    if acknowledgements is not None:
        others = _flags(file, acknowledgements, f"{key}.{_ACKNOWLEDGEMENTS}")
    trials = numbers["trials"].astype(np.int64)
    if np.unique(trials).size != trials.size:
        raise _not_usable(file, f"{key}.trials has a trial twice")
    return ReplayOfCase(
        trials,
        numbers["part"].astype(np.int64),
        numbers["replayed_ns"],
        numbers["measured_ns"],
        flags["same_sequence"],
        flags["divergent"],
        others,
    )


def _numbers(file: Path, values: list[Any], key: str, *, nullable: bool) -> Floats:
    for place, one in enumerate(values):
        if one is None and nullable:
            continue
        if type(one) not in (int, float) or not 0 <= one <= _MOST:
            raise _not_usable(file, f"{key}[{place}] is {clipped(str(one))}: expected a number")
    return np.array([np.inf if one is None else float(one) for one in values], dtype=np.float64)


def _flags(file: Path, values: list[Any], key: str) -> NDArray[np.bool_]:
    for place, one in enumerate(values):
        if type(one) is not bool and one not in (0, 1):
            raise _not_usable(
                file, f"{key}[{place}] is {clipped(str(one))}: expected true or false"
            )
    return np.array(values, dtype=np.bool_)


def _not_usable(file: Path, what: str) -> ResultsDamaged:
    return ResultsDamaged(f"{file}: {what}: {_AGAIN}")

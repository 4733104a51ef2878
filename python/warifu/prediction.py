# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Simulating a study into a results folder, for the command line and for scripts."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warifu import _core, provenance
from warifu.files import RESULTS_BYTES, FileRefused, read_text
from warifu.study import COMMAND_LINE, STAND_IN, StudyError

if TYPE_CHECKING:
    from warifu.study import Loaded

#: The folder of a prediction below that of its study's results.
HALF = "predicted"


class AnotherStudy(Exception):  # noqa: N818 - what happened, not what it is
    """The folder holds results of another study, which must not be replaced."""


@dataclass(frozen=True)
class LeftOut:
    """The cases of a study that are not predicted."""

    #: Why, by the case's label.
    reasons: dict[str, str]
    #: The labels of those that lack costs. The others are no cases at all, such as a session that
    #: its version of TLS does not have.
    without_costs: list[str] = field(default_factory=list)


#: So many operations are named that have no cost.
_NAMED = 3
#: So many cases are looked at one by one before any is predicted; a manifest lists as many.
_LOOKED_AT = 2_000

#: Gets cases done, cases in all, and trials done.
Progress = Callable[[int, int, int], object]


def predictable(loaded: Loaded) -> tuple[Loaded, LeftOut]:
    """The study of the cases that can be predicted, and the others.

    Raises StudyError where this machine was never calibrated and the one that stands in for it has
    no costs for any case.
    """
    study, skipped = loaded.study.emulated()
    lacking: dict[int, str] = {}
    # Of very many cases each would be looked at twice; there the first that lacks a cost is named.
    if 1 < len(study.cases) <= _LOOKED_AT:
        for index in range(len(study.cases)):
            if why := _lacks(study, index):
                lacking[index] = why
    _refuse_stand_in(loaded, study, lacking)
    # Where no case has its costs, predicting says what is missing.
    if lacking and len(lacking) < len(study.cases):
        without = {study.cases[index].label: why for index, why in lacking.items()}
        study = study.only([index for index in range(len(study.cases)) if index not in lacking])
        left_out = LeftOut(dict(skipped) | without, list(without))
        return dataclasses.replace(loaded, study=study), left_out
    return dataclasses.replace(loaded, study=study), LeftOut(dict(skipped))


def _refuse_stand_in(loaded: Loaded, study: _core.Study, lacking: Mapping[int, str]) -> None:
    """Where nothing but the costs of the machine that stands in are missing, predicting would send
    the user to the profile of a machine that nobody asked for."""
    if not loaded.stands_in or not 1 <= len(study.cases) <= max(1, len(lacking)):
        return
    missing = _core.missing_operations(study, 0)
    ends = [study.cases[0].columns[end] for end in ("device", "server")]
    names = list(dict.fromkeys(name for of in missing for name in of))
    if names and all(end == STAND_IN for end, of in zip(ends, missing, strict=True) if of):
        raise StudyError(
            f"{loaded.file}: this machine was never calibrated, and {STAND_IN}, which would stand "
            f"in for it, has no cost of {_some(names)}: `warifu calibrate host` (as root) makes "
            "the profile of this machine"
        )


def _some(names: list[str]) -> str:
    """`a, b, c and 2 more`."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _lacks(study: _core.Study, index: int) -> str:
    """Which costs a case has none for; empty for a case that has all."""
    settings = study.cases[index].columns
    missing = _core.missing_operations(study, index)
    parts = [
        f"{settings[end]} has no cost of {_some(names)}"
        for end, names in zip(("device", "server"), missing, strict=True)
        if names
    ]
    return "; ".join(parts)


def unjudged(manifest: Mapping[str, Any]) -> bool:
    """Whether a prediction left out cases, for lack of costs, that a requirement was for."""
    return bool(manifest.get("require") and manifest.get("without_costs"))


def run(
    loaded: Loaded,
    target: Path,
    left_out: LeftOut,
    *,
    threads: int | None = None,
    keep_trials: bool = False,
    tier: str = "events",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Simulates every case into ``target``, which appears when all is done (`_core.predict`).

    ``tier`` is events, exact or auto. The manifest keeps what was ``left_out``. Returns what
    `_core.predict` does. Raises WarifuError, and KeyboardInterrupt after the
    finished cases were stored.
    """
    manifest = provenance.manifest(loaded, "predicted")
    manifest |= {
        "skipped": left_out.reasons,
        "without_costs": left_out.without_costs,
        "warnings": loaded.remarks,
    }
    if loaded.stands_in:
        manifest["stands_in"] = {"name": STAND_IN, "warning": loaded.stands_in}
    return _core.predict(
        loaded.study,
        str(target),
        json.dumps(manifest),
        threads=threads,
        keep="trials" if keep_trials else "distribution",
        progress=progress,
        now=provenance.now,
        tier=tier,
    )


def replaces_another_question(loaded: Loaded, folder: Path) -> bool:
    """Whether ``folder`` holds what another question of the command line was answered by."""
    there = _study_in(folder / HALF)
    return (
        there is not None
        and loaded.file == there.get("file") == COMMAND_LINE
        and loaded.text != there.get("text")
    )


def refuse_another_study(name: str, folder: Path) -> None:
    """A study may replace its own prediction, of other values too, and no other's.

    Raises AnotherStudy.
    """
    for half in ("predicted", "measured"):
        study = _study_in(folder / half)
        # Nothing is lost with a manifest that cannot be read.
        if study is not None and "name" in study and (there := study["name"]) != name:
            raise AnotherStudy(
                f"{folder / half}: holds results of the study {there!r}, and this is {name!r}: "
                "choose another folder with --out, or move this one away"
            )


def _study_in(half: Path) -> dict[str, Any] | None:
    """What a half's manifest says of its study; None where it cannot be read."""
    try:
        study = json.loads(read_text(half / "manifest.json", RESULTS_BYTES))["study"]
    except (OSError, FileRefused, RecursionError, ValueError, KeyError, TypeError):
        return None
    return study if isinstance(study, dict) else None

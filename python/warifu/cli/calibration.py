# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu calibrate host`: when it is needed, and what of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warifu.cli import screen
from warifu.cli.errors import NO_PROFILE, when_interrupted

if TYPE_CHECKING:
    from warifu.calibrate.parts import Items
    from warifu.report.table import Table
    from warifu.study import ProfileText


def host(studies: Sequence[Path], out: Path | None, plan: str, if_stale: bool) -> Table | None:
    """Calibrates this machine; None if nothing had to be done.

    With ``studies`` only what they need is timed. With ``if_stale`` a profile that fits this
    machine and serves the studies is kept; one that fits and does not serve them is made anew for
    them and for all that it served.
    """
    from warifu import files, study
    from warifu.calibrate import DEFAULT_PROFILE, build, parts
    from warifu.calibrate.host import calibrate_host

    path = out or DEFAULT_PROFILE
    files.refuse_to_replace(path)
    build.refuse_development()
    profiles = list(study.profile_texts(study.profile_folders()))
    items = parts.needed(cases_of(studies, profiles) or None)
    if if_stale:
        reasons = stale(path)
        if not reasons:
            timed = timed_for(path)
            reasons = refused(studies)
            if missing := parts.missing(timed, items):
                wanted = ", ".join(map(str, studies)) or "every study"
                what = ", ".join(f"{len(some)} of {name}" for name, some in missing.items())
                reasons.append(f"{path} does not cover {wanted} (not timed: {what})")
            items = parts.merged(timed, items)
        if not reasons:
            screen.say(f"{path} is valid for this machine; nothing to calibrate")
            return None
        screen.say(f"calibrating, because {'; '.join(reasons)}")
    with when_interrupted(NO_PROFILE):
        outcome = calibrate_host(profiles, path, items=items, plan=plan, progress=screen.say)
    screen.say(f"wrote {outcome.path}: {outcome.entries} costs, run {outcome.run_id}")
    for warning in outcome.warnings:
        screen.warn(warning)
    return _fit_table(outcome.fit)


def stale(path: Path) -> list[str]:
    """Why a profile does not fit this machine; empty if it does."""
    from warifu.calibrate import environment
    from warifu.calibrate.profile import read_record

    if not path.is_file():
        return [f"{path} does not exist"]
    try:
        record = read_record(path)
        return environment.differences(record.machine) or environment.drift(record.pace_ns)
    except (OSError, ValueError) as error:
        return [f"the record of {path} cannot be read ({error})"]


def refused(studies: Sequence[Path]) -> list[str]:
    """What is wrong with the profiles that the studies use; that of another version may be."""
    from warifu import _core, study

    reasons = []
    for one in studies:
        try:
            study.load(one)
        except _core.WarifuError as error:
            reasons.append(str(error))
    return reasons


def timed_for(path: Path) -> Items:
    """What a profile was timed for, by part; empty where another version wrote it."""
    from warifu.calibrate.profile import read_record

    timed = read_record(path).details.get("timed", {})
    if not isinstance(timed, dict):
        return {}
    return {name: items for name, items in timed.items() if isinstance(items, list)}


def cases_of(studies: Sequence[Path], profiles: Sequence[ProfileText]) -> list[str]:
    """The canonical form of every case, read with a stand-in for the profile to be written."""
    from warifu.calibrate import DEVICE, parts
    from warifu.study import read_study

    stand_in = parts.stand_in([text for text in profiles if text[:2] != ("device", DEVICE)])
    cases: list[str] = []
    for one in studies:
        cases += [case.json for case in stand_in.study(read_study(one), str(one)).cases]
    return list(dict.fromkeys(cases))


def _fit_table(rows: Sequence[dict[str, object]]) -> Table:
    from warifu.report.figures import ms, percent
    from warifu.report.table import Column, Table

    table = Table(
        "how well the costs reproduce the runs that they come from (medians, ms; not a judgement)",
        [
            Column("case", number=False),
            Column("metric", number=False),
            Column("measured"),
            Column("predicted"),
            Column("difference"),
        ],
    )
    for row in rows:
        measured, predicted = float(str(row["measured_ns"])), float(str(row["predicted_ns"]))
        relative = (predicted - measured) / measured if measured else float("nan")
        table.add(
            [str(row["label"]), str(row["metric"]), ms(measured), ms(predicted), percent(relative)],
            {
                "label": str(row["label"]),
                "metric": str(row["metric"]),
                "measured_ns": measured,
                "predicted_ns": predicted,
            },
        )
    return table

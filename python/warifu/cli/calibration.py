# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu calibrate host`: when it is needed, and what of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warifu.cli import ownership, screen
from warifu.cli.errors import NO_PROFILE, when_interrupted

if TYPE_CHECKING:
    from warifu.calibrate.variants import Variant
    from warifu.report.table import Table
    from warifu.study import ProfileText


def host(studies: Sequence[Path], out: Path | None, plan: str, if_stale: bool) -> Table | None:
    """Calibrates this machine; None if nothing had to be done.

    With ``studies`` only what they need is timed. With ``if_stale`` a profile that fits this
    machine and serves the studies is kept; one that fits and does not serve them is made anew for
    them and for all that it served.
    """
    from warifu import study
    from warifu.calibrate import DEFAULT_PROFILE, build
    from warifu.calibrate.host import calibrate_host
    from warifu.calibrate.profile import record_path

    build.refuse_development()
    path = out or DEFAULT_PROFILE
    profiles = list(study.profile_texts(study.profile_folders()))
    stacks = cases_of(studies, profiles) or None
    also: list[Variant] = []
    if if_stale:
        reasons = stale(path)
        if not reasons:
            also, missing = covered(path, stacks)
            reasons = refused(studies)
            if missing:
                whom = ", ".join(map(str, studies)) or "every study"
                reasons.append(f"{path} does not cover {whom} ({len(missing)} TLS variants)")
        if not reasons:
            screen.say(f"{path} fits this machine; nothing to calibrate")
            return None
        screen.say(f"calibrating, since {'; '.join(reasons)}")
    with when_interrupted(NO_PROFILE):
        outcome = calibrate_host(
            profiles, path, stacks=stacks, also=also, plan=plan, progress=screen.say
        )
    ownership.give_back(outcome.path, record_path(outcome.path))
    screen.say(f"wrote {outcome.path}: {outcome.entries} costs, run {outcome.run_id}")
    for warning in outcome.warnings:
        screen.warn(warning)
    return _fit_table(outcome.fit)


def stale(path: Path) -> list[str]:
    """Why a profile does not fit this machine; empty if it does."""
    from warifu.calibrate import environment
    from warifu.calibrate.profile import read_record

    if not path.is_file():
        return [f"{path} is not there"]
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


def covered(path: Path, stacks: Sequence[str] | None) -> tuple[list[Variant], list[Variant]]:
    """The variants that a profile was timed for, and those that it lacks for these cases."""
    from warifu.calibrate.host import needed_for
    from warifu.calibrate.profile import read_record
    from warifu.calibrate.variants import Variant, missing

    try:
        timed = [Variant.of_json(one) for one in read_record(path).details.get("variants", [])]
    except (KeyError, StopIteration, TypeError):
        # Another version wrote it: what it timed is not known.
        timed = []
    return timed, missing(timed, needed_for(stacks))


def cases_of(studies: Sequence[Path], profiles: Sequence[ProfileText]) -> list[str]:
    """The canonical form of every case, read with a stand-in for the profile to be written."""
    from warifu import _core
    from warifu.study import StudyError

    texts = [text for text in profiles if text[:2] != ("device", "this-host")]
    texts.append(("device", "this-host", _stand_in(), "stand-in"))
    cases: list[str] = []
    for one in studies:
        try:
            text = one.read_text(encoding="utf-8")
        except OSError as error:
            raise StudyError(f"{one}: cannot be read: {error.strerror}: check the name") from None
        cases += [case.json for case in _core.Study.parse(text, str(one), texts).cases]
    return list(dict.fromkeys(cases))


def _stand_in() -> str:
    """A device that can do everything; its figures are never used."""
    from warifu.calibrate.operations import operations

    entries = "".join(f'[[operation]]\nname = "{name}"\nwarm = "1 us"\n' for name in operations())
    head = 'name = "this-host"\ndescription = "stands in"\nidle_threshold = "5 ms"\n'
    return head + entries


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

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu calibrate host`: times this machine and writes its device profile."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from warifu import identity
from warifu.calibrate import environment, parts
from warifu.calibrate import profile as profiles_module
from warifu.calibrate.bench import Effort
from warifu.calibrate.part import Draft, Found, Plan, Row
from warifu.calibrate.profile import DEFAULT_PROFILE, DEVICE, ProfileText, Record
from warifu.lab import awake, interruption, quiet, workplace

PLANS = {
    "quick": Plan(Effort(warm=30, cold=8, gap_ms=10.0, primitives=100, rested=4), 30, 16),
    "default": Plan(Effort(warm=60, cold=14, gap_ms=10.0, primitives=200, rested=6), 60, 24, 4),
    "thorough": Plan(
        Effort(warm=300, cold=80, gap_ms=10.0, primitives=1000, rested=24), 400, 100, rounds=10
    ),
}
"""About 4, 7 and 35 minutes on two quiet processors, without DDS, estimated from 13 minutes that
the longest took for 11 of the 52 variants. The runs of a case differ by some 9 % as wholes, so that
many short ones tell its median better than few long ones."""


@dataclass(frozen=True)
class Outcome:
    """What a calibration wrote, and how well its costs reproduce the runs they came from."""

    path: Path
    run_id: str
    entries: int
    fit: Sequence[Row]
    warnings: Sequence[str] = ()
    """What makes the costs doubtful."""


def calibrate_host(
    profiles: Sequence[ProfileText],
    out: Path = DEFAULT_PROFILE,
    *,
    items: parts.Items | None = None,
    plan: str = "default",
    progress: Callable[[str], None] | None = None,
) -> Outcome:
    """Times this machine and writes `out` with the record beside it.

    `profiles` are all profiles but the one to be written (it is ignored if there). `items` are what
    is timed (`parts.needed`), and the profile serves them alone; None: what any study needs.
    `plan` is a key of PLANS.

    Raises CalibrateError, LabUnavailable, LabError, ToolMissing or OSError; nothing is overwritten
    then. Everything started is gone when this returns or raises.
    """
    say = progress or (lambda _: None)
    wanted = parts.needed(None) if items is None else items
    others = [text for text in profiles if text[:2] != ("device", DEVICE)]
    run_id = _new_run_id()
    with interruption.deferred():
        stand_in = parts.stand_in(others)
        # All that is timed is the lab's own: its keys, its folders.
        with identity.as_root():
            workplace.sweep()
            _refuse_without_lab()
            # What is timed without a network computes as it does in the runs beside it.
            with workplace.Workplace() as place, awake.kept(place.folder):
                timed = [
                    part.time(wanted[part.name], PLANS[plan], stand_in, say)
                    for part in parts.PARTS
                    if wanted.get(part.name)
                ]
    shares = [share for one in timed for share in one.shares]
    warnings = _noise(shares)
    draft, found = Draft(others), list[Found]()
    for one in timed:
        found.append(one.find(draft, say))
        draft = found[-1].draft
    machine = environment.machine()
    written = draft.profile(run_id, f"this machine: {machine.get('processor', 'unknown')}")
    rows = [row for one in found for row in one.fit]
    details = {
        "plan": plan,
        "timed": wanted,
        **{key: value for one in found for key, value in one.details.items()},
        "rejected_runs": sum(one.rejections for one in timed),
        "processor_shares": [one.record() for one in shares],
        "warnings": warnings,
        "pace_ns": environment.pace_ns(),
        "fit": rows,
    }
    profiles_module.write(written, Record(run_id, machine, details), out)
    return Outcome(out, run_id, len(written.entries), rows, warnings)


def _refuse_without_lab() -> None:
    """Raises LabUnavailable where the loopback runs cannot be made, before the bench has timed
    anything for minutes."""
    with workplace.Workplace() as place:
        place.namespace("a")


def _noise(shares: Sequence[quiet.Shares]) -> list[str]:
    """A remark if other work took much of the processors while costs were timed."""
    worst = max(one.others + one.stolen for one in shares)
    if worst <= quiet.OTHERS_MAX:
        return []
    remark = f"other work took up to {worst:.0%} of the processors: the costs are too high"
    return [f"{remark}; stop it and calibrate again"]


def _new_run_id() -> str:
    now = datetime.datetime.now(datetime.UTC)
    return f"calibrated-{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"

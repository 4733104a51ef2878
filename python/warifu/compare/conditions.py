# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Under what conditions a case was measured, and why a case is not judged at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from warifu.results import Results
from warifu.results.parts import Part, rejected_parts

#: Why a case that calibrated its prediction is not judged.
CALIBRATED_ON = "was calibrated on this cell"


@dataclass(frozen=True)
class Conditions:
    """What the lab put on record of a cell."""

    parts: int = 0
    sittings: int = 0
    #: Parts that were rejected before their results were seen, and measured again.
    rejected: int = 0
    #: Shares of all processors that others took: the mean of its parts, and what is allowed; None
    #: where it was not recorded.
    others: float | None = None
    others_max: float | None = None
    #: The share of the time for which the server was busy, of its busiest part.
    server_busy: float | None = None
    #: By how much the latest trial of any part began after its time, ns.
    start_late_ns: float | None = None


def conditions(measured: Results, case_id: str) -> Conditions:
    """Of a measured case."""
    parts = measured.parts(case_id)
    recorded = [part for part in parts if part.others is not None]
    return Conditions(
        parts=len(parts),
        sittings=len({part.sitting for part in parts}),
        rejected=rejected_parts(measured.manifest, case_id),
        others=_others(recorded),
        others_max=min((part.others_max for part in recorded), default=None),
        server_busy=_most(part.server_busy for part in parts),
        start_late_ns=_most(part.start_late_ns for part in parts),
    )


def why_not_judged(predicted: Results, case_id: str, found: Conditions) -> str:
    """Why no gate of a case is judged; empty where they are."""
    if case_id in (predicted.manifest.get("calibration_case_ids") or []):
        return CALIBRATED_ON
    took, allowed = found.others, found.others_max
    if took is None or allowed is None or took <= allowed:
        return ""
    said = f"other work took {took:.1%} of the processors, {allowed:.0%} are allowed"
    return said.replace("%", " %")


def _most(values: Iterable[float | None]) -> float | None:
    return max((one for one in values if one is not None), default=None)


def _others(parts: Sequence[Part]) -> float | None:
    """The mean share over the trials of parts."""
    trials = sum(part.trials for part in parts)
    if not trials:
        return None
    return sum((part.others or 0.0) * part.trials for part in parts) / trials

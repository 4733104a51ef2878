# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Under what conditions a case was measured, and why a case is not judged at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from warifu.results import Results
from warifu.results.parts import SERVER_BUSY_ALLOWED, rejected_parts

#: Why a case that calibrated its prediction is not judged.
CALIBRATED_ON = "was calibrated on this cell"
#: Why a case of the exact tier is not judged: the gates ask how sure a count of trials is.
OF_EXACT_TIER = (
    "predicted by the exact tier, whose weights are probabilities: predict with --tier events to "
    "judge it"
)
#: What of an HTTPS case a calibration knows, beside its protocol and RTT: a case with the same ones
#: is the same cell, whatever else differs (crates/core/model/src/profile/calibration_case.rs).
_CELL = ("tls", "session", "authentication", "group", "certificate")


@dataclass(frozen=True)
class Conditions:
    """What the lab put on record of a cell."""

    parts: int = 0
    sittings: int = 0
    #: Attempts at parts that were rejected before their results were seen, and made again: a part
    #: may have several.
    rejected: int = 0
    #: Shares of all processors that others took: of the part in which it was most, and what is
    #: allowed; None where it was not recorded.
    others: float | None = None
    others_max: float | None = None
    #: The share of the time for which the server was busy, of its busiest part.
    server_busy: float | None = None
    #: The same of parts in which connections could meet at it; None where it was not recorded.
    server_busy_with_others: float | None = None
    #: By how much the latest trial of any part began after its time, ns.
    start_late_ns: float | None = None
    #: Parts of which it is not on record what others took or how busy the server was.
    unrecorded: int = 0


def conditions(measured: Results, case_id: str) -> Conditions:
    """Of a measured case."""
    parts = measured.parts(case_id)
    recorded = [part for part in parts if part.others is not None]
    return Conditions(
        parts=len(parts),
        sittings=len({part.sitting for part in parts}),
        rejected=rejected_parts(measured.manifest, case_id),
        others=_most(part.others for part in recorded),
        others_max=min((part.others_max for part in recorded), default=None),
        server_busy=_most(part.server_busy for part in parts),
        server_busy_with_others=_most(part.server_busy for part in parts if part.is_paced),
        start_late_ns=_most(part.start_late_ns for part in parts),
        unrecorded=sum(not part.is_recorded for part in parts),
    )


def why_not_judged(predicted: Results, case_id: str, found: Conditions) -> str:
    """Why no gate of a case is judged; empty where they are."""
    case = predicted.cases[case_id]
    if is_calibrated(predicted.manifest, case, case_id):
        return CALIBRATED_ON
    if predicted.distribution(case_id, predicted.whole(case_id)).exact:
        return OF_EXACT_TIER
    return why_disturbed(case, found)


def why_disturbed(case: Mapping[str, object], found: Conditions) -> str:
    """Why what was measured of a case says little of it; empty where nothing was in the way."""
    took, allowed = found.others, found.others_max
    if took is not None and allowed is not None and took > allowed:
        return (
            f"other work took {took * 100:.1f} % of the processors, {allowed * 100:.0f} % are "
            "allowed"
        )
    busy = found.server_busy_with_others
    # Before its samples a participant of DDS discovers the others, which keeps it busy.
    paced = case.get("protocol") != "dds"
    if paced and busy is not None and busy > SERVER_BUSY_ALLOWED:
        return (
            f"the server was busy for {busy * 100:.1f} % of the time, "
            f"{SERVER_BUSY_ALLOWED * 100:.1f} % are allowed: connections waited for each other"
        )
    if not found.parts:
        return (
            "it is not on record in which parts it was measured, what other work took and how busy "
            "the server was: measure it again"
        )
    if found.unrecorded:
        return (
            f"of {found.unrecorded} of its {found.parts} parts it is not on record what other work "
            "took and how busy the server was: measure it again"
        )
    return ""


def is_calibrated(manifest: Mapping[str, Any], case: Mapping[str, object], case_id: str) -> bool:
    """Whether the prediction knows the cell that a case, by its columns, is of."""
    if case_id in (manifest.get("calibration_case_ids") or []):
        return True
    known = manifest.get("calibration_cases") or []
    return any(_is_cell(one, case) for one in known if isinstance(one, dict))


def _is_cell(known: Mapping[str, object], case: Mapping[str, object]) -> bool:
    """Whether a case is of a known cell of HTTPS; of other protocols a cell is one case. A choice
    that a cell does not name has no part in its handshake."""
    if known.get("protocol") != "https" or case.get("protocol") != "https":
        return False
    if known.get("rtt") != case.get("rtt_ns") or "tls" not in known:
        return False
    return all(known[name] == case.get(name) for name in _CELL if name in known)


def _most(values: Iterable[float | None]) -> float | None:
    return max((one for one in values if one is not None), default=None)

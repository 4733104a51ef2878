# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reading `strata.json`: a prediction's connections by what the client knows of its losses, and
what makes up the null models.

The format is that of crates/core/results/src/strata.rs. Of a measurement the same is counted from
its trials.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warifu.printable import clipped
from warifu.results.manifest import STRATA
from warifu.results.sealed_json import MistakeError, not_as_written, read_sealed

VERSION = 1
_MOST_BYTES = 256 << 20
#: The square of thirty years in ns, which no time, variance or count reaches.
_MOST = 1e36
#: What sums of probabilities may exceed one by rounding alone.
_ROUNDING = 1e-9
#: Timeouts and retransmissions are counted up to so many: two stand for two and more.
MOST_COUNTED = 2
#: SYN timeouts and the client's retransmissions, each up to MOST_COUNTED.
Stratum = tuple[int, int]


@dataclass(frozen=True)
class OfStratum:
    """Connections of which the client had to send as often again."""

    count: float
    mean_ns: float
    variance_ns2: float


@dataclass(frozen=True)
class NullModels:
    """What a prediction without a simulator would be made of."""

    round_trips: float
    rtt_ns: float
    computing_ns: float

    @property
    def of_round_trips_ns(self) -> float:
        """k round trips."""
        return self.round_trips * self.rtt_ns

    @property
    def with_computing_ns(self) -> float:
        """k round trips, and the mean computing of both ends."""
        return self.of_round_trips_ns + self.computing_ns


@dataclass(frozen=True)
class StrataOfCase:
    """The connections of a case."""

    metric: str
    null_models: NullModels
    #: Failed ones included.
    trials: float
    strata: Mapping[Stratum, OfStratum]


def read_strata(path: Path, manifest: dict[str, Any]) -> Mapping[str, StrataOfCase]:
    """By case id. Empty where the folder is of a version of Warifu that did not write them.

    Raises ResultsDamaged for a file that is not as it was written.
    """
    value = read_sealed(path, manifest, STRATA, _MOST_BYTES)
    if value is None:
        return {}
    try:
        match value:
            case {"version": int(version), "cases": dict(cases)} if version == VERSION:
                return {case_id: _case(one, f"cases.{case_id}") for case_id, one in cases.items()}
            case {"version": version}:
                raise MistakeError(f"version is {clipped(str(version))}: expected {VERSION}")
        raise MistakeError("has no version or cases")
    except MistakeError as mistake:
        raise not_as_written(path / STRATA, str(mistake)) from None


def _case(value: object, key: str) -> StrataOfCase:
    match value:
        case {
            "metric": str(metric),
            "null_models": dict(models),
            "trials": trials,
            "strata": list(strata),
        }:
            pass
        case _:
            raise MistakeError(f"{key} has no metric, null_models, trials or strata")
    names = ("round_trips", "rtt_ns", "computing_ns")
    null_models = NullModels(
        *(_amount(models.get(name), f"{key}.null_models.{name}") for name in names)
    )
    found: dict[Stratum, OfStratum] = {}
    for place, one in enumerate(strata):
        at = f"{key}.strata[{place}]"
        if not isinstance(one, dict):
            raise MistakeError(f"{at} is no table")
        stratum = (
            _counted(one.get("syn_timeouts"), f"{at}.syn_timeouts"),
            _counted(one.get("retransmissions"), f"{at}.retransmissions"),
        )
        if stratum in found:
            raise MistakeError(f"{at} is a stratum that was told before")
        amounts = ("count", "mean_ns", "variance_ns2")
        found[stratum] = OfStratum(*(_amount(one.get(name), f"{at}.{name}") for name in amounts))
    every = _amount(trials, f"{key}.trials")
    if every < 1.0:
        raise MistakeError(f"{key}.trials is {every:g}: expected 1 or more")
    counted = math.fsum(one.count for one in found.values())
    if counted > every * (1.0 + _ROUNDING):
        raise MistakeError(f"{key}.strata have {counted:g} of {every:g} trials")
    return StrataOfCase(metric, null_models, every, found)


def _amount(value: object, key: str) -> float:
    # A bool is an int to Python, but not to JSON.
    if type(value) in (int, float):
        number = float(str(value))
        if 0.0 <= number <= _MOST:
            return number
    said = f"{key} is {clipped(str(value))}: expected a number from 0 on"
    raise MistakeError(f"{said}, at most {_MOST:g}")


def _counted(value: object, key: str) -> int:
    if type(value) is int and 0 <= value <= MOST_COUNTED:
        return value
    raise MistakeError(f"{key} is {clipped(str(value))}: expected 0 to {MOST_COUNTED}")

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a protocol brings so that this machine's costs for it can be found, and the profile that its
costs are added to."""

from __future__ import annotations

import datetime
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from warifu import _core
from warifu.calibrate.bench import Effort
from warifu.calibrate.profile import DEVICE, Entry, Law, Profile, ProfileText, Speed
from warifu.case import Case, HttpsStack
from warifu.files import temporary_folder
from warifu.lab.case import Cell
from warifu.lab.quiet import Shares

Floats = NDArray[np.float64]
T = TypeVar("T")

IDLE_THRESHOLD_NS = 5_000_000
"""Between the waits of a connection without delay (below a millisecond, timed warm) and the
bench's cold pauses (10 ms). Only links of 1 to 10 ms make programs wait for a time in between."""

REST_THRESHOLD_NS = 300_000_000
"""Pauses of so long a mean are rests, between the lab's usual ones (40 ms, after which costs are
the warm and cold ones) and those that rested costs were found at (500 and 600 ms)."""

Item = dict[str, Any]
"""Something to be timed, as JSON. Its form is the part's own; records keep it."""

Target = tuple[str, str]
"""A case id and a metric."""

Row = dict[str, Any]
"""A case and metric of the fit: `label`, `metric`, `measured_ns`, `predicted_ns` (medians)."""


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    bench: Effort
    loopback_trials: int
    rested_trials: int = 0
    """Connections of each rested case: each comes after more than half a second."""
    rounds: int = 2
    """Runs that each case's connections are made in, minutes apart: one may be slower or quicker
    than the next as a whole."""


@dataclass(frozen=True)
class Draft:
    """A profile in the making, which predicts with the costs that were found so far."""

    others: Sequence[ProfileText]
    """All profiles but the one that is made."""
    entries: tuple[Entry, ...] = ()
    shape: Law = field(default_factory=lambda: Law.constant(1.0))
    """The form of the laws of system calls and wake-ups, with median 1."""
    speed: Speed | None = None
    """What the computing of a connection has in common."""
    cases: tuple[Mapping[str, str], ...] = ()
    """The cases that costs were found from, as a profile names them."""

    def having(self, entries: Iterable[Entry]) -> Draft:
        """This draft and more entries."""
        return replace(self, entries=(*self.entries, *entries))

    def profile(self, run_id: str, description: str) -> Profile:
        """The profile."""
        by = "warifu calibrate host"
        rests = any(entry.rested is not None for entry in self.entries)
        return Profile(
            run_id,
            description,
            by,
            IDLE_THRESHOLD_NS,
            self.entries,
            speed=self.speed,
            rest_threshold_ns=REST_THRESHOLD_NS if rests else None,
            calibration_cases=self.cases,
        )

    def found_from(self, cells: Iterable[Cell]) -> Draft:
        """The same, in whose profile these cases are named."""
        known = {case["case_id"]: case for case in self.cases}
        known |= {cell.case_id: calibration_case(cell) for cell in cells}
        return replace(self, cases=tuple(known.values()))

    def study(self, text: str, file: str = "calibration study") -> _core.Study:
        """A study on a machine with these costs; `file` begins its errors."""
        made = self.profile("calibration", "this machine").toml()
        mine = ("device", DEVICE, made, f"{DEVICE}.toml")
        return _core.Study.parse(text, file, [*self.others, mine])

    def predict(self, text: str) -> Mapping[Target, float]:
        """The medians of a calibration study, ns."""
        return self._predicted(text, _medians_ns)

    def draw(self, text: str, metric: str) -> Mapping[str, Floats]:
        """A metric of every trial of a calibration study, ns, by case id."""
        return self._predicted(text, lambda folder: _values_ns(folder, metric))

    def _predicted(self, text: str, read: Callable[[Path], T]) -> T:
        study = self.study(text)
        manifest = {
            "schema_version": _core.SCHEMA_VERSION,
            "half": "predicted",
            "run_id": "calibration",
            "study": {"name": study.name, "sha256": "", "text": text},
            "seed": study.seed,
            "started": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        with tempfile.TemporaryDirectory(
            prefix="warifu-calibrate-", dir=temporary_folder()
        ) as name:
            folder = Path(name) / "predicted"
            _core.predict(study, str(folder), json.dumps(manifest))
            return read(folder)


@dataclass(frozen=True)
class Found:
    """The costs that a part found."""

    draft: Draft
    """The draft that the part was given, with its entries."""
    fit: Sequence[Row]
    """How well these costs reproduce the runs that they come from."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What the record says of how they were found."""


class Timed(Protocol):
    """What a part has timed."""

    @property
    def shares(self) -> Sequence[Shares]:
        """What others took of the processors meanwhile."""

    @property
    def rejections(self) -> int:
        """Runs that were rejected and made again."""

    def find(self, draft: Draft, progress: Callable[[str], None]) -> Found:
        """Finds the costs, given those of the parts before this one."""


class Part(Protocol):
    """How the costs of a protocol are found."""

    @property
    def name(self) -> str:
        """In records and messages."""

    @property
    def operations(self) -> Sequence[str]:
        """What it finds the costs of (crates/core/model/src/operation.rs)."""

    def needed(self, cases: Sequence[Case] | None) -> list[Item]:
        """What is to be timed for these cases, or for any; empty if nothing of this part is."""

    def missing(self, timed: Sequence[Item], needed: Sequence[Item]) -> list[Item]:
        """The needed items that those which were timed do not stand for. An item that another
        version wrote in another form stands for none."""

    def merged(self, items: Iterable[Item]) -> list[Item]:
        """Each item once, in the order in which they are timed."""

    def time(
        self, items: Sequence[Item], plan: Plan, draft: Draft, progress: Callable[[str], None]
    ) -> Timed:
        """Times the items. Nothing that it starts is left behind. `draft` can only read studies:
        its figures mean nothing.

        Raises CalibrateError, LabUnavailable, LabError or ToolMissing.
        """


def fit_rows(
    study: _core.Study,
    metrics: Iterable[str],
    measured_ns: Mapping[Target, float],
    predicted_ns: Mapping[Target, float],
) -> list[Row]:
    """Measured and predicted medians side by side."""
    wanted = list(metrics)
    # Some cases of a study may not be run.
    return [
        {
            "label": case.label,
            "metric": metric,
            "measured_ns": round(measured_ns[case.id, metric]),
            "predicted_ns": round(predicted_ns[case.id, metric]),
        }
        for case in study.cases
        for metric in wanted
        if (case.id, metric) in measured_ns
    ]


def calibration_case(cell: Cell) -> Mapping[str, str]:
    """A case as profiles name those that they were found from: by the choices that its times depend
    on (crates/core/model/src/profile/calibration_case.rs)."""
    stack = cell.case.stack
    found = {
        "case_id": cell.case_id,
        "protocol": stack.protocol,
        "rtt": f"{cell.rtt_ns} ns",
    }
    if not isinstance(stack, HttpsStack):
        return found
    tls = stack.tls
    ways = {way["name"]: way["has_key_exchange"] for way in _core.resumptions(tls.version)}
    full = tls.session == "full"
    found |= {"tls": tls.version, "session": tls.session, "authentication": tls.authentication}
    if full and tls.psk is None:
        has_group = True
    else:
        has_group = ways.get(tls.session, tls.psk is not None and tls.psk.mode == "psk_dhe_ke")
    if has_group:
        found["group"] = tls.group
    # Of a resumed session the ticket holds the client's, if it showed one.
    if tls.psk is None and (full or tls.authentication == "mutual"):
        found["certificate"] = tls.certificate
    return found


def _values_ns(folder: Path, metric: str) -> dict[str, Floats]:
    columns = ["case_id", "metric", "stage", "value", "weight"]
    rows = pl.read_parquet(folder / "observations" / "*.parquet", columns=columns)
    words = pl.col("case_id", "metric", "stage").cast(pl.String)
    whole = rows.with_columns(words).filter(
        pl.col("stage").is_null() & (pl.col("metric") == metric)
    )
    found = {}
    for key, group in whole.group_by("case_id"):
        counts = group["weight"].round().cast(pl.Int64).to_numpy()
        found[str(key[0])] = np.repeat(group["value"].to_numpy().astype(np.float64), counts)
    return found


def _medians_ns(folder: Path) -> dict[Target, float]:
    """Medians of a predicted folder, read at once: the search reads hundreds of them."""
    columns = ["case_id", "metric", "stage", "value", "weight"]
    rows = pl.read_parquet(folder / "observations" / "*.parquet", columns=columns)
    words = pl.col("case_id", "metric", "stage").cast(pl.String)
    times = [one["name"] for one in _core.metrics() if one["unit"] == "ns"]
    whole = rows.with_columns(words).filter(
        pl.col("stage").is_null() & pl.col("metric").is_in(times)
    )
    found: dict[Target, float] = {}
    for key, group in whole.sort("value").group_by("case_id", "metric", maintain_order=True):
        sums = group["weight"].cum_sum().to_numpy()
        place = int(np.searchsorted(sums, sums[-1] / 2))
        found[str(key[0]), str(key[1])] = float(group["value"][place])
    return found

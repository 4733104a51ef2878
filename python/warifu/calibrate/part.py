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
from typing import Any, Protocol

import numpy as np
import polars as pl

from warifu import _core
from warifu.calibrate.bench import Effort
from warifu.calibrate.profile import DEVICE, Entry, Law, Profile, ProfileText
from warifu.case import Case
from warifu.files import temporary_folder
from warifu.lab.quiet import Shares

IDLE_THRESHOLD_NS = 5_000_000
"""Between the waits of a connection without delay (below a millisecond, timed warm) and the
bench's cold pauses (10 ms). Only links of 1 to 10 ms make programs wait for a time in between."""

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


@dataclass(frozen=True)
class Draft:
    """A profile in the making, which predicts with the costs that were found so far."""

    others: Sequence[ProfileText]
    """All profiles but the one that is made."""
    entries: tuple[Entry, ...] = ()
    shape: Law = field(default_factory=lambda: Law.constant(1.0))
    """The form of the laws of system calls and wake-ups, with median 1."""

    def having(self, entries: Iterable[Entry]) -> Draft:
        """This draft and more entries."""
        return replace(self, entries=(*self.entries, *entries))

    def profile(self, run_id: str, description: str) -> Profile:
        """The profile."""
        by = "warifu calibrate host"
        return Profile(run_id, description, by, IDLE_THRESHOLD_NS, self.entries)

    def study(self, text: str, file: str = "calibration study") -> _core.Study:
        """A study on a machine with these costs; `file` begins its errors."""
        made = self.profile("calibration", "this machine").toml()
        mine = ("device", DEVICE, made, f"{DEVICE}.toml")
        return _core.Study.parse(text, file, [*self.others, mine])

    def predict(self, text: str) -> Mapping[Target, float]:
        """The medians of a calibration study, ns."""
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
            return _medians_ns(folder)


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
    return [
        {
            "label": case.label,
            "metric": metric,
            "measured_ns": round(measured_ns[case.id, metric]),
            "predicted_ns": round(predicted_ns[case.id, metric]),
        }
        for case in study.cases
        for metric in wanted
    ]


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

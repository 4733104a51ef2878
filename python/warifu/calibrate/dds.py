# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What DDS samples cost: the middleware, a cryptographic plugin's own work, and the ciphers.

Both ends of the lab note how long their writes took, so that what sending costs is measured; what
receiving costs is what is left of one way and round trip when all else that the simulator predicts
is taken away. The ciphers are timed by themselves: what a plugin does beside them is what is left
of secured samples' times, and holds for every AEAD.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warifu import _core, tools
from warifu.calibrate import dds_ciphers, dds_fit, loopback
from warifu.calibrate.loopback import Loopback
from warifu.calibrate.part import Draft, Found, Item, Plan, Target, fit_rows
from warifu.calibrate.profile import Entry
from warifu.case import Case, DdsStack
from warifu.lab import quiet
from warifu.lab.dds.cyclone import PROBE
from warifu.lab.quiet import Shares

COLUMNS = {
    "dds.one_way": "one_way_ns",
    "dds.round_trip": "round_trip_ns",
    dds_fit.CLIENT_WRITE: "client_write_ns",
    dds_fit.SERVER_WRITE: "server_write_ns",
}
"""What is read of the ends' records, by name."""

PLUGINS = ("builtin", "warifu")

LENGTHS = ("64 B", "8 KiB", "13000 B", "64 KiB", "300 KiB")
"""Of samples without security; of no study that is judged. Nearly the longest that goes in one
piece tells a byte's cost from a part's."""
SECURED_LENGTHS = ("64 B", "8 KiB", "64 KiB", "300 KiB")
"""Of secured ones, whose parts and bytes are known by then."""

GOVERNANCES = (
    ("ENCRYPT", "NONE", "NONE"),
    ("NONE", "ENCRYPT", "NONE"),
    ("NONE", "NONE", "ENCRYPT"),
    ("ENCRYPT", "ENCRYPT", "ENCRYPT"),
)
"""Data's, metadata's and RTPS messages' kind: each layer by itself, since each copies bytes in its
own way, and all, which tells a sample's cost from a layer's. None is of a study that is judged."""

SAMPLE: Item = {"sample": "cyclonedds"}
"""The one thing that is timed."""

_ROUNDS = 2
"""Runs of each case, whose participants take seconds to find each other."""

_PATTERN = '[pattern]\npath = "/calibration"\n'


class DdsPart:
    """DDS over UDP. The costs of the system are taken as found."""

    name = "dds"
    operations = tuple(
        f"{role}.{verb}.{message}"
        for role in ("client", "server")
        for verb in ("send", "receive")
        for message in dds_fit.MESSAGES
    )

    def needed(self, cases: Sequence[Case] | None) -> list[Item]:
        """Samples, if a case is of DDS; for any study where the lab has participants."""
        if cases is None:
            return [SAMPLE] if _has_participants() else []
        return [SAMPLE] if any(isinstance(case.stack, DdsStack) for case in cases) else []

    def missing(self, timed: Sequence[Item], needed: Sequence[Item]) -> list[Item]:
        """Samples, unless they were timed."""
        return [item for item in needed if item not in timed]

    def merged(self, items: Iterable[Item]) -> list[Item]:
        """At most one."""
        return [SAMPLE] if any(items) else []

    def time(
        self, items: Sequence[Item], plan: Plan, draft: Draft, progress: Callable[[str], None]
    ) -> _Timed:
        """The ciphers, then samples between two participants."""
        tools.find(PROBE)
        watch = quiet.Watch([])
        ciphers = dds_ciphers.run(plan.bench, progress)
        shares = watch.shares()
        studies = study_texts(plan.loopback_trials)
        parsed = [draft.study(text) for text in studies]
        steps = {
            view.id: dds_fit.Steps.of(_core.step_costs(study, index))
            for study in parsed
            for index, view in enumerate(study.cases)
        }
        runs = loopback.run_all(parsed, plan.loopback_trials, progress, COLUMNS, _ROUNDS)
        return _Timed(ciphers, runs, studies, steps, (shares, *runs.shares))


def study_texts(trials: int) -> list[str]:
    """The calibration studies: without security, then under each governance."""
    plain = f'[stack]\nprotocol = "dds"\ncrypto = "none"\n{_PATTERN}'
    texts = [loopback.study_text(trials, plain, _varied("pattern.response_body", LENGTHS))]
    varied = _varied("stack.crypto", PLUGINS) + _varied("pattern.response_body", SECURED_LENGTHS)
    for data, metadata, rtps in GOVERNANCES:
        secured = (
            f'[stack]\nprotocol = "dds"\ndata_protection = "{data}"\n'
            f'metadata_protection = "{metadata}"\nrtps_protection = "{rtps}"\n{_PATTERN}'
        )
        # What a longer wait costs is the middleware's, and that of its calls is the one way's.
        texts.append(loopback.study_text(trials, secured, varied, rtts=("0 ms",)))
    return texts


@dataclass(frozen=True)
class _Timed:
    ciphers: Sequence[Entry]
    runs: Loopback
    studies: Sequence[str]
    steps: Mapping[str, dds_fit.Steps]
    shares: Sequence[Shares]

    @property
    def rejections(self) -> int:
        return self.runs.rejections

    def find(self, draft: Draft, progress: Callable[[str], None]) -> Found:
        progress("finding the costs of DDS samples")
        drafted = draft.having(self.ciphers)
        plain, *secured = self.studies

        def predict(texts: Sequence[str], more: Sequence[Entry]) -> Mapping[Target, float]:
            with_costs = drafted.having(more)
            found: dict[Target, float] = {}
            for text in texts:
                found |= with_costs.predict(text)
            return found

        views = [view for text in self.studies for view in drafted.study(text).cases]
        crypto = {view.id: str(view.columns["dds_crypto"]) for view in views}
        measured = dds_fit.Measured(
            self.runs.medians_ns(), self.runs.errors_ns(), crypto, self.steps
        )
        known = dds_fit.Known.of(self.ciphers)
        entries = dds_fit.entries(
            measured,
            known,
            draft.shape,
            lambda more: predict([plain], more),
            lambda more: predict(secured, more),
        )
        made = drafted.having(entries)
        answer = predict(self.studies, entries)
        rows = [
            row
            for text in self.studies
            for row in fit_rows(made.study(text), dds_fit.METRICS, measured.medians_ns, answer)
        ]
        # The governance sets a case apart from those of the other studies.
        labels = {
            view.id: f"data {view.columns['data_protection']}, "
            f"metadata {view.columns['metadata_protection']}, "
            f"rtps {view.columns['rtps_protection']}, {view.label}"
            for view in views
        }
        made = made.found_from(self.runs.cells)
        return Found(made, rows, {"dds_plugin_ns_a_call": _counted(self.runs.records, labels)})


def _counted(
    records: Mapping[str, Sequence[Mapping[str, Any]]], labels: Mapping[str, str]
) -> dict[str, dict[str, float]]:
    """What Warifu's plugin itself says that a call took, by case and function, ns: discovery is in
    it, so that it checks what was found and is no part of it. Cases are in the studies' order,
    since the records' depends on which parts were rejected and measured again."""
    found: dict[str, dict[str, float]] = {}
    for case, label in labels.items():
        sums: dict[str, list[int]] = {}
        for record in records.get(case, ()):
            for end in record["dds"]["plugin"].values():
                for one in end:
                    total = sums.setdefault(one["function"], [0, 0])
                    total[0] += one["calls"]
                    total[1] += one["time_ns"]
        if sums:
            means = {name: round(ns / max(1, calls), 1) for name, (calls, ns) in sums.items()}
            found[label] = means
    return found


def _varied(key: str, values: Sequence[str]) -> str:
    return f'"{key}" = {json.dumps(list(values))}\n'


def _has_participants() -> bool:
    """Cyclone DDS is no part of a plain installation, whose other protocols are calibrated
    without."""
    try:
        tools.find(PROBE)
    except tools.ToolMissing:
        return False
    return True

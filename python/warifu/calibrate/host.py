# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu calibrate host`: times this machine and writes its device profile."""

from __future__ import annotations

import datetime
import itertools
import json
import secrets
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from warifu import _core
from warifu.calibrate import bench, coap, environment, loopback, system, variants
from warifu.calibrate import profile as profiles_module
from warifu.calibrate.bench import Effort, Times
from warifu.calibrate.loopback import Loopback
from warifu.calibrate.profile import DEFAULT_PROFILE, DEVICE, Entry, Law, Profile, Record
from warifu.calibrate.system import Costs, Fit, Target
from warifu.case import Case, HttpsStack
from warifu.lab import interruption, quiet, workplace
from warifu.lab.client import TIMES
from warifu.lab.measure import NOISE

ProfileText = tuple[str, str, str, str]
"""Kind, name, text and file, as `warifu._core` takes profiles."""

IDLE_THRESHOLD_NS = 5_000_000
"""Between the waits of a connection without delay (below a millisecond, timed warm) and the
bench's cold pauses (10 ms). Only links of 1 to 10 ms make programs wait for a time in between."""


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    bench: Effort
    loopback_trials: int


PLANS = {
    "quick": Plan(Effort(warm=30, cold=8, gap_ms=10.0, primitives=100), 30),
    "default": Plan(Effort(warm=60, cold=14, gap_ms=10.0, primitives=200), 50),
    "thorough": Plan(Effort(warm=300, cold=80, gap_ms=10.0, primitives=1000), 400),
}
"""About 1, 2 and 12 minutes on a quiet machine of two processors at 2.5 GHz."""


@dataclass(frozen=True)
class Outcome:
    """What a calibration wrote, and how well its costs reproduce the runs they came from."""

    path: Path
    run_id: str
    entries: int
    fit: list[dict[str, Any]]
    """One row a case and metric: `label`, `metric`, `measured_ns`, `predicted_ns` (medians)."""
    warnings: Sequence[str] = ()
    """What makes the costs doubtful."""


def calibrate_host(
    profiles: Sequence[ProfileText],
    out: Path = DEFAULT_PROFILE,
    *,
    stacks: Sequence[str] | None = None,
    also: Sequence[variants.Variant] = (),
    plan: str = "default",
    progress: Callable[[str], None] | None = None,
) -> Outcome:
    """Times this machine and writes `out` with the record beside it.

    `profiles` are all profiles but the one to be written (it is ignored if there). `stacks` are
    canonical case JSON texts: only what they need is timed, and what is named in `also`, and the
    profile serves them alone; None: what any study needs. `plan` is a key of PLANS.

    Raises CalibrateError, LabUnavailable, LabError, ToolMissing or OSError; nothing is overwritten
    then. Everything started is gone when this returns or raises.
    """
    say = progress or (lambda _: None)
    effort = PLANS[plan]
    others = [text for text in profiles if text[:2] != ("device", DEVICE)]
    run_id = _new_run_id()
    with interruption.deferred():
        workplace.sweep()
        _refuse_without_lab()
        needed = sorted({*needed_for(stacks), *also})
        watch = quiet.Watch([])
        times = bench.run(needed, effort.bench, say)
        shares = [watch.shares()]
        draft = Draft(times, others, effort.loopback_trials)
        measured = loopback.run(draft.study(Costs.start()), effort.loopback_trials, say)
        shares += measured.shares
        exchanges = None
        if coap.is_needed(stacks):
            own = draft.study(
                Costs.start(), coap.STUDY, coap.server_entries(0.0, Law.constant(1.0))
            )
            exchanges = loopback.run(own, effort.loopback_trials, say, coap.COLUMNS)
            shares += exchanges.shares
    warnings = _noise(shares)
    draft.take(measured)
    say("fitting the system's costs")
    found = system.fit(measured.medians_ns(), measured.errors_ns(), draft.predict)
    rows = draft.rows(found, measured)
    if exchanges is not None:
        rows += draft.take_coap(found.costs, exchanges)
    written = draft.profile(found.costs, run_id)
    details = {
        "plan": plan,
        "variants": [variant.json() for variant in needed],
        "system": found.costs.named(),
        "evaluations": found.evaluations,
        "rejected_runs": measured.rejections + (exchanges.rejections if exchanges else 0),
        "processor_shares": [one.record() for one in shares],
        "warnings": warnings,
        "pace_ns": environment.pace_ns(),
        "fit": rows,
    }
    record = Record(run_id, environment.machine(), details)
    profiles_module.write(written, record, out)
    return Outcome(out, run_id, len(written.entries), rows, warnings)


def _refuse_without_lab() -> None:
    """Raises LabUnavailable where the loopback runs cannot be made, before the bench has timed
    anything for minutes."""
    with workplace.Workplace() as place:
        place.namespace("a")


def _noise(shares: Sequence[quiet.Shares]) -> list[str]:
    """A remark if other work took much of the processors while costs were timed."""
    worst = max(one.others + one.stolen for one in shares)
    if worst <= NOISE:
        return []
    remark = f"other work took up to {worst:.0%} of the processors: the costs are too high by it"
    return [f"{remark}; stop it and calibrate again"]


class Draft:
    """A profile whose system costs are still being looked for."""

    def __init__(self, times: Times, others: Sequence[ProfileText], trials: int) -> None:
        """Begins with what the bench found."""
        self._times = times
        self._others = list(others)
        self._trials = trials
        self._coap: Sequence[Entry] = ()
        self._shape = Law.constant(1.0)

    def take(self, measured: Loopback) -> None:
        """Takes the form of the system's laws from the TCP handshakes at no delay, in which there
        is nothing but system calls and wake-ups."""
        quick = min(
            (
                values
                for (_, metric), values in measured.times_ns.items()
                if metric == "tcp.connect"
            ),
            key=lambda values: float(values.min()),
        )
        law = Law.of_samples(quick.tolist())
        self._shape = law.scaled(1.0 / law.median_ns)

    def take_coap(self, costs: Costs, measured: Loopback) -> list[dict[str, Any]]:
        """Takes CoAP's costs from its runs; measured and predicted medians side by side."""
        cases = [(view.id, view.label) for view in self.study(costs, coap.STUDY).cases]

        def predict(entries: Sequence[Entry]) -> Mapping[Target, float]:
            return self.predict(costs, coap.STUDY, entries)

        self._coap = coap.entries(measured, [one for one, _ in cases], self._shape, predict)
        predicted, medians = predict(self._coap), measured.medians_ns()
        return [
            {
                "label": label,
                "metric": coap.METRIC,
                "measured_ns": round(medians[case_id, coap.METRIC]),
                "predicted_ns": round(predicted[case_id, coap.METRIC]),
            }
            for case_id, label in cases
        ]

    def profile(self, costs: Costs, run_id: str, more: Sequence[Entry] = ()) -> Profile:
        """The profile with these costs."""
        source = "loopback runs that are not judged, less the bench's computing"
        entries = [costs.scaled(entry) for entry in self._times.entries]
        return Profile(
            run_id,
            f"this machine: {environment.machine().get('processor', 'unknown')}",
            "warifu calibrate host",
            IDLE_THRESHOLD_NS,
            (*entries, *costs.entries(self._shape, source), *(more or self._coap)),
        )

    def study(
        self, costs: Costs, study: str = loopback.STUDY, more: Sequence[Entry] = ()
    ) -> _core.Study:
        """A calibration study on a machine with these costs."""
        text = self.profile(costs, "calibration", more).toml()
        mine = ("device", DEVICE, text, f"{DEVICE}.toml")
        settings = study.format(trials=self._trials)
        return _core.Study.parse(settings, "calibration study", [*self._others, mine])

    def predict(
        self, costs: Costs, text: str = loopback.STUDY, more: Sequence[Entry] = ()
    ) -> Mapping[Target, float]:
        """Predicted medians, ns."""
        study = self.study(costs, text, more)
        manifest = {
            "schema_version": _core.SCHEMA_VERSION,
            "half": "predicted",
            "run_id": "calibration",
            "study": {"name": study.name, "sha256": "", "text": text},
            "seed": study.seed,
            "started": _now(),
        }
        with tempfile.TemporaryDirectory(prefix="warifu-calibrate-") as name:
            folder = Path(name) / "predicted"
            _core.predict(study, str(folder), json.dumps(manifest))
            return _medians_ns(folder)

    def rows(self, found: Fit, measured: Loopback) -> list[dict[str, Any]]:
        """Measured and predicted medians side by side."""
        medians = measured.medians_ns()
        return [
            {
                "label": case.label,
                "metric": metric,
                "measured_ns": round(medians[case.id, metric]),
                "predicted_ns": round(found.predicted_ns[case.id, metric]),
            }
            for case in self.study(found.costs).cases
            for metric in TIMES
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


def needed_for(cases: Sequence[str] | None) -> list[variants.Variant]:
    """What is timed for these cases (canonical JSON), or for any: the calibration study's own
    variants, and what is asked for."""
    own = [
        variants.Variant(tls=tls, session=session, authentication=authentication)
        for tls, resumed in (("1.2", "ticket"), ("1.3", "psk_dhe_ke"))
        for session, authentication in itertools.product(("full", resumed), ("server", "mutual"))
    ]
    if cases is None:
        return variants.everything()
    stacks = [Case.from_json(text).stack for text in cases]
    # Calibration times TLS; a stack without it needs nothing of it.
    layers = [stack.tls for stack in stacks if isinstance(stack, HttpsStack)]
    return sorted({*own, *variants.needed(layers)})


def _new_run_id() -> str:
    now = datetime.datetime.now(datetime.UTC)
    return f"calibrated-{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

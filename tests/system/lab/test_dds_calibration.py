# SPDX-License-Identifier: Apache-2.0 OR MIT
"""DDS's costs found from few real samples, and what they predict. No test depends on times: the
machine may be busy."""

from __future__ import annotations

import functools
import math

import pytest

from support import needs
from support.paths import ROOT
from warifu import _core, study
from warifu.calibrate import dds, dds_fit, loopback, parts
from warifu.calibrate.bench import Effort
from warifu.calibrate.part import Draft, Plan
from warifu.calibrate.profile import Law
from warifu.calibrate.system import Costs
from warifu.lab import Settings

pytestmark = [needs.root, needs.program("ddsperf"), needs.program("idlc")]

PLAN = Plan(Effort(warm=2, cold=1, gap_ms=1.0, primitives=0), loopback_trials=8)

HELD_OUT = """\
name = "held-out"
seed = 1
trials = 1
predict_trials = 50
device = "this-host"
server = "this-host"
link = "loopback"
[pattern]
path = "/chatter"
response_body = "4 KiB"
[vary]
stack = ["dds/none", "dds/builtin", "dds/warifu/AEGIS-256", "dds/warifu/Ascon-AEAD128"]
"""


def test_few_samples_give_costs_that_predict_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # No time is judged: a busy machine may be late again and again.
    monkeypatch.setattr(loopback, "Settings", functools.partial(Settings, late_fraction_max=1.0))
    monkeypatch.setattr(dds, "LENGTHS", ("64 B", "20 KiB"))
    monkeypatch.setattr(dds, "SECURED_LENGTHS", ("64 B",))
    texts = study.profile_texts([ROOT / "profiles"])
    others = [text for text in texts if text[:2] != ("device", "this-host")]
    part = dds.DdsPart()
    timed = part.time([dds.SAMPLE], PLAN, parts.stand_in(others), lambda _: None)
    # Each end's write is a part of the way there.
    medians = timed.runs.medians_ns()
    for (case, metric), ns in medians.items():
        assert ns > 0, (case, metric)
        assert medians[case, dds_fit.CLIENT_WRITE] < medians[case, "dds.round_trip"]
    system = Draft(others).having(Costs.start().entries(Law.constant(1.0), "a test"))
    found = timed.find(system, lambda _: None)
    assert len(found.fit) == 2 * (2 * 2 + 2 * len(dds.GOVERNANCES))
    counted = found.details["dds_plugin_ns_a_call"]
    assert len(counted) == len(dds.GOVERNANCES)
    for (data, metadata, rtps), (label, functions) in zip(
        dds.GOVERNANCES, counted.items(), strict=True
    ):
        assert label.startswith(f"data {data}, metadata {metadata}, rtps {rtps}, "), label
        assert ("encode_rtps_message" in functions) == (rtps != "NONE"), label
    answer = found.draft.predict(HELD_OUT)
    for (case, metric), ns in answer.items():
        assert math.isfinite(ns), (case, metric)
        assert ns > 0, (case, metric)
    parsed = found.draft.study(HELD_OUT)
    ciphers = [
        row["primitive"] for row in _core.step_costs(parsed, 2) if row["primitive"] is not None
    ]
    assert set(ciphers) == {f"aead.{verb}.AEGIS-256.keyed" for verb in ("seal", "open", "mac")}

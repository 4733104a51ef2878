# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What calibration makes of a token's times: laws, the paper's table, the tables it prints."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.paths import ROOT
from support.tokens import SOFTHSM
from warifu.calibrate import paper, statistics, tailed, token
from warifu.calibrate.errors import CalibrateError
from warifu.calibrate.profile import Law
from warifu.calibrate.tailed import TailedLaw
from warifu.calibrate.token_bench import Plan, read
from warifu.cli import token_calibration
from warifu.report.table import Format, render


@st.composite
def stalling_laws(draw: st.DrawFn) -> TailedLaw:
    """A steady call that now and then stalls far beyond its body."""
    base = draw(st.floats(1e4, 5e8))
    widths = draw(st.lists(st.floats(0.0, 0.05), min_size=2, max_size=12))
    body = Law(tuple(base * value for value in 1.0 + np.cumsum(widths)))
    probability = draw(st.floats(0.01, 0.09))
    start = body.quantiles_ns[-1] * draw(st.floats(1.2, 4.0))
    steps = draw(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6))
    tail = Law(tuple(start * value for value in 1.0 + np.cumsum(steps)))
    return TailedLaw(body, probability, tail)


@settings(max_examples=60, deadline=None)
@given(stalling_laws(), st.integers(0, 2**32 - 1))
def test_fit_recovers_a_tailed_law(law: TailedLaw, seed: int) -> None:
    rng = np.random.default_rng(seed)
    given_values = law.draw(10_000, rng)
    fitted = tailed.fit(given_values)
    # The samples' own mean, which every law of the fit keeps.
    assert fitted.mean_ns == pytest.approx(given_values.mean(), rel=0.01)
    assert fitted.probability == pytest.approx(law.probability, abs=0.012)
    back = fitted.draw(40_000, rng)
    for p in (0.1, 0.5, 0.9):
        assert np.quantile(back, p) == pytest.approx(np.quantile(given_values, p), rel=0.03)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 10**10), min_size=1, max_size=120))
def test_law_of_any_samples_is_a_valid_profile(samples: list[int]) -> None:
    law = tailed.fit(np.asarray(samples, dtype=np.float64))
    text = tomllib.loads(f"law = {law.toml()}")["law"]
    if isinstance(text, dict):
        assert text["quantiles"] == sorted(text["quantiles"])
        assert 0 <= law.probability <= tailed.LARGEST_TAIL
    assert min(law.body.quantiles_ns) >= 0


def test_constant_samples() -> None:
    law = tailed.fit(np.full(100, 5.0))
    assert law.mean_ns == 5.0
    assert law.tail is None


def test_statistics_of_known_samples() -> None:
    found = statistics.of(np.arange(1, 101) * 2e7)
    assert found.mean.value == pytest.approx(1.01e9)
    assert found.p50.value == pytest.approx(1.01e9)
    assert found.over_1_s.value == 50
    assert 39 < found.over_1_s.low < 50 < found.over_1_s.high < 61
    assert found.mean.low < found.mean.value < found.mean.high


def test_table_3_values() -> None:
    total = paper.TABLE_3["total"]
    assert (total.mean, total.p50, total.p99, total.over_1_s) == (677.7, 642.2, 1739.4, 4)
    assert paper.TABLE_3["sign_only"].mean == 476.5


def trials_of(kept: float, first: float) -> str:
    """Lines of a bench whose token takes constant times, ms."""
    token_line = {
        "event": "token", "module": ["Maker", "a module", "1.0"], "label": "Tok 1",
        "manufacturer": "Maker", "model": "M", "serial": "1", "slot": "a slot", "key": "k",
        "verified": True,
    }  # fmt: skip
    lines = [token_line]
    for trial in range(8):
        signing = [["C_SignInit", 0], ["C_Sign", int(kept * 1e6)]]
        lines.append({"event": "trial", "mode": "sign_only", "trial": trial, "times_ns": signing})
        opening = [["C_OpenSession", 10**6], ["C_Login", 2 * 10**6], ["C_FindObjects", 3 * 10**6]]
        signing = [["C_SignInit", 0], ["C_Sign", int(first * 1e6)]]
        lines.append(
            {"event": "trial", "mode": "total", "trial": trial, "times_ns": opening + signing}
        )
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_first_signature_surplus_goes_to_find_objects() -> None:
    laws, warnings = token.laws_of(read(trials_of(kept=100.0, first=104.0)))
    assert laws["C_Sign"].mean_ns == 100e6
    assert laws["C_FindObjects"].mean_ns == pytest.approx(7e6)
    assert len(warnings) == 1
    assert "4 ms more" in warnings[0]
    assert sum(law.mean_ns for law in laws.values()) == pytest.approx(110e6)


def test_tables_show_paper_and_token() -> None:
    """`WARIFU_UPDATE_GOLDENS=1` writes the golden file anew."""
    trials = read(spread_trials())
    modes = {mode: statistics.of(trials.sums(mode)) for mode in trials.calls}
    calls = {
        mode: {call: statistics.of(times) for call, times in of_mode.items()}
        for mode, of_mode in trials.calls.items()
    }
    outcome = token.Outcome(
        Path("tok-1.toml"), "token-1", "measured", "a test says so", trials.token, modes, calls,
        {}, [],
    )  # fmt: skip
    tables = [token_calibration.modes_table(outcome), token_calibration.calls_table(outcome)]
    text = render(tables, Format.TABLE)
    golden = ROOT / "tests" / "goldens" / "calibrate-token.txt"
    if os.environ.get("WARIFU_UPDATE_GOLDENS"):
        golden.write_text(text)
    assert text == golden.read_text()


def spread_trials() -> str:
    """The lines of `trials_of` with every time a little longer than in the trial before."""
    lines = []
    for line in trials_of(470.0, 475.0).splitlines():
        event = json.loads(line)
        if event["event"] == "trial":
            event["times_ns"] = [
                [call, round(ns * (1 + event["trial"] / 100))] for call, ns in event["times_ns"]
            ]
        lines.append(json.dumps(event))
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("module", "slot", "label", "kind"),
    [
        ("SoftHSM", "SoftHSM slot ID 0x1", "test", "measured"),
        ("tpm2-software.github.io", "", "tpm", "measured"),
        ("Warifu", "unix:/run/card.sock", "warifu", "emulated"),
        ("Warifu", "agent:/run/agent.sock", "x", "emulated"),
        ("Warifu", "agent", "x", "emulated"),
        # Nothing there tells a real card from a virtual one.
        ("Warifu", "pcsc:ACS", "8988211", "emulated"),
        ("Warifu", "csim:/dev/ttyUSB2", "warifu", "emulated"),
    ],
)
def test_kind_of_token_times(module: str, slot: str, label: str, kind: str) -> None:
    said = {"module": [module, "", ""], "slot": slot, "label": label}
    assert token.kind_of(said, Plan(SOFTHSM))[0] == kind


def test_kind_of_times_of_a_card_on_the_virtual_clock() -> None:
    said = {"module": ["Warifu", "", ""], "slot": "virtual clock", "label": "warifu"}
    assert token.kind_of(said, Plan(None, card=Path("sakomoto-2025.toml")))[0] == "simulated"


def test_profile_names_with_path_separators() -> None:
    with pytest.raises(CalibrateError, match="expected lower-case letters"):
        token.calibrate_token(Plan(SOFTHSM), name="../../x")


def test_handwritten_profile_is_not_overwritten(tmp_path: Path) -> None:
    mine = tmp_path / "sim.toml"
    mine.write_text('name = "sim"\n')
    with pytest.raises(CalibrateError, match="was not written by `warifu calibrate token`"):
        token.calibrate_token(Plan(SOFTHSM), name="sim", out=mine)
    assert mine.read_text() == 'name = "sim"\n'

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The machine's speed by calibrated cells: what it takes from the errors, and what it must not."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from warifu.answer.badge import badge
from warifu.answer.model import Level
from warifu.compare.case import compare_case
from warifu.compare.comparison import CaseComparison
from warifu.compare.conditions import CALIBRATED_ON
from warifu.compare.gates import Verdict, gates_for
from warifu.compare.join import compare
from warifu.compare.speed import AT_ITS_SPEED, machine_speeds
from warifu.compare.store import load, save
from warifu.report.accuracy import overview_table, speed_sentences
from warifu.report.accuracy_details import conditions_table
from warifu.results import Distribution, Floats, Results
from warifu.results.parts import Part
from warifu.results.replay import ReplayOfCase
from warifu.results.strata import NullModels, StrataOfCase
from warifu.results.trials import Trials

REFERENCE, JUDGED, FAR = "00000000000000aa", "00000000000000bb", "00000000000000cc"
#: Computing of each, ns, and its round trips.
TRUTH = {REFERENCE: (2e6, 0.0), JUDGED: (3e6, 0.0), FAR: (4e6, 60e6)}
PARTS, OF_A_PART = 40, 60


class _Half(Results):
    """What a comparison asks of a half, made up: computing spreads by 10 % from connection to
    connection, and in a measured half by ``parts`` (a factor each) from part to part."""

    #: When each part of a cell began, s; not recorded where a cell has none.
    began: dict[str, Floats]

    def __init__(self, half: str, values: dict[str, Floats], others: float = 0.0) -> None:
        self.began = {}
        cases = {name: {"rtt_ns": int(TRUTH[name][1] / 3.0), "loss_mean": 0.0} for name in values}
        super().__init__(Path("made-up"), {}, cases)
        self._values, self._others = values, others
        self._half = half
        self.manifest = {
            "half": half,
            "run_id": half,
            "seed": 1,
            "study": {"name": "made-up"},
            "complete": True,
            "calibration_case_ids": [REFERENCE],
        }

    def whole(self, case_id: str) -> str:
        return "https.establishment"

    def phases(self, case_id: str) -> tuple[str, ...]:
        return ()

    def later(self, case_id: str) -> tuple[str, ...]:
        return ()

    def label(self, case_id: str) -> str:
        return case_id[-2:]

    def evidence(self, case_id: str) -> str:
        return "measured"

    def concurrent(self, case_id: str) -> int:
        return 1

    def distribution(self, case_id: str, metric: str, stage: str | None = None) -> Distribution:
        if metric.startswith("bytes"):
            return Distribution.of(np.full(self._values[case_id].size, 900.0))
        values = self._values[case_id]
        got = np.isfinite(values)
        return Distribution.of(values[got], failed=float((~got).sum()))

    def strata(self, case_id: str) -> StrataOfCase | None:
        if self._half == "measured":
            return None
        computing, round_trips = TRUTH[case_id]
        models = NullModels(3.0, round_trips / 3.0, computing)
        return StrataOfCase("https.establishment", models, 0.0, {})

    def trials(self, case_id: str, metric: str | None = None) -> Trials:
        values = self._values[case_id]
        trial = np.arange(values.size, dtype=np.int64)
        return Trials(trial, values, trial // OF_A_PART, None)

    def parts(self, case_id: str) -> list[Part]:
        if self._half == "predicted":
            return []
        others = self._others if case_id == REFERENCE else 0.0
        began = self.began.get(case_id)
        return [
            Part(
                k * OF_A_PART,
                OF_A_PART,
                others,
                0.05,
                0,
                0.01,
                0.0,
                alone=False,
                began=None if began is None else float(began[k]),
            )
            for k in range(PARTS)
        ]


def _predicted(rng: np.random.Generator, off: float = 1.0) -> _Half:
    return _Half(
        "predicted",
        {
            case_id: round_trips + computing * off * rng.normal(1.0, 0.1, 20_000)
            for case_id, (computing, round_trips) in TRUTH.items()
        },
    )


def _measured(rng: np.random.Generator, speed: float, others: float = 0.0) -> _Half:
    """A machine that takes ``speed`` times as long, drifting by 8 % together and by 2 % each."""
    together = rng.normal(1.0, 0.08, PARTS)
    values = {}
    for case_id, (computing, round_trips) in TRUTH.items():
        part = np.repeat(together * rng.normal(1.0, 0.02, PARTS), OF_A_PART)
        values[case_id] = round_trips + speed * computing * part * rng.normal(1.0, 0.1, part.size)
    return _Half("measured", values, others)


def _judged(predicted: _Half, measured: _Half, case_id: str = JUDGED) -> CaseComparison:
    speeds = machine_speeds(predicted, measured, list(TRUTH))
    return compare_case(predicted, measured, case_id, speeds=speeds)


def _verdicts(case: CaseComparison) -> list[Verdict | None]:
    rows = [case.row(name + AT_ITS_SPEED) for name in ("p50", "mean")]
    assert all(rows)
    return [row.verdict for row in rows if row is not None]


def test_a_machine_quicker_than_when_it_was_calibrated_fails_nothing_at_its_speed() -> None:
    rng = np.random.default_rng(1)
    predicted, measured = _predicted(rng), _measured(rng, 0.75)
    case = _judged(predicted, measured)
    assert Verdict.FAIL not in _verdicts(case)
    assert case.speed is not None
    assert case.speed.cells == 1
    assert case.speed.interval.low < 0.75 < case.speed.interval.high
    # As it was measured it stands beside, without a verdict.
    for name in ("p50", "mean"):
        raw, at = case.row(name), case.row(name + AT_ITS_SPEED)
        assert raw is not None and at is not None
        assert raw.verdict is None and raw.gate is None
        assert raw.difference == pytest.approx(0.75e6, rel=0.15)
        assert at.measured == raw.measured
        assert at.predicted - at.measured == pytest.approx(at.difference)
        assert abs(at.difference) < 0.1e6
    # The same without the calibrated cell fails.
    alone = compare_case(predicted, measured, JUDGED)
    found = [alone.row(name) for name in ("p50", "mean")]
    assert [row and row.verdict for row in found] == [Verdict.FAIL, Verdict.FAIL]


def test_perfect_predictions_pass_and_ones_off_by_twice_the_gate_fail_at_any_speed() -> None:
    """In 95 % of runs; nine in ten of these, which are always the same."""
    perfect, off = 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        measured = _measured(rng, rng.uniform(0.7, 1.4))
        case = _judged(_predicted(rng), measured)
        verdicts = _verdicts(case)
        perfect += Verdict.FAIL not in verdicts and Verdict.PASS in verdicts
        # The judged cells alone are predicted 10 % too slow, not the calibrated one.
        wrong = _predicted(rng)
        slow = _predicted(rng, off=1.1)
        wrong._values = {**slow._values, REFERENCE: wrong._values[REFERENCE]}
        off += set(_verdicts(_judged(wrong, measured))) == {Verdict.FAIL}
    assert perfect >= 36
    assert off >= 36


@pytest.mark.parametrize("speed", [0.7, 1.4])
def test_a_gate_at_the_machines_speed_is_a_share_of_what_was_measured(speed: float) -> None:
    rng = np.random.default_rng(16)
    case = _judged(_predicted(rng), _measured(rng, speed))
    for gate in gates_for(0.0):
        row = case.row(gate.statistic + AT_ITS_SPEED)
        assert row is not None
        assert row.width == pytest.approx(gate.width_ns(row.measured, 1.0))


def test_a_machine_that_is_beyond_the_bound_in_every_other_round_is_not_judged() -> None:
    rng = np.random.default_rng(17)
    predicted, measured = _predicted(rng), _measured(rng, 1.0)
    by_part = np.where(np.arange(PARTS) % 2, 0.6, 1.7)
    measured._values[REFERENCE] *= np.repeat(by_part, OF_A_PART)
    case = _judged(predicted, measured)
    assert case.speed is None and case.verdict is None
    assert re.match(r"the machine's computing took 0\.\d\d to \d\.\d\d times", case.not_judged)


@pytest.mark.parametrize(
    "column", [{"key_store": "card"}, {"rate_up_bps": 1}, {"jitter_max_ns": 1}]
)
def test_what_a_card_or_a_rate_takes_is_no_speed(column: dict[str, object]) -> None:
    rng = np.random.default_rng(18)
    predicted, measured = _predicted(rng), _measured(rng, 0.8)
    predicted.cases[JUDGED].update(column)
    assert _judged(predicted, measured).speed is None
    predicted.cases[JUDGED].update(dict.fromkeys(column))
    assert _judged(predicted, measured).speed is not None
    predicted.cases[REFERENCE].update(column)
    assert not machine_speeds(predicted, measured, list(TRUTH))


def test_retransmissions_and_bytes_alone_do_not_make_a_case_pass() -> None:
    """Parts differ by so much that no gate of a time is decided."""
    rng = np.random.default_rng(19)
    predicted, measured = _predicted(rng), _measured(rng, 1.0)
    part = np.repeat(np.arange(PARTS), OF_A_PART)
    values = measured._values[JUDGED] * rng.lognormal(0.0, 0.3, PARTS)[part]
    measured._values[JUDGED] = values
    predicted._values[JUDGED] *= rng.lognormal(0.0, 0.3, 20_000)
    ours = values * rng.lognormal(0.0, 0.3, PARTS)[part]
    no = np.zeros(values.size, dtype=np.bool_)
    trial = np.arange(values.size, dtype=np.int64)
    replay = ReplayOfCase(trial, part, ours, values, ~no, no, no)
    case = compare_case(predicted, measured, JUDGED, replay=replay)
    judged = {row.statistic for row in case.rows if row.verdict is not None}
    assert judged == {"replayed: other retransmissions"}
    assert [one.verdict for one in case.bytes] == [Verdict.PASS, Verdict.PASS]
    assert case.verdict is None and not case.not_judged


@pytest.mark.parametrize(
    ("speed", "judged"), [(0.6, False), (0.72, True), (1.4, True), (1.8, False)]
)
def test_a_machine_of_quite_another_speed_is_not_judged(speed: float, judged: bool) -> None:
    rng = np.random.default_rng(7)
    predicted, measured = _predicted(rng), _measured(rng, speed)
    case = _judged(predicted, measured)
    # Nor is one for which no calibrated cell has the speed.
    assert (_judged(predicted, measured, FAR).not_judged == "") is judged
    if judged:
        assert case.not_judged == "" and case.speed is not None
        return
    assert case.speed is None and case.verdict is None and not case.bytes_gated
    assert all(row.verdict is None for row in case.rows)
    said = re.fullmatch(
        r"the machine's computing took (\S+) times what it took .* again", case.not_judged
    )
    assert said is not None and float(said[1]) == pytest.approx(speed, rel=0.1)


def test_what_a_cell_computes_differently_is_not_taken_for_speed() -> None:
    """An error that calibrated and judged cells share is the machine's; one that they do not is
    the prediction's."""
    rng = np.random.default_rng(3)
    measured = _measured(rng, 1.2)
    wrong = _predicted(rng)
    wrong._values[REFERENCE] = wrong._values[REFERENCE] * 1.2
    assert _verdicts(_judged(wrong, measured)) == [Verdict.FAIL, Verdict.FAIL]


def test_cells_with_delay_are_not_judged_by_those_without() -> None:
    rng = np.random.default_rng(4)
    case = _judged(_predicted(rng), _measured(rng, 0.75), FAR)
    assert case.speed is None
    assert case.row("p50" + AT_ITS_SPEED) is None
    row = case.row("p50")
    assert row is not None and row.gate is not None


def test_a_part_that_was_measured_again_is_judged_by_its_own_time() -> None:
    """On a machine that slows down from 0.7 to 1.3 of its usual time, the first eight parts of the
    judged cell were rejected, and measured after all others, one after the other."""
    rng = np.random.default_rng(9)
    began = {name: 1e9 + 60.0 * np.arange(PARTS) + place for place, name in enumerate(TRUTH)}
    began[JUDGED][:8] = 1e9 + 60.0 * PARTS + 7.0 * np.arange(8)
    measured = _measured(rng, 1.0)
    for case_id, (computing, round_trips) in TRUTH.items():
        speed = np.interp(began[case_id], [1e9, 1e9 + 60.0 * PARTS], [0.7, 1.3])
        part = np.repeat(speed * rng.normal(1.0, 0.02, PARTS), OF_A_PART)
        values = round_trips + computing * part * rng.normal(1.0, 0.1, part.size)
        measured._values[case_id] = values
    predicted = _predicted(rng)
    measured.began = began
    (speed,) = machine_speeds(predicted, measured, [REFERENCE, JUDGED])
    of_parts = speed.of_parts(measured.parts(JUDGED))
    assert of_parts[:8] == pytest.approx(1.3, abs=0.08)
    assert of_parts[8:12] == pytest.approx([0.7 + 0.6 * k / PARTS for k in range(8, 12)], abs=0.08)
    row = _judged(predicted, measured).row("mean" + AT_ITS_SPEED)
    assert row is not None and abs(row.difference) < 0.02 * 3e6
    # By its number it would be judged by the quickest rounds.
    measured.began = {}
    row = _judged(predicted, measured).row("mean" + AT_ITS_SPEED)
    assert row is not None and row.difference < -0.08 * 3e6


def test_rounds_are_where_most_calibrated_cells_were_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of three cells had its second part put off to the end: it speaks for the end."""
    rng = np.random.default_rng(10)
    names = [REFERENCE, "00000000000000a1", "00000000000000a2"]
    for name in names:
        monkeypatch.setitem(TRUTH, name, TRUTH[REFERENCE])
    measured = _measured(rng, 1.0)
    for place, name in enumerate(names):
        factor = np.ones(PARTS)
        if name == REFERENCE:
            factor[1] = 3.0
        noise = rng.normal(1.0, 0.001, PARTS * OF_A_PART)
        measured._values[name] = 2e6 * np.repeat(factor, OF_A_PART) * noise
        measured.began[name] = 1e9 + 60.0 * np.arange(PARTS) + place
    measured.began[REFERENCE][1] = 1e9 + 60.0 * (PARTS - 1) + 20.0
    predicted = _predicted(rng)
    predicted.manifest["calibration_case_ids"] = names
    (speed,) = machine_speeds(predicted, measured, names)
    assert speed.cells == 3
    assert speed.by_round[1] == pytest.approx(1.0, abs=0.02)
    assert speed.by_round[-1] == pytest.approx(1.5, abs=0.02)


def _three_cells(monkeypatch: pytest.MonkeyPatch, factors: Floats) -> tuple[_Half, _Half]:
    """Three calibrated cells on a machine that takes so many times as long in each round."""
    rng = np.random.default_rng(14)
    names = [REFERENCE, "00000000000000a1", "00000000000000a2"]
    for name in names:
        monkeypatch.setitem(TRUTH, name, TRUTH[REFERENCE])
    measured, predicted = _measured(rng, 1.0), _predicted(rng)
    for place, name in enumerate(names):
        noise = rng.normal(1.0, 0.001, PARTS * OF_A_PART)
        measured._values[name] = 2e6 * np.repeat(factors, OF_A_PART) * noise
        measured.began[name] = 1e9 + 60.0 * np.arange(PARTS) + place
    predicted.manifest["calibration_case_ids"] = names
    return predicted, measured


def test_a_round_that_was_put_off_keeps_its_own_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three cells had their second part put off to the end: that is when the round was."""
    factors = np.linspace(0.8, 1.2, PARTS)
    factors[1] = 1.3
    predicted, measured = _three_cells(monkeypatch, factors)
    names = predicted.manifest["calibration_case_ids"]
    for name in names[:2]:
        measured.began[name][1] = 1e9 + 60.0 * PARTS
    (speed,) = machine_speeds(predicted, measured, names)
    # The third cell's second part is of the round before or after.
    others = np.delete(np.arange(PARTS), [0, 1, 2])
    assert np.asarray(speed.by_round)[others] == pytest.approx(factors[others], abs=0.02)
    assert speed.by_round[1] == pytest.approx(1.3, abs=0.02)


def test_a_calibrated_part_far_from_every_round_says_nothing_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    predicted, measured = _three_cells(monkeypatch, np.ones(PARTS))
    names = predicted.manifest["calibration_case_ids"]
    measured._values[REFERENCE][OF_A_PART : 2 * OF_A_PART] *= 3.0
    measured.began[REFERENCE][1] += 86_400.0
    (speed,) = machine_speeds(predicted, measured, names)
    assert speed.by_round == pytest.approx([1.0] * PARTS, abs=0.02)


def test_a_part_of_another_day_has_no_speed_and_that_is_told() -> None:
    rng = np.random.default_rng(15)
    predicted, measured = _predicted(rng), _measured(rng, 0.75)
    measured.began = {name: 1e9 + 60.0 * np.arange(PARTS) for name in TRUTH}
    measured.began[JUDGED][-1] += 1.9 * 60.0
    near = _judged(predicted, measured)
    assert near.speed is not None
    assert not any("speed" in one for one in near.missing)
    measured.began[JUDGED][-1] += 86_400.0
    case = _judged(predicted, measured)
    assert case.speed is None
    assert case.row("p50" + AT_ITS_SPEED) is None
    why = "nothing is judged at the machine's speed: a part was measured long before or after the"
    assert case.missing[0] == f"{why} calibrated cells"
    row = case.row("p50")
    assert row is not None and row.verdict is Verdict.FAIL
    notes = overview_table(compare(predicted, measured)).notes
    assert any(why in note for note in notes)


def test_a_case_of_other_parts_than_the_calibrated_cells_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(16)
    predicted, measured = _predicted(rng), _measured(rng, 0.75)
    whole = measured.parts
    monkeypatch.setattr(
        measured, "parts", lambda case_id: whole(case_id)[: -1 if case_id == JUDGED else None]
    )
    case = _judged(predicted, measured)
    assert case.speed is None
    why = "nothing is judged at the machine's speed: it has 39 parts, the calibrated cells 40"
    assert case.missing[0] == why


def test_failed_connections_leave_the_mean_its_gate_at_the_machine_s_speed() -> None:
    rng = np.random.default_rng(11)
    predicted, measured = _predicted(rng), _measured(rng, 0.75)
    whole = _judged(predicted, measured).row("mean" + AT_ITS_SPEED)
    measured._values[JUDGED][7] = np.inf
    case = _judged(predicted, measured)
    mean = case.row("mean" + AT_ITS_SPEED)
    assert whole is not None and mean is not None
    assert (mean.gate, mean.verdict) == (whole.gate, whole.verdict)
    assert mean.width == pytest.approx(whole.width, rel=0.01)
    assert mean.difference == pytest.approx(whole.difference, abs=0.01e6)
    assert case.row("responses") is not None


def test_a_median_that_failures_reach_has_its_prediction_at_the_machine_s_speed() -> None:
    rng = np.random.default_rng(12)
    predicted, measured = _predicted(rng), _measured(rng, 0.75)
    measured._values[JUDGED][::2] = np.inf
    measured._values[JUDGED][1] = np.inf
    case = _judged(predicted, measured)
    p50 = case.row("p50" + AT_ITS_SPEED)
    assert p50 is not None
    assert p50.predicted == pytest.approx(3e6, rel=0.01)
    assert p50.measured == np.inf
    assert p50.verdict is case.verdict is Verdict.FAIL


def test_a_case_without_any_response_fails_where_the_machine_s_speed_is_known() -> None:
    rng = np.random.default_rng(13)
    predicted, measured = _predicted(rng), _measured(rng, 0.75)
    measured._values[JUDGED][:] = np.inf
    case = _judged(predicted, measured)
    assert [row.statistic for row in case.rows] == ["responses"]
    assert case.verdict is Verdict.FAIL


def test_a_calibrated_cell_beside_other_work_says_nothing() -> None:
    rng = np.random.default_rng(5)
    predicted, measured = _predicted(rng), _measured(rng, 0.75, others=0.2)
    assert machine_speeds(predicted, measured, list(TRUTH)) == []
    assert _judged(predicted, measured).speed is None


def test_a_calibrated_cell_is_not_judged_at_a_speed_that_it_gave_itself() -> None:
    rng = np.random.default_rng(6)
    case = _judged(_predicted(rng), _measured(rng, 0.75), REFERENCE)
    assert case.not_judged == CALIBRATED_ON
    assert case.speed is None
    assert case.verdict is None


def test_null_models_compute_at_the_machine_s_speed_too() -> None:
    rng = np.random.default_rng(7)
    case = _judged(_predicted(rng), _measured(rng, 0.75))
    found = {(one.model, one.statistic): one for one in case.null_models}
    assert set(found) == {
        (model, statistic)
        for model in ("k x RTT", "k x RTT + computing")
        for statistic in ("p50", "mean")
    }
    assert found["k x RTT + computing", "p50"].predicted_ns == pytest.approx(2.25e6, rel=0.05)
    assert found["k x RTT", "p50"].predicted_ns == 0.0


def test_tables_say_how_quick_the_machine_was_and_survive_their_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    predicted, measured = _predicted(rng), _measured(rng, 0.75)
    comparison = compare(predicted, measured)
    (said,) = speed_sentences(comparison)
    assert said.startswith("Without delay computing took 0.7")
    assert "by one calibrated cell in 40 parts each" in said
    assert said in overview_table(comparison).notes
    judged = {row[0]: row for row in conditions_table(comparison).cells}
    assert judged["bb"][7].startswith("x 0.7")
    assert judged["aa"][7] == "-"
    save(comparison, tmp_path)
    assert load(tmp_path) == comparison


def test_the_badge_says_that_the_machine_is_another() -> None:
    rng = np.random.default_rng(9)
    predicted, measured = _predicted(rng), _measured(rng, 1.8)
    comparison = compare(predicted, measured)
    found = badge(predicted, comparison)
    assert found.text.startswith("measured, nothing is judged: the machine's computing took 1.")
    assert "calibrate and measure again" in found.text
    assert found.level is Level.NONE

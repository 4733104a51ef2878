# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Connections follow one another so slowly that none waits for another's computing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.laboratory import make_case, make_coap_case, make_dds_case
from warifu.lab import causes, rates
from warifu.lab.causes import Cause
from warifu.lab.errors import RunRejected
from warifu.lab.rates import AIM, CALM_RATE, LOSSY_RATE, Rates
from warifu.results.parts import SERVER_BUSY_MAX, SERVER_BUSY_TOLERANCE

MS = 1_000_000
LOSS = {"kind": "independent", "probability": 0.02}
CALM, LOSSY = make_case(), make_case(link__loss=LOSS)
MANY = [1_000] * 10


@given(st.integers(1_000, 2_000 * MS), st.sampled_from([CALM, LOSSY]))
def test_the_server_is_busy_for_no_more_than_the_aim(server_ns: int, cell: rates.Cell) -> None:
    found = Rates()
    found.learn(cell, server_ns * 60, 0, 60)
    rate = found.of(cell)
    assert rate * server_ns / 1e9 <= AIM * (1 + 1e-9)
    # And no slower than it has to be.
    most = LOSSY_RATE if cell.is_lossy else CALM_RATE
    assert rate == most or rate * server_ns / 1e9 == pytest.approx(AIM)


def test_a_lossy_cell_has_a_pilot_and_a_short_one_none() -> None:
    found = Rates()
    assert found.needs_pilot(LOSSY, MANY)
    assert not found.needs_pilot(LOSSY, [40])
    found.learn(LOSSY, 90 * MS, 0, 60)
    assert not found.needs_pilot(LOSSY, MANY)
    assert found.needs_pilot(CALM, MANY), "another cell has other work"
    assert not Rates(50.0).needs_pilot(LOSSY, MANY)


def test_before_a_pilot_of_its_own_a_cell_is_as_slow_as_the_slowest() -> None:
    found = Rates()
    found.learn(LOSSY, 10 * 60 * MS, 0, 60)
    other = make_case(link__loss=LOSS, link__rtt=60 * MS)
    assert found.of(other) == found.of(LOSSY) == pytest.approx(4.0)


def test_work_that_others_keep_clear_of_is_what_a_connection_computes() -> None:
    found = Rates()
    assert found.work_s(CALM) == pytest.approx(0.005)
    found.learn(CALM, 60 * MS, 120 * MS, 60)
    assert found.work_s(CALM) == pytest.approx(1.5 * 0.003)
    # In ten connections most of it is what came before them.
    found.learn(CALM, 600 * MS, 120 * MS, 10)
    assert found.work_s(CALM) == pytest.approx(1.5 * 0.003)
    assert found.work_s(LOSSY) == pytest.approx(0.005), "another cell has other work"


def test_short_runs_tell_together_what_a_connection_computes() -> None:
    """A calibration's runs have fifteen or forty connections each."""
    found = Rates(25.0)
    for _ in range(3):
        found.learn(CALM, 15 * 4 * MS, 15 * 3 * MS, 15)
        assert found.work_s(CALM) == pytest.approx(0.005)
    found.learn(CALM, 15 * 4 * MS, 15 * 3 * MS, 15)
    assert found.work_s(CALM) == pytest.approx(1.5 * 0.007)
    # A longer run tells more than all of them.
    found.learn(CALM, 60 * 3 * MS, 60 * 3 * MS, 60)
    found.learn(CALM, 15 * 4 * MS, 15 * 3 * MS, 15)
    assert found.work_s(CALM) == pytest.approx(1.5 * 0.006)


def test_a_part_too_fast_is_rejected_and_then_slower() -> None:
    found = Rates()
    found.learn(LOSSY, MS * 60, 0, 60)
    rate = found.of(LOSSY)
    assert rate == pytest.approx(40.0)
    # The part's connections took twice the pilot's.
    busy = rates.busy(2 * MS * 1_000, 1_000, rate, 26.0, alone=False)
    reason = found.why_too_fast(LOSSY, busy, 100)
    assert reason is not None
    assert "8.0% of the time, 5.5% are allowed" in reason
    rejection = RunRejected([reason], {})
    assert rejection.causes == {Cause.SERVER}
    assert not any(cause.is_busyness for cause in rejection.causes)
    assert list(causes.counted([reason])) == [Cause.SERVER.says]
    found.learn(LOSSY, 2 * MS * 1_000, 0, 1_000)
    assert found.of(LOSSY) == pytest.approx(20.0)


def test_the_tolerance_is_as_stated() -> None:
    found = Rates()
    assert found.why_too_fast(CALM, SERVER_BUSY_MAX + SERVER_BUSY_TOLERANCE, 100) is None
    assert found.why_too_fast(CALM, SERVER_BUSY_MAX + SERVER_BUSY_TOLERANCE + 1e-4, 100) is not None
    # Of a few trials most is what came before them.
    assert found.why_too_fast(CALM, 0.5, rates.PILOT_TRIALS - 1) is None


def test_what_is_not_the_labs_pace_is_not_judged_by_it() -> None:
    assert Rates(100.0).why_too_fast(LOSSY, 0.5, 100) is None
    assert Rates().why_too_fast(make_dds_case(), 0.5, 100) is None
    queued = make_case(link__rate_up=100_000)
    assert Rates().why_too_fast(queued, 0.5, 100) is None
    assert Rates().why_too_fast(make_coap_case(), 0.5, 100) is not None


def test_a_link_with_memory_settles_between_connections() -> None:
    queued = make_case(link__rate_up=100_000, link__loss=LOSS)
    found = Rates()
    found.learn(queued, 1_000 * 60, 0, 60)
    assert found.of(queued) == pytest.approx(0.5e9 / queued.settling_ns)


def test_busy_leaves_out_the_wait_for_the_last_connection() -> None:
    took = 1_000 * MS
    assert rates.busy(took, 1_000, 50.0, 120.0, alone=False) == pytest.approx(0.05)
    # One after the other: all of the time is one connection's or a pause.
    assert rates.busy(took, 1_000, 50.0, 200.0, alone=True) == pytest.approx(0.005)
    assert rates.busy(0, 0, 50.0, 0.0, alone=False) == 0.0

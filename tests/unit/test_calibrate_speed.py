# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Calibration finds costs and what connections have in common again: not only their medians."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.paths import ROOT
from warifu import study
from warifu.calibrate import profile, sittings, speed
from warifu.calibrate.https import HttpsPart
from warifu.calibrate.part import Draft
from warifu.calibrate.profile import Entry, Law, Speed, whatever
from warifu.results import metrics

Floats = sittings.Floats

WHOLE = metrics.whole("https")

STUDY = """\
name = "synthetic"
seed = {seed}
trials = 1
predict_trials = {trials}
device = "this-host"
server = "this-host"
[link]
profile = "loopback"
rtt = "0 ms"
[stack]
protocol = "https"
group = "secp256r1"
certificate = "ecdsa_secp256r1"
authentication = "mutual"
"""

SKEWED = np.quantile(np.random.default_rng(1).gamma(3.0, 1.0, 200_000) + 2.0, np.linspace(0, 1, 21))
"""A form that costs have: a least time, and a tail."""


def truth() -> list[Entry]:
    """Costs of 4 to 70 us with laws of their own, narrow and wide, cold ones half as long again."""
    chance = np.random.default_rng(11)
    entries = []
    for name in HttpsPart().operations:
        middle = float(chance.uniform(4_000.0, 70_000.0))
        width = float(chance.uniform(0.05, 0.5))
        form = 1.0 + width * (SKEWED / np.median(SKEWED) - 1.0)
        law = Law(tuple((middle * form).tolist()))
        entries.append(Entry(name, whatever(name), law, law.scaled(1.5)))
    return entries


def common(sigma: float) -> Speed:
    """A factor with median 1, a tail to slow connections, and this spread of its logarithm: another
    law than those that the search tries."""
    drawn = np.random.default_rng(4).gamma(3.0, 1.0, 400_000)
    grid = np.quantile(drawn, np.clip(np.linspace(0, 1, 101), 0.0025, 0.9975))
    return Speed(tuple(np.exp(sigma * (grid - np.median(drawn)) / np.std(drawn)).tolist()))


def draft() -> Draft:
    others = [
        text
        for text in study.profile_texts([ROOT / "profiles"])
        if text[:2] != ("device", profile.DEVICE)
    ]
    return Draft(others)


def times_the_factor(law: Law, factor: Speed, chance: np.random.Generator) -> Law:
    """What a bench finds of a cost in connections each of which is slower by the factor."""
    n = 4_000
    own = np.interp(chance.random(n), np.linspace(0, 1, len(law.quantiles_ns)), law.quantiles_ns)
    of = np.interp(chance.random(n), np.linspace(0, 1, len(factor.connection)), factor.connection)
    return Law.of_samples((own * of).tolist())


def parts(drawn: Mapping[str, Floats], slower: Sequence[float]) -> sittings.Parts:
    """A part of the connections for each sitting, all of which were slower by so much."""
    chance = np.random.default_rng(3)
    return {
        # They come sorted.
        case: [
            part * by
            for part, by in zip(
                np.array_split(chance.permutation(values), len(slower)), slower, strict=True
            )
        ]
        for case, values in drawn.items()
    }


def log_spread(quantiles: Sequence[float]) -> float:
    """The spread of nine in ten, as a standard deviation of the logarithm of a normal law."""
    low, high = np.quantile(np.log(np.asarray(quantiles)), (0.05, 0.95))
    return float(high - low) / 3.29


# A factor that spreads less than the steps do together is found less well.
@pytest.mark.parametrize(("sigma", "bound"), [(0.03, 0.35), (0.1, 0.17)])
def test_costs_and_common_speed_are_found_again(sigma: float, bound: float) -> None:
    chance = np.random.default_rng(5)
    costs, factor = truth(), common(sigma)
    base = draft()
    real = replace(base, entries=tuple(costs), speed=factor)
    # Other trials than those that the search draws: chance is not found again.
    measured = real.draw(STUDY.format(seed=99, trials=4_000), WHOLE)
    seen = [
        entry.having(
            times_the_factor(entry.warm, factor, chance),
            None if entry.cold is None else times_the_factor(entry.cold, factor, chance),
            None,
        )
        for entry in costs
    ]

    def simulate(entries: Sequence[Entry], law: Speed) -> Mapping[str, Floats]:
        made = replace(base, entries=tuple(entries), speed=law)
        return made.draw(STUDY.format(seed=7, trials=4_000), WHOLE)

    found = speed.fit(seen, parts(measured, [1.0, 1.0]), {}, simulate)
    # The factor: its spread within its bound, its median to a hundredth.
    assert log_spread(found.speed.connection) == pytest.approx(
        log_spread(factor.connection), rel=bound
    )
    assert np.median(found.speed.connection) == pytest.approx(1.0, abs=0.012)
    # The costs: their means to 2 %, and of those that matter nine quantiles in ten to 5 %.
    scale = _mean(found.speed.connection) / _mean(factor.connection)
    off = []
    for real_cost, cost in zip(costs, found.entries, strict=True):
        assert cost.warm.mean_ns * scale == pytest.approx(real_cost.warm.mean_ns, rel=0.02)
        ours, theirs = (np.asarray(one.warm.quantiles_ns)[1:-1] for one in (cost, real_cost))
        off.append(np.abs(ours / theirs - 1.0))
    assert np.quantile(np.concatenate(off), 0.9) < 0.05
    # And what it is for: the spread of whole connections, which steps alone do not have.
    after = simulate(found.entries, found.speed)
    alone = simulate(seen, Speed((1.0,)))
    for case, values in measured.items():
        goal = _spread(values)
        assert _spread(after[case]) == pytest.approx(goal, rel=0.08)
        assert np.median(after[case]) == pytest.approx(np.median(values), rel=0.01)
        if sigma > 0.05:
            assert _spread(alone[case]) < 0.6 * goal, "the test could not fail"


def test_what_connections_have_in_common_after_a_wait_is_found_again() -> None:
    base, costs, rtt = draft(), truth(), 20_000_000
    text = STUDY.replace('"0 ms"', '"20 ms"')
    law = Speed((0.98, 1.0, 1.02), waited=common(0.15).connection)
    real = replace(base, entries=tuple(costs), speed=law)
    measured = real.draw(text.format(seed=99, trials=2_000), WHOLE)

    def simulate(entries: Sequence[Entry], law: Speed) -> Mapping[str, Floats]:
        made = replace(base, entries=tuple(entries), speed=law)
        return made.draw(text.format(seed=7, trials=4_000), WHOLE)

    # What a sitting is slower by is no part of it, as it is none of the measured distances.
    warm = replace(law, waited=None, sitting=0.2)
    found, spread = speed.fit_waited(costs, warm, parts(measured, [1.0, 1.0]), rtt, simulate)
    assert spread.drawn == pytest.approx(spread.measured, rel=0.08)
    assert found.sitting == warm.sitting
    found, warm = replace(found, sitting=0.0), replace(warm, sitting=0.0)
    assert found.connection == law.connection
    assert found.waited is not None and law.waited is not None
    assert log_spread(found.waited) == pytest.approx(log_spread(law.waited), rel=0.17)
    assert np.median(found.waited) == pytest.approx(1.0, abs=0.012)
    after, before = simulate(costs, found), simulate(costs, warm)
    for case, values in measured.items():
        assert _spread(after[case]) == pytest.approx(_spread(values), rel=0.1)
        assert np.median(after[case]) == pytest.approx(np.median(values), rel=0.001)
        assert _spread(before[case]) < 0.6 * _spread(values), "the test could not fail"


def often_slow(share: float, excess: float) -> Speed:
    """A narrow factor, but for a share of connections that are many times slower: by another law
    than that of the search."""
    chance = np.random.default_rng(6)
    usual = np.exp(0.04 * chance.standard_normal(400_000))
    slow = 1.0 + excess * chance.exponential(1.0, 400_000)
    drawn = np.where(chance.random(400_000) < share, slow, usual)
    return Speed(tuple(np.quantile(drawn / np.median(drawn), np.linspace(0, 0.9975, 101)).tolist()))


@pytest.mark.parametrize("share", [0.005, 0.03, 0.08])
def test_connections_that_are_slow_now_and_then_are_found_again(share: float) -> None:
    """As on a machine whose host has others use the processor for milliseconds."""
    base, costs, rtt = draft(), truth(), 20_000_000
    text = STUDY.replace('"0 ms"', '"20 ms"')
    law = Speed((0.98, 1.0, 1.02), waited=often_slow(share, 4.0).connection)
    real = replace(base, entries=tuple(costs), speed=law)
    measured = real.draw(text.format(seed=99, trials=4_000), WHOLE)

    def simulate(entries: Sequence[Entry], law: Speed) -> Mapping[str, Floats]:
        made = replace(base, entries=tuple(entries), speed=law)
        return made.draw(text.format(seed=7, trials=4_000), WHOLE)

    warm = replace(law, waited=None)
    found, _ = speed.fit_waited(costs, warm, parts(measured, [1.0, 1.0]), rtt, simulate)
    after = simulate(costs, found)
    for case, values in measured.items():
        ours, theirs = after[case], values
        for p, bound in ((0.75, 0.15), (0.95, 0.15), (0.99, 0.3)):
            goal = np.quantile(theirs, p) - np.median(theirs)
            assert np.quantile(ours, p) - np.median(ours) == pytest.approx(goal, rel=bound), p


def test_steps_alone_need_no_factor() -> None:
    base, costs = draft(), truth()
    real = replace(base, entries=tuple(costs))
    measured = real.draw(STUDY.format(seed=99, trials=4_000), WHOLE)

    def simulate(entries: Sequence[Entry], law: Speed) -> Mapping[str, Floats]:
        made = replace(base, entries=tuple(entries), speed=law)
        return made.draw(STUDY.format(seed=7, trials=4_000), WHOLE)

    found = speed.fit(costs, parts(measured, [1.0, 1.0]), {}, simulate)
    # A third of what the steps make of whole connections.
    assert log_spread(found.speed.connection) < 0.016
    assert found.speed.sitting < 0.005


def test_a_sitting_is_no_connections() -> None:
    chance = np.random.default_rng(2)
    one = {f"case {n}": chance.normal(3e6, 1e5, 2_000) for n in range(8)}
    none_of_calls = dict.fromkeys(one, 0.0)
    slow, _ = sittings.sittings(parts(one, [1.0, 1.1]), {}, none_of_calls)
    # Of two values that differ by a tenth.
    assert slow == pytest.approx(np.log(1.1) / np.sqrt(2), rel=0.1)
    same, _ = sittings.sittings(parts(one, [1.0, 1.0]), {}, none_of_calls)
    assert same < 0.005
    assert sittings.sittings(parts(one, [1.0]), {}, none_of_calls) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("computing", "system"), [(0.1, 0.35), (0.12, 0.12), (0.2, 0.05), (0.03, 0.3)]
)
def test_sittings_of_computing_and_of_calls_are_found_apart(
    computing: float, system: float
) -> None:
    """From as many parts and connections as a calibration has, of cases with a tenth to six tenths
    of system calls; means over repetitions, since so few parts scatter."""
    chance = np.random.default_rng(8)
    shares = {f"case {n}": share for n, share in enumerate((0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6))}
    found = []
    for _ in range(40):
        wholes, calls = {}, {}
        for case, share in shares.items():
            # The calls of another part than those of the whole: they are no more than alike.
            parts = [np.exp(chance.normal(0.0, (computing, system, system))) for _ in range(10)]
            noise = [np.exp(chance.normal(0.0, 0.1, (2, 40))) for _ in parts]
            wholes[case] = [
                2e6 * ((1 - share) * slow + share * of_calls) * own
                for (slow, of_calls, _), (own, _) in zip(parts, noise, strict=True)
            ]
            calls[case] = [
                1e5 * of * own for (_, _, of), (_, own) in zip(parts, noise, strict=True)
            ]
        found.append(sittings.sittings(wholes, calls, shares))
    middle = np.mean(found, axis=0)
    assert middle == pytest.approx([computing, system], rel=0.06, abs=0.012)
    # What a single calibration's may be off by.
    assert np.std(found, axis=0) == pytest.approx([0.0, 0.0], abs=0.04)


def test_the_share_of_system_calls_is_what_their_costs_make_up() -> None:
    base = draft()
    steady = [Entry(one.operation, one.when, Law.constant(one.warm.median_ns)) for one in truth()]

    def simulate(entries: Sequence[Entry], law: Speed) -> Mapping[str, Floats]:
        made = replace(base, entries=tuple(entries), speed=law)
        return made.draw(STUDY.format(seed=7, trials=50), WHOLE)

    measured = parts(simulate(steady, Speed((1.0,))), [1.0, 1.0])
    (share,) = speed.fit(steady, measured, {}, simulate).system.values()
    # By how much less it takes when they take less.
    free = [entry.scaled(0.9) if entry.is_system else entry for entry in steady]
    ((whole,), (rest,)) = (
        [float(np.median(of)) for of in simulate(some, Speed((1.0,))).values()]
        for some in (steady, free)
    )
    assert 0.05 < share < 0.95
    assert share == pytest.approx((1.0 - rest / whole) / 0.1, abs=0.03)


laws = st.lists(st.floats(1e3, 1e7), min_size=2, max_size=21).map(
    lambda some: Law(tuple(sorted(some)))
)


@settings(deadline=None, max_examples=40)
@given(laws, st.floats(0.0, 0.3))
def test_unmixed_laws_rise_and_keep_their_mean(law: Law, sigma: float) -> None:
    factor = np.asarray(common(sigma).connection)
    own = speed.unmixed(law, factor)
    assert list(own.quantiles_ns) == sorted(own.quantiles_ns)
    assert own.mean_ns * _mean(factor.tolist()) == pytest.approx(law.mean_ns, rel=1e-6)


def test_a_factor_of_nearly_one_leaves_a_law_as_it_is() -> None:
    """A steady cost with an accident in hundred, as benches find them."""
    law = Law((*np.linspace(1e4, 1.1e4, 20).tolist(), 2e5))
    own = speed.unmixed(law, np.linspace(1.0 - 1e-6, 1.0 + 1e-6, 101))
    assert own.quantiles_ns == pytest.approx(law.quantiles_ns, rel=1e-4)
    # A factor that spreads as little as this cost takes little from its middle.
    own = speed.unmixed(law, np.asarray(common(0.02).connection))
    assert own.median_ns == pytest.approx(law.median_ns, rel=0.02)


def test_profile_with_speed_reads_back() -> None:
    made = replace(
        draft(), entries=tuple(truth()), speed=Speed((0.9, 1.0, 1.4), 0.02, 0.3, "a test")
    )
    text = made.profile("run-1", "a test").toml()
    assert text.index("[speed]") < text.index("[[operation]]")
    figures = made.study(STUDY.format(seed=1, trials=10)).inputs(0)
    (one,) = [figure for figure in figures if figure["name"] == "this-host speed.connection"]
    assert one["value"] == "median 1.000, nine in ten from 0.910 to 1.360"
    (one,) = [figure for figure in figures if figure["name"] == "this-host speed.sitting_system"]
    assert one["value"] == "0.3000"


def _mean(quantiles: Sequence[float]) -> float:
    values = np.asarray(quantiles)
    return float((values[:-1] + values[1:]).mean() / 2)


def _spread(values: Floats) -> float:
    low, high = np.quantile(values, (0.5, 0.95))
    return float(high - low)

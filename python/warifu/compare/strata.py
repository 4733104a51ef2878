# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Connections by their SYN timeouts and by what their clients sent again: how many there are of
each kind, and how long those take.

Most of the variance of a time under loss is which stratum a connection is in. Apart from it the
mean of each is known well, and a mistake of a timer is not hidden behind the lottery.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from warifu.compare.blocks import Blocks
from warifu.compare.gates import STRATUM_SHARE, STRATUM_SHARE_LEAST, STRATUM_SHARE_MOST, Gate
from warifu.compare.power import Error, together, trials_that_decide
from warifu.compare.rows import Row, judged, share_error
from warifu.results.strata import MOST_COUNTED, OfStratum, StrataOfCase, Stratum
from warifu.results.trials import Trials

#: Fewer expected connections of a stratum have no mean worth a gate: the normal law is far.
LEAST_OF_MEAN = 30
_NONE = OfStratum(0.0, math.nan, 0.0)


def strata_rows(
    ours: StrataOfCase, theirs: Mapping[Stratum, tuple[OfStratum, Error]], n: float, gate: Gate
) -> list[Row]:
    """Share and mean of each stratum; ``gate`` is that of the mean. ``theirs`` are those of ``n``
    measured connections, failed ones included, with the error of each mean. Strata of which so many
    connections decide nothing, by what is predicted alone, are judged together."""
    rows: list[Row] = []
    rare_predicted, rare_measured = 0.0, 0.0
    for stratum in sorted({*ours.strata, *theirs}):
        predicted = ours.strata.get(stratum, _NONE)
        measured, error = theirs.get(stratum, (_NONE, Error(math.inf)))
        share = predicted.count / ours.trials
        if not _decides(ours, share, n):
            rare_predicted += predicted.count
            rare_measured += measured.count
            continue
        rows.append(_share_row(ours, name(stratum), predicted.count, measured.count, n))
        if min(share * n, measured.count) >= LEAST_OF_MEAN:
            rows.append(_mean_row(ours, stratum, predicted, (measured, error), n, gate))
    if rare_predicted or rare_measured:
        least = STRATUM_SHARE_LEAST
        rows.append(_share_row(ours, "all others", rare_predicted, rare_measured, n, least))
    return rows


def of_trials(trials: Trials) -> dict[Stratum, tuple[OfStratum, Error]] | None:
    """Those of a measurement; None where its trials do not tell."""
    if trials.strata is None:
        return None
    blocks = Blocks.of_parts(trials.part, trials.size)
    found = {}
    for stratum in sorted({(int(syn), int(again)) for syn, again in trials.strata if syn >= 0}):
        chosen = (trials.strata == np.array(stratum)).all(axis=1)
        values = trials.values[chosen]
        mean, variance = float(values.mean()), float(values.var())
        error = blocks.where(chosen).error_of_mean(values)
        found[stratum] = OfStratum(float(values.size), mean, variance), error
    return found


def of_prediction(strata: StrataOfCase) -> dict[Stratum, tuple[OfStratum, Error]]:
    """Those of a prediction that stands in for a measurement."""
    return {
        stratum: (one, Error(math.sqrt(one.variance_ns2 / one.count), max(1.0, one.count - 1.0)))
        for stratum, one in strata.strata.items()
        if one.count
    }


def name(stratum: Stratum) -> str:
    """`SYN again 0, sent again 2+`."""
    syn, again = (f"{one}+" if one >= MOST_COUNTED else str(one) for one in stratum)
    return f"SYN again {syn}, sent again {again}"


def _bound(share: float) -> float:
    return min(STRATUM_SHARE * min(share, 1.0 - share), STRATUM_SHARE_MOST)


def _null(ours: StrataOfCase, share: float, n: float) -> Error:
    """The error of the difference of two shares that are both draws of a predicted one."""
    return together(Error(share_error(share, ours.trials)), Error(share_error(share, n)))


def _decides(ours: StrataOfCase, share: float, n: float) -> bool:
    return share > 0.0 and _null(ours, share, n).needs <= _bound(share)


def _share_row(
    ours: StrataOfCase,
    named: str,
    predicted: float,
    measured: float,
    n: float,
    least_bound: float = 0.0,
) -> Row:
    shares = predicted / ours.trials, measured / n
    bound = max(_bound(shares[0]), least_bound)
    difference = shares[0] - shares[1]
    own = Error(share_error(shares[0], ours.trials))
    interval = together(own, Error(share_error(shares[1], n))).interval(difference)
    row = Row(
        ours.metric,
        f"share: {named}",
        *shares,
        difference,
        interval,
        gate=f"{bound * 100:.2g} points",
        unit="1",
    )
    null = _null(ours, shares[0], n)
    part = (own.of / null.of) ** 2
    return judged(row, bound, null.needs, trials_that_decide(null.needs, bound, n, part))


def _mean_row(
    ours: StrataOfCase,
    stratum: Stratum,
    predicted: OfStratum,
    measured: tuple[OfStratum, Error],
    n: float,
    gate: Gate,
) -> Row:
    of, error = measured
    own = Error(math.sqrt(predicted.variance_ns2 / predicted.count))
    difference = predicted.mean_ns - of.mean_ns
    interval = together(own, error).interval(difference)
    row = Row(
        ours.metric,
        f"mean: {name(stratum)}",
        predicted.mean_ns,
        of.mean_ns,
        difference,
        interval,
    )
    row = replace(row, gate=f"{gate.relative * 100:g} %")
    width = gate.relative * of.mean_ns
    scatter = math.sqrt(predicted.variance_ns2 / of.count)
    null = together(own, Error(max(error.of, scatter), error.freedom))
    share = (own.of / null.of) ** 2 if null.of else 0.0
    return judged(row, width, null.needs, trials_that_decide(null.needs, width, n, share))

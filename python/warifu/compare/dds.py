# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How near predictions of DDS come: one way, cell by cell, beside a null model.

A cell is a case with DDS Security. What is judged is the median, over the cells, of how far the
predicted median of one way lies from the measured one, as a share of that.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from warifu.compare.comparison import CompareError
from warifu.compare.gates import Verdict
from warifu.compare.join import refuse
from warifu.compare.stats import Interval
from warifu.results import Distribution, Results, halves, interruptions

METRIC = "dds.one_way"
BOUND = 0.10
"""The largest median error that passes."""

CONFIDENCE = 0.95
REPLICATES = 4_000
LEAST_CELLS = 6
"""With fewer, no interval of a median over cells has both ends (binomial: 2 x 0.5^6 = 3 %)."""
MOST_CELLS = 2_000
"""Resamples of so many take 64 MB several times over; studies have some dozens."""

RULE = (
    "One way, the median of the cells' errors: |predicted - measured| of the medians over the "
    "measured one. Its 95 % interval is the bootstrap's: cells of one length share its costs, as "
    "do those of one cipher, so lengths, ciphers and so on are drawn, each by itself, and the "
    "samples within each cell. Wholly within 10 % passes, wholly beyond fails, anything else is "
    "undecided. "
    "The null model is the measured one way without security at the same length, and each byte at "
    "the speed of the cipher once for each layer that encrypts or signs, at both ends."
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """A secured case in both halves, ns; `null` is None where its plain case is missing."""

    case_id: str
    label: str
    predicted: float
    measured: float
    samples: int
    null: float | None
    levels: Mapping[str, object]
    """What it has in common with other cells, by factor."""

    @property
    def error(self) -> float:
        """Predicted less measured, as a share of measured."""
        return (self.predicted - self.measured) / self.measured

    @property
    def null_error(self) -> float | None:
        """The same of the null model."""
        return None if self.null is None else (self.null - self.measured) / self.measured


@dataclass(frozen=True)
class Estimate:
    """A median error over cells, and its interval."""

    value: float
    interval: Interval


@dataclass(frozen=True)
class DdsComparison:
    """A study's cells and what they come to."""

    study: str
    predicted_run: str
    measured_run: str
    cells: Sequence[Cell]
    error: Estimate
    null: Estimate | None
    """None where no cell has a null model."""
    verdict: Verdict
    why_undecided: str
    warnings: Sequence[str]
    only_predicted: Sequence[str]

    @property
    def nearer(self) -> tuple[int, int]:
        """In how many cells the prediction is nearer than the null model, and of how many."""
        both = [(abs(cell.error), cell.null_error) for cell in self.cells]
        known = [(error, abs(null)) for error, null in both if null is not None]
        return sum(error < null for error, null in known), len(known)


def compare_folder(path: Path) -> DdsComparison:
    """Compares the halves at `path`. Raises CompareError, ResultsError or ResultsDamaged."""
    predicted, measured = halves(path)
    if predicted is None:
        raise CompareError(f"{path}: has no predicted half: run `warifu predict` first")
    if measured is None:
        raise CompareError(f"{path}: has no measured half: run `warifu measure` first")
    return compare(Results.open(predicted), Results.open(measured))


def compare(predicted: Results, measured: Results) -> DdsComparison:
    """Joins two halves. Raises CompareError where `join.refuse` does, and if nothing is there."""
    refuse(predicted, measured)
    shared = [one for one in predicted.cases if one in measured.cases]
    secured = [one for one in shared if _is_secured(predicted, one)]
    if not secured:
        raise CompareError(
            f"{predicted.path} and {measured.path}: have no secured case of DDS in common: "
            "predict and measure the same study of DDS"
        )
    if len(secured) > MOST_CELLS:
        raise CompareError(
            f"{predicted.path} and {measured.path}: have {len(secured):,} secured cases in common, "
            f"and {MOST_CELLS:,} at most are compared: make a study of fewer"
        )
    plain = _plain(measured)
    factors = _factors([predicted.cases[one] for one in secured])
    speeds = Speeds.of(predicted)
    laws = {one: measured.distribution(one, METRIC) for one in secured}
    # More than half of the samples were lost: there is no median to divide by.
    lost = [one for one in secured if not math.isfinite(laws[one].quantile(0.5))]
    cells = [
        _cell(predicted, laws[one], one, plain, speeds, factors)
        for one in secured
        if one not in lost
    ]
    if not cells:
        raise CompareError(f"{measured.path}: no secured case got half of its samples")
    errors = np.array([cell.error for cell in cells])
    rng = np.random.default_rng(0)
    drawn = np.stack([_medians(laws[cell.case_id], rng) for cell in cells])
    expected = np.array([cell.predicted for cell in cells])
    weights = _weights(cells, rng)
    error = _estimate(errors, expected[:, None] / drawn - 1.0, weights)
    verdict, why = judge(error.interval, len(cells))
    return DdsComparison(
        study=predicted.study,
        predicted_run=predicted.run_id,
        measured_run=measured.run_id,
        cells=cells,
        error=error,
        null=_null(cells, drawn, weights),
        verdict=verdict,
        why_undecided=why,
        warnings=[
            *interruptions(predicted, measured),
            *_made_late(predicted, measured),
            *(str(one) for one in measured.manifest.get("warnings") or []),
            *(
                f"{predicted.label(one)}: {_arrived(laws[one])} arrived; it is not judged"
                for one in lost
            ),
        ],
        only_predicted=[predicted.label(one) for one in predicted.cases if one not in shared],
    )


def _arrived(law: Distribution) -> str:
    """Of a case that lost more than half of its samples."""
    return f"{law.completed:,.0f} of {law.n:,.0f} samples" if law.values.size else "no sample"


def _made_late(predicted: Results, measured: Results) -> list[str]:
    """Whether the prediction could have known the measurement."""
    made, begun = (str(one.manifest.get("started") or "") for one in (predicted, measured))
    if not begun or made <= begun:
        return []
    said = f"{predicted.path}: predicted after the measurement had begun ({made}, {begun})"
    return [f"{said}, when what it is judged by was known: to judge it, measure again"]


def judge(interval: Interval, cells: int) -> tuple[Verdict, str]:
    """The verdict of the gate, and why it is none where it is undecided."""
    if cells < LEAST_CELLS:
        return Verdict.UNDECIDED, f"{cells} cells are too few; {LEAST_CELLS} at least"
    if interval.high <= BOUND:
        return Verdict.PASS, ""
    if interval.low > BOUND:
        return Verdict.FAIL, ""
    return Verdict.UNDECIDED, "the interval reaches over the bound: measure more samples and cells"


# ---- the null model ----


@dataclass(frozen=True)
class Speeds:
    """What a byte takes, ns, by primitive, of each device that the prediction used."""

    per_byte: Mapping[str, Mapping[str, float]]

    @staticmethod
    def of(predicted: Results) -> Speeds:
        """From the profiles that the manifest keeps."""
        found: dict[str, Mapping[str, float]] = {}
        for profile in predicted.manifest.get("profiles") or []:
            if profile.get("kind") == "device":
                found[str(profile.get("name"))] = _speeds(str(profile.get("text", "")))
        return Speeds(found)

    def layer(self, device: str, verb: str, cipher: str, keyed: bool) -> float | None:
        """What a byte of a layer takes."""
        known = self.per_byte.get(device, {})
        names = [f"aead.{verb}.{cipher}.keyed"] if keyed else []
        names += [f"aead.{verb}.{cipher}", f"aead.seal.{cipher}.keyed", f"aead.seal.{cipher}"]
        return next((known[name] for name in names if name in known), None)


def _speeds(text: str) -> dict[str, float]:
    """Of a profile; without what it does not say in plain ns, as ranges and cycles are. A manifest
    of somebody else's may hold any text for one."""
    try:
        primitives = tomllib.loads(text).get("primitive")
    except (ValueError, RecursionError):
        return {}
    found = {}
    for one in primitives if isinstance(primitives, list) else []:
        if not isinstance(one, dict) or not isinstance(name := one.get("name"), str):
            continue
        byte = _byte_ns(one.get("per_byte", "0 ns"))
        if byte is not None:
            found[name] = byte
    return found


def _byte_ns(said: object) -> float | None:
    """A time for a byte, or a law of such times in its middle."""
    if not isinstance(said, dict):
        return _plain_ns(said)
    law = said.get("quantiles")
    if law is None:
        return _plain_ns(said.get("value"))
    scale = {"ns": 1.0, "us": 1e3, "ms": 1e6}.get(str(said.get("unit")))
    try:
        values = [float(one) for one in (law.split() if isinstance(law, str) else law)]
    except (TypeError, ValueError, OverflowError):
        return None
    if scale is None or not values:
        return None
    middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2 * scale
    return middle if 0.0 <= middle < math.inf else None


def _plain_ns(said: object) -> float | None:
    try:
        byte = float(said.removesuffix("ns")) if isinstance(said, str) else math.nan
    except ValueError:
        return None
    return byte if 0.0 <= byte < math.inf else None


def _cell(
    predicted: Results,
    law: Distribution,
    case_id: str,
    plain: Mapping[object, float],
    speeds: Speeds,
    factors: Mapping[str, Sequence[str]],
) -> Cell:
    settings = predicted.cases[case_id]
    ours = predicted.distribution(case_id, METRIC)
    if not ours.values.size:
        raise CompareError(
            f"{predicted.path}: case {case_id} has no {METRIC}: run `warifu predict` again"
        )
    without = plain.get(_without_security(settings))
    ciphers = _cipher_ns(settings, speeds)
    null = None if without is None or ciphers is None else without + ciphers
    return Cell(
        case_id=case_id,
        label=predicted.label(case_id),
        predicted=ours.quantile(0.5),
        measured=law.quantile(0.5),
        samples=int(law.n),
        null=null,
        levels={
            factor: tuple(settings.get(key) for key in keys) for factor, keys in factors.items()
        },
    )


def _factors(cases: Sequence[Mapping[str, object]]) -> Mapping[str, Sequence[str]]:
    """The settings in which cases differ; those that are one choice of the user's together."""
    keys = sorted({key for case in cases for key in case})
    varied = [key for key in keys if len({repr(case.get(key)) for case in cases}) > 1]
    found: dict[str, list[str]] = {}
    for key in varied:
        found.setdefault(_choice_of(key), []).append(key)
    # Columns that change together are one choice: drawn each by itself, they would count it twice.
    by_split: dict[tuple[int, ...], list[str]] = {}
    for keys in found.values():
        levels = [repr([case.get(key) for key in keys]) for case in cases]
        first = {level: at for at, level in reversed(list(enumerate(levels)))}
        by_split.setdefault(tuple(first[level] for level in levels), []).extend(keys)
    return {"+".join(keys): keys for keys in by_split.values()}


def _choice_of(key: str) -> str:
    if key in {"dds_crypto", "dds_aead"}:
        return "cipher"
    if key.endswith("_protection"):
        return "governance"
    layer = key.partition("_")[0]
    return layer if layer in {"loss", "jitter", "rate"} else key


def _cipher_ns(settings: Mapping[str, object], speeds: Speeds) -> float | None:
    """What a sample's bytes take at the speed of its ciphers, once a layer and end."""
    size = settings.get("response_body")
    total = 0.0
    for layer in ("data_protection", "metadata_protection", "rtps_protection"):
        kind = str(settings.get(layer) or "NONE")
        if kind == "NONE":
            continue
        verbs = ("seal", "open") if kind.startswith("ENCRYPT") else ("mac", "mac")
        for verb, end in zip(verbs, ("device", "server"), strict=True):
            byte = speeds.layer(
                str(settings.get(end)),
                verb,
                str(settings.get("dds_aead")),
                settings.get("dds_crypto") == "warifu",
            )
            if byte is None or not isinstance(size, int):
                return None
            total += byte * size
    return total


def _is_secured(results: Results, case_id: str) -> bool:
    return results.cases[case_id].get("dds_crypto") in {"builtin", "warifu"}


def _without_security(settings: Mapping[str, object]) -> object:
    """What a secured case and its plain one have in common."""
    security = {"dds_crypto", "dds_aead"}
    return frozenset(
        (key, value)
        for key, value in settings.items()
        if key not in security and not key.endswith("_protection") and value is not None
    )


def _plain(measured: Results) -> dict[object, float]:
    found: dict[object, float] = {}
    for case_id, settings in measured.cases.items():
        if settings.get("dds_crypto") == "none":
            median = measured.distribution(case_id, METRIC).quantile(0.5)
            if math.isfinite(median):
                found[_without_security(settings)] = median
    return found


# ---- intervals ----


def _medians(law: Distribution, rng: np.random.Generator) -> Floats:
    """Medians of resamples of the measured samples."""
    count = int(law.n)
    # The rank of a resample's median is binomial around the sample's.
    ranks = rng.binomial(count, 0.5, size=REPLICATES)
    return np.asarray(law.at_rank(np.clip(ranks, 1, count).astype(np.float64)))


def _weights(cells: Sequence[Cell], rng: np.random.Generator) -> Floats:
    """How often each cell is drawn in each resample; a row a cell.

    Levels of each factor are drawn with replacement, and a cell counts as often as all of its
    levels together (the pigeonhole bootstrap: Owen, Annals of Applied Statistics 1 (2007) 386).
    """
    weights = np.ones((len(cells), 0))
    while weights.shape[1] < REPLICATES:
        more = np.ones((len(cells), REPLICATES))
        for factor in sorted(cells[0].levels):
            levels = [cell.levels[factor] for cell in cells]
            rows = {level: row for row, level in enumerate(sorted(set(levels), key=repr))}
            chance = np.full(len(rows), 1.0 / len(rows))
            drawn = rng.multinomial(len(rows), chance, size=REPLICATES)
            more *= drawn.T[[rows[level] for level in levels]]
        # A study that is no full cross may have drawn levels that no cell has together.
        weights = np.hstack([weights, more[:, more.sum(axis=0) > 0.0]])
    return weights[:, :REPLICATES]


def _estimate(errors: Floats, drawn: Floats, weights: Floats) -> Estimate:
    """The median of |errors| with its interval; `drawn` are errors of resamples, a row a cell."""
    medians = _weighted_medians(np.abs(drawn), weights)
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(medians, (tail, 1.0 - tail))
    return Estimate(float(np.median(np.abs(errors))), Interval(float(low), float(high)))


def _weighted_medians(values: Floats, weights: Floats) -> Floats:
    """Of each column: the mean of the two in the middle where half of the weight is reached."""
    order = np.argsort(values, axis=0)
    values = np.take_along_axis(values, order, axis=0)
    reached = np.cumsum(np.take_along_axis(weights, order, axis=0), axis=0)
    half = reached[-1] / 2.0
    lower = np.argmax(reached >= half, axis=0)
    upper = np.argmax(reached > half, axis=0)
    columns = np.arange(values.shape[1])
    return np.asarray((values[lower, columns] + values[upper, columns]) / 2.0)


def _null(cells: Sequence[Cell], drawn: Floats, weights: Floats) -> Estimate | None:
    known = [index for index, cell in enumerate(cells) if cell.null is not None]
    if not known:
        return None
    expected = np.array([cells[index].null for index in known], dtype=np.float64)
    errors = np.array([cells[index].null_error for index in known], dtype=np.float64)
    counted = weights[known]
    counted[:, counted.sum(axis=0) == 0.0] = 1.0
    return _estimate(errors, expected[:, None] / drawn[known] - 1.0, counted)

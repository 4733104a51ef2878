# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Judges the simulator by its own draws: what a perfect predictor's row looks like.

python studies/accuracy/perfect.py studies/accuracy/lossy.toml --runs 5

Each run predicts the study with its own number of trials and another seed, takes that for the
measurement, and compares the prediction with it by the rules of `warifu compare`. Parts and a
machine that drifts are not in it: it shows what the number of trials alone can decide. A machine
that was not calibrated is stood in for.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from warifu import prediction, study
from warifu._core import WarifuError
from warifu.compare.comparison import NOT_JUDGED, Comparison
from warifu.compare.join import compare
from warifu.results import Results, ResultsError
from warifu.study import StudyError

#: Added to a study's seed for the draws that stand in for the first measurement.
_OTHER_SEED = 1_000_003
#: A gate that is judged passes so often by a perfect predictor; fewer of a kind than chance leaves
#: in one run of a hundred are too few.
_PASSES, _BY_CHANCE = 0.95, 0.01
_COLUMNS = ("pass", "fail", "undecided", NOT_JUDGED)


def main(arguments: list[str]) -> int:
    """Prints the table; the exit code is 1 if nothing is judged, and if too few gates of a kind
    pass."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("study", type=Path)
    parser.add_argument("--runs", type=int, default=5, help="measurements that are made up")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE, as of warifu")
    given = parser.parse_args(arguments)
    pairs = [tuple(one.split("=", 1)) for one in given.set]
    if given.runs < 1 or any(len(pair) != 2 for pair in pairs):
        parser.error("--runs is at least 1, and --set is KEY=VALUE")
    overrides = [(key, value) for key, value in pairs]
    try:
        found = judge(given.study, given.runs, overrides)
    except (ResultsError, StudyError, WarifuError) as error:
        print(f"perfect.py: {error}", file=sys.stderr)
        return 2
    print(table(given.study.stem, found))
    gates = total(found)
    if gates.total() == gates[NOT_JUDGED]:
        print("perfect.py: no gate is judged: take more trials", file=sys.stderr)
        return 1
    few = [kind for kind, counts in by_kind(found).items() if passes_too_few(counts)]
    for kind in few:
        print(f"perfect.py: {kind}: fewer pass than 95 % of runs would have", file=sys.stderr)
    return 1 if few else 0


def judge(file: Path, runs: int, overrides: list[tuple[str, str]]) -> list[Comparison]:
    """The comparisons of a study's prediction with ``runs`` measurements that it draws itself."""
    with tempfile.TemporaryDirectory(prefix="warifu-perfect-") as name:
        folder = Path(name)
        loaded = study.load(file, overrides, stand_in=True)
        predicted = _predict(file, overrides, folder / "predicted", keep_trials=False)
        trials = str(loaded.study.trials)
        found = []
        for run in range(runs):
            seed = str(loaded.study.seed + _OTHER_SEED + run)
            own = {"seed": seed, "predict_trials": trials}
            drawn = [*((key, one) for key, one in overrides if key not in own), *own.items()]
            path = folder / str(run) / "predicted"
            measured = _predict(file, drawn, path, keep_trials=True)
            # What compare asks of a measurement is that it is one, and that nothing disturbed it.
            measured.manifest["half"] = "measured"
            measured.manifest["cells"] = {
                case_id: _undisturbed(loaded.study.trials) for case_id in measured.cases
            }
            found.append(compare(predicted, measured))
    return found


def _undisturbed(trials: int) -> dict[str, Any]:
    """What a manifest says of a cell that was measured at once with no other work, one trial after
    the other."""
    nothing = {"processor_shares": {"others": 0.0, "stolen": 0.0}, "alone": True}
    return {"trials": trials, "parts": [{"first_trial": 0, "trials": trials, **nothing}]}


def _predict(
    file: Path, overrides: list[tuple[str, str]], target: Path, *, keep_trials: bool
) -> Results:
    loaded, left_out = prediction.predictable(study.load(file, overrides, stand_in=True))
    target.parent.mkdir(parents=True, exist_ok=True)
    prediction.run(loaded, target, left_out, keep_trials=keep_trials)
    return Results.open(target)


def total(found: list[Comparison]) -> Counter[str]:
    """Gates of all runs by verdict."""
    counts: Counter[str] = Counter()
    for one in found:
        counts.update(one.gates)
    return counts


def passes_too_few(counts: Counter[str]) -> bool:
    """Whether gates of a kind of which each passes in 95 % of runs pass as seldom in less than one
    run in a hundred."""
    from scipy.special import bdtr

    judged = counts.total() - counts[NOT_JUDGED]
    return judged > 0 and float(bdtr(counts["pass"], judged, _PASSES)) < _BY_CHANCE


def by_kind(found: list[Comparison]) -> dict[str, Counter[str]]:
    """Gates of all runs by kind and verdict."""
    kinds: dict[str, Counter[str]] = {}
    for comparison in found:
        for case in comparison.cases:
            for row in case.rows:
                if row.gate is not None:
                    verdict = str(row.verdict or NOT_JUDGED)
                    kinds.setdefault(row.statistic, Counter())[verdict] += 1
            for one in case.bytes if case.bytes_gated else []:
                kinds.setdefault(one.metric, Counter())[str(one.verdict)] += 1
    return kinds


def table(name: str, found: list[Comparison]) -> str:
    """A row for all gates, and one for each kind, as Markdown."""
    cells = len(found[0].cases)
    lines = [
        f"| perfect predictor: {name}, {cells} cells, {len(found)} runs | {' | '.join(_COLUMNS)} |",
        "|---|" + "---:|" * len(_COLUMNS),
        _line("all gates", total(found)),
        *(_line(kind, counts) for kind, counts in by_kind(found).items()),
    ]
    return "\n".join(lines)


def _line(kind: str, counts: Counter[str]) -> str:
    return f"| {kind} | " + " | ".join(f"{counts[one]:,}" for one in _COLUMNS) + " |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The two halves joined by case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from warifu.compare.case import BYTES, compare_case, mean_loss
from warifu.compare.comparison import CompareError, Comparison
from warifu.compare.gates import worst
from warifu.compare.speed import machine_speeds
from warifu.results import MEASURED, PREDICTED, Results, halves, interruptions, weakest
from warifu.results.registration import version_words, was_before
from warifu.results.replay import ReplayOfCase, read_replay, refuse_other_parts


def compare_folder(
    path: Path,
    progress: Callable[[int, int], None] = lambda done, of: None,
    *,
    replayed: bool = True,
) -> Comparison:
    """Compares the halves at ``path`` (a study's results, or one of its halves), with what was
    ``replayed`` of them or without.

    Raises CompareError or ResultsError where a half is missing or must not be used.
    """
    predicted, measured = halves(path)
    if predicted is None:
        raise CompareError(f"{path}: has no predicted half: run `warifu predict` first")
    if measured is None:
        raise CompareError(
            f"{path}: has no measured half, so nothing can be compared: run `warifu measure` first"
        )
    ours, theirs = Results.open(predicted), Results.open(measured)
    replays: Mapping[str, ReplayOfCase] = {}
    if replayed:
        replays = read_replay(predicted.parent, ours.run_id, theirs.run_id)
        refuse_other_parts(predicted.parent, replays, lambda case_id: len(theirs.parts(case_id)))
    return compare(ours, theirs, progress, replays)


def compare(
    predicted: Results,
    measured: Results,
    progress: Callable[[int, int], None] = lambda done, of: None,
    replays: Mapping[str, ReplayOfCase] | None = None,
) -> Comparison:
    """Joins two halves by case, and what was replayed of them.

    Raises CompareError where a half is not the one that is asked for, where the prediction was
    calibrated on the measured run, and where no case is in both.
    """
    refuse(predicted, measured)
    shared = [case_id for case_id in predicted.cases if case_id in measured.cases]
    if not shared:
        raise CompareError(
            f"{predicted.path} and {measured.path}: have no case in common: "
            "predict and measure the same study"
        )
    # Both directions of every case whose bytes are judged.
    tests = len(BYTES) * sum(mean_loss(predicted, one) <= 0.0 for one in shared)
    speeds = machine_speeds(predicted, measured, shared)
    cases = []
    for done, case_id in enumerate(shared):
        progress(done, len(shared))
        replay = (replays or {}).get(case_id)
        cases.append(compare_case(predicted, measured, case_id, tests, replay, speeds))
    progress(len(shared), len(shared))
    return Comparison(
        study=predicted.study,
        predicted_run=predicted.run_id,
        measured_run=measured.run_id,
        cases=cases,
        only_predicted=[predicted.label(one) for one in predicted.cases if one not in shared],
        only_measured=[measured.label(one) for one in measured.cases if one not in shared],
        verdict=worst([case.verdict for case in cases if case.verdict is not None]),
        evidence=weakest([case.evidence_predicted for case in cases]),
        halves_finished=max(
            str(half.manifest.get("finished") or "~") for half in (predicted, measured)
        ),
        registered=was_before(predicted.path, measured.manifest),
        predictor=_predictor(predicted.manifest),
        interrupted=interruptions(predicted, measured),
        warnings=[str(one) for one in measured.manifest.get("warnings") or []],
    )


def _predictor(manifest: Mapping[str, Any]) -> str | None:
    commit = manifest.get("commit")
    if not isinstance(commit, str):
        return None
    return version_words(commit, manifest.get("dirty"))


def refuse(predicted: Results, measured: Results) -> None:
    """Raises CompareError if the prediction knows the run that it would be judged by."""
    for results, half in ((predicted, PREDICTED), (measured, MEASURED)):
        if results.half != half:
            raise CompareError(
                f"{results.path}/manifest.json: half is {results.half!r}: expected {half!r}: "
                "name the folder above both halves"
            )
    calibration = set(predicted.manifest.get("calibration_run_ids") or [])
    if measured.run_id in calibration:
        raise CompareError(
            f"{predicted.path}: was calibrated on run {measured.run_id}, by which it would be "
            "judged: measure again, or calibrate on another run"
        )

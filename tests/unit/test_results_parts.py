# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a manifest says of the parts of a cell, and of their packets, is read or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.synthetic import Cell, Half, change_manifest
from warifu.compare.join import compare_folder
from warifu.results import Results, ResultsDamaged
from warifu.results.packets import parts_with_packets

CELL = Cell()
PART: dict[str, Any] = {
    "first_trial": 0,
    "trials": 100,
    "processor_shares": {"others": 0.01, "stolen": 0.0},
    "others_max": 0.05,
    "busy": {"client": 0.02, "server": 0.03},
}


def measured(folder: Path, **changes: object) -> Path:
    """A measured half in one part, whose record says something else; ... for nothing."""
    part = {key: value for key, value in (PART | changes).items() if value is not ...}
    path = Half("measured", [CELL], 100, seed=2).write(folder)
    change_manifest(path, cells={CELL.case_id: {"trials": 100, "parts": [part]}})
    return path


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"first_trial": 1e30}, "parts[0].first_trial is 1e+30: expected a whole number from 0"),
        ({"first_trial": 2**63}, "first_trial is 9223372036854775808: expected a whole number"),
        ({"first_trial": "x"}, "first_trial is x: expected a whole number from 0 to 2,147,483,647"),
        ({"first_trial": ...}, "first_trial is None: expected a whole number"),
        ({"first_trial": -1}, "first_trial is -1: expected a whole number"),
        ({"trials": 1e300}, "trials is 1e+300: expected a whole number"),
        ({"trials": True}, "trials is True: expected a whole number"),
        ({"processor_shares": {"others": -1.0, "stolen": 0}}, "others is -1.0: expected a number"),
        ({"processor_shares": {"others": 0, "stolen": 2}}, "stolen is 2: expected a number from"),
        ({"others_max": "x" * 999}, "x...: expected a number from 0"),
        ({"others_max": 1e9}, "others_max is 1000000000.0: expected a number from 0 to 0.05"),
        ({"busy": {"server": -0.1}}, "server is -0.1: expected a number from 0"),
        ({"busy": 3}, "busy is 3: expected a table"),
        ({"sitting": 1e300}, "sitting is 1e+300: expected a number"),
    ],
)
def test_part_of_which_none_was_measured(
    tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    results = Results.open(measured(tmp_path, **changes))
    for read in (
        lambda: results.trials(CELL.case_id),
        lambda: list(parts_with_packets(results.path, results.manifest, CELL.case_id)),
    ):
        with pytest.raises(ResultsDamaged) as refused:
            read()
        text = str(refused.value)
        assert words in text
        assert text.startswith(f"{results.path}/manifest.json: cells.{CELL.case_id}.parts[0].")
        assert "\n" not in text and text.endswith("and run `warifu measure` again")


def why_not_judged(folder: Path) -> str:
    """Of the measured cell beside a prediction of it."""
    Half("predicted", [CELL], 200, seed=1).write(folder)
    (case,) = compare_folder(folder).cases
    assert case.verdict is None
    return case.not_judged


@pytest.mark.parametrize(
    "changes",
    [
        {"processor_shares": ...},
        {"processor_shares": {}},
        {"processor_shares": {"others": 0.01}},
        {"busy": ...},
        {"busy": {"client": 0.01}},
    ],
)
def test_cell_of_which_disturbances_are_not_on_record_is_not_judged(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    measured(tmp_path, **changes)
    assert why_not_judged(tmp_path) == (
        "of 1 of its 1 parts it is not on record what other work took and how busy the server was: "
        "measure it again"
    )


@pytest.mark.parametrize("cells", [{}, {CELL.case_id: {"trials": 100, "parts": []}}])
def test_cell_without_a_part_on_record_is_not_judged(
    tmp_path: Path, cells: dict[str, object]
) -> None:
    change_manifest(measured(tmp_path), cells=cells)
    assert why_not_judged(tmp_path) == (
        "it is not on record in which parts it was measured, what other work took and how busy the "
        "server was: measure it again"
    )


@pytest.mark.parametrize("changes", [{"trials": 99}, {"first_trial": 1}])
def test_trials_that_are_of_no_part_are_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    """They would count as independent, and intervals be too narrow."""
    path = measured(tmp_path, **changes)
    Half("predicted", [CELL], 200, seed=1).write(tmp_path)
    with pytest.raises(ResultsDamaged) as refused:
        compare_folder(tmp_path)
    text = str(refused.value)
    said = f"cells.{CELL.case_id}.parts do not hold every trial of the case: "
    assert text.startswith(f"{path}/manifest.json: {said}") and "\n" not in text


NAMES = {kind: {"file": f"packets/x.{kind}.parquet"} for kind in ("packets", "messages")}


@pytest.mark.parametrize(
    ("packets", "words"),
    [
        ([], "have no files of packets and messages"),
        ({}, "have no files of packets and messages"),
        (5, "have no files of packets and messages"),
        (NAMES | {"packets": {"file": 5}}, "have no files of packets and messages"),
        (NAMES | {"packets": {"file": "../../../etc/passwd"}}, "passwd is no name of a packet log"),
        (NAMES | {"packets": {"file": "packets/../../x.parquet"}}, "is no name of a packet log"),
        (NAMES | {"packets": {"file": "/dev/zero"}}, "/dev/zero is no name of a packet log"),
        (NAMES, "x.packets.parquet: is not listed in manifest.json"),
    ],
)
def test_packets_that_are_no_files(tmp_path: Path, packets: object, words: str) -> None:
    results = Results.open(measured(tmp_path, packets=packets))
    with pytest.raises(ResultsDamaged) as refused:
        list(parts_with_packets(results.path, results.manifest, CELL.case_id))
    assert words in str(refused.value) and "\n" not in str(refused.value)

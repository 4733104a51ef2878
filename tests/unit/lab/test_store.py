# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Parts of an interrupted measurement: whole ones are put together, the others measured again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from warifu.lab.errors import LabError
from warifu.lab.packets import MESSAGES, PACKETS, Kept
from warifu.lab.store import Part, Store
from warifu.lab.trials import Trials

PART = Part("0123456789abcdef", 60, 3, seed=5)
RUN = "measured-1"
COLUMNS = {"https.establishment": "establishment_ns", "tcp.connect": "connect_ns"}
RECORD: dict[str, Any] = {
    "first_trial": 60,
    "trials": 3,
    "seed": 5,
    "sitting": 1,
    "processor_shares": {"others": 0.01, "stolen": 0.0},
    "others_max": 0.05,
    "busy": {"client": 0.01, "server": 0.01},
    "link": {},
}
TRIALS = Trials(
    {"establishment_ns": [9, 8, 0], "connect_ns": [4, None, 0], "failed": [False, False, True]}
)
KEPT = Kept(pl.DataFrame(schema=PACKETS), pl.DataFrame(schema=MESSAGES), elsewhere=0)


def kept(folder: Path, change: Callable[[dict[str, Any]], object] | None = None) -> Store:
    """A measurement of one part, whose file says something else."""
    store = Store(folder)
    store.write_part(PART, TRIALS, RECORD, KEPT, RUN)
    file = folder / "parts" / PART.case_id / PART.file_name
    value = json.loads(file.read_text())
    if change is not None:
        change(value)
        file.write_text(json.dumps(value))
    return store


def test_part_that_was_kept_whole(tmp_path: Path) -> None:
    assert kept(tmp_path).has_part(PART, RUN, COLUMNS)


def test_part_of_a_version_that_named_no_run(tmp_path: Path) -> None:
    assert kept(tmp_path, lambda one: one.pop("run_id")).has_part(PART, RUN, COLUMNS)


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one["trials"]["connect_ns"].pop(),
        lambda one: one["trials"].update({key: [1] for key in one["trials"]}),
        lambda one: one["trials"].pop("failed"),
        lambda one: one["trials"].pop("connect_ns"),
        lambda one: one["trials"].update(connect_ns="abc"),
        lambda one: one["trials"].update(connect_ns=["1", "2", "3"]),
        lambda one: one["trials"].update(connect_ns=[float("nan")] * 3),
        lambda one: one["trials"].update(connect_ns=[-1, 0, 0]),
        lambda one: one["trials"].update(connect_ns=[10**400, 0, 0]),
        lambda one: one["trials"].update(failed=[0, 0, 1]),
        lambda one: one.update(trials=[]),
        lambda one: one.update(record={}),
        lambda one: one.update(record=None),
        lambda one: one.update(run_id="measured-2"),
        lambda one: one["record"].update(first_trial=0),
        lambda one: one["record"].update(trials=4),
        lambda one: one["record"].pop("link"),
        lambda one: one["record"].update(processor_shares={"others": "x", "stolen": 0}),
        lambda one: one["record"].pop("others_max"),
        lambda one: one["record"].update(packets=[]),
        lambda one: one["record"].update(packets={}),
        lambda one: one["record"]["packets"].update(run_id="measured-2"),
        lambda one: one["record"]["packets"]["packets"].update(file="../x.parquet"),
        lambda one: one["record"]["packets"]["packets"].update(sha256=None),
        lambda one: one["record"]["packets"]["messages"].pop("bytes"),
    ],
)
def test_damaged_part_is_measured_again(
    tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    store = kept(tmp_path, change)
    assert not store.has_part(PART, RUN, COLUMNS)
    with pytest.raises(LabError, match="is gone or damaged: measure again"):
        store.finish_case("study", "{}", RUN, "measured", [PART], COLUMNS)

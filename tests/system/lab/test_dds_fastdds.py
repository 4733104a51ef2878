# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Real participants of Fast DDS over the emulated link, and streams of both middlewares."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support import needs
from support.laboratory import make_dds_case, study_of
from warifu import tools
from warifu.lab import Settings, measure
from warifu.lab.case import Cell
from warifu.lab.cell import Bench, PartResult
from warifu.lab.store import Part
from warifu.results import Results

HEADERS = Path("/usr/include/fastdds/dds/domain/DomainParticipant.hpp")

pytestmark = [
    needs.root,
    needs.program("ddsperf"),
    needs.program("idlc"),
    needs.file(HEADERS, "libfastrtps-dev"),
]

MS = 1_000_000
FAST = Settings(rate_per_second=50.0, late_fraction_max=1.0, timeout_seconds=20.0)

PROFILE = """<?xml version="1.0" encoding="UTF-8"?>
<dds><log><use_default>FALSE</use_default><consumer><class>FileConsumer</class>
<property><name>filename</name><value>{file}</value></property>
</consumer></log></dds>
"""
"""Makes Fast DDS write its log to a file."""


def run(cell: Cell, trials: int = 5) -> PartResult:
    with Bench(FAST) as bench:
        result = bench.run(cell, Part(cell.case_id, 0, trials, 7), lambda: False)
    assert result is not None
    return result


@pytest.mark.parametrize("crypto", ["none", "builtin"])
def test_each_sample_is_answered_after_a_round_trip(crypto: str) -> None:
    cell = make_dds_case(
        stack__middleware="fastdds", stack__crypto=crypto, link__rtt=40 * MS
    )  # fmt: skip
    columns = run(cell).trials.columns
    assert columns["failed"] == [False] * 5
    for there_and_back, there in zip(columns["round_trip_ns"], columns["one_way_ns"], strict=True):
        assert there_and_back >= 40 * MS
        assert 20 * MS <= there <= there_and_back - 20 * MS
    discovery, *others = columns["discovery_ns"]
    assert discovery > 40 * MS
    assert others == [None] * 4


@pytest.mark.parametrize("middleware", ["cyclonedds", "fastdds"])
def test_large_samples_are_answered(middleware: str) -> None:
    cell = make_dds_case(
        stack__middleware=middleware, stack__crypto="builtin", pattern__response_body=4 << 20
    )  # fmt: skip
    result = run(cell, trials=2)
    assert result.trials.columns["failed"] == [False] * 2
    assert result.record["link"]["a_to_b"]["bytes_delivered"] > 2 * (4 << 20)


@pytest.mark.parametrize("middleware", ["cyclonedds", "fastdds"])
def test_samples_of_a_stream_arrive_at_its_rate(middleware: str, tmp_path: Path) -> None:
    cell = make_dds_case(
        stack__middleware=middleware,
        stack__crypto="builtin",
        pattern__kind="stream",
        pattern__rate=100,
    )
    summary = measure(study_of(cell), tmp_path / "measured", trials=60, settings=FAST)
    assert summary.complete
    frame = Results.open(tmp_path / "measured").rows(cell.case_id)
    by_metric = {
        metric: frame.filter(frame["metric"] == metric)["value"].to_list()
        for metric in ("dds.one_way", "dds.rate", "dds.round_trip")
    }
    assert len(by_metric["dds.one_way"]) == 60
    assert by_metric["dds.round_trip"] == []
    (rate,) = by_metric["dds.rate"]
    # A busy machine writes and reads later, and may read the last samples in a burst.
    assert 0 < rate < 5 * 100


def test_no_profile_of_the_current_folder_or_of_the_environment_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = tmp_path / "written"
    for name in ("DEFAULT_FASTRTPS_PROFILES.xml", "named.xml"):
        (tmp_path / name).write_text(PROFILE.format(file=written))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FASTRTPS_DEFAULT_PROFILES_FILE", str(tmp_path / "named.xml"))
    probe = [str(tools.find("fastdds-probe")), "publish", "--count", "1", "--timeout", "1"]
    # The control: such a file does make it write.
    subprocess.run([*probe, "--profiles"], check=False, capture_output=True)
    assert written.exists()
    written.unlink()
    subprocess.run(probe, check=False, capture_output=True)
    assert not written.exists(), "the probe read a profile without --profiles"
    cell = make_dds_case(stack__middleware="fastdds")
    assert run(cell).trials.columns["failed"] == [False] * 5
    assert not written.exists(), "the lab's probe read a profile"

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The studies of DDS, cut short: a few samples of one length by each stack."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import needs
from support.paths import ROOT
from warifu import _core
from warifu import study as studies
from warifu.calibrate import parts
from warifu.lab import Settings, measure
from warifu.report.summaries import half_table
from warifu.results import Results

HEADERS = Path("/usr/include/fastdds/dds/domain/DomainParticipant.hpp")

pytestmark = [
    needs.root,
    needs.program("ddsperf"),
    needs.program("idlc"),
    needs.file(HEADERS, "libfastrtps-dev"),
]

FAST = Settings(late_fraction_max=1.0, timeout_seconds=20.0)
TEMPLATES = ROOT / "python" / "warifu" / "templates"


def parse(path: Path, **overrides: str) -> _core.Study:
    """A study on a stand-in for this machine's profile; `pattern__rate="100"` overrides."""
    texts = list(studies.profile_texts(studies.profile_folders()))
    stand_in = parts.stand_in([]).profile("r", "stands in").toml()
    texts.append(("device", "this-host", stand_in, "stand-in"))
    given = [(key.replace("__", "."), value) for key, value in overrides.items()]
    return _core.Study.parse(path.read_text(), str(path), texts, given)


@pytest.mark.parametrize(
    ("path", "overrides", "stacks"),
    [
        (
            ROOT / "studies" / "dds-aead.toml",
            {"pattern__response_body": "16 B"},
            {("cyclonedds", "none"): 1, ("cyclonedds", "builtin"): 1, ("cyclonedds", "warifu"): 7,
             ("fastdds", "none"): 1, ("fastdds", "builtin"): 1},
        ),
        (
            ROOT / "studies" / "dds-governance.toml",
            {"pattern__response_body": "16 B", "stack__metadata_protection": "ENCRYPT",
             "stack__data_protection": "ENCRYPT"},
            {("cyclonedds", "builtin"): 3, ("cyclonedds", "warifu"): 3, ("fastdds", "builtin"): 3},
        ),
        (
            ROOT / "studies" / "dds-stream.toml",
            {"pattern__response_body": "64 B", "pattern__rate": "100"},
            {("cyclonedds", "none"): 1, ("cyclonedds", "builtin"): 1, ("cyclonedds", "warifu"): 1,
             ("fastdds", "none"): 1, ("fastdds", "builtin"): 1},
        ),
        (
            TEMPLATES / "ros2-topic.toml",
            {"pattern__response_body": "64 B"},
            {("cyclonedds", "none"): 1, ("cyclonedds", "builtin"): 1, ("cyclonedds", "warifu"): 1,
             ("fastdds", "none"): 1, ("fastdds", "builtin"): 1},
        ),
    ],
    ids=["aead", "governance", "stream", "ros2-topic"],
)  # fmt: skip
def test_each_case_of_a_study_is_measured(
    path: Path,
    overrides: dict[str, str],
    stacks: dict[tuple[str, str], int],
    tmp_path: Path,
) -> None:
    study = parse(path, **overrides)
    summary = measure(study, tmp_path / "measured", trials=4, settings=FAST)
    assert summary.complete, summary
    results = Results.open(tmp_path / "measured")
    found: dict[tuple[str, str], int] = {}
    for case_id, columns in results.cases.items():
        stack = (str(columns["dds_middleware"]), str(columns["dds_crypto"]))
        found[stack] = found.get(stack, 0) + 1
        frame = results.rows(case_id)
        of_samples = frame.filter(frame["metric"] == "dds.one_way")["value"]
        assert len(of_samples) == 4, (columns, frame["metric"].to_list())
    assert found == stacks
    table = half_table(results)
    assert {"P50", "P95", "P99"} <= {column.head for column in table.columns}
    assert all(row["n"] == 4 for row in table.records)
    if path.stem == "dds-stream":
        # Of four samples that a busy machine may read together: no rate is too high.
        assert all(float(str(row["rate_p50_per_s"])) > 0 for row in table.records)


def test_what_is_measured_alone_is_left_out_of_a_prediction() -> None:
    study = parse(ROOT / "studies" / "dds-aead.toml")
    emulated, skipped = study.emulated()
    assert len(emulated.cases) + len(skipped) == len(study.cases) == 88
    (reason,) = {reason for _, reason in skipped}
    assert reason.startswith("stack.middleware is fastdds: what it sends is not emulated")
    assert all("fastdds" in label for label, _ in skipped)
    by_id = {case.id: case.label for case in study.cases}
    assert all(by_id[case.id] == case.label for case in emulated.cases)
    # Where nothing is left, whoever predicts is told why.
    stream = parse(ROOT / "studies" / "dds-stream.toml")
    assert stream.emulated()[1] == []

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What `scripts/accuracy` asks: where a run's tables belong, and whether a calibration is fit."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from support.scripts import script
from warifu.compare.comparison import Comparison
from warifu.compare.gates import Verdict
from warifu.results import Results

archive, calibration, perfect = (
    script(f"studies/accuracy/{name}.py") for name in ("archive", "calibration", "perfect")
)

_TWO_CELLS = """
name = "two-cells"
seed = 5
trials = 2000
predict_trials = 20000
device = "xeon-2-5-ghz-vm"
server = "xeon-2-5-ghz-vm"
key_store = "software"
[link]
profile = "loopback"
rtt = "60 ms"
[stack]
protocol = "https"
group = "secp256r1"
[vary]
"stack.session" = ["full", "resumed"]
"""


def test_the_simulator_passes_by_its_own_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tmp_path / "two-cells.toml"
    study.write_text(_TWO_CELLS)
    assert perfect.main([str(study), "--runs", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| perfect predictor: two-cells, 2 cells, 1 runs | pass | fail |")
    gates = dict(zip(("pass", "fail", "undecided", "not judged"), _counts(lines[2]), strict=True))
    assert gates["pass"] >= 6
    assert gates["fail"] <= 1


def test_nothing_that_is_judged_is_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tmp_path / "two-cells.toml"
    study.write_text(_TWO_CELLS)
    few = ["--set", "trials=20", "--set", "predict_trials=200", "--set", "link.loss=0.02"]
    assert perfect.main([str(study), "--runs", "1", *few]) == 1
    printed = capsys.readouterr()
    gates = _counts(printed.out.splitlines()[2])
    assert gates[:3] == [0, 0, 0] and gates[3] > 0
    assert printed.err == "perfect.py: no gate is judged: take more trials\n"


def test_a_kind_of_gate_that_fails_is_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However well the others pass."""
    real = perfect.compare

    def without_medians(*halves: Results) -> Comparison:
        found: Comparison = real(*halves)
        for case in found.cases:
            case.rows[:] = [
                replace(row, verdict=Verdict.FAIL) if row.statistic == "p50" else row
                for row in case.rows
            ]
        return found

    monkeypatch.setattr(perfect, "compare", without_medians)
    study = tmp_path / "two-cells.toml"
    study.write_text(_TWO_CELLS)
    assert perfect.main([str(study), "--runs", "1"]) == 1
    assert capsys.readouterr().err == "perfect.py: p50: fewer pass than 95 % of runs would have\n"


@pytest.mark.parametrize(
    ("passed", "judged", "few"),
    # The 1 % quantiles of 20, 60 and 2 are 16, 53 and 1.
    [(16, 20, False), (15, 20, True), (53, 60, False), (52, 60, True), (1, 2, False), (0, 2, True)],
)
def test_how_few_gates_of_a_kind_may_pass(passed: int, judged: int, few: bool) -> None:
    counts = Counter({"pass": passed, "undecided": judged - passed, "not judged": 7})
    assert perfect.passes_too_few(counts) is few


def _counts(line: str) -> list[int]:
    return [int(cell) for cell in line.strip("| ").split("|")[1:]]


def test_a_second_run_of_a_day_has_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "__file__", str(tmp_path / "archive.py"))
    measured = {"started": "2026-11-28T09:00:00Z", "run_id": "first"}
    monkeypatch.setattr(archive, "read_manifest", lambda _: measured)

    def place() -> str:
        return str(archive.place(Path("results"), "lossy").name)

    def keep(folder: str) -> None:
        (tmp_path / folder).mkdir()
        kept = {"run_ids": {"measured": measured["run_id"]}}
        (tmp_path / folder / "lossy.run.json").write_text(json.dumps(kept))

    assert place() == "2026-11-28"
    keep("2026-11-28")
    assert place() == "2026-11-28"
    measured["run_id"] = "second"
    assert place() == "2026-11-28-2"
    keep("2026-11-28-2")
    measured["run_id"] = "third"
    assert place() == "2026-11-28-3"
    # Another study of that day has none in any.
    assert archive.place(Path("results"), "loss-free").name == "2026-11-28"


@pytest.mark.parametrize("started", ["../../../x", "", "2026-13-01T00:00:00Z", None, 5])
def test_a_run_that_began_on_no_day_has_no_place(
    started: object,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    measured = {"started": started, "run_id": "first"}
    monkeypatch.setattr(archive, "read_manifest", lambda _: measured)
    assert archive.main(["--place", str(tmp_path), "lossy"]) == 1
    printed = capsys.readouterr()
    assert f"{tmp_path}/measured/manifest.json: started is {started}: expected" in printed.err
    assert not printed.out and len(printed.err.splitlines()) == 1


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "[]", "{}", '{"run_ids": {"measured": 1}}'])
def test_tables_of_a_run_that_nothing_tells(
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(archive, "__file__", str(tmp_path / "archive.py"))
    measured = {"started": "2026-11-28T09:00:00Z", "run_id": "first"}
    monkeypatch.setattr(archive, "read_manifest", lambda _: measured)
    kept = tmp_path / "2026-11-28" / "lossy.run.json"
    kept.parent.mkdir()
    kept.write_text(text)
    assert archive.main(["--place", str(tmp_path), "lossy"]) == 1
    printed = capsys.readouterr()
    assert f"{kept}: does not say which run was measured" in printed.err
    assert not printed.out and len(printed.err.splitlines()) == 1


def test_a_folder_without_a_measurement_has_no_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert archive.main(["--place", str(tmp_path), "lossy"]) == 1
    assert "is not a results folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ('{"details": {"warnings": []}}', 0, ""),
        ('{"details": {"warnings": ["other work took 97%"]}}', 1, "other work took 97%"),
        ("{}", 2, "no record of a calibration"),
        ("[]", 2, "no record of a calibration"),
        ("no JSON", 2, "this-host.calibration.json is no record of a calibration: Expecting value"),
        ('{"details": {"warnings": null}}', 2, "calibration.json is no record of a calibration"),
        ('{"details": {"warnings": {}}}', 2, "calibration.json is no record of a calibration"),
        ('{"details": {"warnings": ""}}', 2, "calibration.json is no record of a calibration"),
        ('{"details": {"warnings": [1]}}', 2, "calibration.json is no record of a calibration"),
    ],
)
def test_a_doubtful_calibration_is_refused(
    text: str, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "this-host.calibration.json"
    record.write_text(text)
    assert calibration.main([str(record)]) == code
    err = capsys.readouterr().err
    assert said in err and len(err.splitlines()) <= 1
    assert calibration.main([str(tmp_path / "none.json")]) == 2

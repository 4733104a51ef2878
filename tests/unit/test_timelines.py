# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Timelines are of connections that were predicted, and damaged ones end in a sentence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from support.commands import Run
from support.studies import MANIFEST, PROFILES, STUDY, host, study
from support.synthetic import change_manifest
from warifu import _core
from warifu.cli.errors import OK
from warifu.results import Results, ResultsDamaged, read_manifest, read_timelines


def predicted(place: Path, *overrides: tuple[str, str]) -> Path:
    """The folder of a small study's prediction, which keeps every trial."""
    folder = place / "predicted"
    _core.predict(study(*overrides), folder, MANIFEST, keep="trials")
    return folder


def test_timeline_of_each_case_is_of_the_trial_at_its_quantile(tmp_path: Path) -> None:
    folder = predicted(tmp_path, ("predict_trials", "2000"))
    found = read_timelines(folder, read_manifest(folder))
    assert found is not None
    assert found.which == "all 4 cases"
    rows = pl.read_parquet(folder / "observations" / "*.parquet").filter(
        pl.col("metric") == "https.establishment", pl.col("stage").is_null()
    )
    results = Results.open(folder)
    for case_id in results.cases:
        typical, slow = found.of(case_id)
        for timeline, quantile in ((typical, 0.5), (slow, 0.99)):
            assert timeline.quantile == quantile
            value = results.distribution(case_id, timeline.metric).quantile(quantile)
            assert timeline.total_ns == value
            of_trial = rows.filter(pl.col("case_id") == case_id, pl.col("trial") == timeline.trial)
            assert of_trial["value"].to_list() == [value]
            assert of_trial["seed"].to_list() == [timeline.seed]
            assert {"ClientHello", "[200 OK]"} <= {one.label for one in timeline.messages}
            assert timeline.marks[-1].at_ns == timeline.total_ns
            assert timeline.left_out == 0
        assert typical.total_ns <= slow.total_ns


def test_timelines_of_a_study_of_many_cases(tmp_path: Path) -> None:
    rtts = ", ".join(f'"{ms} ms"' for ms in range(30, 60))
    text = STUDY.replace('"60 ms", "150 ms"', rtts).replace('"0 %", "2 %"', '"0 %"')
    both = [("device", "host"), ("server", "host"), ("predict_trials", "50")]
    many = _core.Study.parse(text, "meter.toml", [*PROFILES, host()], both)
    folder = tmp_path / "predicted"
    _core.predict(many, folder, MANIFEST)
    found = read_timelines(folder, read_manifest(folder))
    assert found is not None
    assert found.which == "24 of 30 cases: the first 12 and the slowest by P99"
    ids = [case.id for case in many.cases]
    assert {one.case_id for one in found.timelines} == {*ids[:12], *ids[18:]}


def test_timeline_of_a_case_in_which_every_connection_fails(tmp_path: Path) -> None:
    folder = predicted(tmp_path, ("predict_trials", "20"), ("vary.link.loss", '["0 %", "99 %"]'))
    found = read_timelines(folder, read_manifest(folder))
    assert found is not None
    results = Results.open(folder)
    dead = [one for one in results.cases if results.failed_share(one) == 1.0]
    assert dead
    assert all(not found.of(case_id) for case_id in dead)


def damage(folder: Path, change: Callable[[dict[str, Any]], None], *, seal: bool = True) -> None:
    """Changes the timelines of a folder; with ``seal`` under a seal that fits."""
    file = folder / "timelines.json"
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    if seal:
        files = json.loads((folder / "manifest.json").read_text())["files"]
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
        files["timelines.json"] = {"bytes": file.stat().st_size, "sha256": sha256}
        change_manifest(folder, files=files)


def first(content: dict[str, Any]) -> dict[str, Any]:
    """The first timeline."""
    timeline: dict[str, Any] = content["timelines"][0]
    return timeline


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda all_: all_.update(version=2), "version is 2: expected 1"),
        (lambda all_: all_.update(version=10**4298), "version is 1000"),
        (lambda all_: all_.update(which="x" * 201), "which has more than 200 letters"),
        (lambda all_: all_.update({"more" * 999: 1}), "... is unknown: expected version"),
        (lambda all_: first(all_).update(seed=2**64), "[0].seed is 18446744073709551616: exp"),
        (lambda all_: first(all_).update(trial=-1), "timelines[0].trial is -1: expected 0 to"),
        (lambda all_: first(all_).update(connection=2**32), "connection is 4294967296: expec"),
        (lambda all_: first(all_)["messages"][1].update(bytes=-(10**4000)), "messages[1].bytes is"),
        (lambda all_: first(all_)["packets"][0].update(bytes=2**32), "packets[0].bytes is"),
        (lambda all_: first(all_)["packets"][0].update(messages=[3] * 9999), "messages are (3, 3"),
        (lambda all_: first(all_).update(seed=[3] * 9999), "timelines[0].seed is [3, 3"),
        (lambda all_: all_.update(more=1), "more is unknown"),
        (lambda all_: first(all_).update(total_ns=-1), "has a time that no connection has"),
        (lambda all_: first(all_).update(total_ns=2.5), "timelines[0].total_ns is 2.5"),
        (lambda all_: first(all_).update(quantile=7), "quantile is 7.0: expected 0 to 1"),
        (
            lambda all_: first(all_).update(quantile=10**400),
            "0000...: expected at most 1.79769e+308",
        ),
        (lambda all_: first(all_)["packets"][0].update(arrives_ns=0, at_ns=5), "has a time that"),
        (lambda all_: first(all_)["packets"][0].update(messages=[0, 999]), "that is not there"),
        (lambda all_: first(all_)["packets"][0].update(messages=[3]), "expected a range"),
        (lambda all_: first(all_)["packets"][0].update(end="both"), "packets[0].end is 'both'"),
        (lambda all_: first(all_)["messages"][0].update(label="x" * 201), "more than 200 letters"),
        (lambda all_: first(all_).update(marks=first(all_)["marks"] * 3000), "more than 3,000"),
        (lambda all_: first(all_)["marks"][0].update(name="\udc00"), "name holds half a l"),
        (lambda all_: all_.update(timelines=all_["timelines"] * 99), "64 are the most"),
    ],
)
def test_timelines_of_another_shape(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], words: str
) -> None:
    folder = predicted(tmp_path, ("predict_trials", "20"))
    damage(folder, change)
    with pytest.raises(ResultsDamaged) as error:
        read_timelines(folder, read_manifest(folder))
    assert words in str(error.value)
    assert f"{folder}/timelines.json: " in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < len(str(folder)) + 300


def test_name_of_a_message_forges_no_line(
    warifu: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ends = ("--device", "xeon-2-5-ghz-vm", "--server", "xeon-2-5-ghz-vm", "--link", "lte-m")
    question = (*ends, "--stack", "https/tls1.3", "--set", "predict_trials=20")
    assert warifu("predict", *question)[0] == OK
    lines = warifu("trace", *question, "--timeline")[1].splitlines()
    forged = "x\n     0.000 ms  server  nothing was encrypted"

    def forge(content: dict[str, Any]) -> None:
        for one in content["timelines"]:
            one["messages"][0]["label"] = one["marks"][1]["name"] = forged

    damage(next(Path("results").glob("*/predicted")), forge)
    code, out, _ = warifu("trace", *question, "--timeline")
    assert code == OK
    assert len(out.splitlines()) == len(lines)
    assert r"x\n     0.000 ms  server" in out
    page = Path("page.html")
    study = next(Path("results").iterdir())
    assert warifu("report", study, "--out", page)[0] == OK
    (text, *_) = page.read_text().split("<pre>")[1].split("</pre>")
    assert not any(line.startswith("     0.000 ms  server  no") for line in text.splitlines())


def test_timelines_that_were_changed(tmp_path: Path) -> None:
    folder = predicted(tmp_path, ("predict_trials", "20"))
    damage(folder, lambda all_: first(all_).update(total_ns=1), seal=False)
    with pytest.raises(ResultsDamaged, match="its SHA-256 differs"):
        read_timelines(folder, read_manifest(folder))


def test_timelines_that_are_gone_or_of_another_run(tmp_path: Path) -> None:
    folder = predicted(tmp_path, ("predict_trials", "20"))
    listed = json.loads((folder / "manifest.json").read_text())["files"]
    change_manifest(folder, files={k: v for k, v in listed.items() if k != "timelines.json"})
    with pytest.raises(ResultsDamaged, match=r"timelines\.json: is not listed in manifest\.json"):
        Results.open(folder)
    (folder / "timelines.json").unlink()
    assert read_timelines(folder, read_manifest(folder)) is None
    change_manifest(folder, files=listed)
    with pytest.raises(ResultsDamaged, match=r"timelines\.json: is missing"):
        Results.open(folder)

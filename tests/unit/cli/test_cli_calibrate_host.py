# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu calibrate host`: when it is needed, and for what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.commands import Run
from support.paths import ROOT
from warifu import study as studies
from warifu.calibrate import environment, host, parts, profile, variants
from warifu.cli import calibration


def test_the_stand_in_serves_every_study_of_this_machine() -> None:
    texts = list(studies.profile_texts(studies.profile_folders()))
    cases = calibration.cases_of([ROOT / "studies" / "first-loop.toml"], texts)
    assert len(cases) == len(set(cases)) == 24


def test_the_plans_take_as_long_as_they_say(warifu: Run) -> None:
    rows = (ROOT / "docs" / "explanation" / "calibration.md").read_text().splitlines()
    times = [row.split("|")[3].split()[0] for row in rows if row.startswith("| `")]
    _, out, _ = warifu("calibrate", "host", "--help")
    assert f"about {times[0]}, {times[1]} or {times[2]} minutes" in " ".join(out.split())


CALIBRATED = """name = "c"
device = "this-host"
server = "this-host"
[stack]
tls = "{tls}"
"""


def test_a_calibration_is_kept_only_if_it_covers_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine" / "devices" / "this-host.toml"
    path.parent.mkdir(parents=True)
    path.write_text(parts.stand_in([]).profile("r", "a test").toml())
    monkeypatch.setenv("WARIFU_PROFILES", str(tmp_path / "mine"))
    monkeypatch.setattr(environment, "machine", lambda: {"kernel": "1"})
    for tls in ("1.2", "1.3"):
        (tmp_path / f"{tls}.toml").write_text(CALIBRATED.format(tls=tls))
    texts = list(studies.profile_texts(studies.profile_folders()))
    of_13 = parts.needed(calibration.cases_of([Path("1.3.toml")], texts))
    of_12 = parts.needed(calibration.cases_of([Path("1.2.toml")], texts))
    rare = variants.Variant(group="x25519", certificate="rsa-2048").json()

    def record(timed: parts.Items) -> None:
        details = {"timed": timed}
        value = {"run_id": "r", "machine": {"kernel": "1"}, "details": details}
        profile.record_path(path).write_text(json.dumps(value))

    asked: list[dict[str, Any]] = []

    def calibrate(_: object, out: Path, **options: Any) -> host.Outcome:  # noqa: ANN401
        asked.append(options)
        return host.Outcome(out, "r", 0, [])

    monkeypatch.setattr(host, "calibrate_host", calibrate)
    record(of_13)
    assert calibration.host([Path("1.3.toml")], path, "quick", if_stale=True) is None
    assert asked == []
    record({"https": [rare]})
    assert calibration.host([Path("1.2.toml")], path, "quick", if_stale=True) is not None
    count = len(of_12["https"])
    assert f"does not cover 1.2.toml (not timed: {count} of https)" in capsys.readouterr().err
    (options,) = asked
    # What the profile served it serves again.
    assert rare in options["items"]["https"]
    assert parts.missing({}, of_12)["https"] == [
        one for one in options["items"]["https"] if one != rare
    ]


def test_a_machine_that_has_become_faster_or_slower_is_calibrated_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "this-host.toml"
    monkeypatch.setattr(environment, "pace_ns", lambda: 100_000)
    monkeypatch.setattr(environment, "PACE_PAUSE_S", 0.0)

    def reasons(details: dict[str, Any]) -> list[str]:
        record = profile.Record("run-1", environment.machine(), details)
        profile.write(profile.Profile("run-1", "a test", "a test", 1, ()), record, path)
        return calibration.stale(path)

    assert reasons({}) == [], "records of older versions do not say"
    assert reasons({"pace_ns": 110_000}) == []
    assert reasons({"pace_ns": 92_000}) == []
    slower = "this machine runs at 80% of the speed that it was calibrated at"
    assert reasons({"pace_ns": 80_000}) == [slower]
    faster = "this machine runs at 200% of the speed that it was calibrated at"
    assert reasons({"pace_ns": 200_000}) == [faster]


def test_a_machine_that_is_slow_for_a_moment_has_not_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paces = iter([125_000, 130_000, 101_000])
    monkeypatch.setattr(environment, "pace_ns", lambda: next(paces))
    monkeypatch.setattr(environment, "PACE_PAUSE_S", 0.0)
    assert environment.drift(100_000) == []


def test_the_pace_is_that_of_this_moment() -> None:
    assert 0 < environment.pace_ns() < 100_000_000

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Predictions from Python: what is written, and what an interruption leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from support.paths import ROOT
from support.studies import MANIFEST, PROFILES, STUDY, host, study
from warifu import _core
from warifu.results import Results
from warifu.study import profile_folders, profile_texts


def manifest(folder: Path) -> dict[str, Any]:
    """A folder's manifest."""
    value: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return value


def observations(folder: Path) -> pl.DataFrame:
    """All rows of a folder."""
    return pl.read_parquet(folder / "observations" / "*.parquet")


def test_a_prediction_is_a_folder_with_every_case(tmp_path: Path) -> None:
    meter = study(("predict_trials", "3000"))
    seen: list[tuple[int, int, int]] = []
    summary = _core.predict(
        meter,
        tmp_path / "predicted",
        MANIFEST,
        progress=lambda *counts: seen.append(counts),
        now=lambda: "2026-01-01T00:01:00Z",
    )
    assert summary["complete"] is True
    assert (summary["cases"], summary["trials"], summary["failed"]) == (4, 12_000, 0)
    assert seen[-1] == (4, 4, 12_000)
    written = manifest(tmp_path / "predicted")
    assert written["complete"] is True
    assert written["finished"] == "2026-01-01T00:01:00Z"
    rows = observations(tmp_path / "predicted")
    assert rows.height == summary["rows"]
    assert rows.columns == [name for name, _, _, _ in _core.columns()]
    assert rows["case_id"].unique(maintain_order=True).to_list() == [
        case.id for case in meter.cases
    ]
    weights = rows.filter(pl.col("stage").is_null()).group_by("case_id", "metric")
    assert set(weights.agg(pl.col("weight").sum())["weight"]) == {3000.0}


def test_probabilities_of_the_exact_tier_lack_what_it_left_out(tmp_path: Path) -> None:
    summary = _core.predict(study(), tmp_path / "predicted", MANIFEST, tier="exact")
    assert 0.0 < summary["residual"] <= 1e-3
    results = Results.open(tmp_path / "predicted")
    lossy = [case for case, settings in results.cases.items() if settings["loss_mean"] != 0.0]
    assert summary["exact"] == len(lossy) == 2
    for metric in ("https.establishment", "tcp.connect", "connection.failed"):
        residuals = []
        for case_id, settings in results.cases.items():
            of = results.distribution(case_id, metric)
            assert of.exact is (settings["loss_mean"] != 0.0)
            if of.exact:
                assert of.n + of.residual == pytest.approx(1.0, abs=1e-8)
                residuals.append(of.residual)
                # None fails, which is sure but for what was left out.
                fails = metric == "connection.failed"
                assert of.noise is not None and (of.noise.mean_error > 0.0) is not fails
        assert max(residuals) == pytest.approx(summary["residual"], rel=1e-6)


@pytest.mark.parametrize("body", ["0 B", "100 B"])
def test_coap_without_costs_says_where_they_come_from(tmp_path: Path, body: str) -> None:
    text = (
        'name = "put"\ndevice = "xeon-2-5-ghz-vm"\nserver = "xeon-2-5-ghz-vm"\n'
        f'stack = "coap/con"\n[pattern]\nrequest_body = "{body}"\n'
    )
    put = _core.Study.parse(text, "put.toml", PROFILES, [])
    with pytest.raises(_core.WarifuError, match=r"client\.send\.CoapRequest") as error:
        _core.predict(put, tmp_path / "predicted", MANIFEST)
    assert "after `warifu calibrate host`" in str(error.value)
    assert "\n" not in str(error.value)


def test_coap_on_a_machine_that_was_calibrated_without_it(tmp_path: Path) -> None:
    shipped = (ROOT / "profiles" / "devices" / "xeon-2-5-ghz-vm.toml").read_text()
    text = shipped.replace('name = "xeon-2-5-ghz-vm"', 'name = "this-host"', 1)
    profiles = [*PROFILES, ("device", "this-host", text, "this-host.toml")]
    put = _core.Study.parse('name = "put"\nstack = "coap/con"\n', "put.toml", profiles, [])
    with pytest.raises(_core.WarifuError, match="finds the costs of CoAP as well") as error:
        _core.predict(put, tmp_path / "predicted", MANIFEST)
    assert "use device and server" not in str(error.value)
    assert str(error.value).count("this-host.toml") == 1


def test_stages_add_up_to_the_establishment(tmp_path: Path) -> None:
    _core.predict(study(("predict_trials", "2000")), tmp_path / "predicted", MANIFEST)
    rows = observations(tmp_path / "predicted").filter(pl.col("metric") == "https.establishment")
    whole = pl.col("stage").is_null()
    total = (pl.col("value") * pl.col("weight")).sum().alias("total")
    metric = rows.filter(whole).group_by("case_id").agg(total).sort("case_id")["total"]
    stages = rows.filter(~whole).group_by("case_id").agg(total).sort("case_id")["total"]
    assert metric.len() == 4
    assert stages.to_list() == pytest.approx(metric.to_list(), rel=1e-12)


@pytest.mark.parametrize("keep", ["distribution", "trials"])
def test_threads_change_nothing(tmp_path: Path, keep: str) -> None:
    frames = []
    for threads in (1, 3):
        folder = tmp_path / str(threads)
        _core.predict(
            study(("predict_trials", "5000")), folder, MANIFEST, threads=threads, keep=keep
        )
        frames.append(observations(folder))
    assert frames[0].equals(frames[1])
    trials = frames[0].filter(pl.col("metric") == "tcp.connect").height
    assert (trials == 4 * 5000) is (keep == "trials")


def test_another_seed_gives_other_trials(tmp_path: Path) -> None:
    frames = []
    for seed in ("1", "2"):
        _core.predict(study(("predict_trials", "2000"), ("seed", seed)), tmp_path / seed, MANIFEST)
        frames.append(observations(tmp_path / seed))
    assert not frames[0].equals(frames[1])


def interrupt_after_the_first_case(done: int, cases: int, trials: int) -> None:
    """A user who presses Ctrl-C once something is finished."""
    if done > 0:
        raise KeyboardInterrupt


def long_study() -> _core.Study:
    """Far more cases than are run between two calls of `progress`."""
    rtts = ", ".join(f'"{rtt} ms"' for rtt in range(1, 4001))
    text = STUDY.replace('["60 ms", "150 ms"]', f"[{rtts}]").replace("gr-peach", "host")
    overrides = [("predict_trials", "4096")]
    return _core.Study.parse(text, "long.toml", [*PROFILES, host()], overrides)


def test_an_interruption_keeps_what_is_finished_and_replaces_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "predicted"
    endless = long_study()
    with pytest.raises(KeyboardInterrupt):
        _core.predict(endless, folder, MANIFEST, progress=interrupt_after_the_first_case)
    assert manifest(folder)["complete"] is False
    finished = observations(folder)["case_id"].n_unique()
    assert 0 < finished < len(endless.cases)

    _core.predict(study(("predict_trials", "100")), folder, MANIFEST)
    before = observations(folder)
    with pytest.raises(KeyboardInterrupt):
        _core.predict(endless, folder, MANIFEST, progress=interrupt_after_the_first_case)
    assert observations(folder).equals(before)
    assert manifest(folder)["complete"] is True
    assert manifest(tmp_path / "predicted.partial")["complete"] is False


def test_a_mistake_in_a_later_case_is_found_before_the_first_is_run(tmp_path: Path) -> None:
    text = (ROOT / "studies" / "gr-peach-tls13.toml").read_text()
    text = text.replace("[vary]", '[vary]\n"stack.authentication" = ["server", "mutual"]')
    text = text.replace('authentication = "server"', 'server_name = "meter.example"')
    board = _core.Study.parse(text, "board.toml", [*PROFILES, host()], [("server", "host")])
    with pytest.raises(_core.WarifuError, match="without a client certificate"):
        _core.predict(board, tmp_path / "predicted", MANIFEST)
    assert list(tmp_path.iterdir()) == []


def test_a_profile_with_a_mistake_stops_only_the_study_that_names_it() -> None:
    broken = ("device", "board", 'name = "board"\nclock = "fast"\n', "profiles/devices/board.toml")
    profiles = [*PROFILES, host(), broken]
    both = [("device", "host"), ("server", "host")]
    assert len(_core.Study.parse(STUDY, "meter.toml", profiles, both).cases) == 4
    with pytest.raises(_core.WarifuError, match=r"meter\.toml|board\.toml") as error:
        _core.Study.parse(STUDY, "meter.toml", profiles, [("device", "board"), ("server", "host")])
    assert "its profile has a mistake: profiles/devices/board.toml: " in str(error.value)


def test_manifest_names_method_and_evidence(tmp_path: Path) -> None:
    _core.predict(study(("predict_trials", "100")), tmp_path / "predicted", MANIFEST)
    written = manifest(tmp_path / "predicted")
    assert (written["methods"], written["evidence"]) == (["simulated"], ["assumed"])


def test_what_cannot_be_run_touches_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "predicted"
    with pytest.raises(_core.WarifuError, match="manifest"):
        _core.predict(study(), folder, "{}")
    with pytest.raises(_core.WarifuError, match="keep is"):
        _core.predict(study(), folder, MANIFEST, keep="everything")
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(_core.WarifuError, match="is not a results folder"):
        _core.predict(study(), tmp_path, MANIFEST)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_all_costs_that_a_profile_lacks_are_said_at_once(tmp_path: Path) -> None:
    """A mutual handshake with an ECDSA certificate: the board was measured with neither."""
    profiles = list(profile_texts(profile_folders()))
    choices = [("device", "gr-peach"), ("server", "xeon-2-5-ghz-vm"), ("stack", "https/tls1.3")]
    study = _core.Study.from_choices(choices, profiles)
    with pytest.raises(_core.WarifuError) as error:
        _core.predict(study, str(tmp_path / "predicted"), MANIFEST)
    (line,) = str(error.value).splitlines()
    assert "client.receive.CertificateRequest" in line
    assert "client.receive.Certificate," in line
    assert 'certificate = "rsa-2048"' in line
    assert 'stack.authentication = "server"' in line
    assert list(tmp_path.iterdir()) == []

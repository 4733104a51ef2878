# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Studies as they are loaded: flags over files, profiles, and what the manifest keeps of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.paths import ROOT
from warifu import _core
from warifu import study as studies


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test has a folder of its own, and the shipped profiles."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WARIFU_PROFILES", raising=False)
    yield


STUDY = """name = "three"
device = "gr-peach"
server = "gr-peach"
predict_trials = 50
[vary]
"link.rtt" = ["0 ms", "60 ms", "150 ms"]
[require]
"https.establishment.p99" = "< 5 s"
"""


def test_flags_override_a_file(tmp_path: Path) -> None:
    (tmp_path / "three.toml").write_text(STUDY)
    loaded = studies.load("three.toml", [("link.rtt", "80 ms"), ("trials", "7")])
    assert [case.columns["rtt_ns"] for case in loaded.study.cases] == [80_000_000]
    assert loaded.study.trials == 7


def test_a_byte_order_mark_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "marked.toml").write_text("\ufeff" + STUDY)
    loaded = studies.load("marked.toml", [("link.rtt", "80 ms")])
    assert loaded.text == STUDY
    # What reads the text a second time sees its keys.
    assert studies.no_longer_varied(loaded) == ["link.rtt"]
    assert studies.name_in(studies.read_study(tmp_path / "marked.toml")) == "three"


def test_a_manifest_tells_where_everything_comes_from(tmp_path: Path) -> None:
    (tmp_path / "three.toml").write_text(STUDY)
    loaded = studies.load("three.toml")
    manifest = studies.manifest(loaded, "predicted", "run-1", "2026-11-22T05:00:00Z")
    assert manifest["study"] == {
        "name": "three",
        "sha256": studies.sha256(STUDY),
        "text": STUDY,
        "file": "three.toml",
        "overrides": [],
    }
    assert [case["label"] for case in manifest["cases"]] == [
        case.label for case in loaded.study.cases
    ]
    assert ("device", "gr-peach") in {(one["kind"], one["name"]) for one in manifest["profiles"]}
    assert all(one["kind"] != "device" or one["name"] == "gr-peach" for one in manifest["profiles"])
    assert manifest["require"][0][:3] == ["https.establishment", "p99", "<"]
    json.dumps(manifest)


def test_manifest_with_several_server_workers(tmp_path: Path) -> None:
    """The number of workers is no part of the profile's name, by which its calibration is found."""
    (tmp_path / "three.toml").write_text(STUDY)
    loaded = studies.load("three.toml", [("server.workers", "8")])
    manifest = studies.manifest(loaded, "predicted", "run-1", "")
    (server,) = {str(case.columns["server"]) for case in loaded.study.cases}
    assert ("device", server) in {(one["kind"], one["name"]) for one in manifest["profiles"]}


def test_manifest_has_each_figure_once(tmp_path: Path) -> None:
    (tmp_path / "three.toml").write_text(STUDY)
    loaded = studies.load("three.toml")
    figures = studies.manifest(loaded, "predicted", "run-1", "")["figures"]
    assert len({figure["id"] for figure in figures}) == len(figures)
    first = loaded.study.inputs(0)
    of_first = [one for one in figures if loaded.study.cases[0].id in one.get("cases", [])]
    of_all = [one for one in figures if "cases" not in one]
    assert of_first and of_all
    assert {one["name"] for one in (*of_first, *of_all)} == {one["name"] for one in first}
    # A measurement takes its link from the profile, and all else is real.
    half = studies.manifest(loaded, "measured", "run-1", "")
    assert not any("ClientHello" in figure["name"] for figure in half["figures"])


def test_manifest_says_its_figures_for_programs_too(tmp_path: Path) -> None:
    (tmp_path / "three.toml").write_text(STUDY)
    loaded = studies.load("three.toml", [("key_store", "iot-safe-sakomoto")])
    figures = studies.manifest(loaded, "predicted", "run-1", "")["figures"]
    by_name = {figure["name"]: figure for figure in figures}
    rto = by_name["linux-6.18 tcp_rto_min"]
    assert rto["what"] == {"of": "tcp", "owner": "linux-6.18", "key": "tcp_rto_min"}
    assert (rto["number"], rto["last_digit_ns"]) == (200e6, 1_000_000)
    assert by_name["linux-6.18 hz"]["value"] == "250/s"
    rtts = [one for one in figures if one["what"]["key"] == "rtt"]
    assert [one["number"] for one in rtts] == [0.0, 60e6, 150e6]
    assert {one["what"]["of"] for one in rtts} == {"link"}


def test_results_that_cannot_be_stored_are_no_mistake_of_the_study(tmp_path: Path) -> None:
    (tmp_path / "three.toml").write_text(STUDY)
    made = json.dumps(studies.manifest(studies.load("three.toml"), "predicted", "run-1", ""))
    with pytest.raises(_core.StorageError, match=r"^\S+/absent/manifest\.json: cannot write: "):
        _core.write_manifest(tmp_path / "absent", made)


def test_run_ids_of_profiles_are_calibration_runs() -> None:
    heading = 'name = "d"\ndescription = "a device"\nrun_id = "a"\n'
    entry = '[[operation]]\nname = "client.sign"\nwarm = "1 ms"\n'
    another = entry.replace("client", "server") + 'run_id = "b"\n'
    device = ("device", "d", heading + entry + another, "d.toml")
    link = ("link", "l", 'run_id = "c"\n[x]\nrun_ids = ["d"]\n', "l.toml")
    choices = [("device", "d"), ("server", "d"), ("stack", "https/tls1.3")]
    shipped = list(studies.profile_texts([ROOT / "profiles"]))
    study = _core.Study.from_choices(choices, [*shipped, device])
    assert studies._calibration_run_ids(study, [device, link]) == ["a", "b", "c", "d"]


def test_cases_that_profiles_were_found_from_are_in_the_manifest(tmp_path: Path) -> None:
    heading = (
        'name = "d"\ndescription = "a device"\nrun_id = "a"\ncalibration_cases = [\n'
        '{ case_id = "0b", protocol = "coap", rtt = "20 ms" },\n'
        '{ case_id = "0a", protocol = "https", rtt = "0 ns", tls = "1.3", group = "x25519" },\n]\n'
    )
    entry = '[[operation]]\nname = "client.sign"\nwarm = "1 ms"\n'
    device = ("device", "d", heading + entry, "d.toml")
    shipped = list(studies.profile_texts([ROOT / "profiles"]))
    choices = [("device", "d"), ("server", "xeon-2-5-ghz-vm"), ("stack", "https/tls1.3")]
    study = _core.Study.from_choices(choices, [*shipped, device])
    loaded = studies.Loaded(study, "", "", [*shipped, device], [])
    made = studies.manifest(loaded, "predicted", "run-1", "2026-11-21T04:00:00Z")
    assert made["calibration_case_ids"] == ["0a", "0b"]
    assert made["calibration_cases"][1] == {
        "case_id": "0a", "protocol": "https", "rtt": 0, "tls": "1.3", "group": "x25519",
    }  # fmt: skip
    # As a folder holds it, where it is read again; one without such cases has no such key.
    _core.write_manifest(tmp_path, json.dumps(made))
    text = (tmp_path / "manifest.json").read_text()
    assert json.loads(_core.read_manifest(text, "m.json"))["calibration_case_ids"] == ["0a", "0b"]
    plain = studies.Loaded(study, "", "", shipped, [])
    assert "calibration_cases" not in studies.manifest(plain, "predicted", "run-1", "")


def test_own_profiles_come_before_those_that_are_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "mine" / "devices"
    own.mkdir(parents=True)
    (own / "gr-peach.toml").write_text("mine")
    monkeypatch.setenv("WARIFU_PROFILES", str(tmp_path / "mine"))
    assert studies.own_folder("devices") == own
    texts = list(studies.profile_texts(studies.profile_folders()))
    assert [text for kind, name, text, _ in texts if name == "gr-peach"] == ["mine"]
    assert any(name == "loopback" for _, name, _, _ in texts)
    monkeypatch.setenv("WARIFU_PROFILES", str(tmp_path / "none"))
    with pytest.raises(studies.StudyError, match="is not a folder"):
        studies.profile_folders()
    monkeypatch.delenv("WARIFU_PROFILES")
    assert studies.own_folder("devices") == Path("profiles/devices")

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The machine that stands in for this one where this one was never calibrated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.commands import Run, one_line
from support.paths import ROOT
from warifu import study as studies
from warifu.cli.errors import FAILED, OK, USAGE
from warifu.results import read_manifest


def test_the_shipped_machine_stands_in_for_one_never_calibrated(
    warifu: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(studies, "profile_folders", lambda: [_without_host()])
    assert warifu("init", "meter.toml")[0] == OK
    code, out, err = warifu("run", "meter.toml", "--set", "predict_trials=100", "--out", "m")
    said = " ".join(out.split())
    assert code in {OK, FAILED}
    assert "This machine was never calibrated, so xeon-2-5-ghz-vm, which comes" in err
    assert "device xeon-2-5-ghz-vm (stands in for this machine)" in said
    assert "another machine was predicted" in said and "calibrate host --for meter.toml" in said
    manifest = read_manifest(Path("m") / "predicted")
    assert "stands in for it" in manifest["warnings"][0]
    assert "never calibrated" in (Path("m") / "report.html").read_text()
    assert warifu("measure", "meter.toml")[0] == USAGE


def _without_host() -> Path:
    """The shipped profiles, whether or not this machine was calibrated."""
    place = Path("profiles-alone").absolute()
    for file in (ROOT / "profiles").rglob("*.toml"):
        target = place / file.relative_to(ROOT / "profiles")
        if file.stem != "this-host" and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(file)
    return place


def test_what_a_calibration_says_of_itself_stays(
    warifu: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = _without_host()
    shipped = (ROOT / "profiles" / "devices" / "xeon-2-5-ghz-vm.toml").read_text()
    text = shipped.replace('name = "xeon-2-5-ghz-vm"', 'name = "this-host"', 1)
    (place / "devices" / "this-host.toml").write_text(text)
    record = {"details": {"warnings": ["other work took up to 97% of the processors"]}}
    (place / "devices" / "this-host.calibration.json").write_text(json.dumps(record))
    monkeypatch.setattr(studies, "profile_folders", lambda: [place])
    _, out, err = warifu("predict", "--set", "predict_trials=50", "--out", "h")
    assert "The calibration of this-host: other work took up to 97% of the processors." in err
    assert "device this-host (this machine, the default)" in " ".join(out.split())
    warifu("report", "h")
    assert "other work took up to 97% of the processors" in (Path("h") / "report.html").read_text()


@pytest.mark.parametrize("flags", [(), ("--device", "nrf52840")])
def test_a_study_finds_its_results_whatever_machine_was_predicted(
    warifu: Run, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    monkeypatch.setattr(studies, "profile_folders", lambda: [_without_host()])
    assert warifu("init", "meter.toml")[0] == OK
    code, _, err = warifu("predict", "meter.toml", *flags, "--set", "predict_trials=100")
    assert code in {OK, FAILED}, err
    code, _, err = warifu("report", "meter.toml")
    assert code == OK and "report: results/smart-meter/report.html" in err
    code, _, err = warifu("compare", "meter.toml")
    assert code == USAGE and "has no measured half" in one_line(err)


def test_a_study_without_results_is_looked_at_for_mistakes(
    warifu: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(studies, "profile_folders", lambda: [_without_host()])
    assert warifu("init", "meter.toml")[0] == OK
    assert "results/smart-meter" in one_line(warifu("report", "meter.toml")[2])
    Path("meter.toml").write_text(Path("meter.toml").read_text() + "[stak]\n")
    assert "stak is unknown" in one_line(warifu("report", "meter.toml")[2])
    for name in ("..", "/", "", "a/b"):
        assert studies.name_in(f'name = "{name}"') == ""
    assert studies.name_in("name = [") == studies.name_in("name = 1") == ""


@pytest.mark.parametrize(
    ("flags", "cause"),
    [
        (("--device", "gr-peach"), "gr-peach.toml: client.receive.CertificateRequest"),
        (("--device", "lpc1768-munacl"), "lpc1768-munacl.toml: client.system.connect"),
        (("--device", "nrf52840", "--stack", "coap/con"), "nrf52840.toml: client.send.CoapRequest"),
        (("--device", "this-host", "--stack", "coap/con"), "was never calibrated"),
        (("--stack", "dds/builtin", "--vary", "link.rtt=2 ms,9 ms"), "was never calibrated"),
    ],
)
def test_what_cannot_be_predicted_is_named_although_a_machine_stands_in(
    warifu: Run, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], cause: str
) -> None:
    monkeypatch.setattr(studies, "profile_folders", lambda: [_without_host()])
    code, out, err = warifu("predict", *flags, "--link", "lte-m", "--set", "predict_trials=50")
    assert (code, out) == (USAGE, "")
    line = one_line(err)
    assert cause in line and "expected one of" not in line
    if cause == "was never calibrated":
        assert "xeon-2-5-ghz-vm, which would stand in for it, has no cost of " in line
        assert "`warifu calibrate host` (as root)" in line

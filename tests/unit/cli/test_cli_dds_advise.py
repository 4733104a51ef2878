# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu dds advise`: its answers for a Raspberry Pi 3, and what it says without figures."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support.commands import Run, one_line
from support.paths import ROOT
from warifu import _core, study
from warifu.cli.errors import OK, USAGE
from warifu.dds import way

PI = ("dds", "advise", "--device", "raspberry-pi-3")
GOLDENS = ROOT / "tests" / "goldens" / "dds-advise"


@pytest.mark.parametrize("payload", ["16 B", "1 MiB"])
def test_answer_for_a_raspberry_pi_3(warifu: Run, payload: str) -> None:
    """`WARIFU_UPDATE_GOLDENS=1` writes the golden files anew."""
    code, out, _ = warifu(*PI, "--payload", payload, "--format", "md")
    assert code == OK
    golden = GOLDENS / f"raspberry-pi-3-{payload.replace(' ', '-')}.md"
    if os.environ.get("WARIFU_UPDATE_GOLDENS"):
        golden.write_text(out)
    assert out == golden.read_text()


def test_first_line_says_what_its_band_leaves_out(warifu: Run) -> None:
    _, out, _ = warifu(*PI, "--payload", "1 MiB")
    sentence = "The time for each byte is taken as one number, which rests on assumed values, and"
    assert sentence in out.splitlines()[0]


def test_plain_mebibyte_agrees_with_the_profile_s_own_rule() -> None:
    """547 us of a server, times 3 to 8: parts, writes and bytes are not counted twice."""
    profiles = list(study.profile_texts([ROOT / "profiles"]))
    for payload, server_us in (("1 MiB", 547), ("16 B", 57)):
        settings = [
            ("device", PI[-1]), ("server", PI[-1]), ("stack.protocol", "dds"),
            ("stack.crypto", "none"), ("pattern.response_body", payload),
        ]  # fmt: skip
        path = _core.dds_path(_core.Study.from_choices(settings, profiles), 0)
        low, usual, high = (way.read(path).total(way.at(index)) / 1e3 for index in range(3))
        assert 3 * server_us <= low * 1.02
        assert usual == pytest.approx(5.5 * server_us, rel=0.05)
        assert high <= 8 * server_us


@pytest.mark.parametrize("payload", ["16 B", "1 KiB", "1 MiB"])
def test_rows_add_up_to_the_first_line(warifu: Run, payload: str) -> None:
    code, out, _ = warifu(*PI, "--payload", payload, "--format", "json")
    assert code == OK
    changes, rows = json.loads(out)["tables"]
    *parts, whole = rows["rows"]
    assert whole["where"] == "all"
    for bound in ("low_ns", "ns", "high_ns"):
        assert sum(part[bound] for part in parts) == whole[bound]
        assert changes["rows"][0][f"total_{bound}"] == whole[bound]
    places = [(part["where"], part["what"]) for part in parts]
    assert len(places) == len(set(places))


def test_nobody_is_told_to_use_instructions_that_are_not_there(warifu: Run) -> None:
    for payload in ("16 B", "64 KiB", "1 MiB"):
        _, out, _ = warifu(*PI, "--payload", payload, "--format", "json")
        said = " ".join(json.dumps(table) for table in json.loads(out)["tables"]).lower()
        for word in ("armv8", "aes-ni", "instruction", "cc26x2", "msp432"):
            assert word not in said
    _, named, _ = warifu(*PI, "--payload", "1 MiB", "--accelerator", "ti-cc26x2")
    assert "this microcontroller" in named


def test_a_leaner_governance_is_the_present_then(warifu: Run) -> None:
    lean = ("--data", "ENCRYPT", "--metadata", "NONE", "--rtps", "NONE")
    code, out, _ = warifu(*PI, "--payload", "1 MiB", *lean, "--format", "json")
    assert code == OK
    names = [
        row["change"]
        for row in json.loads(out)["tables"][0]["rows"]
        if row["effort"] == "governance"
    ]
    assert names == ["data ENCRYPT -> SIGN"]
    _, plain, _ = warifu(*PI, "--payload", "1 MiB", *lean, "--allow-plain", "--format", "json")
    assert "data ENCRYPT -> NONE" in plain


def test_device_without_figures_gets_one_short_line(warifu: Run) -> None:
    code, out, err = warifu("dds", "advise", "--device", "gr-peach", "--payload", "16 B")
    assert (code, out) == (USAGE, "")
    line = one_line(err)
    assert len(line) <= 300
    assert "gr-peach has no cost of client.send.DdsSample and " in line
    assert "warifu calibrate" in line and "profiles/devices/gr-peach.toml" in line


def test_device_without_a_cipher_gets_one_short_line(
    warifu: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "profiles" / "devices" / "raspberry-pi-3.toml").read_text()
    head, _, operations = text.partition("[[operation]]")
    name, rest = 'name = "no-cipher"', head.partition("\ndescription")[2].partition("\n[[")[0]
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "no-cipher.toml").write_text(
        f"{name}\ndescription{rest}\n[[operation]]{operations}"
    )
    monkeypatch.setenv("WARIFU_PROFILES", str(tmp_path))
    code, out, err = warifu("dds", "advise", "--device", "no-cipher", "--payload", "16 B")
    assert (code, out) == (USAGE, "")
    assert len(one_line(err)) <= 300
    assert "no-cipher" in err


@pytest.mark.parametrize("end", ["client", "server"])
def test_device_without_its_interface_is_refused(
    warifu: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """A figure that is missing is not zero."""
    text = (ROOT / "profiles" / "devices" / "raspberry-pi-3.toml").read_text()
    entry = f'[[operation]]\nname = "{end}.system.interface"\nwarm = {{ quantiles = [0, 0]'
    assert entry in text
    text = text.replace(entry, entry.replace("system.interface", "send.ApplicationData"))
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "raspberry-pi-3.toml").write_text(text)
    monkeypatch.setenv("WARIFU_PROFILES", str(tmp_path))
    code, out, err = warifu(*PI, "--payload", "16 B")
    assert (code, out) == (USAGE, "")
    assert f"raspberry-pi-3 has no cost of {end}.system.interface" in one_line(err)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--payload", "16 B"), "name a device"),
        (("--device", "raspberry-pi-3"), "--payload is missing"),
        (("--device", "raspberry-pi-3", "--payload", "3 B"), "expected a sample of 16"),
        (("--device", "raspberry-pi-3", "--payload", "x"), "x"),
        (
            ("--device", "raspberry-pi-3", "--payload", "16 B", "--crypto", "none"),
            "nothing protects",
        ),
        (("--device", "raspberry-pi-3", "--payload", "16 B", "--middleware", "fastdds"), "fastdds"),
        (("--device", "a", "--device", "b", "--payload", "16 B"), "--over-payload"),
        (
            ("--device", "raspberry-pi-3", "--payload", "16 B", "--accelerator", "no"),
            "there is no accelerator no: expected one of armv8-crypto",
        ),
    ],
)
def test_mistakes(warifu: Run, arguments: tuple[str, ...], says: str) -> None:
    code, out, err = warifu("dds", "advise", *arguments)
    assert (code, out) == (USAGE, "")
    assert says in " ".join(err.split())


def test_a_study_gives_the_present(warifu: Run) -> None:
    study = str(ROOT / "studies" / "dds-governance.toml")
    code, out, err = warifu(*PI, study, "--format", "json")
    assert code == OK
    assert "cases: the present is 16 B with data ENCRYPT, metadata ENCRYPT, rtps SIGN;" in err
    flags = ("--payload", f"{json.loads(out)['tables'][0]['rows'][0]['payload']} B")
    said = err.partition(" B with ")[2].partition(";")[0].replace(",", "").split()
    flags += tuple(word for line, kind in zip(said[::2], said[1::2], strict=True)
                   for word in (f"--{line}", kind))  # fmt: skip
    _, same, _ = warifu(*PI, *flags, "--format", "json")
    assert json.loads(same)["tables"][1] == json.loads(out)["tables"][1]


def test_simulation_takes_as_long(warifu: Run, tmp_path: Path) -> None:
    """A round trip between two ends that are alike is twice the way; the simulator has it by other
    means."""
    ends = ("--device", "raspberry-pi-3", "--server", "raspberry-pi-3", "--stack", "dds/builtin")
    for payload in ("16 B", "64 KiB"):
        sizes = ("--set", f"pattern.response_body={payload}", "--set", "predict_trials=400")
        code, out, _ = warifu("predict", *ends, *sizes, "--format", "json", "--out", "there")
        assert code == OK
        simulated = json.loads(out)["tables"][0]["rows"][0]["mean_ns"]
        _, advised, _ = warifu(*PI, "--payload", payload, "--format", "json")
        assert json.loads(advised)["tables"][0]["rows"][0]["total_ns"] == pytest.approx(
            simulated / 2, rel=0.02
        )


def test_crossings_agree_with_single_answers(warifu: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from warifu.dds import crossing

    monkeypatch.setattr(crossing, "SIZES", (64, 4096, 65536))
    one = ("--accelerator", "fpga-387-slices-axi", "--metadata", "NONE", "--rtps", "NONE")
    code, out, _ = warifu(*PI, *one, "--over-payload", "--format", "json")
    assert code == OK
    sentences, stretches = json.loads(out)["tables"]
    assert {row["evidence"] for row in (*sentences["rows"], *stretches["rows"])} == {"assumed"}
    said = {row["change"]: row["says"] for row in sentences["rows"]}
    assert " pays from " in said["accelerator fpga-387-slices-axi"]
    for row in stretches["rows"]:
        for size in (row["first"], row["last"]):
            _, single, _ = warifu(*PI, *one, "--payload", f"{size} B", "--format", "json")
            changes = {
                of["change"]: of["verdict"] for of in json.loads(single)["tables"][0]["rows"]
            }
            assert changes[row["change"]] == row["verdict"]

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu calibrate m3`: profiles from benchmarks with known costs, and predictions from them."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.paths import ROOT
from support.studies import whatever
from warifu.calibrate.errors import CalibrateError
from warifu.calibrate.m3 import Sample, calibrate_m3, condition, fit, samples
from warifu.calibrate.parts import operations

Run = Callable[..., tuple[int, str, str]]
Compile = Callable[..., Path]
SEND = "client.send.ApplicationData"


def test_benchmark_costs_and_prediction(
    warifu: Run, bare: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elf = bare("bench.elf", "calibrate/bench.c", "-lgcc")
    file = tmp_path / "mine" / "devices" / "bench.toml"
    code, out, err = warifu(
        "calibrate", "m3", elf, "--mhz", "50", "--when", "tls=1.3", "--out", file, "-f", "json"
    )
    assert code == 0, err
    rows = {row["operation"]: row for row in json.loads(out)["tables"][0]["rows"]}
    # Three cycles a round of the loops in test-programs/calibrate/bench.c.
    assert rows["client.send.ClientHello"]["call_cycles_high"] == pytest.approx(1_200_000, rel=1e-4)
    assert rows[SEND]["byte_cycles_high"] == pytest.approx(60, rel=1e-4)
    assert rows[SEND]["sizes"] == 4 and rows[SEND]["off"] < 1e-3
    profile = tomllib.loads(file.read_text())
    entries = {entry["name"]: entry for entry in profile["operation"]}
    assert profile["kind"] == "emulated" and entries[SEND]["kind"] == "emulated"
    hello = int(entries["client.send.ClientHello"]["warm"].removesuffix(" ns"))
    assert hello == pytest.approx(24_000_000, rel=1e-4)
    assert entries[SEND]["per_byte"] == "1200.000 ns"
    assert entries["client.system.wake"]["kind"] == "assumed"
    (primitive,) = profile["primitive"]
    assert primitive["name"] == "hash.sha-256" and "when" not in primitive
    assert primitive["per_byte"] == "1800.000 ns"
    assert "client.system.wake" in err

    monkeypatch.setenv("WARIFU_PROFILES", str(tmp_path / "mine"))
    question = ("--device", "bench", "--server", "xeon-2-5-ghz-vm", "--link", "loopback",
                "--stack", "https/tls1.3", "--authentication", "server")  # fmt: skip
    code, out, err = warifu("predict", *question, "--format", "json")
    assert code == 0, err
    row = json.loads(out)["tables"][0]["rows"][0]
    # The client's messages take 147 ms at 50 MHz; the rest is the server's and the link's.
    work = 3 * (400 + 450 + 0.8 + 900 + 700 + 1.5 + 1.2) / 50
    assert work < row["p50_ns"] / 1e6 < 1.05 * work, row


def test_same_cycles_are_the_same_run(bare: Compile, tmp_path: Path) -> None:
    elf = bare("again.elf", "calibrate/bench.c", "-lgcc")
    runs = [calibrate_m3(elf, mhz, out=tmp_path / "again.toml").run_id for mhz in (50, 50, 60)]
    assert runs[0] == runs[1] != runs[2]


def test_manual_example(warifu: Run, compiled: Compile, tmp_path: Path) -> None:
    manual = ROOT / "docs" / "reference" / "m3.md"
    _, text = manual.read_text().split("## From a benchmark to a prediction")
    program, commands = (re.search(f"```{kind}\n(.*?)```", text, re.DOTALL) for kind in ("c", "sh"))
    assert program is not None and commands is not None
    Path("bench.c").write_text(program[1])
    lines = commands[1].replace("\\\n", "").strip().splitlines()
    compiler, calibrate, predict = map(shlex.split, lines)
    assert compiler[0] == "arm-none-eabi-gcc" and compiler[-3:] == ["bench.c", "-o", "bench.elf"]
    elf = compiled("manual.elf", *compiler[3:-3], str(Path("bench.c").absolute()))
    Path("bench.elf").write_bytes(elf.read_bytes())
    code, _, err = warifu(*calibrate[1:])
    assert (code, "lacks" in err) == (0, False), err
    code, out, err = warifu(*predict[1:], "--set", "predict_trials=100", "--format", "json")
    assert code == 0, err
    # Its 1.2 million rounds alone take more than 0.1 s.
    assert json.loads(out)["tables"][0]["rows"][0]["p50_ns"] > 1e8


def test_default_profile_folder(
    warifu: Run, bare: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elf = bare("bench.elf", "calibrate/bench.c", "-lgcc")
    assert warifu("calibrate", "m3", elf, "--mhz", "50")[0] == 0
    assert (tmp_path / "profiles" / "devices" / "bench.toml").is_file()
    (tmp_path / "mine").mkdir()
    (tmp_path / "others").mkdir()
    monkeypatch.setenv("WARIFU_PROFILES", f"{tmp_path / 'mine'}:{tmp_path / 'others'}")
    assert warifu("calibrate", "m3", elf, "--mhz", "60")[0] == 0
    assert "60 MHz" in (tmp_path / "mine" / "devices" / "bench.toml").read_text()
    assert "50 MHz" in (tmp_path / "profiles" / "devices" / "bench.toml").read_text()
    assert not (tmp_path / "others" / "devices").exists()


def test_profile_name_in_use_is_rejected(warifu: Run, bare: Compile, tmp_path: Path) -> None:
    elf = tmp_path / "gr-peach.elf"
    elf.write_bytes(bare("bench.elf", "calibrate/bench.c", "-lgcc").read_bytes())
    code, _, err = warifu("calibrate", "m3", elf, "--mhz", "50")
    assert (code, "would hide" in err, "gr-peach.toml" in err) == (3, True, True), err
    assert not (tmp_path / "profiles").exists()


@pytest.mark.parametrize(
    ("when", "missing"),
    [
        (["tls=1.3", "aead=AES_256_GCM"], set()),
        (["tls=1.3", "session=psk_ke,full"], set()),
        (["tls=1.3", "authentication=mutual"],
         {"client.receive.CertificateRequest", "client.send.Certificate",
          "client.send.CertificateVerify", "client.sign"}),
        (["tls=1.2", "certificate=rsa-2048", "aead=CHACHA20_POLY1305"],
         {"client.receive.ServerKeyExchange", "client.receive.ServerHelloDone",
          "client.send.ClientKeyExchange"}),
    ],
)  # fmt: skip
def test_missing_operations_warning(
    warifu: Run, bare: Compile, when: list[str], missing: set[str]
) -> None:
    elf = bare("bench.elf", "calibrate/bench.c", "-lgcc")
    flags = [part for word in when for part in ("--when", word)]
    code, _, err = warifu("calibrate", "m3", elf, "--mhz", "50", *flags)
    assert code == 0, err
    found = re.search(r"a prediction for (.*) lacks (.*): add them to the benchmark", err)
    assert (found is not None) == bool(missing), err
    if found is not None:
        assert set(found[2].split(", ")) == missing
        assert when[0] in found[1]


@pytest.mark.parametrize("mhz", [float("inf"), float("nan"), 0.0, -1.0])
def test_invalid_clock_rate(bare: Compile, tmp_path: Path, mhz: float) -> None:
    elf = bare("bench.elf", "calibrate/bench.c", "-lgcc")
    with pytest.raises(ValueError, match="expected a clock rate in MHz"):
        calibrate_m3(elf, mhz, out=tmp_path / "x.toml")


def test_handwritten_profile_is_kept(warifu: Run, bare: Compile, tmp_path: Path) -> None:
    elf = bare("bench.elf", "calibrate/bench.c", "-lgcc")
    file = tmp_path / "mine.toml"
    file.write_text("name = 'mine'\n")
    code, _, err = warifu("calibrate", "m3", elf, "--mhz", "50", "--out", file)
    assert (code, "was not written by `warifu calibrate m3`" in err) == (3, True)
    assert file.read_text() == "name = 'mine'\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("client.sign 32", "expected `name bytes cycles`"),
        ("client.sign 32 -5", "expected `name bytes cycles`"),
        ("client.sign 32 5 7", "expected `name bytes cycles`"),
        ("Segmentation fault", "expected `name bytes cycles`"),
        ("client.send.ClientHelo 0 5", "did you mean client.send.ClientHello?"),
        ("aes 16 500", "unknown operation or primitive aes"),
    ],
)
def test_invalid_benchmark_line(
    warifu: Run, bare: Compile, tmp_path: Path, line: str, words: str
) -> None:
    elf = bare(f"bad {line}.elf", "calibrate/bench.c", "-lgcc", f'-DBAD_LINE="{line}"')
    file = tmp_path / "out.toml"
    code, out, err = warifu("calibrate", "m3", elf, "--mhz", "100", "--out", file)
    assert (code, out, len(err.splitlines())) == (3, "", 1), err
    assert f"line 1 of its output is '{line}'" in err and words in err
    assert not file.exists()


def test_failing_or_silent_benchmark(warifu: Run, bare: Compile, tmp_path: Path) -> None:
    file = tmp_path / "out.toml"
    elf = bare("fails.elf", "calibrate/bench.c", "-lgcc", "-DFAILS")
    code, _, err = warifu("calibrate", "m3", elf, "--mhz", "100", "--out", file)
    assert (code, "the benchmark failed: its exit code is 3" in err) == (3, True)
    elf = bare("calls.elf", "profile/calls.c")
    code, _, err = warifu("calibrate", "m3", elf, "--mhz", "100", "--out", file)
    assert (code, "printed no line" in err) == (3, True)
    assert not file.exists()


@pytest.mark.parametrize("when", ["tls", "tls=", "weather=fine", "tls=1.9", "chain_length=7"])
def test_invalid_when(warifu: Run, bare: Compile, tmp_path: Path, when: str) -> None:
    elf = bare("bench.elf", "calibrate/bench.c", "-lgcc")
    file = tmp_path / "out.toml"
    code, _, err = warifu("calibrate", "m3", elf, "--mhz", "9", "--when", when, "--out", file)
    assert code in (2, 3) and "--when" in err and len(err.splitlines()) == 1, err
    assert not file.exists()


def test_when_is_parsed() -> None:
    found = condition(["tls=1.2,1.3", "group=x25519", "chain_length=2"])
    assert found == {"tls": ("1.2", "1.3"), "group": "x25519", "chain_length": 2}


# A busy machine generates slowly; how fast is not tested.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 10_000_000),
    st.integers(0, 500),
    st.lists(st.integers(0, 20_000), min_size=2, max_size=9, unique=True),
)
def test_fit_recovers_exact_costs(call: int, per_byte: int, sizes: list[int]) -> None:
    exact = [Sample(SEND, size, call + per_byte * size) for size in sizes]
    (cost,) = fit(exact, exact)
    scale = max(1.0, call + per_byte * max(sizes))
    assert cost.call[1] == pytest.approx(call, abs=1e-6 * scale)
    assert cost.per_byte[1] == pytest.approx(per_byte, abs=1e-6 * scale)
    assert cost.law.mean_ns == pytest.approx(call, abs=1.0 + 1e-6 * scale)


def test_varying_calls_become_distribution() -> None:
    lines = [Sample(SEND, 0, cycles) for cycles in (1000, 1100, 1200, 1300, 2400)]
    (cost,) = fit(lines, lines)
    assert cost.call[1] == 1400 and cost.law.mean_ns == pytest.approx(1400)
    assert cost.law.quantiles_ns[0] == 1000 and cost.off == pytest.approx(1000 / 1400)


def test_readings_of_different_work_are_rejected() -> None:
    with pytest.raises(CalibrateError, match="did different work"):
        fit([Sample(SEND, 1, 5)], [Sample(SEND, 2, 5)])


def test_comments_and_empty_lines_are_skipped() -> None:
    text = b"# a remark\n\n" + f"{SEND} 16 500\r\n".encode()
    assert samples(text, Path("x.elf")) == [Sample(SEND, 16, 500)]


def test_operations_match_profiles(
    warifu: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "own" / "devices"
    folder.mkdir(parents=True)
    entries = "".join(
        f'[[operation]]\nname = "{name}"\nwarm = "1 us"\n{whatever(name)}' for name in operations()
    )
    head = 'name = "all"\ndescription = "every operation"\n'
    (folder / "all.toml").write_text(head + entries)
    assert len(operations()) == len(set(operations())) == 96
    # A profile with a name that predictions do not know is refused.
    monkeypatch.setenv("WARIFU_PROFILES", str(tmp_path / "own"))
    question = ("--device", "all", "--server", "all", "--link", "loopback", "--stack",
                "https/tls1.3", "--authentication", "server")  # fmt: skip
    code, _, err = warifu("predict", *question, "--set", "predict_trials=10")
    assert code == 0, err

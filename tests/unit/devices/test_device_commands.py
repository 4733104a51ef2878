# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu import`, `init device` and `devices`: from a benchmark or a data sheet to an answer."""

from __future__ import annotations

import io
import json
import math
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from support.commands import Run, one_line
from support.paths import ROOT
from warifu.cli.errors import FAILED, OK, USAGE

OUTPUTS = ROOT / "tests" / "support" / "benchmarks"
FIGURES = ("--ecdsa-sign", "45ms", "--ecdsa-verify", "88 ms", "--ecdh", "40ms")
BOARD = ("--core", "Cortex-M4F", "--clock", "64MHz")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of one's own; the shipped profiles are found beside the package."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WARIFU_PROFILES", raising=False)


def profile(name: str) -> dict[str, object]:
    return tomllib.loads(Path(f"profiles/devices/{name}.toml").read_text())


def figures(table: dict[str, object]) -> dict[str, dict[str, object]]:
    rows = table["primitive"]
    assert isinstance(rows, list)
    return {row["name"]: row for row in rows}


def test_from_a_benchmark_to_an_answer(warifu: Run) -> None:
    """The commands of docs/how-to/own-device.md, the last of which the first one printed."""
    file = OUTPUTS / "mbedtls-3.6-nxp.txt"
    code, out, err = warifu("import", file, "--name", "my-board", "--core", "m33")
    assert (code, out) == (OK, "")
    assert "recognised: Mbed TLS benchmark, Mbed TLS 3.6.0; 9 figures" in err
    assert re.search(r"left out \(1\), no case uses it yet: RSA-1024 public", err)
    assert re.search(r"scaled from other devices, and so assumed \(\d+\):", err)
    assert "sign.rsa-2048" in err and "within /" in err
    assert "wrote profiles/devices/my-board.toml" in err
    table = profile("my-board")
    known = figures(table)
    sign = known["sign.ecdsa_secp256r1"]
    assert sign["warm"] == f"{round(1e9 / 7.33)} ns"
    assert sign["kind"] == "measured"
    assert re.fullmatch(
        r"mbedtls-3.6-nxp.txt: Mbed TLS benchmark, Mbed TLS 3.6.0, imported \d{4}-\d\d-\d\d",
        str(sign["source"]),
    )
    assert known["ecdh.keygen.secp256r1"]["kind"] == "assumed"
    assert known["sign.rsa-2048"]["kind"] == "assumed"
    assert "interval" in str(known["sign.rsa-2048"]["note"])
    assert table["clock"]["value"] == "96 MHz"  # type: ignore[index]
    command = next(line for line in err.splitlines() if line.startswith("next: warifu "))
    arguments = command.removeprefix("next: warifu ").split()
    code, out, err = warifu(*arguments, "--format", "json")
    assert code == OK, err
    assert json.loads(out)["answer"]


@pytest.mark.parametrize("file", ["mbedtls-2.28", "mbedtls-3.6-nxp", "bearssl-0.6", "openssl-3.0"])
def test_all_that_is_assumed_is_told(warifu: Run, file: str) -> None:
    given = ("--name", "board", "--core", "m4", "--clock", "96MHz")
    code, _, err = warifu("import", OUTPUTS / f"{file}.txt", *given)
    assert code == OK
    counts = re.findall(r"and so assumed \((\d+)\):", err)
    told = set(re.findall(r"^  (\S+) +\S", err, re.MULTILINE))
    # What follows from the price of an instruction has a sentence of its own.
    rows = figures(profile("board")).items()
    assumed = {name for name, row in rows if row["kind"] == "assumed"}
    assert told == assumed - {"instruction", "x509.parse"}
    assert sum(map(int, counts)) == len(told)


def test_a_slip_in_a_profile_of_ones_own_widens_no_other_band(warifu: Run) -> None:
    def made() -> str:
        code, out, err = warifu("init", "device", "meter", *FIGURES, *BOARD, "--dry-run")
        assert code == OK, err
        return re.sub(r"\d{4}-\d\d-\d\d", "", out)

    before = made()
    file = OUTPUTS / "mbedtls-3.6-nxp.txt"
    slip = ("--core", "cortex-m4", "--clock", "64 GHz", "--force")
    assert warifu("import", file, "--name", "slip", *slip)[0] == OK
    assert "scaled from" in before
    assert made() == before


def band(law: object) -> list[float]:
    """The quantiles of a scaled figure, ns."""
    assert isinstance(law, dict) and law["unit"] == "ns", law
    return [float(word) for word in law["quantiles"].split()]


def test_a_scaled_band_is_that_of_the_bytes_too(warifu: Run) -> None:
    """Bands are judged on messages of 1 KiB, nearly all of whose time is by the byte."""
    assert warifu("init", "device", "my-board", *BOARD, *FIGURES)[0] == OK
    aead = figures(profile("my-board"))["aead.seal.AES_128_GCM"]
    call, byte = band(aead["warm"]), band(aead["per_byte"])
    assert byte[-1] / byte[0] == pytest.approx(call[-1] / call[0], rel=0.01)
    assert byte[-1] > 2 * byte[0]
    code, out, err = warifu(
        *("predict", "--device", "my-board", "--server", "xeon-2-5-ghz-vm", "--link", "loopback"),
        *("--stack", "https/tls1.3", "--authentication", "server", "--format", "json"),
        *("--set", "pattern.request_body=100 kB", "--set", "predict_trials=2000"),
    )
    assert code == OK, err
    (case,) = json.loads(out)["tables"][0]["rows"]
    assert case["p99_ns"] > 1.5 * case["p50_ns"]


def test_hashing_in_hardware_prices_no_instruction(warifu: Run) -> None:
    """24.6 MB/s at 240 MHz are a third of a cycle for an instruction of C."""
    _, out, err = warifu("import", OUTPUTS / "wolfcrypt-esp32.txt", "--name", "esp", "--dry-run")
    low, *_, high = band(figures(tomllib.loads(out))["instruction"]["warm"])
    assert high / low == pytest.approx(1.5**2, rel=0.01)
    assert 0.7 < math.sqrt(low * high) * 0.24 < 6
    assert "SHA-256 in C of" in err


@pytest.mark.parametrize("core", [("--core", "cortex-a53"), ()])
@pytest.mark.parametrize(
    "content",
    [
        "primitive,value,unit\nhash.sha-256,5,us\n",
        # The first column is slow, so that a byte of the line through both takes nothing.
        "type             16 bytes     16384 bytes\nsha256             0.10k     999999.00k\n",
    ],
)
def test_a_hash_without_its_bytes_prices_no_instruction(
    warifu: Run, content: str, core: tuple[str, ...]
) -> None:
    Path("h.txt").write_text(content)
    _, out, err = warifu("import", "h.txt", "--name", "dev", "--clock", "1GHz", *core, "-n")
    known = figures(tomllib.loads(out))
    assert band(known["instruction"]["warm"])[0] > 0.05
    assert known["x509.parse"]["warm"]["quantiles"][0] > 1000  # type: ignore[index]
    assert "SHA-256 in C of" in err


@pytest.mark.parametrize("name", ["openssl-3.0.txt", "wolfcrypt-4.4.txt", "mbedtls-2.28.txt"])
def test_what_is_said_of_an_import_fits_a_terminal(warifu: Run, name: str) -> None:
    arguments = ("--name", "board", "--clock", "80MHz", "--core", "m4")
    code, _, err = warifu("import", OUTPUTS / name, *arguments)
    assert code == OK
    said = [line for line in err.splitlines() if not line.startswith("warning: ")]
    assert max(map(len, said)) <= 80
    # A band of three digits is no power of ten with digits.
    assert "e+0" not in err


def test_a_row_that_cannot_be_read_is_named(warifu: Run) -> None:
    Path("own.csv").write_text(
        "primitive,value,unit\nsign.ecdsa_secp256r1,45,ms\nverify.ecdsa_secp256r1,-3,ms\n"
        "hash.sha-256,30.5\n"
    )
    code, _, err = warifu("import", "own.csv", "--clock", "80MHz", "--core", "m4", "--dry-run")
    assert code == OK
    left = " ".join(err.split())
    assert "left out (2)" in left
    assert "verify.ecdsa_secp256r1, hash.sha-256" in left


def test_a_reason_for_each_row_is_not_a_line_for_each(warifu: Run) -> None:
    rows = "".join(f"random,1.1.{row},ms\n" for row in range(60_000))
    Path("own.csv").write_text(f"primitive,value,unit\nsign.ecdsa_secp256r1,45,ms\n{rows}")
    begun = time.process_time()
    code, _, err = warifu("import", "own.csv", "--clock", "80MHz", "--core", "m4", "--dry-run")
    # Where each reason looked at every row, it was minutes.
    assert time.process_time() - begun < 30
    assert code == OK
    assert "left out (59988), for 59,988 other reasons" in err
    assert err.count("left out") == 13


def test_dry_run_prints_and_writes_nothing(warifu: Run) -> None:
    file = OUTPUTS / "wolfcrypt-esp32.txt"
    code, out, err = warifu("import", file, "--name", "esp", "--dry-run")
    assert code == OK
    table = tomllib.loads(out)
    assert table["core"]["value"] == "xtensa-lx6"
    assert table["clock"]["kind"] == "measured"
    assert not Path("profiles").exists()
    assert "next:" not in err


def test_from_standard_input(warifu: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    content = (OUTPUTS / "openssl-3.0.txt").read_bytes()

    class Input:
        buffer = io.BytesIO(content)

    monkeypatch.setattr("sys.stdin", Input())
    code, _, err = warifu("import", "-", "--name", "gateway", "--clock", "1.2GHz", "--core", "a53")
    assert code == OK, err
    has_recipes = (ROOT / "profiles" / "recipes" / "openssl-3.toml").exists()
    library = profile("gateway")["library"]["value"]  # type: ignore[index]
    assert library == ("openssl-3" if has_recipes else "mbedtls-3.6")
    assert has_recipes or "there are no recipes of openssl-3" in err
    answer = ("--server", "xeon-2-5-ghz-vm", "--link", "nb-iot", "--stack", "https/tls1.3")
    assert warifu("predict", "--device", "gateway", *answer)[0] == OK
    code, _, err = warifu("init", "device", "b", *BOARD, "--library", "polarssl")
    assert code == USAGE and "--library polarssl: expected one of mbedtls-3.6" in err


def test_nothing_is_replaced_or_hidden(warifu: Run) -> None:
    file = OUTPUTS / "wolfcrypt-esp32.txt"
    assert warifu("import", file, "--name", "mine")[0] == OK
    before = Path("profiles/devices/mine.toml").read_text()
    code, _, err = warifu("import", file, "--name", "mine", "--clock", "80MHz")
    # Before anything is reported, and as what it is.
    assert code == USAGE
    assert one_line(err).startswith("warifu: profiles/devices/mine.toml: is there already: choose")
    assert "--force" in err
    assert Path("profiles/devices/mine.toml").read_text() == before
    assert warifu("import", file, "--name", "mine", "--clock", "80MHz", "--force")[0] == OK
    code, _, err = warifu("import", file, "--name", "nrf52840")
    assert code == USAGE
    assert one_line(err).startswith("warifu: profiles/devices/nrf52840.toml: would hide ")
    code, _, err = warifu("init", "device", "nrf52840", *BOARD)
    assert code == USAGE and "would hide" in one_line(err)
    assert not Path("profiles/devices/nrf52840.toml").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("import", str(OUTPUTS / "openssl-3.0.txt"), "--name", "piped", *BOARD),
        ("init", "device", "piped", *BOARD),
    ],
)
def test_a_closed_pipe_takes_no_profile(arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as nobody:
        command = [sys.executable, "-m", "warifu.cli", *arguments]
        done = subprocess.run(command, stdout=nobody, stderr=nobody, check=False, timeout=120)
    assert done.returncode == OK
    assert profile("piped")["name"] == "piped"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("wolfcrypt-4.4.txt",), "its clock is not known"),
        (("wolfcrypt-4.4.txt", "--clock", "64"), "expected a clock such as"),
        (("wolfcrypt-4.4.txt", "--clock", "64MHz", "--core", "z80"), "--core z80: expected one of"),
        (
            ("wolfcrypt-4.4.txt", "--clock", "64MHz", "--name", "../x"),
            "expected lower-case letters",
        ),
        (("wolfcrypt-4.4.txt", "--clock", "64MHz", "--ram", "much"), "--ram much: expected a size"),
        (("pqm4.md", "--clock", "24MHz"), "nothing in it is of use to a case"),
        (("SOURCE",), "is the output of no benchmark that is known"),
        (("nowhere.txt",), "No such file"),
        (("-",), "--name is missing"),
    ],
)
def test_mistakes_are_one_line(warifu: Run, arguments: tuple[str, ...], part: str) -> None:
    first = arguments[0]
    file = "-" if first == "-" else OUTPUTS / first
    code, out, err = warifu("import", file, *arguments[1:])
    assert code != OK
    assert out == ""
    assert part in one_line(err)
    assert not Path("profiles").exists()


@pytest.mark.parametrize(
    ("price", "written"),
    [("21,ns", "21 ns"), ("1.3,cycles", "20.31 ns"), ("0.03,cycles", "0.4688 ns")],
)
def test_own_prices_of_instructions_and_certificates_stay(
    warifu: Run, price: str, written: str
) -> None:
    """That of an instruction may be finer than a nanosecond."""
    Path("own.csv").write_text(f"primitive,value,unit\ninstruction,{price}\nx509.parse,1.5,ms\n")
    assert warifu("import", "own.csv", "--core", "cortex-m4", "--clock", "64MHz")[0] == OK
    made = figures(profile("own"))
    assert (made["instruction"]["warm"], made["x509.parse"]["warm"]) == (written, "1500000 ns")


@pytest.mark.parametrize(
    ("row", "warm"),
    [
        ("instruction,1,cycles", "0.3333 ns"),
        ("instruction,0.8,ns", "0.8 ns"),
        ("instruction,0.0008,us", "0.8 ns"),
        ("instruction,21,ns", "21 ns"),
    ],
)
def test_an_instruction_may_be_finer_than_a_nanosecond(warifu: Run, row: str, warm: str) -> None:
    Path("own.csv").write_text(f"primitive,value,unit\n{row}\n")
    code, out, err = warifu("import", "own.csv", "--core", "cortex-a53", "--clock", "3GHz", "-n")
    assert code == OK, err
    known = figures(tomllib.loads(out))
    assert (known["instruction"]["warm"], known["instruction"]["kind"]) == (warm, "measured")
    low, _ = known["x509.parse"]["warm"]["quantiles"]  # type: ignore[index]
    assert low == pytest.approx(10_536 * float(warm.removesuffix(" ns")), rel=1e-3)


def test_hostile_files(warifu: Run, tmp_path: Path) -> None:
    large = tmp_path / "large.txt"
    large.write_bytes(b"x" * 4_000_001)
    assert "is longer than 4,000,000 bytes" in one_line(warifu("import", large)[2])
    assert "is a device" in one_line(warifu("import", "/dev/zero")[2])
    odd = tmp_path / "a\x1b[2Jb.txt"
    odd.write_bytes((OUTPUTS / "wolfcrypt-4.4.txt").read_bytes() + b"\x1b[2J\x00 \xe2\x80\xae")
    code, _, err = warifu("import", odd, "--name", "odd", "--clock", "64MHz")
    assert code == OK
    assert "\x1b" not in err
    text = Path("profiles/devices/odd.toml").read_text()
    assert "\x1b" not in text and "\x00" not in text
    quoted = tmp_path / 'q"\\\n[[primitive]].txt'
    quoted.write_bytes((OUTPUTS / "wolfcrypt-4.4.txt").read_bytes())
    assert warifu("import", quoted, "--name", "quoted", "--clock", "64MHz")[0] == OK
    assert set(figures(profile("quoted"))) == set(figures(profile("odd")))


def test_device_from_a_data_sheet(warifu: Run) -> None:
    code, _, err = warifu("init", "device", "my-board", *BOARD, *FIGURES, "--aes-gcm", "1.2 MB/s")
    assert code == OK, err
    table = profile("my-board")
    known = figures(table)
    assert known["sign.ecdsa_secp256r1"]["warm"] == "45000000 ns"
    assert known["sign.ecdsa_secp256r1"]["kind"] == "assumed"
    rate = float(str(known["aead.seal.AES_128_GCM"]["per_byte"]).removesuffix(" ns"))
    assert rate == pytest.approx(1e9 / 1.2e6, rel=1e-3)
    assert "by ecdh.derive.secp256r1" in str(known["ecdh.keygen.secp256r1"]["note"])
    # By another figure of the same cipher.
    assert "by aead.seal.AES_128_GCM" in str(known["aead.seal.AES_256_GCM"]["note"])
    # 45 ms at 64 MHz are no portable C.
    assert table["code"]["value"] == "assembly"  # type: ignore[index]
    code, _, err = warifu(
        *("predict", "--device", "my-board", "--server", "xeon-2-5-ghz-vm", "--link", "nb-iot"),
        *("--stack", "https/tls1.3", "--authentication", "server", "--format", "json"),
    )
    assert code == OK, err


def test_the_kind_of_code_that_is_assumed_is_told(warifu: Run) -> None:
    def told(*arguments: str) -> tuple[str, float]:
        code, out, err = warifu(*arguments, "--dry-run")
        assert code == OK, err
        (line,) = re.findall(r"assumed: public-key [^;]*;[^:]*", " ".join(err.split())) or [""]
        sign = figures(tomllib.loads(out))["sign.ecdsa_secp256r1"]["warm"]
        return line, band(sign)[5] if isinstance(sign, dict) else 0.0

    board = ("init", "device", "cm4", "--core", "cortex-m4", "--clock", "80MHz")
    line, portable = told(*board)
    assert "in portable C, since no figure of P-256 tells" in line
    assert "--code assembly or --code hardware says so" in line
    line, assembly = told(*board, "--code", "assembly")
    assert line == ""
    assert portable > 5 * assembly
    line, _ = told(*board, "--ecdh", "40ms")
    assert "in assembly, by ecdh.derive.secp256r1; --code c or --code hardware says" in line
    Path("own.csv").write_text("primitive,value,unit\nhash.sha-256,30,cycles/byte\n")
    line, _ = told("import", "own.csv", *board[3:])
    assert "in portable C, since no figure of P-256 tells" in line


def test_a_source_makes_figures_published(warifu: Run) -> None:
    arguments = ("init", "device", "b", *BOARD, *FIGURES, "--source", "data sheet, page 7")
    assert warifu(*arguments)[0] == OK
    sign = figures(profile("b"))["sign.ecdsa_secp256r1"]
    assert (sign["kind"], sign["source"]) == ("published", "data sheet, page 7")


def test_a_source_is_text_alone(warifu: Run) -> None:
    source = '"\n[[primitive]]\x1b[2J\x7f\u2028'
    given = ("--clock", "64MHz", "--ecdsa-sign", "45ms", "--source", source)
    code, _, err = warifu("init", "device", "odd", *given)
    assert code == OK, err
    (sign,) = (one for one in figures(profile("odd")).values() if "source" in one)
    assert sign["source"] == '"\n[[primitive]] [2J \u2028'


def test_device_from_its_clock_alone(warifu: Run) -> None:
    assert warifu("init", "device", "next-board", "--core", "m33", "--clock", "128MHz")[0] == OK
    rows = figures(profile("next-board"))
    assert all(row["kind"] == "assumed" for row in rows.values())
    laws = rows["sign.ecdsa_secp256r1"]["warm"]
    low, *_, high = map(int, laws["quantiles"].split())  # type: ignore[index]
    assert 2 < high / low < 200


@pytest.mark.parametrize("clock", ["32kHz", "80kHz"])
def test_a_slow_clock_cuts_bands_below_what_a_profile_can_have(warifu: Run, clock: str) -> None:
    board = ("--core", "cortex-m0", "--clock", clock)
    assert warifu("init", "device", "low", *board)[0] == OK
    aead = figures(profile("low"))["aead.seal.AES_256_GCM"]
    assert band(aead["per_byte"])[-1] < 1e9
    assert str(aead["note"]).endswith("; a byte's is cut below 1 s")
    Path("own.csv").write_text("primitive,value,unit\nsign.ecdsa_secp256r1,45,s\n")
    code, _, err = warifu("import", "own.csv", *board, "--dry-run")
    assert code == OK, err


def test_what_no_profile_can_have_names_the_clock(
    warifu: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warifu.devices.profile._LONGEST_RATE_NS", 1e12)
    code, _, err = warifu("init", "device", "low", "--core", "cortex-m0", "--clock", "32kHz")
    assert code == USAGE
    line = one_line(err)
    assert line.startswith("warifu: low: at a clock of 32 kHz no profile can be made (")
    assert line.endswith("check --clock and the figures that were given")
    assert "low.toml" not in line and not Path("profiles").exists()


def test_study_and_device_are_told_apart(warifu: Run) -> None:
    code, out, _ = warifu("init", "--list")
    assert code == OK and "smart-meter" in out
    assert warifu("init", "meter.toml")[0] == OK
    assert Path("meter.toml").exists()
    assert warifu("init", "./device")[0] == OK
    assert tomllib.loads(Path("device").read_text())["name"] == "smart-meter"
    code, out, _ = warifu("init", "--template", "smart-meter", "-")
    assert code == OK and out == Path("meter.toml").read_text()
    code, _, err = warifu("init", "device")
    assert code == USAGE and "NAME" in err
    code, _, err = warifu("init", "device", "b", "--ecdsa-sign", "45 parsecs", *BOARD)
    assert code == USAGE and "--ecdsa-sign 45 parsecs: expected a duration" in one_line(err)


def test_lists(warifu: Run) -> None:
    code, out, _ = warifu("devices", "--format", "json")
    assert code == OK
    rows = {row["name"]: row for row in json.loads(out)["tables"][0]["rows"]}
    assert rows["nrf52840"]["core"] == "cortex-m4"
    assert rows["nrf52840"]["evidence"] == "published"
    assert rows["nrf9160"]["evidence"] == "assumed"
    assert rows["nrf52840"]["sign.ecdsa_secp256r1_ns"] == 37_643_000
    code, out, _ = warifu("devices", "--key-stores")
    assert code == OK and "1 in 5 s" in out
    assert "nb-iot" in warifu("devices", "--links")[1]
    # Every list fits a terminal, and a name stands in it as it is typed.
    lists = [("devices",), ("devices", "--key-stores"), ("devices", "--links"), ("init", "--list")]
    for what in lists:
        assert max(map(len, warifu(*what)[1].splitlines())) <= 80
    assert "iot-safe-sakomoto-agent " in warifu("devices", "--key-stores")[1]


@pytest.mark.parametrize(
    ("folder", "options", "listed"),
    [
        ("devices", (), "nrf52840"),
        ("key-stores", ("--key-stores",), "optiga-trust-m"),
        ("links", ("--links",), "nb-iot"),
    ],
)
@pytest.mark.parametrize("content", [b'name = "odd\n', b"\xff\xfe\x00"])
def test_a_broken_profile_hides_no_other(
    warifu: Run, folder: str, options: tuple[str, ...], listed: str, content: bytes
) -> None:
    file = Path("profiles", folder, "odd.toml")
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    code, out, err = warifu("devices", *options)
    assert code == USAGE
    assert listed in out and "odd" not in out
    line = one_line(err)
    assert line.startswith(f"warning: {file}: ")
    assert line.endswith("; it is left out: mend it, or move it away")


@pytest.mark.parametrize("option", ["--ram", "--flash"])
def test_a_memory_has_bytes(warifu: Run, option: str) -> None:
    code, _, err = warifu("init", "device", "none", *BOARD, option, "0KiB")
    assert code == USAGE
    assert f"{option} 0KiB: expected a size above 0" in one_line(err)


def test_judgement_command_can_fail(
    warifu: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passes for the shipped devices; fails where RSA spreads by a thousand in six of sixty."""
    code, out, _ = warifu("devices", "--judge")
    assert code == OK
    assert max(map(len, out.splitlines())) <= 80
    folder = tmp_path / "wrong" / "devices"
    folder.mkdir(parents=True)
    row = (
        '[[primitive]]\nname = "{}"\nwarm = "{} us"\ncode = "c"\nsource = "s"\nkind = "measured"\n'
    )
    for index in range(60):
        text = (
            f'name = "d{index}"\ndescription = "d"\ncore = "cortex-m4"\nclock = "64 MHz"\n'
            'code = "c"\n' + row.format("sign.ecdsa_secp256r1", 45_000 + 7 * index)
        )
        if index < 6:
            text += row.format("sign.rsa-2048", 1000 ** (1 + index % 2))
            text += row.format("verify.rsa-2048", 1000 ** (1 + (index + 1) % 2))
        (folder / f"d{index}.toml").write_text(text)
    monkeypatch.setattr("warifu.study.shipped_folders", lambda: [tmp_path / "wrong"])
    code, out, _ = warifu("devices", "--judge")
    assert code == FAILED
    assert re.search(r"RSA-2048 .* fail", out)


def test_a_terminal_is_asked_until_it_answers(warifu: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = ["z80", "m33", "slow", "128MHz", "polarssl", "", "rust", "Assembly"]
    answers += ["a while", "12 ms", *[""] * 6]
    asked: list[str] = []

    def prompt(text: str, **_: object) -> str:
        asked.append(text)
        return answers.pop(0)

    monkeypatch.setattr("warifu.cli.init._is_terminal", lambda: True)
    monkeypatch.setattr("typer.prompt", prompt)
    code, _, err = warifu("init", "device", "desk-board")
    assert code == OK, err
    assert answers == []
    assert asked[:6] == ["core", "core", "clock", "clock", "TLS library", "TLS library"]
    assert asked[6] == asked[7] and "assembly is up to ten times as quick" in asked[6]
    assert "expected one of assembly, c, hardware" in err
    assert profile("desk-board")["code"]["value"] == "assembly"  # type: ignore[index]
    assert "--library polarssl: expected one of mbedtls-3.6" in err
    assert "expected one of cortex-m0" in err and "expected a clock such as" in err
    # A name that is taken is told before anything is asked.
    code, _, err = warifu("init", "device", "desk-board")
    assert code == USAGE and "is there already" in one_line(err)
    table = profile("desk-board")
    assert table["core"]["value"] == "cortex-m33"  # type: ignore[index]
    assert figures(table)["sign.ecdsa_secp256r1"]["warm"] == "12000000 ns"

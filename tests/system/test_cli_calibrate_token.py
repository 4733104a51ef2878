# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu calibrate token` as a person uses it: from a token to a prediction, mistakes, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
import uuid
from pathlib import Path

import pytest

from support import tokens
from support.commands import Run, one_line
from support.tokens import P256, P384, PIN, RSA, SOFTHSM
from warifu.cli.errors import ENVIRONMENT, INTERRUPTED, OK, USAGE

pytestmark = pytest.mark.usefixtures("elsewhere")

CALIBRATE = ("calibrate", "token", "--module", str(SOFTHSM))


@pytest.fixture
def softhsm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens with one key, with several, and with keys that cannot be timed; files `pin`, ..."""
    keys = {
        "one": {"k1": P256},
        "several": {"k1": P256, "k2": P256},
        "others": {"r": RSA, "p": P384},
        "empty": {},
    }
    for name, value in tokens.softhsm(tmp_path, keys).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "pin").write_text(f"{PIN}\n")
    (tmp_path / "wrong").write_text("9999\n")
    (tmp_path / "blank").write_text("\n")


@pytest.mark.smoke
@pytest.mark.usefixtures("softhsm")
def test_a_tokens_profile_is_predicted_with(
    warifu: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles = tmp_path / "mine" / "key-stores"
    out = profiles / "my-token.toml"
    arguments = ("--token", "one", "--pin-file", "pin", "-n", "3", "--out", str(out))
    code, text, said = warifu(*CALIBRATE, *arguments, "--format", "json")
    assert code == OK, said
    modes, calls = (table["rows"] for table in json.loads(text)["tables"])
    assert {row["mode"] for row in modes} == {"local_sw", "sign_only", "total"}
    assert {row["of"] for row in modes} == {"machine", "token", "paper"}
    assert {row["call"] for row in calls} == {
        "command", "C_OpenSession", "C_Login", "C_FindObjects", "C_SignInit", "C_Sign",
    }  # fmt: skip
    assert "measured, because another maker's module answered" in said
    monkeypatch.setenv("WARIFU_PROFILES", str(profiles.parent))
    machine = ("--device", "xeon-2-5-ghz-vm", "--server", "xeon-2-5-ghz-vm")
    choices = ("--key-store", "my-token", "--set", "stack.authentication=mutual")
    code, _, said = warifu("predict", *machine, *choices, "--set", "predict_trials=50",
                           "--out", "here")  # fmt: skip
    assert code == OK, said
    manifest = json.loads((tmp_path / "here" / "predicted" / "manifest.json").read_text())
    assert tomllib.loads(out.read_text())["run_id"] in manifest["calibration_run_ids"]


def test_a_profile_goes_where_it_is_looked_for(
    warifu: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    virtual = ("calibrate", "token", "--virtual-card", "iot-safe-sakomoto", "-n", "2")
    code, _, said = warifu(*virtual)
    assert code == OK, said
    assert (tmp_path / "profiles" / "key-stores" / "virtual-iot-safe-sakomoto.toml").is_file()
    (tmp_path / "mine").mkdir()
    monkeypatch.setenv("WARIFU_PROFILES", str(tmp_path / "mine"))
    assert warifu(*virtual, "--name", "mine")[0] == OK
    assert (tmp_path / "mine" / "key-stores" / "mine.toml").is_file()
    code, _, said = warifu(*virtual, "--name", "software")
    assert (code, "would hide" in said, "software.toml" in said) == (ENVIRONMENT, True, True)
    assert not (tmp_path / "mine" / "key-stores" / "software.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "expected either --module or --virtual-card"),
        (("--module", "x.so", "--virtual-card", "y"), "expected either --module or --virtual-card"),
        (("--module", "nowhere.so"), "nowhere.so: not found: name the module of the token"),
        (("--module", "/usr/lib"), "/usr/lib: is a folder: name a module in it"),
        (("--module", str(SOFTHSM), "-n", "1"), "greater than or equal to 2"),
        (("--module", str(SOFTHSM), "--name", "My Token"), "such as my-token"),
        (("--module", str(SOFTHSM), "--out", "x.json"), "expected a name that ends with .toml"),
        (("--module", str(SOFTHSM), "--out", "x.toml", "--name", "x"), "omit --name"),
        (("--module", str(SOFTHSM), "--pin"), "no terminal to ask for the PIN at"),
        (
            ("--module", str(SOFTHSM), "--pin-file", "blank"),
            "--pin-file blank: its first line is empty",
        ),
        (("--virtual-card", "nope"), "--virtual-card nope: expected a file, or one of: iot-safe"),
        (("--virtual-card", "iot-safe-sakomoto", "--fresh"), "--fresh needs --module"),
        (("--virtual-card", "iot-safe-sakomoto", "--kind", "measured"), "--kind needs --module"),
    ],
)
def test_a_mistake_in_the_command_is_code_2(
    warifu: Run, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    (tmp_path / "blank").write_text("\n")
    code, out, said = warifu("calibrate", "token", *arguments)
    assert (code, out) == (USAGE, "")
    assert says in one_line(said)


@pytest.mark.usefixtures("softhsm")
def test_what_a_token_does_not_have_is_named(warifu: Run, tmp_path: Path) -> None:
    with_pin = ("--pin-file", "pin")
    for arguments, says in (
        (with_pin, "there are several tokens: choose one of these with --token"),
        (("--token", "none", *with_pin), "no token has the label none"),
        (("--token", "one"), "token one needs a PIN: use --pin-file or --pin"),
        (("--token", "one", "--pin-file", "wrong"), "(CKR_PIN_INCORRECT): it was tried once"),
        (("--token", "one", "--pin-file", "gone"), "gone: No such file"),
        (("--token", "several", *with_pin), "has several keys on P-256: choose one with --key"),
        (("--token", "one", "--key", "x", *with_pin), "with label x: it has k1 (P-256)"),
        (("--token", "others", "--key", "r", *with_pin), "r (RSA)"),
        (("--token", "others", *with_pin), "p (P-384)"),
        (("--token", "empty", *with_pin), "it shows none to this user"),
    ):
        code, out, said = warifu(*CALIBRATE, "-n", "2", "--out", "x.toml", *arguments)
        assert (code, out) == (ENVIRONMENT, ""), arguments
        assert says in one_line(said)
    assert not (tmp_path / "x.toml").exists()


def test_what_is_no_module_is_named(warifu: Run, tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no library\n")
    c_library = Path(f"/lib/{os.uname().machine}-linux-gnu/libm.so.6")
    for module, says in (
        (Path("text.so"), "text.so: file too short: name the token's PKCS#11 module"),
        (c_library, "libm.so.6: not a PKCS#11 module (it has no C_GetFunctionList)"),
    ):
        code, _, said = warifu("calibrate", "token", "--module", str(module), "-n", "2")
        assert code == ENVIRONMENT
        assert one_line(said).count(module.name) == 1
        assert says in said


def test_our_module_without_a_card_says_where_it_looked(
    warifu: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from warifu import tools

    module = str(tools.find("libwarifu_pkcs11.so"))
    monkeypatch.setenv("WARIFU_CARD", "unix:/nowhere/card.sock")
    code, _, said = warifu("calibrate", "token", "--module", module, "-n", "2")
    assert code == ENVIRONMENT
    assert "WARIFU_CARD=unix:/nowhere/card.sock" in one_line(said)
    assert "`warifu card serve`" in said


@pytest.mark.smoke
@pytest.mark.usefixtures("softhsm")
def test_ctrl_c_keeps_the_profile_that_was_there(tmp_path: Path) -> None:
    mark, out = uuid.uuid4().hex, tmp_path / "token.toml"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    before = "# Written by `warifu calibrate token`, some time ago\n"
    out.write_text(before)
    arguments = ("--token", "one", "--pin-file", "pin", "-n", "1000000", "--out", str(out))
    child = subprocess.Popen(
        [sys.executable, "-m", "warifu.cli", *CALIBRATE, *arguments],
        env=os.environ | {tokens.MARK: mark, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        # The bench's first line introduces the token, each other one is a trial.
        while lines_of_bench(scratch) < 2:
            assert child.poll() is None, child.communicate()[1]
            assert time.monotonic() < deadline, "the bench has timed nothing"
            time.sleep(0.05)
        assert len(tokens.left_with(mark)) >= 2, "the command and the bench"
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=120)
    finally:
        child.kill()
    assert child.returncode == INTERRUPTED
    assert "no profile was written, and an earlier one is unchanged" in one_line(said)
    assert out.read_text() == before
    assert tokens.left_with(mark) == []
    assert list(scratch.iterdir()) == []


def lines_of_bench(scratch: Path) -> int:
    """Lines that the bench has written so far, into a temporary folder of the command."""
    return sum(
        output.read_bytes().count(b"\n") for output in scratch.glob("warifu-calibrate-*/output")
    )

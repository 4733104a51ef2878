# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Tokens of other makers, made for a test: SoftHSM2's, and a TPM 2.0's, which swtpm stands in for.
And which processes a test has left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from warifu.lab.processes import Process

SOFTHSM = Path("/usr/lib/softhsm/libsofthsm2.so")
TPM = Path(f"/usr/lib/{os.uname().machine}-linux-gnu/pkcs11/libtpm2_pkcs11.so")
PIN = "1234"
MARK = "WARIFU_TEST_MARK"
"""An environment variable that a test's processes hand on to theirs."""

P256, P384, RSA = "EC:prime256v1", "EC:secp384r1", "rsa:2048"


def tool(module: Path, environment: Mapping[str, str], *arguments: str) -> str:
    """What OpenSC's pkcs11-tool prints."""
    done = subprocess.run(
        ["pkcs11-tool", "--module", module, *arguments],
        env=os.environ | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def softhsm(folder: Path, keys: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Tokens by label with their keys, label to type. What leads SoftHSM2 to them."""
    (folder / "tokens").mkdir()
    file = folder / "softhsm2.conf"
    file.write_text(f"directories.tokendir = {folder / 'tokens'}\n")
    environment = {"SOFTHSM2_CONF": str(file)}
    for label, of_token in keys.items():
        subprocess.run(
            ["softhsm2-util", "--init-token", "--free", "--label", label, "--pin", PIN,
             "--so-pin", PIN],
            env=os.environ | environment, check=True, capture_output=True,
        )  # fmt: skip
        for number, (key, kind) in enumerate(of_token.items(), 1):
            make_key(SOFTHSM, environment, label, key, kind, number)
    return environment


@contextlib.contextmanager
def tpm() -> Iterator[dict[str, str]]:
    """A TPM 2.0 with the token `tpm` and its key `k1`, made through the module alone. What leads
    tpm2-pkcs11 to it."""
    # Not pytest's folder: the path of a socket has 107 bytes at most (unix(7)).
    folder = Path(tempfile.mkdtemp(prefix="warifu-tpm-"))
    # tpm2-tss takes this name of the control socket for granted (tss2-tcti/tcti-swtpm.c).
    socket, control = folder / "tpm.sock", folder / "tpm.sock.ctrl"
    (folder / "state").mkdir()
    (folder / "store").mkdir()
    process = Process(
        "swtpm",
        ["swtpm", "socket", "--tpm2", "--tpmstate", f"dir={folder / 'state'}",
         "--server", f"type=unixio,path={socket}", "--ctrl", f"type=unixio,path={control}",
         "--flags", "not-need-init,startup-clear"],
        log=folder / "log",
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 10
        while not (socket.exists() and control.exists()):
            assert process.exit_code() is None, process.log_tail()
            assert time.monotonic() < deadline, process.log_tail()
            time.sleep(0.01)
        environment = {
            "TPM2_PKCS11_STORE": str(folder / "store"),
            "TPM2_PKCS11_TCTI": f"swtpm:path={socket}",
        }
        login = ["--token-label", "tpm", "--login", "--so-pin", PIN]
        tool(TPM, environment, "--slot-index", "0", "--init-token", "--label", "tpm",
             "--so-pin", PIN)  # fmt: skip
        tool(TPM, environment, *login, "--init-pin", "--pin", PIN)
        make_key(TPM, environment, "tpm", "k1", P256, 1)
        yield environment
    finally:
        process.stop()
        shutil.rmtree(folder)


def make_key(
    module: Path, environment: Mapping[str, str], token: str, label: str, kind: str, number: int
) -> None:
    """A key pair that is generated in a token."""
    tool(module, environment, "--token-label", token, "--login", "--pin", PIN, "--keypairgen",
         "--key-type", kind, "--label", label, "--id", f"{number:02x}")  # fmt: skip


def left_with(mark: str) -> list[int]:
    """Processes that have this mark in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{MARK}={mark}\0".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found

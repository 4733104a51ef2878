# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What programs meet when a card, a reader or a modem is not there, or goes away; and forks."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import programs, sim
from support.paths import ROOT
from support.programs import KEY, PIN, Authority, Device, Running, free_port, module, run

#: Far above what a definite error takes, far below what a person takes for a hang.
NO_HANG_S = 25.0


def errors_of(environment: dict[str, str]) -> list[str]:
    """The lines of the module on stderr when pkcs11-tool lists objects."""
    command = ("pkcs11-tool", "--module", module(), "--list-objects")
    done = run(*command, environment=environment, check=False, patience_s=NO_HANG_S)
    assert done.returncode != 0
    return [line for line in done.stderr.splitlines() if "warifu" in line]


@pytest.mark.parametrize(
    ("card", "names", "hint"),
    [
        ("unix:{}/none.sock", "{}/none.sock", "set WARIFU_CARD to what it printed"),
        ("pcsc", "PC/SC service is not running", "systemctl start pcscd"),
        ("csim:{}/ttyNone", "{}/ttyNone", "is it plugged in"),
        ("socket:{}/x", "card is", "expected unix:/path"),
    ],
)
def test_missing_card_is_reported_in_one_line(
    tmp_path: Path, card: str, names: str, hint: str
) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "WARIFU_CARD": card.format(tmp_path),
        "PCSCLITE_CSOCK_NAME": str(tmp_path / "pcscd.comm"),
    }
    (line,) = errors_of(environment)
    assert line.startswith("warifu-pkcs11: ")
    assert names.format(tmp_path) in line
    assert hint in line


def test_missing_reader_is_not_reported_if_another_card_works(
    device: Device, tmp_path: Path
) -> None:
    """Without an address the default ones are tried."""
    (tmp_path / "warifu").mkdir()
    (tmp_path / "warifu" / "card.sock").symlink_to(device.socket)
    environment = device.environment | {
        "XDG_RUNTIME_DIR": str(tmp_path),
        "PCSCLITE_CSOCK_NAME": str(tmp_path / "pcscd.comm"),
    }
    del environment["WARIFU_CARD"]
    command = ("pkcs11-tool", "--module", module(), "--list-objects")
    done = run(*command, environment=environment)
    assert "Public Key Object" in done.stdout
    assert "warifu" not in done.stderr
    (tmp_path / "warifu" / "card.sock").unlink()
    (line,) = errors_of(environment)
    assert "warifu card serve" in line
    assert "systemctl start pcscd" in line


def test_all_channels_in_use(device: Device) -> None:
    with contextlib.ExitStack() as open_clients:
        for _ in range(4):
            client = open_clients.enter_context(sim.Client(device.socket))
            assert client.status(sim.SELECT) == 0x9000
        (line,) = errors_of(device.environment)
    assert "all logical channels of the card are in use" in line


@contextlib.contextmanager
def handshake(
    device: Device, authority: Authority, operator: tuple[Path, Path]
) -> Iterator[Running]:
    """A client in the middle of a signature by a slow card."""
    certificate, key = operator
    port = free_port()
    server = Running(
        "openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", certificate, "-key", key,
        "-CAfile", authority.certificate, "-Verify", "1", "-verify_return_error",
        "-www", environment=device.environment, log=device.folder / "s_server",
    )  # fmt: skip
    with server:
        server.until("ACCEPT")
        client = Running(
            "openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-engine", "pkcs11",
            "-keyform", "engine", "-key", KEY, "-cert", device.certificate,
            environment=device.environment, log=device.folder / "s_client",
        )  # fmt: skip
        with client:
            end = time.monotonic() + programs.PATIENCE_S
            while "COMPUTE SIGNATURE - INIT" not in device.trace_text():
                assert time.monotonic() < end
                time.sleep(0.005)
            yield client


@pytest.fixture
def slow(tmp_path: Path, authority: Authority) -> Iterator[Device]:
    """A card with the times of the paper."""
    profile = ROOT / "profiles/cards/iot-safe-sakomoto.toml"
    made = Device(tmp_path, authority, timing={"profile": profile, "seed": 1})
    with made.server:
        yield made


def test_card_removed_during_a_handshake(
    slow: Device, authority: Authority, operator: tuple[Path, Path]
) -> None:
    with handshake(slow, authority, operator) as client:
        slow.server.stop(signal.SIGKILL)
        assert client.process.wait(timeout=NO_HANG_S) != 0
        lines = [line for line in client.said().splitlines() if "warifu-pkcs11" in line]
    assert len(lines) == 1
    assert "closed the connection" in lines[0]
    assert slow.signatures() == []
    assert "C_Sign CKR_DEVICE_REMOVED" in slow.trace_text()


def test_card_without_answer_during_a_handshake(
    slow: Device, authority: Authority, operator: tuple[Path, Path]
) -> None:
    config = slow.folder / ".config" / "warifu"
    config.mkdir(parents=True)
    (config / "pkcs11.toml").write_text("timeout_ms = 1500\n")
    with handshake(slow, authority, operator) as client:
        slow.server.process.send_signal(signal.SIGSTOP)
        try:
            assert client.process.wait(timeout=NO_HANG_S) != 0
        finally:
            slow.server.process.send_signal(signal.SIGCONT)
        assert "within the deadline" in client.said()
    assert "C_Sign CKR_DEVICE_ERROR" in slow.trace_text()


@pytest.mark.parametrize("pin", [None, PIN])
def test_card_removed_and_inserted(
    tmp_path: Path, authority: Authority, operator: tuple[Path, Path], pin: str | None
) -> None:
    """A server continues, unless the card needs its PIN, which the module does not keep."""
    device = Device(tmp_path, authority, pin=pin)
    certificate, key = operator
    port = free_port()
    server = Running(
        "openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-engine", "pkcs11",
        "-keyform", "engine", "-key", KEY, "-cert", device.certificate, "-www",
        environment=device.environment, log=device.folder / "s_server",
    )  # fmt: skip
    client = (
        "openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-cert", certificate, "-key", key,
        "-CAfile", authority.certificate, "-verify_return_error", "-ign_eof",
    )  # fmt: skip

    def connect() -> int:
        request = "GET / HTTP/1.0\r\n\r\n"
        done = run(*client, environment=device.environment, stdin=request, check=False)
        return done.returncode

    with device.server, server:
        server.until("ACCEPT")
        assert connect() == 0
        device.server.stop(signal.SIGKILL)
        assert connect() != 0
        with sim.Server(device.state, socket=device.socket):
            assert (connect() == 0) == (pin is None)
    if pin is not None:
        assert "User not logged in" in server.said()


def test_forked_children_use_the_module(device: Device) -> None:
    script = Path(__file__).with_name("forked.py")
    done = run(sys.executable, script, module(), PIN, 12, environment=device.environment)
    assert done.stderr == ""
    # Twelve children, every other of which has a child and signs twice.
    pids = [signature.pid for signature in device.signatures()]
    assert len(set(pids)) == 1 + 12 + 6

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The card on its Unix socket, and the server around it."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from support import sim
from support.paths import ROOT
from support.sim import ATR, GENERATE_EPHEMERAL, RANDOM, SELECT, Client, Server
from warifu import tools


def test_command_and_answer(state: Path, tmp_path: Path) -> None:
    path = tmp_path / "card.sock"
    with Server(state, socket=path) as server:
        assert server.ready["socket"] == str(path)
        assert path.stat().st_mode & 0o777 == 0o600
        with Client(path) as client:
            assert client.reset() == ATR
            assert client.status(RANDOM) == 0x6985
            assert client.status(SELECT) == 0x9000
            answer = client.transmit(RANDOM)
            assert (len(answer), answer[-2:]) == (10, b"\x90\x00")
            assert client.status(b"\x00") == 0x6700


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_the_server_cleanly(
    state: Path, tmp_path: Path, number: signal.Signals
) -> None:
    path, link = tmp_path / "card.sock", tmp_path / "modem"
    with Server(state, socket=path, at=True, link=link) as server, Client(path):
        assert link.is_symlink()
        assert server.stop(number) == 0
    assert not path.exists()
    assert not link.is_symlink()


def test_clients_have_separate_channels(state: Path, tmp_path: Path) -> None:
    path = tmp_path / "card.sock"
    with Server(state, socket=path), Client(path) as agent:
        opened = agent.transmit(bytes.fromhex("0070000001"))
        assert opened == b"\x01\x90\x00"
        assert agent.status(b"\x01" + SELECT[1:]) == 0x9000
        assert agent.status(b"\x81" + GENERATE_EPHEMERAL[1:]) >> 8 == 0x90
        for _ in range(10):  # more than the card has channels: each gives its own back
            with Client(path) as other:
                assert other.reset() == ATR
                assert other.status(RANDOM) == 0x6985
                assert other.status(SELECT) == 0x9000
                assert other.status(RANDOM) == 0x9000
                assert other.transmit(bytes.fromhex("0070000001"))[-2:] == b"\x90\x00"
        # Neither the resets nor the ends of the others took what is the agent's.
        assert agent.status(b"\x81" + RANDOM[1:]) == 0x9000
        read = bytes.fromhex("81CD00000385010400")
        assert agent.status(read) == 0x9000


def test_concurrent_clients_get_their_own_answers(state: Path, tmp_path: Path) -> None:
    path = tmp_path / "card.sock"
    wrong: list[str] = []

    def use(number: int) -> None:
        with Client(path) as client:
            for count in range(50):
                # GET RANDOM of a length of one's own: another's answer has another length.
                length = 1 + (number * 50 + count) % 200
                client.transmit(SELECT) if count == 0 else None
                answer = client.transmit(bytes([0x80, 0x84, 0, 0, length]))
                if len(answer) != length + 2:
                    wrong.append(f"client {number}: {answer.hex()}")

    with Server(state, socket=path):
        threads = [threading.Thread(target=use, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_socket_of_killed_and_running_servers(state: Path, tmp_path: Path) -> None:
    path = tmp_path / "card.sock"
    with Server(state, socket=path) as server:
        server.process.kill()
        server.process.wait()
    assert path.exists()
    with Server(state, socket=path):
        with pytest.raises(RuntimeError, match="in use by process"):
            Server(state, socket=tmp_path / "other.sock")
        other = tmp_path / "other.state"
        sim.ask("create", state=other)
        with pytest.raises(RuntimeError, match="another server is using it"):
            Server(other, socket=path)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RuntimeError, match="not a socket"):
        Server(state, socket=tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_timing_model(state: Path, tmp_path: Path) -> None:
    profile = tmp_path / "slow.toml"
    shipped = (ROOT / "profiles" / "cards" / "iot-safe-sakomoto.toml").read_text()
    names = [
        "manage_channel", "select", "verify_pin", "get_data", "read_file", "get_random",
        "generate_key_pair", "read_public_key", "put_public_key", "compute_signature",
        "verify_signature", "compute_dh", "derive", "session", "other",
    ]  # fmt: skip
    assert all(name in shipped for name in names)
    laws = "".join(f'{name} = "20 ms"\n' for name in names)
    head = 'name = "slow"\ndescription = "a test"\nexchange = "5 ms"\nbyte = "0 ms"\n'
    profile.write_text(f"{head}[operation]\n{laws}")
    path = tmp_path / "card.sock"
    with Server(state, socket=path, timing={"profile": profile, "seed": 1}) as server:
        assert server.ready["timing"] == "slow"
        with Client(path) as client:
            begin = time.monotonic()
            for _ in range(8):
                client.transmit(SELECT)
            took_s = time.monotonic() - begin
    # Never early; how late depends on the machine.
    assert took_s >= 8 * 0.025


def test_faults(state: Path, tmp_path: Path) -> None:
    path = tmp_path / "card.sock"
    script = "script\nok\nwrong_status\nremoved 1\nok\nok\nreset\nok\nlost\n"
    with Server(state, socket=path, faults=script) as server:
        with Client(path) as client:
            assert client.status(SELECT) == 0x9000
            assert client.status(RANDOM) == 0x6F00
            with pytest.raises(EOFError):
                client.transmit(RANDOM)
        with Client(path) as client:
            assert client.status(RANDOM) == 0x6985, "it was out, and has forgotten"
            assert client.status(SELECT) == 0x9000
            assert client.transmit(RANDOM) == b"", "it was reset"
            assert client.status(SELECT) == 0x9000
            # Not before: a busy machine may take longer for what is answered.
            client.socket.settimeout(0.5)
            with pytest.raises(TimeoutError):
                client.transmit(RANDOM)
        assert server.process.stdout is not None
        assert server.stop() == 0
        stopped = server.process.stdout.readline()
    assert '"lost answer":1' in stopped
    assert '"reset":1' in stopped


def test_invalid_options_are_one_line(state: Path, tmp_path: Path) -> None:
    for request, expected in (
        ({}, "no interface to serve"),
        ({"sokket": "x"}, "sokket"),
        ({"socket": "/" + "x" * 200}, "at most 107 bytes"),
        ({"socket": tmp_path / "card.sock", "faults": "lost=2"}, "--faults: lost is 2"),
        ({"socket": tmp_path / "s", "timing": {"profile": tmp_path / "none.toml"}}, "none.toml"),
    ):
        with pytest.raises(RuntimeError, match=expected) as caught:
            Server(state, **request)
        assert len(str(caught.value).strip().splitlines()) == 1
    assert not (tmp_path / "card.sock").exists()


def test_help() -> None:
    done = subprocess.run(
        [tools.find("warifu-card-server"), "--help"], capture_output=True, text=True, check=True
    )
    for key in ("state", "socket", "pcsc", "faults", "keys are in a file"):
        assert key in done.stdout

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The card in a reader of the real pcscd, in a namespace. Needs root, as the lab does."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import needs
from support.sim import ATR, RANDOM, SELECT, Client, Server
from warifu import tools
from warifu.doctor import card, pcsc

pytestmark = needs.root


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """For pcscd's socket, beside any other pcscd's. One for all: libpcsclite asks but once."""
    path = tmp_path_factory.mktemp("pcscd")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PCSCLITE_CSOCK_NAME", str(path / "pcscd.comm"))
        yield path


@pytest.fixture
def pcscd(state: Path, tmp_path: Path, folder: Path) -> Iterator[tuple[Server, Path]]:
    """A served card in a reader and on a socket."""
    path = tmp_path / "card.sock"
    with Server(state, pcsc=True, pcscd_dir=folder, socket=path) as server:
        yield server, path


def pcscd_processes() -> set[str]:
    found = set()
    for entry in Path("/proc").glob("[0-9]*/comm"):
        try:
            if entry.read_text().strip() == "pcscd":
                found.add(entry.parent.name)
        except OSError:
            continue  # it ended meanwhile
    return found


@pytest.mark.smoke
def test_pkcs11_tool_through_pcscd(pcscd: tuple[Server, Path]) -> None:
    server, path = pcscd
    with pcsc.Pcsc() as service:
        assert server.ready["reader"] in service.readers()
        reader = service.connect(server.ready["reader"])
        assert reader.transmit(SELECT) == b"\x90\x00"
        assert len(reader.transmit(RANDOM)) == 10
        # A client at the socket does not disturb the reader's.
        with Client(path) as client:
            assert client.reset() == ATR
            assert client.status(RANDOM) == 0x6985
            assert client.status(SELECT) == 0x9000
        assert len(reader.transmit(RANDOM)) == 10
        reader.disconnect(reset=True)
        reader = service.connect(server.ready["reader"])
        assert reader.transmit(RANDOM) == b"\x69\x85", "it was reset"
        reader.disconnect()


def test_program_that_allows_no_threads(pcscd: tuple[Server, Path]) -> None:
    server, _ = pcscd
    script = Path(__file__).with_name("without_threads.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tools.find("libwarifu_pkcs11.so"))],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=os.environ | {"WARIFU_CARD": f"pcsc:{server.ready['reader']}"},
    )
    assert done.stdout.split() == ["0", "0", "1", "0", "0", "1"], done.stdout + done.stderr


@needs.program("p11tool")
def test_gnutls_sees_the_token_of_a_reader(pcscd: tuple[Server, Path]) -> None:
    """It lets modules start no threads (CKF_LIBRARY_CANT_CREATE_OS_THREADS), and then saw none."""
    server, _ = pcscd
    done = subprocess.run(
        ["p11tool", "--provider", tools.find("libwarifu_pkcs11.so"), "--list-tokens"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=os.environ | {"WARIFU_CARD": f"pcsc:{server.ready['reader']}"},
    )
    tokens = done.stdout.split("Token ")
    assert [one for one in tokens if "\tLabel: warifu\n" in one], done.stdout + done.stderr


def test_reader_port_is_in_a_network_namespace(pcscd: tuple[Server, Path]) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", 35963), timeout=1)


def test_doctor_with_a_working_card(pcscd: tuple[Server, Path]) -> None:
    found = list(card.of_reader())
    assert [(one.name, one.status) for one in found] == [
        ("pcscd", "ok"), ("reader", "ok"), ("card", "ok"), ("channel", "ok"), ("applet", "ok"),
    ]  # fmt: skip
    other = list(card.of_reader("Acme"))
    assert (other[-1].name, other[-1].status) == ("reader", "missing")
    assert "Virtual PCD" in other[-1].hint


def test_cleanup(state: Path, folder: Path) -> None:
    before = pcscd_processes()
    with Server(state, pcsc=True, pcscd_dir=folder) as server:
        assert pcscd_processes() - before
        assert server.stop() == 0
    assert pcscd_processes() == before
    assert not list(folder.iterdir())
    with Server(state, pcsc=True, pcscd_dir=folder) as server:
        server.process.kill()
        server.process.wait()
    until = time.monotonic() + 10
    while pcscd_processes() != before:
        assert time.monotonic() < until, "pcscd ends with a server that was killed"
        time.sleep(0.05)


def test_card_removed_and_inserted(state: Path, folder: Path) -> None:
    with (
        Server(state, pcsc=True, pcscd_dir=folder, faults="script\nok\nremoved 1\n") as server,
        pcsc.Pcsc() as service,
    ):
        reader = service.connect(server.ready["reader"])
        assert reader.transmit(SELECT) == b"\x90\x00"
        # pcscd gives an empty answer, or already knows better.
        with contextlib.suppress(pcsc.PcscError):
            assert reader.transmit(RANDOM) == b""
        assert until_selected(service, server.ready["reader"])


def until_selected(service: pcsc.Pcsc, reader: str) -> bool:
    """Whether a card in the reader lets itself be selected within 10 s."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        with contextlib.suppress(pcsc.PcscError):
            card = service.connect(reader)
            try:
                if card.transmit(SELECT) == b"\x90\x00":
                    return True
            finally:
                card.disconnect()
        time.sleep(0.1)
    return False


def test_doctor_without_pcscd(folder: Path) -> None:
    assert not (folder / "pcscd.comm").exists()
    found = list(card.of_reader())
    assert [(one.name, one.status) for one in found] == [("pcscd", "missing")]
    assert "pcscd" in found[0].hint

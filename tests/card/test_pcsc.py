# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The card in a reader of the real pcscd, in a namespace of its own. Needs root, as the lab does."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from sim import ATR, RANDOM, SELECT, Client, Server

from warifu.doctor import card, pcsc


@pytest.fixture
def pcscd(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Server, Path]]:
    """A served card in a reader, for this test alone: pcscd's socket is in its own folder."""
    folder = tmp_path / "pcscd"
    monkeypatch.setenv("PCSCLITE_CSOCK_NAME", str(folder / "pcscd.comm"))
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


def test_a_program_reaches_the_card_through_pcscd(pcscd: tuple[Server, Path]) -> None:
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


def test_the_readers_port_is_nobody_elses(pcscd: tuple[Server, Path]) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", 35963), timeout=1)


def test_the_doctor_goes_the_way_to_the_applet(pcscd: tuple[Server, Path]) -> None:
    found = list(card.of_reader())
    assert [(one.name, one.status) for one in found] == [
        ("pcscd", "ok"), ("reader", "ok"), ("card", "ok"), ("applet", "ok"),
    ]  # fmt: skip
    other = list(card.of_reader("Acme"))
    assert (other[-1].name, other[-1].status) == ("reader", "missing")
    assert "Virtual PCD" in other[-1].mend


def test_nothing_is_left(state: Path, tmp_path: Path) -> None:
    before = pcscd_processes()
    folder = tmp_path / "pcscd"
    with Server(state, pcsc=True, pcscd_dir=folder) as server:
        assert pcscd_processes() - before
        assert server.stop() == 0
    assert pcscd_processes() == before
    assert not list(folder.iterdir())
    with Server(state, pcsc=True, pcscd_dir=folder) as server:
        server.process.kill()
        server.process.wait()
    for _ in range(100):
        if pcscd_processes() == before:
            break
        os.sched_yield()
        __import__("time").sleep(0.05)
    assert pcscd_processes() == before, "pcscd ends with a server that was killed"


def test_a_removed_card_comes_back(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "pcscd"
    monkeypatch.setenv("PCSCLITE_CSOCK_NAME", str(folder / "pcscd.comm"))
    with Server(state, pcsc=True, pcscd_dir=folder, faults="script\nok\nremoved 1\n") as server:
        with pcsc.Pcsc() as service:
            reader = service.connect(server.ready["reader"])
            assert reader.transmit(SELECT) == b"\x90\x00"
            with pytest.raises(pcsc.PcscError):
                reader.transmit(RANDOM)
            again = until_connected(service, server.ready["reader"])
            assert again.transmit(SELECT) == b"\x90\x00"
            again.disconnect()


def until_connected(service: pcsc.Pcsc, reader: str) -> pcsc.Card:
    import time

    until = time.monotonic() + 10
    while True:
        try:
            return service.connect(reader)
        except pcsc.PcscError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def test_without_pcscd_the_doctor_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PCSCLITE_CSOCK_NAME", str(tmp_path / "none"))
    found = list(card.of_reader())
    assert [(one.name, one.status) for one in found] == [("pcscd", "missing")]
    assert "pcscd" in found[0].mend

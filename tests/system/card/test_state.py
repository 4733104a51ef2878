# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The state file: its owner's alone, whole after a kill at any point, refused when corrupt."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import needs, sim
from support.sim import SELECT, Client, Server

#: crates/iotsafe/card-server/src/store.rs
STEPS_PER_SAVE = 6


@contextlib.contextmanager
def full(folder: Path) -> Iterator[None]:
    """A folder without room for a byte, but for the names of more files."""
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=True, capture_output=True
    )
    try:
        with (
            contextlib.suppress(OSError),
            (folder / "ballast").open("wb", buffering=0) as ballast,
        ):
            while True:
                ballast.write(b"x" * 4096)
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def verify(pin: str) -> bytes:
    return bytes.fromhex("0020000108") + pin.encode().ljust(8, b"\xff")


def tries_left(state: Path) -> int:
    return int(sim.ask("list", state=state)["pin"]["tries_left"])


def test_kill_during_save_leaves_old_or_new_state(tmp_path: Path) -> None:
    """A wrong PIN is what a command writes: its count must be down, or nothing was answered."""
    state, path = tmp_path / "card.state", tmp_path / "card.sock"
    sim.ask("create", state=state, pin={"digits": "1234", "scope": "signing", "tries": 15})
    lost = kept = 0
    for step in range(1, STEPS_PER_SAVE + 1):
        before = tries_left(state)
        server = Server(state, {"WARIFU_CARD_KILL_AT": str(step)}, socket=path)
        with server, Client(path) as client:
            assert client.status(SELECT) == 0x9000
            with pytest.raises((EOFError, ConnectionResetError)):
                client.transmit(verify("0000"))
            assert server.process.wait(timeout=20) == -signal.SIGKILL
        after = tries_left(state)
        assert after in (before, before - 1)
        lost, kept = lost + (after == before), kept + (after == before - 1)
        with Server(state, socket=path), Client(path) as client:
            assert client.status(SELECT) == 0x9000, "it goes on"
        assert state.stat().st_mode & 0o777 == 0o600
    assert (lost, kept) == (4, 2), "new from the rename on, which is the fifth of six points"


def test_answered_commands_are_on_disk(tmp_path: Path) -> None:
    state, path = tmp_path / "card.state", tmp_path / "card.sock"
    sim.ask("create", state=state, pin={"digits": "1234", "scope": "signing", "tries": 15})
    for left in range(14, 8, -1):
        server = Server(state, socket=path)
        with server, Client(path) as client:
            assert client.status(SELECT) == 0x9000
            assert client.status(verify("0000")) == 0x63C0 | left
            server.process.kill()
            server.process.wait()
        assert tries_left(state) == left


def test_create_is_atomic(tmp_path: Path) -> None:
    for step in range(1, STEPS_PER_SAVE + 1):
        state = tmp_path / f"{step}.state"
        with pytest.raises(RuntimeError, match="-9"):
            sim.ask("create", {"WARIFU_CARD_KILL_AT": str(step)}, state=state)
        if state.exists():
            sim.ask("list", state=state)
        else:
            sim.ask("create", state=state)


def test_corrupt_state_is_refused_and_kept(state: Path, tmp_path: Path) -> None:
    whole = state.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    for content in (flipped, whole[:-1], whole + b"x", b"", b"not a card" * 100):
        state.write_bytes(content)
        before = digest(state)
        for use in (
            lambda: Server(state, socket=tmp_path / "card.sock"),
            lambda: sim.ask("list", state=state),
            lambda: sim.ask("reset", state=state, erase=True),
        ):
            with pytest.raises(RuntimeError, match="was not changed") as caught:
                use()
            assert str(state) in str(caught.value)
            assert str(caught.value).startswith("3: ")
        assert digest(state) == before


def test_full_disk(tmp_path: Path) -> None:
    """A folder of 64 KiB that is full: the command fails, and works when there is room."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=True, capture_output=True
    )
    try:
        state, path = folder / "card.state", tmp_path / "card.sock"
        sim.ask("create", state=state, pin={"digits": "1234", "tries": 15})
        with Server(state, socket=path), Client(path) as client:
            assert client.status(SELECT) == 0x9000
            ballast = folder / "ballast"
            with pytest.raises(OSError, match="space"), ballast.open("wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 4096)
            assert client.status(verify("0000")) == 0x6581
            assert not (folder / "card.state.tmp").exists()
            assert tries_left(state) == 15
            ballast.unlink()
            assert client.status(verify("0000")) == 0x63CD, "the first wrong try was not lost"
        assert tries_left(state) == 13
    finally:
        subprocess.run(["umount", folder], check=True)


@needs.root
def test_create_on_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    with full(folder):
        state = folder / "card.state"
        with pytest.raises(RuntimeError, match=rf"3: .*{state}.*[Nn]o space left"):
            sim.ask("create", state=state)
        assert sorted(path.name for path in folder.iterdir()) == ["ballast"]


@needs.root
def test_root_locks_nobody_out_and_follows_no_link(tmp_path: Path) -> None:
    """Root creates and resets a card in the folder of a user, who owns what is made there."""
    folder, precious = tmp_path / "users", tmp_path / "precious"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    state = folder / "card.state"
    sim.ask("create", state=state)
    assert (folder / "card.state.lock").stat().st_uid == 65534
    (folder / "card.state.lock").unlink()
    precious.write_text("root's own")
    (folder / "card.state.lock").symlink_to(precious)
    with pytest.raises(RuntimeError, match=r"card\.state\.lock"):
        sim.ask("reset", state=state, erase=True)
    assert precious.read_text() == "root's own"
    assert precious.stat().st_uid == 0


def test_state_readable_by_others_is_refused(state: Path) -> None:
    state.chmod(0o644)
    with pytest.raises(RuntimeError, match="chmod 600"):
        sim.ask("list", state=state)


def test_card_with_two_paths_is_locked_once(tmp_path: Path) -> None:
    state, link = tmp_path / "card.state", tmp_path / "link.state"
    sim.ask("create", state=state, pin={"digits": "1234", "scope": "signing", "tries": 3})
    link.symlink_to(state.name)
    path = tmp_path / "card.sock"
    with Server(link, socket=path) as server, Client(path) as client:
        with pytest.raises(RuntimeError, match=f"in use by process {server.process.pid}"):
            sim.ask("reset", state=state, erase=True)
        assert client.status(SELECT) == 0x9000
        assert client.status(verify("0000")) == 0x63C2
    assert link.is_symlink()
    assert tries_left(state) == 2


def test_served_card_is_read_only(state: Path, tmp_path: Path) -> None:
    with Server(state, socket=tmp_path / "card.sock") as server:
        assert sim.ask("list", state=state)["quirks"] == "strict"
        with pytest.raises(RuntimeError, match=f"in use by process {server.process.pid}"):
            sim.ask("reset", state=state, erase=True)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu m3 run --gdb`: connections, and how they end. What packets do is tested in crates/m3."""

from __future__ import annotations

import re
import select
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Queue

import pytest

from support.gdb import Client, halted, packet
from warifu import m3
from warifu.cli import gdb_server

Run = Callable[..., tuple[int, str, str]]


def test_program_runs_under_a_client_with_output_exit_code_and_cycles(code: Path) -> None:
    with halted(code, "--format", "csv") as program, Client(program.port) as client:
        assert "m-profile" in client.ask("qXfer:features:read:target.xml:0,fff")
        assert client.ask("vCont;c") == "W09"
        exit_code, out, err = program.ended()
    plain = m3.run(code)
    assert (exit_code, out) == (9, "begins\n")
    assert f"cycles,{plain.cycles.low},{plain.cycles.high}" in err


def test_detached_program_runs_to_its_end(code: Path) -> None:
    with halted(code) as program, Client(program.port) as client:
        assert client.ask("D") == "OK"
        assert client.is_closed()
        exit_code, out, err = program.ended()
    assert (exit_code, out) == (9, "begins\n")
    assert "gdb has detached; the program runs on" in err


def test_killed_program_exits_with_137(endless: Path) -> None:
    with halted(endless) as program, Client(program.port) as client:
        client.say("k")
        exit_code, _, err = program.ended()
    assert exit_code == 137
    assert re.search(rf"warifu: {endless}: killed by the debugger at 0x\w+ <start_c>; r0=", err)


def test_lost_client_leaves_program_halted_for_the_next(code: Path) -> None:
    with halted(code) as program:
        with Client(program.port) as client:
            before = client.ask("pf")
            assert client.ask("vCont;s:p1.1") == "S05"
            stepped = client.ask("pf")
        with Client(program.port) as client:
            assert client.ask("pf") == stepped != before
            assert client.ask("c") == "W09"
        exit_code, _, err = program.ended()
    assert exit_code == 9
    assert f"the program is halted and waits on 127.0.0.1:{program.port}: connect again" in err


def test_second_client_is_refused(code: Path) -> None:
    with halted(code) as program, Client(program.port) as client:
        assert client.ask("?").startswith("T05")
        with Client(program.port) as other:
            assert other.is_closed()
        assert client.ask("c") == "W09"
        exit_code, _, err = program.ended()
    assert exit_code == 9
    assert "another debugger was refused" in err


def test_malformed_packets_close_the_connection_and_not_the_program(code: Path) -> None:
    with halted(code) as program:
        for sent in (packet(b"m,"), b"$g#00", b"$" + b"a" * 100_000):
            with Client(program.port) as client:
                client.send(sent)
                assert client.is_closed()
        with Client(program.port) as client:
            assert client.ask("c") == "W09"
        exit_code, _, err = program.ended()
    assert exit_code == 9
    assert err.count("gdb's packets cannot be understood") == 3
    assert "panicked" not in err


def test_client_that_reads_nothing_is_disconnected_and_the_next_goes_on(
    code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: Queue[str] = Queue()
    monkeypatch.setattr(gdb_server.screen, "say", said.put)
    monkeypatch.setattr(gdb_server, "_SEND_S", 0.5)
    ended: Queue[m3.Run] = Queue()

    def serve() -> None:
        ended.put(gdb_server.debug(code, m3.Options(), 0, lambda _: None))

    threading.Thread(target=serve, daemon=True).start()
    port = int(re.findall(r"127\.0\.0\.1:(\d+)", said.get(timeout=60))[0])
    with socket.create_connection(("127.0.0.1", port), timeout=60) as deaf:
        deaf.setblocking(False)
        asked = packet(b"qXfer:features:read:target.xml:0,fff") * 100
        for _ in range(100_000):
            try:
                if deaf.send(asked) == 0:
                    break
            except BlockingIOError:
                if not select.select([], [deaf], [], 0.2)[1]:
                    break
            except ConnectionError:
                break
        while "gdb reads nothing of what it is sent" not in said.get(timeout=60):
            pass
    with Client(port) as client:
        assert client.ask("c") == "W09"
    assert ended.get(timeout=60).code == 9


def test_ctrl_c_of_the_client_halts_a_running_program(endless: Path) -> None:
    with halted(endless) as program, Client(program.port) as client:
        client.say("c")
        client.send(b"\x03")
        assert client.answer() == "S02"
        assert client.ask("s") == "S05"
        client.say("k")
        assert program.ended()[0] == 137


@pytest.mark.parametrize("state", ["waiting", "halted", "running"])
def test_ctrl_c_in_the_terminal_ends_it(endless: Path, state: str) -> None:
    with halted(endless) as program:
        if state == "waiting":
            program.process.send_signal(signal.SIGINT)
        else:
            with Client(program.port) as client:
                assert client.ask("?").startswith("T05")
                if state == "running":
                    client.say("c")
                program.process.send_signal(signal.SIGINT)
                assert client.is_closed()
        exit_code, _, err = program.ended()
    assert exit_code == 130
    assert err.splitlines()[-1] == "warifu: interrupted; the program was ended"


def test_port_that_is_taken_is_named(warifu: Run, code: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        exit_code, _, err = warifu("m3", "run", code, "--gdb", str(port))
    assert exit_code == 3
    assert err == (
        f"warifu: --gdb {port}: Address already in use: stop whatever uses that port, or choose "
        "another\n"
    )


def test_only_this_machine_can_connect(code: Path) -> None:
    # 127.0.0.2 is this machine as well, and not the address that it listens at.
    with halted(code) as program, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", program.port), timeout=60)


@pytest.mark.parametrize("other", ["--trace", "--out"])
def test_gdb_refuses_what_a_debugger_would_falsify(warifu: Run, code: Path, other: str) -> None:
    exit_code, _, err = warifu("m3", "run", code, "--gdb", "0", other, "file")
    assert exit_code == 2
    assert f"--gdb does not go with {other}: a debugger may change what the program does" in err


def test_program_that_cannot_be_loaded_is_refused_before_anyone_waits(
    warifu: Run, tmp_path: Path
) -> None:
    file = tmp_path / "a.elf"
    file.write_text("text")
    exit_code, _, err = warifu("m3", "run", file, "--gdb", "0")
    assert exit_code == 2
    assert f"{file}: is not an ELF file" in err

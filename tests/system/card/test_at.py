# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The card behind a modem's line, as a host's AT client sees it."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import subprocess
import sys
import threading
import time
import tty
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.sim import RANDOM, SELECT, Client, Server
from warifu import tools
from warifu.doctor import card
from warifu.doctor.modem import Modem, ModemError, ModemSilent


def test_apdu_through_csim(state: Path, tmp_path: Path) -> None:
    link = tmp_path / "modem"
    with Server(state, at=True, link=link) as server:
        device = Path(server.ready["at"])
        assert link.resolve() == device
        assert device.stat().st_mode & 0o777 == 0o600
        with Modem(link) as modem:
            assert modem.command("AT").echoed, "as modems do until ATE0"
            assert modem.csim(SELECT) == b"\x90\x00"
            assert not modem.command("ATE0").lines
            assert not modem.command("AT").echoed
            assert len(modem.csim(RANDOM)) == 10
            assert modem.command("AT+CPIN?").lines == ("+CPIN: READY",)
            assert modem.command("ATI").lines[0].startswith("Warifu")
            with pytest.raises(ModemError, match="ERROR"):
                modem.command('AT+CSIM=9,"8084000008"')
            modem.command("AT+CMEE=1")
            with pytest.raises(ModemError, match="CME ERROR: 50"):
                modem.command('AT+CSIM=9,"8084000008"')
        with Modem(device) as modem:
            # The modem is on while nobody holds its line: its settings and the channels stay.
            assert not modem.command("AT").echoed
            assert len(modem.csim(RANDOM)) == 10


def test_modem_and_socket_have_separate_channels(state: Path, tmp_path: Path) -> None:
    path = tmp_path / "card.sock"
    with Server(state, at=True, socket=path) as server, Modem(Path(server.ready["at"])) as modem:
        assert modem.csim(SELECT) == b"\x90\x00"
        with Client(path) as client:
            assert client.status(RANDOM) == 0x6985
            assert client.status(SELECT) == 0x9000
        assert len(modem.csim(RANDOM)) == 10


COMMAND = f'AT+CSIM={2 * len(SELECT)},"{SELECT.hex()}"\r'.encode()


def read_until(line: int, enough: Callable[[bytes], bool]) -> bytes:
    """What comes from a line until it is enough."""
    said = b""
    deadline = time.monotonic() + 30
    while not enough(said):
        left_s = max(0.0, deadline - time.monotonic())
        assert select.select([line], [], [], left_s)[0], f"nothing after {said!r}"
        said += os.read(line, 256)
    return said


def test_echo_does_not_wait_for_the_card(state: Path) -> None:
    # Later than `read_until` waits.
    with Server(state, at=True, faults="script\nlate 60 s\n") as server:
        line = os.open(server.ready["at"], os.O_RDWR | os.O_NOCTTY)
        os.write(line, COMMAND)
        assert read_until(line, lambda said: len(said) >= len(COMMAND)) == COMMAND
        os.close(line)


def test_late_answer_follows_the_echo(state: Path) -> None:
    with Server(state, at=True, faults="script\nlate 700 ms\n") as server:
        line = os.open(server.ready["at"], os.O_RDWR | os.O_NOCTTY)
        begin = time.monotonic()
        os.write(line, COMMAND)
        said = read_until(line, lambda said: b"+CSIM: 4" in said)
        assert time.monotonic() - begin >= 0.7
        assert said.startswith(COMMAND)
        os.close(line)


def test_lost_answer_is_a_modem_error(state: Path) -> None:
    with (
        Server(state, at=True, faults="script\nlost\nremoved 1\n") as server,
        Modem(Path(server.ready["at"])) as modem,
    ):
        modem.command("ATE0+CMEE=1")
        with pytest.raises(ModemSilent):
            modem.csim(SELECT, timeout_s=0.3)
        with pytest.raises(ModemError, match="CME ERROR: 10"):
            modem.csim(SELECT)
        assert modem.csim(SELECT) == b"\x90\x00"


def test_file_at_the_link_is_not_replaced(state: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RuntimeError, match="not a symbolic link"):
        Server(state, at=True, link=tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_doctor_with_a_working_card(state: Path) -> None:
    with Server(state, at=True) as server:
        first = list(card.of_modem(Path(server.ready["at"])))
        again = list(card.of_modem(Path(server.ready["at"])))
    assert [(one.name, one.status) for one in first][1:] == [
        ("AT", "ok"), ("echo", "warning"), ("AT+CSIM", "ok"), ("channel", "ok"),
        ("applet", "ok"),
    ]  # fmt: skip
    assert all(one.status == "ok" for one in again), "echo was switched off and the channel closed"


def test_doctor_with_a_modem_without_csim(state: Path) -> None:
    with Server(state, at=True, at_commands="ccho") as server:
        device = Path(server.ready["at"])
        for _ in range(5):  # more than there are channels
            found = list(card.of_modem(device))
            assert [(one.name, one.status) for one in found][3:] == [
                ("AT+CCHO", "ok"), ("channel", "ok"), ("applet", "ok"),
            ]  # fmt: skip
    with Server(state, at=True, at_commands="ccho", faults="script\nok\nlate 11s\n") as server:
        device = Path(server.ready["at"])
        said = list(card.of_modem(device))
        assert (said[-1].name, said[-1].status) == ("line", "missing")
        with Modem(device) as modem:
            opened = [modem.open_session(card.AIDS["GSMA"]) for _ in range(3)]
            assert opened == [1, 2, 3], "the one that came too late was closed"
            with pytest.raises(ModemError, match="ERROR"):
                modem.open_session(card.AIDS["GSMA"])
        found = list(card.of_modem(device))
        assert [(one.name, one.status) for one in found][-1] == ("applet", "missing")


def channels_left(device: str) -> int:
    """How many channels can be opened; none is closed."""
    with Modem(Path(device)) as modem:
        opened = [modem.csim(bytes.fromhex("0070000001")) for _ in range(4)]
    return sum(answer.endswith(b"\x90\x00") for answer in opened)


def test_doctor_disturbs_nobody_who_has_the_line(state: Path) -> None:
    """An agent, or a program with the module, holds the line's lock."""
    with Server(state, at=True) as server:
        device = server.ready["at"]
        with Modem(Path(device)) as other:
            (only,) = card.of_modem(Path(device))
            assert (only.status, only.name) == ("missing", device)
            name = Path("/proc/self/comm").read_text().strip()
            assert only.found == f"in use by {name} (process {os.getpid()})"
            assert other.csim(bytes.fromhex("00A4040C07A0000005590010"))[-2:] == b"\x90\x00"
        assert channels_left(device) == 3


def test_doctor_never_selects_on_the_basic_channel_of_a_modem(state: Path) -> None:
    """It is the modem's own, and says nothing of what programs will find."""
    with Server(state, at=True) as server:
        device = server.ready["at"]
        assert channels_left(device) == 3
        found = list(card.of_modem(Path(device)))
        assert [(one.name, one.status) for one in found][-1] == ("channel", "missing")
        assert "none is free (6A81)" in found[-1].found


def test_doctor_gives_its_channel_back_after_an_answer_too_late(state: Path) -> None:
    # The answer to SELECT, after the doctor's patience of ten seconds.
    with Server(state, at=True, faults="script\nok\nlate 11s\n") as server:
        device = server.ready["at"]
        said = list(card.of_modem(Path(device)))
        assert (said[-1].name, said[-1].status) == ("line", "missing")
        assert channels_left(device) == 3


_DOCTOR = """
import sys
from pathlib import Path
from warifu.doctor import card
print([one.name for one in card.of_modem(Path(sys.argv[1]))])
"""


def test_channel_of_a_killed_doctor_is_closed_by_the_next_program(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with Server(state, at=True, faults="script\nok\nlate 5s\n") as server:
        device = server.ready["at"]
        doctor = subprocess.Popen([sys.executable, "-c", _DOCTOR, device])
        end = time.monotonic() + 20
        while not any((tmp_path / "warifu").glob("modem-*.channels")):
            assert time.monotonic() < end
            time.sleep(0.01)
        # It has sent SELECT, and waits for an answer.
        time.sleep(0.5)
        doctor.kill()
        doctor.wait()
        listing = ["pkcs11-tool", "--module", str(tools.find("libwarifu_pkcs11.so")), "-L"]
        done = subprocess.run(
            listing, env=os.environ | {"WARIFU_CARD": f"csim:{device}"}, capture_output=True,
            text=True, check=True, timeout=60,
        )  # fmt: skip
        assert "token label" in done.stdout
        assert channels_left(device) == 3


@contextlib.contextmanager
def modem(answers: dict[bytes, bytes]) -> Iterator[Path]:
    """A line at which a modem gives these answers, by how a command begins; the last that fits."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)

    def answer() -> None:
        line = b""
        while True:
            try:
                line += os.read(ours, 256)
            except OSError:
                return
            while b"\r" in line:
                command, line = line.split(b"\r", 1)
                found = [text for start, text in answers.items() if command.startswith(start)]
                os.write(ours, found[-1] if found else b"")

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield Path(os.ttyname(theirs))
    finally:
        os.close(theirs)
        thread.join(timeout=5)
        os.close(ours)


def modem_that_says(answers: dict[bytes, bytes]) -> list[tuple[str, str, str]]:
    """What the doctor finds of such a modem."""
    with modem(answers) as line:
        found = list(card.of_modem(line))
    return [(one.name, one.status, one.found) for one in found][1:]


OK = b"\r\nOK\r\n"


@pytest.mark.parametrize("where", ["AT", "AT+CSIM=?", "AT+CSIM=10", "AT+CCHO"])
def test_escape_sequences_of_a_modem_reach_no_terminal(where: str) -> None:
    """The window's title, its content, and the lines above."""
    hostile = b"\r\n+CME ERROR: \x1b]0;owned\x07\x1b[2J\x1b[1A\x9b2J\r\n"
    answers = {b"AT": OK, b"AT+CCHO=?": b"\r\nERROR\r\n", b"AT+CSIM=?": OK}
    answers[b"AT+CSIM="] = b'\r\n+CSIM: 6,"019000"\r\n' + OK
    with modem(answers | {where.encode(): hostile}) as line:
        done = subprocess.run(
            [sys.executable, "-m", "warifu.cli", "doctor", "--modem", line],
            capture_output=True, check=False, timeout=60,
        )  # fmt: skip
    shown = done.stdout + done.stderr
    assert b"AT" in shown
    assert [letter for letter in (b"\x1b", b"\x07", b"\x9b", b"\xc2\x9b") if letter in shown] == []


def test_doctor_names_the_failing_step() -> None:
    assert modem_that_says({})[-1][:2] == ("AT", "missing")
    refused = {b"AT": OK, b"AT+CSIM=?": b"\r\nERROR\r\n", b"AT+CCHO=?": b"\r\nERROR\r\n"}
    assert modem_that_says(refused)[-1][:2] == ("AT+CSIM", "missing")
    no_ccho = {b"AT": OK, b"AT+CCHO=?": b"\r\nERROR\r\n"}
    refused = no_ccho | {b"AT+CSIM=1": b"\r\n+CME ERROR: 3\r\n"}
    assert modem_that_says(refused)[-1][:2] == ("SELECT", "missing")
    opened, absent = b'\r\n+CSIM: 6,"019000"\r\n', b'\r\n+CSIM: 4,"6A82"\r\n'
    none = no_ccho | {b"AT+CSIM=": absent + OK, b"AT+CSIM=10": opened + OK, b"AT+CSIM=?": OK}
    name, status, found = modem_that_says(none)[-1]
    assert (name, status) == ("applet", "missing")
    assert "6A82" in found


def test_doctor_with_invalid_lines(tmp_path: Path) -> None:
    def refusal(device: str, baud: int = 115200) -> tuple[str, str]:
        (only,) = card.of_modem(Path(device), baud)
        assert only.status == "missing"
        return only.name, only.hint

    ours, theirs = os.openpty()
    line = os.ttyname(theirs)
    try:
        assert (
            refusal(str(tmp_path / "none"))[1] == "check the name: `ls /dev/ttyUSB* /dev/ttyACM*`"
        )
        assert "--baud" in refusal(line, 12345)[1]
        # As WARIFU_CARD names it.
        assert refusal(f"csim:{line},12345")[0] == line
        assert "use the line of a modem" in refusal("/dev/null")[1]
    finally:
        os.close(ours)
        os.close(theirs)

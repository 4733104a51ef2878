# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The agent as people and systemd start it: PINs, rights, signals, what is left behind."""

from __future__ import annotations

import base64
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
import urllib.request
from pathlib import Path

import pytest

from support import holding
from support.holding import PIN, Agent
from support.paths import ROOT
from warifu import tools


def claims(token: str) -> dict[str, object]:
    """What a token says."""
    part = token.split(".")[1]
    found: dict[str, object] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_the_agent_cleanly(card: Path, tmp_path: Path, number: signal.Signals) -> None:
    with Agent(tmp_path, "--card", f"unix:{card}") as agent:
        assert agent.socket.stat().st_mode & 0o777 == 0o600
        assert agent.said[-1] == f"warifu-agent: export WARIFU_CARD=agent:{agent.socket}\n"
        assert agent.token("--audience", "a").returncode == 0
        agent.process.send_signal(number)
        assert agent.process.wait(timeout=20) == 0
    assert not agent.socket.exists()


def test_stop_and_socket_of_a_killed_agent(card: Path, tmp_path: Path) -> None:
    with Agent(tmp_path, "--card", f"unix:{card}") as killed:
        killed.process.kill()
        killed.process.wait()
    assert killed.socket.exists()
    with Agent(tmp_path, "--card", f"unix:{card}") as agent:
        with pytest.raises(RuntimeError, match="another agent is using it"):
            Agent(tmp_path, "--card", f"unix:{card}")
        agent.ask("stop")
        assert agent.process.wait(timeout=20) == 0
    done = agent.token("--audience", "a")
    assert done.returncode == 3
    assert "start one with: warifu agent start" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.smoke
def test_concurrent_programs_share_one_session(card: Path, tmp_path: Path) -> None:
    with Agent(tmp_path, "--card", f"unix:{card}") as agent:
        program = tools.find("warifu-agent")
        children = [
            subprocess.Popen(
                [program, "token", "--audience", f"a{number}"],
                stdout=subprocess.PIPE,
                text=True,
                env=agent.environment(),
            )
            for number in range(8)
        ]
        tokens = [child.communicate(timeout=20)[0].strip() for child in children]
        assert [claims(token)["aud"] for token in tokens] == [f"a{n}" for n in range(8)]
        assert agent.metric('warifu_agent_sessions_opened_total{card="card"}') == 1
        assert agent.metric('warifu_agent_signatures_total{card="card",kind="ok"}') == 8


def test_card_served_after_the_agent_started(tmp_path: Path) -> None:
    with holding.served(tmp_path) as card, Agent(tmp_path, "--card", f"unix:{card}") as agent:
        assert agent.token("--audience", "a").returncode == 0
    assert not agent.socket.exists()
    with without_card(tmp_path) as agent:
        assert agent.token("--audience", "b").returncode == 3
        with holding.served(tmp_path):
            assert agent.token("--audience", "b").returncode == 0


def without_card(folder: Path) -> Agent:
    """An agent whose card is not there yet."""
    return Agent(folder, "--card", f"unix:{folder / 'card.sock'}")


def test_idle_token_renewal(card: Path, tmp_path: Path) -> None:
    with Agent(tmp_path, "--card", f"unix:{card}") as agent:
        first = agent.token("--audience", "a", "--lifetime", "2").stdout
        assert agent.token("--audience", "a", "--lifetime", "2").stdout == first
        renewed = 'warifu_agent_tokens_total{card="card",kind="renewed"}'
        end = time.monotonic() + 20
        while agent.metric(renewed) == 0:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert agent.metric('warifu_agent_tokens_total{card="card",kind="miss"}') == 1


def test_card_behind_a_modem(tmp_path: Path) -> None:
    link = tmp_path / "modem"
    with holding.served(tmp_path, at=True, link=str(link)):
        # More often than the card has channels: each agent closes its own.
        for number in range(5):
            with Agent(tmp_path, "--card", f"csim:{link}") as agent:
                done = agent.token("--audience", f"a{number}")
                assert done.returncode == 0, done.stderr
                assert claims(done.stdout)["aud"] == f"a{number}"
                assert agent.metric('warifu_agent_sessions_opened_total{card="card"}') == 1
                agent.ask("stop")
                assert agent.process.wait(timeout=20) == 0


@pytest.mark.parametrize("commands", ["all", "ccho"])
def test_killed_agents_behind_a_modem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: str
) -> None:
    """More of them than the card has channels: the next one closes those of the killed."""
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    link = tmp_path / "modem"
    with holding.served(tmp_path, at=True, at_commands=commands, link=str(link)):
        for number in range(5):
            with Agent(tmp_path, "--card", f"csim:{link}") as agent:
                done = agent.token("--audience", f"a{number}")
                assert done.returncode == 0, done.stderr
                (record,) = (runtime / "warifu").iterdir()
                assert record.stat().st_mode & 0o777 == 0o600
                assert record.read_text().split()[0] == str(agent.process.pid)
                agent.process.kill()
                agent.process.wait()
        with Agent(tmp_path, "--card", f"csim:{link}") as agent:
            assert agent.token("--audience", "last").returncode == 0
            agent.ask("stop")
            assert agent.process.wait(timeout=20) == 0
        assert record.read_text() == ""


def token_of(card: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`warifu-agent token` without an agent."""
    return subprocess.run(
        [tools.find("warifu-agent"), "token", "--card", f"unix:{card}", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def said(line: int, command: str) -> str:
    """A modem's answer to a command for its card."""
    os.write(line, f'AT+CSIM={len(command)},"{command}"\r'.encode())
    answer = ""
    while "\r\nOK\r\n" not in answer:
        answer += os.read(line, 200).decode()
    return answer


def test_agent_without_a_channel_names_killed_programs(tmp_path: Path) -> None:
    """Of another user: what this user's have left is closed."""
    link = tmp_path / "modem"
    with holding.served(tmp_path, at=True, link=str(link)):
        line = os.open(link, os.O_RDWR | os.O_NOCTTY)
        try:
            for number in (1, 2, 3):
                assert f"0{number}9000" in said(line, "0070000001")
                # Without an applet it would count as lost by a damaged answer.
                assert "9000" in said(line, f"0{number}A4040007A0000005590010")
            with Agent(tmp_path, "--card", f"csim:{link}") as agent:
                done = agent.token("--audience", "a")
        finally:
            os.close(line)
    assert done.returncode != 0
    assert "all logical channels of the card are in use" in done.stderr
    assert "channels of programs that were killed stay open until" in done.stderr


def test_token_without_an_agent(card: Path, tmp_path: Path) -> None:
    (tmp_path / "pin").touch(mode=0o600)
    (tmp_path / "pin").write_text(PIN)
    program = tools.find("warifu-agent")
    arguments = ["--card", f"unix:{card}", "--pin", f"file:{tmp_path / 'pin'}"]
    done = subprocess.run(
        [program, "token", *arguments, "--claim", "site=3", "--claim", "name=a b", "--subject=m"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = claims(done.stdout)
    assert (found["site"], found["name"], found["sub"]) == (3, "a b", "m")
    done = token_of(card)
    assert done.returncode == 2
    assert "needs its PIN (3 tries left): use --pin ask" in done.stderr


def test_invalid_token_lifetimes(card: Path) -> None:
    warifu = Path(sys.executable).with_name("warifu")
    for lifetime in ("0", "31622401", "99999999999", "9" * 30, "-1", "x"):
        done = token_of(card, "--lifetime", lifetime)
        if lifetime != "-1":
            assert "expected 1 to 31622400 s" in done.stderr
        by_python = subprocess.run(
            [warifu, "token", "--card", f"unix:{card}", "--lifetime", lifetime],
            capture_output=True,
            text=True,
            check=False,
        )
        for result in (done, by_python):
            assert result.returncode == 2
            assert len(result.stderr.splitlines()) == 1, result.stderr
            assert "--lifetime" in result.stderr or "-1" in result.stderr


def test_relative_socket_path(card: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with Agent(Path(), "--card", f"unix:{card}", pin=None) as agent:
        socket = tmp_path / "here" / "agent.sock"
        assert agent.said[-1] == f"warifu-agent: export WARIFU_CARD=agent:{socket}\n"
        assert socket.exists()
    assert not socket.exists()


def test_invalid_sockets_and_addresses(card: Path, tmp_path: Path) -> None:
    arguments = ("--card", f"unix:{card}")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "agent.sock").touch()
    refused = {
        tmp_path / "none": f"the folder {tmp_path / 'none'} does not exist: create it, or choose",
        tmp_path / "a,b": "the path contains a comma",
        tmp_path / "file": "the file exists and is not a socket: choose another --socket",
    }
    (tmp_path / "a,b").mkdir()
    if os.getuid() != 0:
        refused[closed] = "no permission to write to the folder"
    for folder, says in refused.items():
        # The error comes before the PIN prompt: there is no terminal here.
        with pytest.raises(RuntimeError) as error:
            Agent(folder, *arguments, "--pin", "ask", pin=None)
        text = str(error.value)
        assert text.startswith("3: ")
        assert says in text
        assert len(text.splitlines()) == 1, text
    for address in ("unix:relative", "usb", "agent", "csim:"):
        with pytest.raises(RuntimeError, match=r"^2: warifu-agent: --card: .*\n$"):
            Agent(tmp_path, "--card", address, pin=None)


def test_missing_card_is_reported_once(tmp_path: Path) -> None:
    with without_card(tmp_path) as agent:
        for _ in range(2):
            assert agent.token("--audience", "a").returncode == 3
    said = "".join(agent.said)
    assert said.count(str(tmp_path / "card.sock")) == 1, said


def test_status_of_refused_and_locked_pin(card: Path, tmp_path: Path) -> None:
    def tries_left(agent: Agent, pin: str) -> int | None:
        end = time.monotonic() + 20
        while agent.status()["pin"] != pin:
            assert time.monotonic() < end, agent.status()
            time.sleep(0.01)
        tries: int | None = agent.status()["pin_tries_left"]
        return tries

    with Agent(tmp_path, "--card", f"unix:{card}", pin="9753") as agent:
        assert tries_left(agent, "refused") == 2
        done = agent.token("--audience", "a")
        assert done.returncode == 2
        assert "(2 tries left): restart the agent with --pin ask" in done.stderr
    assert "the PIN is wrong (2 tries left)" in "".join(agent.said)
    # The agent never uses the last try; a person uses it here.
    with Agent(tmp_path, "--card", f"unix:{card}", pin="9753") as agent:
        assert tries_left(agent, "refused") == 1
    with Agent(tmp_path, "--card", f"unix:{card}", pin="9753") as agent:
        assert tries_left(agent, "held, not sent: only one try is left") == 1
        with_pin(agent, "9753")
        assert tries_left(agent, "locked") == 0
        done = agent.token("--audience", "a")
        assert done.returncode == 2
        assert (
            "`warifu card reset --unblock-pin` on a virtual SIM, with the operator's PUK"
            in done.stderr
        )
        assert len(done.stderr.splitlines()) == 1
    done = token_of(card)
    assert "the PIN is locked: unlock it with" in done.stderr


def with_pin(agent: Agent, pin: str) -> None:
    """Logs in from a program."""
    module = tools.find("libwarifu_pkcs11.so")
    subprocess.run(
        ["pkcs11-tool", "--module", module, "--list-objects", "--login", "--pin", pin],
        capture_output=True,
        check=False,
        env=agent.environment(),
    )


def test_pin_from_a_systemd_credential(card: Path, tmp_path: Path) -> None:
    (tmp_path / "sim").write_text(PIN)
    os.environ["CREDENTIALS_DIRECTORY"] = str(tmp_path)
    try:
        arguments = ("--card", f"unix:{card}", "--pin", "credential:sim")
        with Agent(tmp_path, *arguments, pin=None) as agent:
            assert agent.token("--audience", "a").returncode == 0
    finally:
        del os.environ["CREDENTIALS_DIRECTORY"]


def test_pin_prompt_without_echo(card: Path, tmp_path: Path) -> None:
    program = tools.find("warifu-agent")
    socket = tmp_path / "agent.sock"
    pid, terminal = pty.fork()
    if pid == 0:
        arguments = ["--card", f"unix:{card}", "--socket", str(socket), "--pin", "ask"]
        os.execv(program, [str(program), "start", *arguments])
    seen = b""
    while b"PIN of the card card: " not in seen:
        seen += os.read(terminal, 1000)
    # The prompt comes before the echo is switched off.
    while termios.tcgetattr(terminal)[3] & termios.ECHO:
        time.sleep(0.01)
    os.write(terminal, PIN.encode() + b"\n")
    while b"export WARIFU_CARD=" not in seen:
        seen += os.read(terminal, 1000)
    os.write(terminal, b"\x03")  # Ctrl-C
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)
    assert PIN.encode() not in seen
    assert not socket.exists()


def test_pin_is_not_in_arguments_logs_or_metrics(card: Path, tmp_path: Path) -> None:
    with Agent(tmp_path, "--card", f"unix:{card}", pin="9753") as agent:
        assert agent.token("--audience", "a").returncode == 2, "a wrong PIN"
        about = Path(f"/proc/{agent.process.pid}")
        shown = (about / "cmdline").read_text() + (about / "environ").read_text()
        shown += agent.ask("metrics") + agent.ask("status")
    shown += "".join(agent.said)
    assert "the PIN is wrong" in shown
    assert "9753" not in shown


def test_configuration_with_two_cards_and_rights(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    config = tmp_path / "agent.toml"
    with holding.served(tmp_path) as one, holding.served(tmp_path / "b") as two:
        (tmp_path / "pin").touch(mode=0o600)
        (tmp_path / "pin").write_text(PIN)
        config.write_text(
            f"""
            metrics = "127.0.0.1:0"
            [[card]]
            name = "one"
            address = "unix:{one}"
            pin = "file:{tmp_path / "pin"}"
            [[card]]
            name = "two"
            address = "unix:{two}"
            pin = "file:{tmp_path / "pin"}"
            [[caller]]
            uid = {os.getuid()}
            keys = ["client"]
            may = ["token"]
            """
        )
        with Agent(tmp_path, "--config", str(config), pin=None) as agent:
            for name in ("one", "two"):
                done = agent.token("--card", f"agent:{agent.socket},{name}")
                assert done.returncode == 0, done.stderr
            done = agent.token("--card", f"agent:{agent.socket},three")
            assert 'has no card "three"; it has one, two' in done.stderr
            address = next(line for line in agent.said if "metrics at" in line).split()[-1]
            with urllib.request.urlopen(address, timeout=20) as answer:
                text = answer.read().decode()
            assert 'signatures_total{card="two",kind="ok"} 1' in text
    config.write_text("[[caller]]\nuid = 1\nrights = []\n")
    with pytest.raises(RuntimeError, match=r"agent.toml: caller\[0\].rights: unknown key"):
        Agent(tmp_path, "--config", str(config), pin=None)


def test_module_does_not_wait_behind_a_signature_for_what_is_known(tmp_path: Path) -> None:
    """C_GetTokenInfo, C_FindObjectsInit: a program that lists keys beside one that signs."""
    timing = {"profile": str(ROOT / "profiles/cards/iot-safe-sakomoto.toml"), "seed": 1}
    script = Path(__file__).with_name("known.py")
    with (
        holding.served(tmp_path, timing=timing) as card,
        Agent(tmp_path, "--card", f"unix:{card}") as agent,
    ):
        done = subprocess.run(
            [sys.executable, script, tools.find("libwarifu_pkcs11.so"), PIN], check=False,
            capture_output=True, text=True, timeout=120, env=agent.environment(),
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    signature_ms, longest_ms, asked, keys = map(float, done.stdout.split())
    assert keys >= 1
    assert asked >= 2
    # One that had waited for the card would have taken what was left of the signature.
    assert longest_ms < signature_ms / 2, done.stdout


def test_forked_process(card: Path, tmp_path: Path) -> None:
    module = tools.find("libwarifu_pkcs11.so")
    folder = os.environ.get("WARIFU_BIN_DIR")
    if folder:
        module = Path(folder) / module.name
    script = Path(__file__).with_name("forked.py")
    with Agent(tmp_path, "--card", f"unix:{card}") as agent:
        done = subprocess.run(
            ["python3", str(script), str(module)],
            capture_output=True,
            text=True,
            check=False,
            env=agent.environment(),
            timeout=60,
        )
        assert done.stdout.split() == ["child", "ok", "parent", "ok"], done.stderr
        random = 'warifu_agent_requests_total{card="card",kind="random"}'
        assert agent.metric(random) == 3


def test_pipe_in_the_place_of_the_pin_file_is_not_waited_for(card: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pin", 0o600)
    done = token_of(card, "--audience", "a", "--pin", f"file:{tmp_path / 'pin'}")
    assert done.returncode != 0
    assert "pin: is no regular file: name the file with the PIN" in done.stderr


_SWAPS = """
import os, sys
own, other, path = sys.argv[1:]
while True:
    # Not the same twice: rename(2) leaves two names of one file alone.
    for one in (other, own):
        os.link(one, path + ".new")
        os.rename(path + ".new", path)
"""


def test_pin_file_that_is_replaced_again_and_again(card: Path, tmp_path: Path) -> None:
    """What is checked is what is read: the other one, which all may read, is never taken."""
    path, own, other = (tmp_path / name for name in ("pin", "own", "other"))
    for file, digits, mode in ((own, PIN, 0o600), (other, "9999", 0o644)):
        file.write_text(f"{digits}\n")
        file.chmod(mode)
    path.hardlink_to(own)
    swaps = subprocess.Popen([sys.executable, "-c", _SWAPS, own, other, path])
    try:
        refused = 0
        for _ in range(60):
            done = token_of(card, "--audience", "a", "--pin", f"file:{path}")
            refused += done.returncode != 0
            assert done.returncode == 0 or "accessible to other users" in done.stderr, done.stderr
        assert 0 < refused < 60, "both were met"
    finally:
        swaps.kill()
        swaps.wait()

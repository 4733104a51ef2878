# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Programs whose WARIFU_CARD is an agent: more of them than the card has channels, ones that live
shortly, and servers that outlive a reset of the card."""

from __future__ import annotations

import contextlib
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import sim, web
from support.holding import Agent
from support.mosquitto import broker, client
from support.opensc import check_test, check_test_ec
from support.openssl import client_handshake
from support.programs import (
    DEVICE,
    KEY,
    OPERATOR,
    PIN,
    Authority,
    Device,
    Running,
    free_port,
    module,
    run,
)

#: The card has four channels: one is the agent's, and without it nginx's master takes one as well.
WORKERS = 5

SIGNED = 'warifu_agent_signatures_total{card="card",kind="ok"}'
OPENED = 'warifu_agent_sessions_opened_total{card="card"}'
WRONG_PINS = 'warifu_agent_card_errors_total{card="card",kind="pin_wrong"}'
#: Sessions that the card has lost, whether or not a caller was told of it.
RESETS = 'warifu_agent_card_errors_total{card="card",kind="reset"}'


@contextlib.contextmanager
def through_agent(device: Device) -> Iterator[Agent]:
    """An agent that holds the device's card and its PIN; the device's programs go through it."""
    with Agent(device.folder, "--card", device.address) as started:
        device.address = f"agent:{started.socket}"
        yield started


@pytest.fixture
def agent(device: Device) -> Iterator[Agent]:
    """One for a card that always answers."""
    with through_agent(device) as started:
        yield started


@contextlib.contextmanager
def nginx_with_card(
    device: Device, authority: Authority, workers: int
) -> Iterator[tuple[Running, int]]:
    """nginx with its key in the card, and its port, when all its workers are there."""
    port = free_port()
    block = web.server(port, device.certificate, f"engine:pkcs11:{KEY}", authority.certificate)
    with web.nginx(device, block, engine=True, workers=workers) as server:
        server.until(f"(start worker process (.*\n)+.*){{{workers}}}")
        yield server, port


@contextlib.contextmanager
def mosquitto_with_card(device: Device, authority: Authority) -> Iterator[int]:
    """A broker with its key in the card; its port."""
    port = free_port()
    keys = f"certfile {device.certificate}\ntls_engine pkcs11\ntls_keyform engine\nkeyfile {KEY}"
    with broker(device, port, authority, keys) as server:
        server.until("mosquitto version .* running")
        yield port


def test_more_nginx_workers_than_channels(
    device: Device, agent: Agent, authority: Authority, operator: tuple[Path, Path]
) -> None:
    certificate, key = operator
    handshakes, answered = 0, set()
    with nginx_with_card(device, authority, WORKERS) as (_, port):
        # The kernel shares connections out by their ports.
        while len(answered) < WORKERS and handshakes < 300:
            said = web.get(device, port, authority.certificate, "--cert", certificate, "--key", key)
            handshakes += 1
            assert said.startswith(f"CN={OPERATOR} SUCCESS ")
            answered.add(int(re.findall(r"worker=(\d+)", said)[0]))
    assert len(answered) == WORKERS
    assert agent.metric(SIGNED) == handshakes
    assert agent.metric(OPENED) == 1


def test_short_lived_programs_share_a_session(
    device: Device, agent: Agent, authority: Authority, operator: tuple[Path, Path]
) -> None:
    port = free_port()
    block = web.server(port, *operator, authority.certificate)
    own = ("--cert", device.certificate, "--engine", "pkcs11", "--key-type", "ENG", "--key")
    with web.nginx(device, block) as server:
        server.until("start worker process ")
        # While the agent is logged in a program needs no PIN, and may give the right one.
        for handshakes, uri in enumerate((KEY, KEY.removesuffix(";pin-value=1234"), KEY), start=1):
            said = web.get(device, port, authority.certificate, *own, uri)
            assert said.startswith(f"CN={DEVICE} SUCCESS ")
            assert agent.metric(SIGNED) == handshakes
    assert agent.metric(OPENED) == 1
    # Nothing was asked of the card but by the agent.
    assert "COMPUTE SIGNATURE" not in device.trace_text()


def test_wrong_pin_is_counted_by_the_card(device: Device, agent: Agent) -> None:
    """Programs that log in although the token asks for no PIN."""
    tool = ("pkcs11-tool", "--module", module(), "--list-objects", "--login", "--pin")
    done = run(*tool, PIN, environment=device.environment)
    assert "Private Key Object" in done.stdout
    done = run(*tool, "4321", environment=device.environment, check=False)
    assert done.returncode != 0
    assert "CKR_PIN_INCORRECT" in done.stderr
    assert agent.metric(WRONG_PINS) == 1


def test_opensc_self_tests(device: Device, agent: Agent) -> None:
    check_test(device)
    before = agent.metric(SIGNED)
    check_test_ec(device)
    assert agent.metric(SIGNED) == before + 2


def test_handshake_behind_a_modem(
    tmp_path: Path, authority: Authority, operator: tuple[Path, Path]
) -> None:
    """The module with the modem's line to itself, and an agent that has it."""
    link = tmp_path / "modem"
    device = Device(tmp_path, authority, at=True, link=link)
    device.address = f"csim:{link}"
    with device.server:
        client_handshake(device, authority, operator, "-tls1_3")
        # The line has the answer fetched by a command of its own.
        assert device.trace_text().count("COMPUTE SIGNATURE - UPDATE") == 1
        with through_agent(device) as agent:
            client_handshake(device, authority, operator, "-tls1_3")
            assert agent.metric(SIGNED) == 1
        assert device.trace_text().count("COMPUTE SIGNATURE - UPDATE") == 1


def test_servers_after_card_resets(
    tmp_path: Path, authority: Authority, operator: tuple[Path, Path]
) -> None:
    """The module alone must be logged in to again then (`test_a_card_that_comes_back`)."""
    # Between two resets there is room for a session, the PIN and a signature.
    script = "script\n" + ("ok\n" * 9 + "reset\n") * 100
    device = Device(tmp_path, authority, faults=script)
    certificate, key = operator
    with (
        device.server,
        through_agent(device) as agent,
        nginx_with_card(device, authority, 2) as (nginx, https),
        mosquitto_with_card(device, authority) as mqtt,
    ):
        publish = client(
            "mosquitto_pub", mqtt, authority, "--cert", certificate, "--key", key, "-m", "1"
        )

        def both_serve() -> None:
            before = agent.metric(SIGNED)
            own = ("--cert", certificate, "--key", key)
            said = web.get(device, https, authority.certificate, *own)
            assert said.startswith(f"CN={OPERATOR} SUCCESS ")
            run(*publish, environment=device.environment)
            assert agent.metric(SIGNED) == before + 2

        for _ in range(10):
            both_serve()
        assert agent.metric(RESETS) >= 3
        device.server.stop(signal.SIGKILL)
        with sim.Server(device.state, socket=device.socket):
            both_serve()
        assert nginx.process.poll() is None

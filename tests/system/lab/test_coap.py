# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Real CoAP exchanges: link, coap-server and client together."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from support.laboratory import MUTUAL_13
from warifu.lab.cell import PartResult
from warifu.lab.coap import cell
from warifu.lab.coap.cell import CoapBench, CoapSettings, Setup
from warifu.lab.coap.exchange import Exchange, why_not_measurable
from warifu.lab.coap.server import CoapServer
from warifu.lab.errors import LabError
from warifu.lab.store import Part

MS = 1_000_000
TRIALS = 4
FAST = CoapSettings(rate_per_second=20.0, late_fraction_max=1.0, non_deadline_seconds=1.0)
HEADERS = 20 + 8
"""IPv4 and UDP."""


def never() -> bool:
    return False


def link(**changes: object) -> dict[str, Any]:
    return dict(MUTUAL_13["link"]) | changes


def exchange(confirmable: bool = True, **changes: object) -> Exchange:
    known = Exchange(confirmable, path="/data", response_body_bytes=64)
    return dataclasses.replace(known, **changes)  # type: ignore[arg-type]


def run(setup: Setup, trials: int = TRIALS) -> PartResult:
    with CoapBench(FAST) as bench:
        result = bench.run(setup, Part("0" * 16, 0, trials, 7), never)
    assert result is not None
    return result


@pytest.mark.parametrize("confirmable", [True, False])
@pytest.mark.parametrize(("body_bytes", "round_trips"), [(64, 1), (1_097, 1), (1_098, 2)])
def test_response_takes_a_round_trip_a_block(
    confirmable: bool, body_bytes: int, round_trips: int
) -> None:
    one = exchange(confirmable, response_body_bytes=body_bytes)
    columns = run(Setup(one, link(rtt=40 * MS))).trials.columns
    assert columns["failed"] == [False] * TRIALS
    assert columns["datagrams_client_sent"] == [round_trips] * TRIALS
    assert all(took >= round_trips * 40 * MS for took in columns["response_ns"])
    assert min(columns["response_ns"]) // (40 * MS) == round_trips


def test_link_carries_what_the_client_counts() -> None:
    result = run(Setup(exchange(), link()))
    columns, report = result.trials.columns, result.record["link"]
    for direction, end in (("a_to_b", "client"), ("b_to_a", "server")):
        packets = sum(columns[f"datagrams_{end}_sent"])
        assert report[direction]["packets_in"] == packets == TRIALS
        assert report[direction]["bytes_in"] == (
            sum(columns[f"bytes_{end}_sent"]) + packets * HEADERS
        )
    assert result.record["udp"]["server"]["RcvbufErrors"] == 0
    assert result.record["server_cpu_ns"] > 0


def test_lost_con_is_sent_again() -> None:
    loss = {"kind": "independent", "probability": 0.3}
    fast = exchange(ack_timeout_ms=1_000, ack_random_factor=1.0)
    result = run(Setup(fast, link(loss=loss)), trials=20)
    columns, report = result.trials.columns, result.record["link"]
    lost = report["a_to_b"]["dropped_by_loss"] + report["b_to_a"]["dropped_by_loss"]
    again = sum(columns["retransmissions"])
    assert lost > 0
    # Of a trial that failed nothing else is known.
    assert again + 5 * sum(columns["failed"]) >= lost
    for times, response_ns in zip(columns["retransmissions"], columns["response_ns"], strict=True):
        # The first after 1 s, the second 2 s later: 2^n - 1, less a tick of 1 ms each.
        assert response_ns >= ((1 << times) - 1) * 1_000 * MS - times * MS


def test_late_response_is_no_icmp_on_the_link() -> None:
    # Longer than the first timeout, so that each request is sent twice and answered twice.
    early = exchange(ack_timeout_ms=1_000, ack_random_factor=1.0)
    result = run(Setup(early, link(rtt=1_300 * MS)))
    columns, report = result.trials.columns, result.record["link"]
    assert columns["retransmissions"] == [1] * TRIALS
    assert columns["datagrams_server_sent"] == [1] * TRIALS
    assert (report["a_to_b"]["packets_in"], report["b_to_a"]["packets_in"]) == (8, 8)


def test_lost_non_fails_at_its_deadline() -> None:
    result = run(Setup(exchange(False), link(loss={"kind": "independent", "probability": 1.0})))
    assert result.trials.columns["failed"] == [True] * TRIALS
    assert result.record["link"]["a_to_b"]["packets_in"] == TRIALS


def test_concurrent_requests_share_a_slow_link() -> None:
    # 64 B and headers take 8 ms downwards; the fourth waits for three.
    one = exchange(concurrent=4)
    columns = run(Setup(one, link(rate_up=100_000, rate_down=100_000), alone=True)).trials.columns
    assert max(columns["response_ns"]) >= 4 * 8 * MS - 4 * MS


def test_killed_server_fails_the_part(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[CoapServer] = []

    class Watched(CoapServer):
        def __init__(self, *arguments: object, **options: object) -> None:
            super().__init__(*arguments, **options)  # type: ignore[arg-type]
            started.append(self)

    monkeypatch.setattr(cell, "CoapServer", Watched)

    def kill() -> None:
        while not started:
            time.sleep(0.01)
        time.sleep(0.3)
        os.kill(started[0].pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.raises(LabError, match="coap-server has ended in the middle of the run"):
            run(Setup(exchange(), link()), trials=200)
    finally:
        killer.join()


def test_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(LabError, match=f"could not bind to port {port}: stop what") as error:
            CoapServer(
                tmp_path / "s", address="127.0.0.1", port=port, path="/d", response_body_bytes=1
            )
    assert "\n" not in str(error.value)


def test_occupied_path_is_not_measurable() -> None:
    assert why_not_measurable(exchange()) is None
    assert "pattern.path is /time" in str(why_not_measurable(exchange(path="/time")))
    assert "pattern.response_body" in str(why_not_measurable(exchange(response_body_bytes=-1)))

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Real CoAP exchanges: link, coap-server and client together."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from support import needs
from support.laboratory import make_coap_case, study_of
from warifu.lab import Settings, measure
from warifu.lab.case import Cell
from warifu.lab.cell import Bench, PartResult
from warifu.lab.coap import driver
from warifu.lab.coap.server import CoapServer
from warifu.lab.errors import LabError
from warifu.lab.store import Part
from warifu.results import Results

pytestmark = needs.root

MS = 1_000_000
TRIALS = 4
FAST = Settings(rate_per_second=20.0, late_fraction_max=1.0, timeout_seconds=1.0)
HEADERS = 20 + 8
"""IPv4 and UDP."""
EARLY = {"stack__ack_timeout": 1_000 * MS, "stack__ack_random_factor_percent": 100}
"""The first retransmission after 1 s, the least that libcoap takes."""


def never() -> bool:
    return False


def run(cell: Cell, trials: int = TRIALS) -> PartResult:
    with Bench(FAST) as bench:
        result = bench.run(cell, Part(cell.case_id, 0, trials, 7), never)
    assert result is not None
    return result


@pytest.mark.parametrize("message_type", ["CON", "NON"])
@pytest.mark.parametrize(("body_bytes", "round_trips"), [(64, 1), (1_097, 1), (1_098, 2)])
def test_response_takes_a_round_trip_a_block(
    message_type: str, body_bytes: int, round_trips: int
) -> None:
    cell = make_coap_case(
        stack__message_type=message_type, pattern__response_body=body_bytes, link__rtt=40 * MS
    )
    columns = run(cell).trials.columns
    assert columns["failed"] == [False] * TRIALS
    assert columns["datagrams_client_sent"] == [round_trips] * TRIALS
    assert all(took >= round_trips * 40 * MS for took in columns["exchange_ns"])
    assert min(columns["exchange_ns"]) // (40 * MS) == round_trips


def test_link_carries_what_the_client_counts() -> None:
    result = run(make_coap_case())
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
    result = run(make_coap_case(link__loss=loss, **EARLY), trials=20)
    columns, report = result.trials.columns, result.record["link"]
    lost = report["a_to_b"]["dropped_by_loss"] + report["b_to_a"]["dropped_by_loss"]
    again = sum(columns["retransmitted"])
    assert lost > 0
    # Of a trial that failed nothing else is known.
    assert again + 5 * sum(columns["failed"]) >= lost
    for times, response_ns in zip(columns["retransmitted"], columns["exchange_ns"], strict=True):
        # The first after 1 s, the second 2 s later: 2^n - 1, less a tick of 1 ms each.
        assert response_ns >= ((1 << times) - 1) * 1_000 * MS - times * MS


def test_late_response_is_no_icmp_on_the_link() -> None:
    # Longer than the first timeout, so that each request is sent twice and answered twice.
    result = run(make_coap_case(link__rtt=1_300 * MS, **EARLY))
    columns, report = result.trials.columns, result.record["link"]
    assert columns["retransmitted"] == [1] * TRIALS
    assert columns["datagrams_server_sent"] == [1] * TRIALS
    assert (report["a_to_b"]["packets_in"], report["b_to_a"]["packets_in"]) == (8, 8)


def test_lost_non_fails_at_its_deadline() -> None:
    loss = {"kind": "independent", "probability": 1.0}
    result = run(make_coap_case(stack__message_type="NON", link__loss=loss))
    assert result.trials.columns["failed"] == [True] * TRIALS
    assert result.record["link"]["a_to_b"]["packets_in"] == TRIALS


def test_killed_server_fails_the_part(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[CoapServer] = []

    class Watched(CoapServer):
        def __init__(self, *arguments: object, **options: object) -> None:
            super().__init__(*arguments, **options)  # type: ignore[arg-type]
            started.append(self)

    monkeypatch.setattr(driver, "CoapServer", Watched)

    # Asked again and again from when the client has been started.
    def kill() -> bool:
        (server,) = started
        os.kill(server.pid, signal.SIGKILL)
        return False

    cell = make_coap_case()
    part = Part(cell.case_id, 0, 200, 7)
    with Bench(FAST) as bench, pytest.raises(LabError, match="coap-server ended during the run"):
        bench.run(cell, part, kill)


def test_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(LabError, match=f"could not bind to port {port}: stop what") as error:
            CoapServer(
                tmp_path / "s", address="127.0.0.1", port=port, path="/d", response_body_bytes=1
            )
    assert "\n" not in str(error.value)


def test_study_becomes_observations(tmp_path: Path) -> None:
    cells = [make_coap_case(), make_coap_case(stack__message_type="NON")]
    assert measure(study_of(*cells), tmp_path, settings=FAST).complete
    results = Results.open(tmp_path)
    assert {"coap-server-notls", "warifu-coap-client"} <= set(results.manifest["tools"])
    assert "nginx" not in results.manifest["tools"]
    for cell in cells:
        assert results.distribution(cell.case_id, "coap.exchange").n == 6
        for metric, bytes_ in (("bytes.client_sent", 5 + 5), ("bytes.server_sent", 5 + 65)):
            assert set(results.distribution(cell.case_id, metric).values) == {bytes_}

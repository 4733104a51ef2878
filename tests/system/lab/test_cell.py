# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Real connections: link, nginx and client together."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support import needs
from support.laboratory import make_case
from warifu import tools
from warifu.case import HttpsStack
from warifu.lab import cell, quiet, rates, workplace
from warifu.lab.case import Cell
from warifu.lab.cell import Bench, Settings
from warifu.lab.errors import LabError, RunRejected
from warifu.lab.https import driver
from warifu.lab.https.nginx import Nginx
from warifu.lab.store import Part
from warifu.results import parts

pytestmark = needs.root

MS = 1_000_000
TRIALS = 4
FAST = Settings(rate_per_second=20.0, late_fraction_max=1.0)


def never() -> bool:
    return False


@pytest.mark.parametrize(
    ("tls", "session", "round_trips"),
    [
        ("1.2", "full", 4),
        ("1.2", "ticket", 3),
        pytest.param("1.3", "full", 3, marks=pytest.mark.smoke),
        ("1.3", "psk_dhe_ke", 3),
        ("1.3", "psk_ke", 3),
        ("1.3", "0-rtt", 2),
    ],
)
def test_round_trips_of_each_handshake(tls: str, session: str, round_trips: int) -> None:
    suite = {"1.2": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "1.3": "TLS_AES_128_GCM_SHA256"}
    case = make_case(
        tls__version=tls,
        tls__session=session,
        tls__cipher_suite=suite[tls],
        link__rtt=40 * MS,
    )
    columns = run(case_part(TRIALS), case).columns
    assert columns["failed"] == [False] * TRIALS
    for index in range(TRIALS):
        took = columns["establishment_ns"][index]
        assert took >= round_trips * 40 * MS
        # Not a wall-clock bound: a trial that a busy machine slows by a round trip says nothing.
        assert columns["tcp_connect_ns"][index] >= 40 * MS
        parts = ("tcp_connect_ns", "tls_handshake_ns", "first_response_ns")
        assert sum(columns[part][index] for part in parts) == took
    fastest = min(columns["establishment_ns"])
    assert fastest // (40 * MS) == round_trips


@pytest.mark.parametrize(
    "change",
    [
        {"tls__certificate": "rsa-2048", "tls__chain_length": 3},
        {"tls__group": "x25519", "tls__authentication": "server"},
        {"tls__cipher_suite": "TLS_CHACHA20_POLY1305_SHA256"},
        {"tls__server_name": "warifu.test", "tls__key_share": "prepared"},
        {"link__rate_up": 1_000_000, "link__rate_down": 1_000_000, "link__jitter": [0, MS]},
        {"pattern__path": "/some/where?x=1", "pattern__response_body": 40_000},
    ],
)
def test_choices_of_stack_link_and_pattern(change: dict[str, object]) -> None:
    columns = run(case_part(2), make_case(**change)).columns
    assert columns["failed"] == [False, False]


def test_nagle_adds_a_round_trip_with_client_certificates() -> None:
    case = make_case(tcp__nagle=True, link__rtt=40 * MS)
    fastest = min(run(case_part(TRIALS), case).columns["establishment_ns"])
    assert fastest // (40 * MS) == 4


def test_connections_do_not_share_a_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    # 4 kB there and back take a third of a second, and 20 connections would begin in a second.
    slow = make_case(link__rate_up=100_000, link__rate_down=100_000)
    apart = run(case_part(6), slow).columns["tcp_connect_ns"]
    monkeypatch.setattr(Cell, "has_memory", False)
    together = run(case_part(6), slow).columns["tcp_connect_ns"]
    # A SYN and its answer take 10 ms; behind several that begin 50 ms apart, hundreds.
    assert 2 * sum(apart) < sum(together)


def test_retransmissions_over_a_lossy_link() -> None:
    loss = {"kind": "independent", "probability": 0.2}
    with Bench(FAST) as bench:
        result = bench.run(make_case(link__loss=loss), case_part(20), never)
    assert result is not None
    link = result.record["link"]
    assert link["a_to_b"]["dropped_by_loss"] + link["b_to_a"]["dropped_by_loss"] > 0
    assert sum(result.record["segments_retransmitted"].values()) > 0
    assert result.record["pinned_differently"] == {}


def test_killed_nginx_fails_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    for kill_worker in (False, True):
        started = started_nginx(monkeypatch)
        killed: list[int] = []

        # Asked again and again from when the client has been started.
        def kill(
            worker: bool = kill_worker,
            started: list[Nginx] = started,
            killed: list[int] = killed,
        ) -> bool:
            if not killed:
                (nginx,) = started
                killed.append(nginx.worker_pid if worker else nginx.pid)
                os.kill(killed[0], signal.SIGKILL)
            return False

        with Bench(FAST) as bench, pytest.raises(LabError, match=r"nginx.* during the run"):
            bench.run(make_case(), case_part(200), kill)
        assert killed
    assert workplace.leftovers() == []


def test_late_link_rejects_the_run_unseen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure = cell.configuration

    def strict(*arguments: object) -> dict[str, object]:
        # No packet is that punctual.
        return configure(*arguments) | {"lateness_bound_ns": 1}  # type: ignore[arg-type]

    def opened(*_: object) -> None:
        raise AssertionError("the result was looked at")

    monkeypatch.setattr(cell, "configuration", strict)
    monkeypatch.setattr(driver.Client, "trials", opened)
    bench = Bench(Settings(rate_per_second=20.0))
    with bench, pytest.raises(RunRejected, match="late") as rejection:
        bench.run(make_case(link__rtt=MS), case_part(2), never)
    assert rejection.value.report["accepted"] is False


def test_rate_follows_from_what_the_server_took() -> None:
    case = make_case(link__loss={"kind": "independent", "probability": 0.02})
    settings = Settings(late_fraction_max=1.0)
    with Bench(settings) as bench:
        part = case_part(3 * rates.PILOT_TRIALS + 1)
        assert bench.rates.needs_pilot(case, [part.trials])
        bench.pilot(case, part, never)
        assert not bench.rates.needs_pilot(case, [part.trials])
        for _ in range(20):
            rate = bench.rate(case)
            # A part that was slower than the pilot is rejected, and the next one paced by it.
            with contextlib.suppress(RunRejected):
                result = bench.run(case, part, never)
                break
            assert bench.rate(case) < rate
    assert result is not None
    record = result.record
    assert record["rate_per_second"] == rate <= rates.LOSSY_RATE
    took_s = record["server_cpu_ns"] / 1e9
    # Pauses vary by half of their mean, and 180 of them by chance some 2 % together.
    assert record["busy"]["server"] == pytest.approx(took_s * rate / part.trials, rel=0.1)
    assert 0.0 < record["busy"]["server"] <= parts.SERVER_BUSY_MAX + parts.SERVER_BUSY_TOLERANCE
    assert record["client_cpu_ns"] > 0
    assert record["others_max"] == quiet.OTHERS_MAX
    assert set(record["processor_shares"]) == {"others", "stolen"}


def test_pause_of_a_case_is_the_labs() -> None:
    case = make_case(pattern__pause=200 * MS)
    with Bench(FAST) as bench:
        started = time.monotonic()
        result = bench.run(case, case_part(6), never)
        took = time.monotonic() - started
    assert result is not None
    assert result.record["rate_per_second"] == pytest.approx(5.0)
    # Five pauses of a tenth of a second at least, whatever the machine is busy with.
    assert took >= 0.5


def test_other_work_beyond_the_bound_rejects_the_run() -> None:
    with (
        Bench(Settings(rate_per_second=20.0, late_fraction_max=1.0, others_bound=0.0)) as bench,
        other_work(),
    ):
        reason = ""
        for _ in range(20):
            with pytest.raises(RunRejected) as rejection:
                bench.run(make_case(), case_part(4), never)
            reason = str(rejection.value)
            # A busy machine may make the link late as well.
            if "others took" in reason:
                break
    assert "others took" in reason


@contextmanager
def other_work() -> Iterator[None]:
    """Something that computes and is not waited for while it does."""
    spin = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        spin.kill()
        spin.wait()


def test_port_in_use(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(LabError, match=f"port {port} is in use") as error:
            plain_nginx(tmp_path / "n", port)
    assert "\n" not in str(error.value)


def test_missing_tool_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "SYSTEM_FOLDERS", ())
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(tools.ToolMissing, match="nginx is missing: `apt-get install nginx"):
        tools.find("nginx")


def plain_nginx(folder: Path, port: int, stack: HttpsStack | None = None) -> Nginx:
    return Nginx(
        folder, address="127.0.0.1", port=port, stack=stack, pki=None, response_body_bytes=10
    )


def case_part(trials: int) -> Part:
    return Part("0" * 16, 0, trials, 7)


def run(part: Part, case: object) -> cell.Trials:
    with Bench(FAST) as bench:
        result = bench.run(case, part, never)  # type: ignore[arg-type]
    assert result is not None
    return result.trials


def started_nginx(monkeypatch: pytest.MonkeyPatch) -> list[Nginx]:
    """Every nginx that a bench starts from now on."""
    started: list[Nginx] = []

    class Watched(Nginx):
        def __init__(self, *arguments: object, **options: object) -> None:
            super().__init__(*arguments, **options)  # type: ignore[arg-type]
            started.append(self)

    monkeypatch.setattr(driver, "Nginx", Watched)
    return started

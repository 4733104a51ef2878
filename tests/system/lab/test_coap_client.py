# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The CoAP client and libcoap's own server on loopback."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.programs import free_port
from warifu import tools

HEADER = 4
TOKEN = 1
URI_PATH = 1 + len("data")
"""A byte of option delta and length, and the name (RFC 7252 section 3.1)."""
PAYLOAD_MARKER = 1
REQUEST = HEADER + TOKEN + URI_PATH

MOST_IN_ONE_DATAGRAM = 1_097
"""Of 1152 B that libcoap takes for the MTU it leaves out header, token of 8 B and Echo option of
43 B (libcoap 4.3.1, coap_add_data_large_internal)."""


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a running coap-server to which resources can be added."""
    free = free_port(socket.SOCK_DGRAM)
    server = subprocess.Popen(
        [tools.find("coap-server-notls"), "-A", "127.0.0.1", "-p", str(free), "-d", "1"]
    )
    try:
        wait_until_bound(server, free)
        yield free
    finally:
        server.kill()
        server.wait()


def wait_until_bound(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        assert server.poll() is None, "coap-server has ended"
        rows = Path("/proc/net/udp").read_text().splitlines()[1:]
        if any(int(row.split()[1].rpartition(":")[2], 16) == port for row in rows):
            return
        time.sleep(0.01)
    pytest.fail("coap-server did not listen within 10 s")


def put(port: int, body_bytes: int, folder: Path) -> None:
    body = folder / "body"
    body.write_bytes(b"w" * body_bytes)
    url = f"coap://127.0.0.1:{port}/data"
    command = [tools.find("coap-client-notls"), "-m", "put", "-f", body, url]
    subprocess.run(command, check=True, timeout=60)


STACK = {
    "protocol": "coap",
    "message_type": "CON",
    "ack_timeout": 2_000_000_000,
    "ack_random_factor_percent": 150,
    "max_retransmit": 4,
}


def configuration(port: int, **changes: object) -> bytes:
    known = {
        "address": f"127.0.0.1:{port}",
        "stack": STACK,
        "path": "/data",
        "trials": 5,
        "rate_per_second": 200,
        "timeout_s": 60,
    }
    return json.dumps(known | changes).encode()


def run(config: bytes) -> subprocess.CompletedProcess[bytes]:
    program = tools.find("warifu-coap-client")
    return subprocess.run([program], input=config, capture_output=True, check=False, timeout=120)


def rows_of(output: bytes) -> list[dict[str, Any]]:
    return sorted(map(json.loads, output.splitlines()), key=lambda row: int(row["trial"]))


@pytest.mark.parametrize("message_type", ["CON", "NON"])
@pytest.mark.parametrize("body_bytes", [0, 64, MOST_IN_ONE_DATAGRAM])
def test_response_in_one_datagram(
    port: int, tmp_path: Path, message_type: str, body_bytes: int
) -> None:
    put(port, body_bytes, tmp_path)
    stack = STACK | {"message_type": message_type}
    done = run(configuration(port, stack=stack, body_bytes=body_bytes, token_bytes=TOKEN))
    rows = rows_of(done.stdout)
    assert (done.returncode, [row["trial"] for row in rows]) == (0, list(range(5)))
    response = HEADER + TOKEN + (PAYLOAD_MARKER + body_bytes if body_bytes else 0)
    for row in rows:
        assert "error" not in row
        assert (row["sent_all"], row["received_all"]) == (REQUEST, response)
        assert (row["datagrams_sent"], row["datagrams_received"]) == (1, 1)
        assert 0 < row["request_ns"] < row["first_ns"] <= row["done_ns"]
        assert row["acknowledged_ns"] == row["retransmitted"] == row["unreachable"] == 0
    assert len({row["port"] for row in rows}) == 5


def test_body_beyond_one_datagram_comes_in_blocks(port: int, tmp_path: Path) -> None:
    body_bytes = MOST_IN_ONE_DATAGRAM + 1
    put(port, body_bytes, tmp_path)
    done = run(configuration(port, body_bytes=body_bytes))
    assert done.returncode == 0, done.stderr
    for row in rows_of(done.stdout):
        assert (row["datagrams_sent"], row["datagrams_received"]) == (2, 2)
        assert row["first_ns"] < row["done_ns"]


def test_separate_response_is_acknowledged(port: int) -> None:
    done = run(configuration(port, path="/async?1", trials=1))
    (row,) = rows_of(done.stdout)
    assert 0 < row["acknowledged_ns"] < row["first_ns"]
    assert row["first_ns"] >= 990_000_000, "the server waits for a second, in ticks of 1 ms"
    assert (row["datagrams_received"], row["sent_all"] - row["sent"]) == (2, HEADER)


def test_server_without_the_resource_fails_the_trials(port: int) -> None:
    done = run(configuration(port))
    assert done.returncode == 0
    assert {row["error"] for row in rows_of(done.stdout)} == {"the server answered 4.04"}


def test_other_body_ends_the_run(port: int, tmp_path: Path) -> None:
    put(port, 10, tmp_path)
    done = run(configuration(port, body_bytes=11))
    assert done.returncode == 3
    words = done.stderr.decode().splitlines()[-1]
    assert "the response's body has 10 B: body_bytes is 11; PUT a body" in words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"trials": 0}, "trials is 0: expected 1 to"),
        (
            {"stack": STACK | {"message_type": "ACK"}},
            "stack: unknown variant `ACK`, expected `CON` or `NON`",
        ),
        ({"concurrent": 2}, "concurrent is 2: expected a number that divides trials, 5"),
        (
            {"stack": STACK | {"ack_timeout": 10_000_000}},
            "stack.ack_timeout is 10 ms: expected 1 s",
        ),
        ({"adress": "x"}, "adress"),
    ],
)
def test_mistake_in_the_configuration(change: dict[str, object], words: str) -> None:
    done = run(configuration(9, **change))
    said = done.stderr.decode().splitlines()
    assert (done.returncode, len(said)) == (2, 1)
    assert said[0].startswith("warifu-coap-client: ") and words in said[0]


def test_interruption_keeps_what_was_finished(port: int, tmp_path: Path) -> None:
    put(port, 10, tmp_path)
    output = tmp_path / "trials.ndjson"
    with output.open("wb") as file:
        client = subprocess.Popen(
            [tools.find("warifu-coap-client")], stdin=subprocess.PIPE, stdout=file
        )
        assert client.stdin is not None
        with contextlib.closing(client.stdin) as stdin:
            stdin.write(configuration(port, trials=100_000))
        deadline = time.monotonic() + 60
        while output.read_bytes().count(b"\n") < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        client.send_signal(signal.SIGINT)
        assert client.wait(30) == 130
    rows = rows_of(output.read_bytes())
    assert len(rows) >= 3
    assert all("error" not in row for row in rows)


def test_version_names_libcoap() -> None:
    assert ", libcoap 4." in tools.version("warifu-coap-client")

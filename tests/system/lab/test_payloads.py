# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Uploads and pre-shared keys from outside on nginx and the lab's client: their TLS records are
those of the trace, one by one, and a connection takes the round trips of its handshake.
"""

from __future__ import annotations

import re
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import needs
from warifu import _core, study, tools
from warifu.lab.case import Cell
from warifu.lab.cell import Bench, Settings
from warifu.lab.https import driver
from warifu.lab.https.client import Client
from warifu.lab.https.driver import PORT as SERVER_PORT
from warifu.lab.store import Part

pytestmark = needs.root

MS = 1_000_000
RTT = 40 * MS
TRIALS = 3
FAST = Settings(rate_per_second=20.0, late_fraction_max=1.0)
STUDY = """\
name = "payloads"
device = "xeon-2-5-ghz-vm"
server = "xeon-2-5-ghz-vm"
[link]
profile = "loopback"
rtt = "40 ms"
[stack]
{stack}
[pattern]
request_body = "{body}"
"""
RECORD_HEADER, TCP_PROTOCOL, FIN = 5, 6, 1
# Of a capture's file (draft-ietf-opsawg-pcap), and of "any" (LINKTYPE_LINUX_SLL2).
PCAP_HEADER, PACKET_HEADER, SLL2_HEADER = 24, 16, 20
PATIENCE_S = 20.0
SIGNED = ("ServerKeyExchange", "CertificateVerify")
"""An ECDSA signature in DER is some bytes shorter than the trace says where its numbers begin with
zeros (ITU-T X.690 section 8.3.2)."""
SHORTER = 6


@pytest.mark.parametrize(
    ("stack", "body", "round_trips"),
    [
        ('tls = "1.2"\nauthentication = "server"', "100 B", 4),
        ('tls = "1.2"\nauthentication = "server"', "10 kB", 4),
        ('tls = "1.3"\nauthentication = "server"', "100 B", 3),
        ('tls = "1.3"\nauthentication = "server"', "10 kB", 3),
        ('tls = "1.3"\nauthentication = "psk"\npsk_mode = "psk_dhe_ke"', "0 B", 3),
        ('tls = "1.3"\nauthentication = "psk"\npsk_mode = "psk_dhe_ke"', "10 kB", 3),
        ('tls = "1.3"\nauthentication = "psk"\npsk_mode = "psk_ke"', "100 B", 3),
        ('tls = "1.2"\nauthentication = "psk"\npsk_mode = "psk_ke"', "100 B", 4),
        ('tls = "1.2"\nauthentication = "psk"\npsk_mode = "psk_dhe_ke"', "100 B", 4),
    ],
)
def test_records_and_round_trips_of_the_trace(
    stack: str, body: str, round_trips: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles = list(study.profile_texts(study.profile_folders()))
    text = STUDY.format(stack=stack, body=body)
    parsed = _core.Study.parse(text, "payloads.toml", profiles)
    cell = Cell.of(parsed.cases[0])
    watch(monkeypatch, tmp_path / "capture.pcap")
    with Bench(FAST) as bench:
        result = bench.run(cell, Part("0" * 16, 0, TRIALS, 7), lambda: False)
    assert result is not None
    columns = result.trials.columns
    assert columns["failed"] == [False] * TRIALS
    # Not a bound of the clock from above: a busy machine may make any trial but the fastest late.
    assert min(columns["establishment_ns"]) // RTT == round_trips

    told = list(records_told(_core.trace_text(parsed, 0)))
    first = next(connections(tmp_path / "capture.pcap"))
    for heading in ("up", "down"):
        expected = [(name, length) for way, name, length in told if way == heading]
        seen = list(lengths(first[heading]))
        assert len(seen) == len(expected), (heading, seen, expected)
        for (name, length), real in zip(expected, seen, strict=True):
            assert length - real in range(1 + SHORTER * (name in SIGNED)), (name, length, real)
    sent = sum(length for way, _, length in told if way == "up")
    assert columns["bytes_client_sent"] == [sent] * TRIALS


def records_told(trace: str) -> Iterator[tuple[str, str, int]]:
    """Heading, message and length of each record of a trace's text, header and all."""
    for line in trace.splitlines():
        arrow = re.search(r"<--|-->", line)
        found = re.search(r"[{\[]?(\w+).*?(\d+) \+ (\d+)\b", line)
        if arrow and found:
            heading = "down" if arrow[0] == "<--" else "up"
            yield heading, found[1], int(found[2]) + int(found[3])


def watch(monkeypatch: pytest.MonkeyPatch, to: Path) -> None:
    """Captures what the client sends and gets until the lab removes its namespaces."""

    class Watched(Client):
        def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
            command = ["ip", "netns", "exec", options["namespace"], tools.find("tcpdump")]
            command += ["-i", "any", "-y", "LINUX_SLL2", "-n", "-U", "--immediate-mode"]
            # A packet takes the longest length of the buffer (KiB), and a busy machine may be late.
            command += ["-s", "16384", "-B", "16384", "-Z", "root", "-w", to, "tcp"]
            self.capture = subprocess.Popen(command, stderr=subprocess.PIPE)
            assert self.capture.stderr is not None
            while b"listening on" not in (line := self.capture.stderr.readline()):
                assert line, "tcpdump ended"
            super().__init__(*arguments, **options)

        def stop(self) -> None:
            super().stop()
            # On a busy machine tcpdump may be behind, and would leave the rest when it is ended.
            until = time.monotonic() + PATIENCE_S
            while finished(to) < TRIALS and time.monotonic() < until:
                time.sleep(0.05)
            self.capture.terminate()
            self.capture.communicate()

    monkeypatch.setattr(driver, "Client", Watched)


def finished(capture: Path) -> int:
    """How many connections the server has closed."""
    return sum(source == SERVER_PORT and bool(flags & FIN) for source, flags, _ in packets(capture))


def connections(capture: Path) -> Iterator[dict[str, bytes]]:
    """What each connection carried each way. The link loses and reorders nothing."""
    streams: dict[int, dict[str, dict[int, bytes]]] = {}
    for source, _, segment in packets(capture):
        (target, number) = struct.unpack_from(">HI", segment, 2)
        heading, port = ("down", target) if source == SERVER_PORT else ("up", source)
        payload = segment[(segment[12] >> 4) * 4 :]
        # What is sent again needlessly carries the same.
        if payload:
            ways = streams.setdefault(port, {"up": {}, "down": {}})
            ways[heading].setdefault(number, payload)
    for ways in streams.values():
        yield {heading: b"".join(parts.values()) for heading, parts in ways.items()}


def packets(capture: Path) -> Iterator[tuple[int, int, bytes]]:
    """Source port, flags and the whole of each TCP segment."""
    data = capture.read_bytes()
    at = PCAP_HEADER
    while at + PACKET_HEADER <= len(data):
        (kept,) = struct.unpack_from("<I", data, at + 8)
        packet = data[at + PACKET_HEADER + SLL2_HEADER : at + PACKET_HEADER + kept]
        at += PACKET_HEADER + kept
        if at > len(data):
            break
        assert packet[9] == TCP_PROTOCOL
        segment = packet[(packet[0] & 15) * 4 : int.from_bytes(packet[2:4])]
        yield int.from_bytes(segment[:2]), segment[13], segment


def lengths(stream: bytes) -> Iterator[int]:
    """The records of a stream (RFC 8446 section 5.1)."""
    at = 0
    while at < len(stream):
        length = RECORD_HEADER + int.from_bytes(stream[at + 3 : at + 5])
        yield length
        at += length

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Two namespaces joined by the emulated link, and what each end's TCP sends, from captures."""

from __future__ import annotations

import contextlib
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.paths import ROOT

REPOSITORY = ROOT
CLIENT, SERVER = "10.9.7.1", "10.9.7.2"
PORT = 4433


@dataclass(frozen=True)
class Packet:
    """A TCP segment as it left its sender; sequence numbers count from the SYN."""

    time_ns: int
    heading: str
    flags: str
    seq: int
    length: int
    ack: int
    sack: tuple[tuple[int, int], ...]
    stamp: int = 0
    echo: int = 0

    def shape(self) -> tuple[str, str, int, int, int, tuple[tuple[int, int], ...]]:
        """What does not depend on time."""
        return (self.heading, self.flags, self.seq, self.length, self.ack, self.sack)

    def __str__(self) -> str:
        arrow = ">" if self.heading == "up" else "<"
        end = f":{self.seq + self.length}" if self.length else ""
        sack = "".join(f" sack {a}:{b}" for a, b in self.sack)
        stamps = f" ts {self.stamp} {self.echo}" if self.stamp else ""
        return (
            f"{self.time_ns / 1e6:10.3f} ms {arrow} [{self.flags}] seq {self.seq}{end} "
            f"ack {self.ack}{sack}{stamps}"
        )


def binary(name: str) -> Path | None:
    """A program of the workspace, or None if it has not been built."""
    roots = [Path(os.environ.get("WARIFU_BIN_DIR", "/nowhere"))]
    roots.append(REPOSITORY / "target/release")
    roots += sorted((REPOSITORY / "target").glob("*/release"))
    for root in roots:
        if (root / name).is_file():
            return root / name
    return None


class Lab:
    """A link between two namespaces with a server and a client worker."""

    def __init__(self) -> None:
        self.client_namespace = f"wks{os.getpid()}c"
        self.server_namespace = f"wks{os.getpid()}s"
        self.stack = contextlib.ExitStack()

    def __enter__(self) -> Lab:
        link = binary("warifu-link")
        assert link is not None, "warifu-link has not been built"
        for namespace in (self.client_namespace, self.server_namespace):
            run("ip", "netns", "add", namespace)
            self.stack.callback(run, "ip", "netns", "del", namespace)
            run(*inside(namespace), "ip", "link", "set", "lo", "up")
            run(*inside(namespace), "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1")
            # Not simulated: compressing selective acknowledgements, and waiting until a segment
            # for segmentation offload is larger.
            run(*inside(namespace), "sysctl", "-qw", "net.ipv4.tcp_comp_sack_nr=0")
            run(*inside(namespace), "sysctl", "-qw", "net.ipv4.tcp_tso_win_divisor=255")
        config = {
            "name_a": self.client_namespace,
            "name_b": self.server_namespace,
            "address_a": CLIENT,
            "address_b": SERVER,
            "congestion_control": "cubic",
            "initcwnd": 10,
        }
        self.link = self._start([str(link), "--config", "-"])
        self._say(self.link, config)
        self._hear(self.link, "ready")
        worker = [sys.executable, str(Path(__file__).with_name("worker.py"))]
        self.server = self._start([*inside(self.server_namespace), *worker, "server", SERVER])
        self.client = self._start([*inside(self.client_namespace), *worker, "client", SERVER])
        assert self.server.stdout is not None
        self.server.stdout.readline()
        return self

    def __exit__(self, *details: object) -> None:
        self.stack.close()

    def run(
        self,
        client: list[tuple[str, int]],
        server: list[tuple[str, int]],
        link: dict[str, object],
        *,
        nagle: bool = False,
        settle_s: float = 0.05,
    ) -> list[Packet]:
        """One connection; what both ends sent until the client had all it waited for."""
        self._say(self.link, {"command": "set", "link": link})
        self._hear(self.link, "set")
        with (
            self._capture(self.client_namespace) as up,
            self._capture(self.server_namespace) as down,
        ):
            self._say(self.server, {"program": server, "nagle": nagle})
            self._hear(self.server, "listening")
            self._say(self.client, {"program": client, "nagle": nagle})
            done = self._hear(self.client, "done")
            time.sleep(settle_s)
        packets = [*parse(up, CLIENT, "up"), *parse(down, SERVER, "down")]
        packets.sort(key=lambda packet: packet.time_ns)
        self._say(self.client, {"close": True})
        self._hear(self.client, "closed")
        return relative(packets, until_ns=int(done["time_ns"]))

    def set_routes(self, initcwnd: int, congestion_control: str) -> None:
        """Initial window, segments, and congestion control of both routes."""
        for namespace in (self.client_namespace, self.server_namespace):
            network = CLIENT.rsplit(".", 1)[0] + ".0/24"
            route = ["route", "replace", network, "dev", "tun0", "congctl", congestion_control]
            run("ip", "-n", namespace, *route, "initcwnd", str(initcwnd))

    def _start(self, command: list[str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.stack.callback(process.wait, 10)
        self.stack.callback(process.terminate)
        return process

    @staticmethod
    def _say(process: subprocess.Popen[str], what: dict[str, object]) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps(what) + "\n")
        process.stdin.flush()

    @staticmethod
    def _hear(process: subprocess.Popen[str], event: str) -> dict[str, object]:
        assert process.stdout is not None
        for line in process.stdout:
            said: dict[str, object] = json.loads(line)
            if said.get("event") == event:
                return said
        raise RuntimeError(f"the process ended before {event!r}")

    @contextlib.contextmanager
    def _capture(self, namespace: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "capture.pcap"
            command = ["tcpdump", "-i", "tun0", "-n", "-U", "--immediate-mode", "-j", "host"]
            command += ["--nano", "-s", "120", "-w", str(path), "tcp", "port", str(PORT)]
            process = subprocess.Popen(
                [*inside(namespace), *command], stderr=subprocess.PIPE, text=True
            )
            assert process.stderr is not None
            process.stderr.readline()
            kept = Path(tempfile.mkstemp(suffix=".pcap")[1])
            try:
                yield kept
            finally:
                process.terminate()
                process.wait()
                kept.write_bytes(path.read_bytes())


def inside(namespace: str) -> list[str]:
    return ["ip", "netns", "exec", namespace]


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def parse(path: Path, sender: str, heading: str) -> list[Packet]:
    """The TCP segments from `sender` in a capture of a TUN device (raw IP, nanoseconds)."""
    data = path.read_bytes()
    path.unlink()
    packets = []
    at = 24
    wanted = bytes(int(part) for part in sender.split("."))
    while at + 16 <= len(data):
        seconds, nanos, kept, _ = struct.unpack_from("<IIII", data, at)
        frame = data[at + 16 : at + 16 + kept]
        at += 16 + kept
        if frame[12:16] == wanted:
            packets.append(segment(frame, seconds * 10**9 + nanos, heading))
    return packets


def segment(frame: bytes, time_ns: int, heading: str) -> Packet:
    header = (frame[0] & 15) * 4
    (total,) = struct.unpack_from(">H", frame, 2)
    seq, ack, offset, bits = struct.unpack_from(">IIBB", frame, header + 4)
    length = total - header - (offset >> 4) * 4
    options = frame[header + 20 : header + (offset >> 4) * 4]
    sack, stamp, echo = read_options(options)
    flags = "".join(
        letter for bit, letter in ((1, "F"), (2, "S"), (4, "R"), (8, "P"), (16, ".")) if bits & bit
    )
    return Packet(time_ns, heading, flags, seq, length, ack, sack, stamp, echo)


def read_options(options: bytes) -> tuple[tuple[tuple[int, int], ...], int, int]:
    sack: list[tuple[int, int]] = []
    stamp = echo = 0
    at = 0
    while at < len(options) and options[at] != 0:
        if options[at] == 1:
            at += 1
            continue
        kind, length = options[at], options[at + 1]
        body = options[at + 2 : at + length]
        if kind == 5:
            sack = [struct.unpack_from(">II", body, i) for i in range(0, len(body), 8)]
        elif kind == 8:
            stamp, echo = struct.unpack(">II", body)
        at += length
    return tuple(sack), stamp, echo


def relative(packets: list[Packet], until_ns: int) -> list[Packet]:
    """With time, sequence numbers and stamps counted from the SYNs, up to an instant."""
    isn = {p.heading: p.seq for p in reversed(packets) if "S" in p.flags}
    zero = {p.heading: p.stamp for p in reversed(packets) if "S" in p.flags}
    other = {"up": "down", "down": "up"}
    start = packets[0].time_ns
    out = []
    for p in packets:
        if p.time_ns > until_ns or "F" in p.flags or "R" in p.flags:
            continue
        peer = isn.get(other[p.heading], 0)
        base = zero.get(other[p.heading], 0)
        out.append(
            Packet(
                p.time_ns - start,
                p.heading,
                p.flags,
                (p.seq - isn[p.heading]) % 2**32,
                p.length,
                (p.ack - peer) % 2**32 if "." in p.flags else 0,
                tuple(((a - peer) % 2**32, (b - peer) % 2**32) for a, b in p.sack),
                p.stamp - zero[p.heading],
                p.echo - base if p.echo else 0,
            )
        )
    return out

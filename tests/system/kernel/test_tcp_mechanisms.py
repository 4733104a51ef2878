# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The simulated TCP against the running kernel's, mechanism by mechanism.

Each case is a small exchange of which the link drops or holds back chosen packets. The kernel runs
it once over the emulated link, captured at both ends; the simulator runs it at many positions
relative to the kernel's ticks. The kernel's SYNs and data segments must be those of the simulation,
in the same order, each within the times that the simulation gives it. Needs root (namespaces, TUN
devices).

A busy machine runs timers late and wakes programs late, so a case may take three attempts.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from support.wire import REPOSITORY, Lab, Packet, binary

Program = list[tuple[str, int]]
# An MTU of 1500 B less 20 of IP, 20 of TCP and 12 of time stamps.
MSS = 1_448


def sends(*sizes: int) -> Program:
    return [("send", size) for size in sizes]


def receives(*sizes: int) -> Program:
    return [("receive", size) for size in sizes]


PAUSE: Program = [("wait_ms", 20)]
# A mutual TLS 1.3 handshake with a request and its answer.
HANDSHAKE = (
    [*sends(236), *receives(993), *PAUSE, *sends(763, 78), *receives(751, 751, 1087)],
    [*receives(236), *sends(993), *receives(763, 78), *sends(751, 751, 1087)],
)
# Flights of several segments.
LONG = (
    [*sends(236), *receives(7000), *PAUSE, *sends(4500), *receives(300)],
    [*receives(236), *sends(7000), *receives(4500), *sends(300)],
)
# A client's last flight with a chain of certificates: three segments of one write, and a request.
CHAIN = (
    [*sends(236), *receives(993), *PAUSE, *sends(2_999, 78), *receives(300)],
    [*receives(236), *sends(993), *receives(2_999, 78), *sends(300)],
)
# Three short segments after one another.
SHORT = (
    [*sends(100), *receives(100), *PAUSE, *sends(100, 100, 100), *receives(300)],
    [*receives(100), *sends(100), *receives(100, 100, 100), *sends(300)],
)
# The peer is silent for as long as it takes the kernel to send a flight again needlessly; what the
# window is worth afterwards shows in the flight that follows.
DOUBT = (
    [*sends(3 * MSS), *receives(300), *PAUSE, *sends(12 * MSS), *receives(300)],
    [*receives(3 * MSS), ("wait_ms", 1_500), *sends(300), *receives(12 * MSS), *sends(300)],
)
# A server that is done: its response, a close_notify, and the end of its stream.
CLOSING = (
    [*sends(236), *receives(300)],
    [*receives(236), *sends(300, 31), ("close", 0)],
)
# The first data is acknowledged at once; what comes after an answer waits for the next one, which
# takes longer than the timer of a delayed acknowledgement.
TALK = (
    [*sends(100), *receives(100), *PAUSE, *sends(100), *receives(100)],
    [*receives(100), *sends(100), *receives(100), ("wait_ms", 120), *sends(100)],
)


def bulk(segments: int) -> tuple[Program, Program]:
    """Enough for the window to grow over several rounds. The peer reads when all of it is there:
    which segments arrive while a program reads, and are acknowledged together, is chance."""
    return (
        [*sends(236), *receives(300), *PAUSE, *sends(segments * MSS), *receives(300)],
        [
            *receives(236),
            *sends(300),
            ("await", (segments + 1) * MSS),
            ("wait_ms", 1_500),
            *receives(segments * MSS),
            *sends(300),
        ],
    )


BULK = bulk(42)

SEEDS = 1_500
ATTEMPTS = 3
# Programs in Python and the link's own forwarding take a while that the simulation does not know.
EARLY_MS, LATE_MS = 1.0, 3.0


@dataclass(frozen=True)
class Case:
    """An exchange and the packets of each direction to drop, counted from 0."""

    name: str
    programs: tuple[Program, Program] = field(repr=False)
    up: tuple[int, ...] = ()
    down: tuple[int, ...] = ()
    # Packets that take so many milliseconds longer and are overtaken by those sent meanwhile.
    hold_up: tuple[tuple[int, int], ...] = ()
    hold_down: tuple[tuple[int, int], ...] = ()
    rtt_ms: int = 60
    nagle: bool = False
    initcwnd: int = 10
    congestion_control: str = "cubic"
    rate_kbit_s: int | None = None
    queue_packets: int | None = None
    # The receiver's window is not simulated. It grows with the first segments of a long flight, and
    # adds a quick acknowledgement each of two times (tcp_grow_window).
    quick_acks: int = 16
    # Whether acknowledgements alone are compared as well: where no program reads while segments
    # arrive, which would join some.
    acknowledgements: bool = False


CASES = [
    Case("nothing lost", HANDSHAKE),
    Case("SYN lost", HANDSHAKE, up=(0,)),
    Case("seven SYNs lost: four at even intervals, then doubling", HANDSHAKE, up=tuple(range(7))),
    Case("two SYN-ACKs lost", HANDSHAKE, down=(0, 1)),
    Case("quick, then delayed acknowledgements", TALK, acknowledgements=True),
    Case("two SYNs lost: the window begins at one segment", LONG, up=(0, 1)),
    Case("SYN-ACK lost: both timers run, the first SYN's stamp is echoed", HANDSHAKE, down=(0,)),
    Case("SYN-ACK lost, then a flight: the timeout is three seconds", HANDSHAKE, down=(0, 3)),
    Case("last ACK of the handshake lost", HANDSHAKE, up=(1,)),
    Case("lone segment lost", HANDSHAKE, up=(2,)),
    Case("lone segment and its probe lost", HANDSHAKE, up=(2, 3)),
    Case("lone segment lost, 150 ms", HANDSHAKE, up=(2,), rtt_ms=150),
    Case("acknowledgement lost", HANDSHAKE, down=(1,)),
    Case("first of two segments lost: reordering timer", HANDSHAKE, up=(4,)),
    Case("last of two segments lost: delayed acknowledgement, then the probe", HANDSHAKE, up=(5,)),
    Case("whole flight lost: probe, then what it uncovers", HANDSHAKE, up=(4, 5)),
    Case("selective acknowledgement lost: needless probe", HANDSHAKE, up=(4,), down=(3,)),
    Case("server's flight lost, 150 ms", HANDSHAKE, down=(2,), rtt_ms=150),
    Case("first of three lost", HANDSHAKE, down=(4,)),
    Case("middle of three lost", HANDSHAKE, down=(5,)),
    Case("last of three lost", HANDSHAKE, down=(6,)),
    Case("all of three lost", HANDSHAKE, down=(4, 5, 6)),
    Case("early in a long flight: three duplicates", LONG, down=(2,)),
    Case("late in a long flight: reordering timer", LONG, down=(4,)),
    Case("end of a long flight", LONG, down=(6,)),
    Case("two holes in a long flight", LONG, down=(2, 4)),
    Case("short segments lost together are sent again as one", SHORT, up=(4, 5, 6)),
    Case("Nagle holds the second write back", HANDSHAKE, nagle=True),
    Case("initial window of three", LONG, initcwnd=3),
    Case("initial window of three, loss within", LONG, down=(3,), initcwnd=3),
    Case("a probe sent in vain: a duplicate's report ends the doubt", DOUBT, down=(1, 2)),
    Case("a timeout in vain: forward RTO recovery gives the window back", DOUBT, down=(1, 2, 3)),
    Case("two timeouts in vain", DOUBT, down=(1, 2, 3, 4)),
    Case("a timeout in vain, initial window of three", DOUBT, down=(1, 2, 3), initcwnd=3),
    Case("response lost: what follows it tells", CLOSING, down=(2,)),
    Case("response lost, 150 ms", CLOSING, down=(2,), rtt_ms=150),
    Case("response and close_notify lost: the FIN tells", CLOSING, down=(2, 3)),
    Case("response and all that follows it lost", CLOSING, down=(2, 3, 4)),
    Case("slow start over three rounds", BULK, acknowledgements=True),
    Case("slow start from three segments", BULK, initcwnd=3, quick_acks=18),
    Case("CUBIC after a loss in the first round", BULK, up=(5,), quick_acks=18),
    # A round trip that is no multiple of the tick, or a timer and a segment would race.
    Case("CUBIC after two losses", BULK, up=(5, 9), rtt_ms=61, quick_acks=18),
    Case(
        "Reno after a loss in the first round",
        BULK,
        up=(5,),
        congestion_control="reno",
        quick_acks=18,
    ),
    Case("CUBIC after a timeout", BULK, up=tuple(range(3, 13)), quick_acks=18),
    Case(
        "Reno after a timeout",
        BULK,
        up=tuple(range(3, 13)),
        congestion_control="reno",
        quick_acks=18,
    ),
    Case("a link of 1 Mbit/s", LONG, rate_kbit_s=1_000),
    # Lengths at which a packet often comes at the very moment at which another leaves are avoided:
    # either is dropped then.
    Case("a queue of five packets overflows", BULK, rate_kbit_s=4_000, queue_packets=5),
]


def last_flight(
    name: str,
    up: tuple[int, ...] = (),
    down: tuple[int, ...] = (),
    hold_up: tuple[tuple[int, int], ...] = (),
    hold_down: tuple[tuple[int, int], ...] = (),
) -> Case:
    """A client's last flight: its segments are 4 to 7, the acknowledgements of it 3 and on. With
    this round trip no timer is a whole number of ticks, so that a few microseconds of the
    programs' do not decide between two."""
    return Case(f"last flight: {name}", CHAIN, up, down, hold_up, hold_down, rtt_ms=94)


LAST_FLIGHT = [
    last_flight("first segment lost", up=(4,)),
    last_flight("second lost", up=(5,)),
    last_flight("third lost", up=(6,)),
    last_flight("request lost", up=(7,)),
    last_flight("first and second lost", up=(4, 5)),
    last_flight("first and third lost", up=(4, 6)),
    last_flight("second and request lost", up=(5, 7)),
    last_flight("third and request lost", up=(6, 7)),
    last_flight("all but the first lost", up=(5, 6, 7)),
    last_flight("all lost", up=(4, 5, 6, 7)),
    last_flight("second and its copy lost", up=(5, 8)),
    last_flight("request and its probe lost", up=(7, 8)),
    last_flight("first acknowledgement lost", down=(3,)),
    last_flight("both acknowledgements lost", down=(3, 4)),
    last_flight("third and an acknowledgement lost", up=(6,), down=(3,)),
    last_flight("first late", hold_up=((4, 40),)),
    last_flight("first late, its copy needless", hold_up=((4, 81),)),
    last_flight("third late, its copy needless", hold_up=((6, 81),)),
    last_flight("request late", hold_up=((7, 150),)),
    # RACK marks the first and the third lost; the first comes, which takes both marks away.
    last_flight("first late, third lost: it waits for the timeout", up=(6,), hold_up=((4, 81),)),
    last_flight("first late, second lost: it waits for the timeout", up=(5,), hold_up=((4, 81),)),
    # PAWS: the copy of the first was stamped after it.
    last_flight("first lost, third too late: its stamp is too old", up=(4,), hold_up=((6, 150),)),
    last_flight("first lost, request too late", up=(4,), hold_up=((7, 150),)),
    last_flight("second lost, first late", up=(5,), hold_up=((4, 40),)),
    last_flight("third lost, second late by a little", up=(6,), hold_up=((5, 13),)),
    last_flight("acknowledgements overtake one another", hold_down=((3, 60),), up=(5,)),
    last_flight("request lost, an acknowledgement late", up=(7,), hold_down=((3, 60),)),
    last_flight("two late, one lost", up=(6,), hold_up=((4, 81), (5, 110))),
]
CASES += LAST_FLIGHT


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """The link and both workers."""
    if os.geteuid() != 0:
        pytest.fail("namespaces and TUN devices need root: run `make kernel` as root")
    if binary("warifu-link") is None:
        cargo("build", "-p", "warifu-link")
    with Lab() as running:
        yield running


def cargo(verb: str, *arguments: str, text: str | None = None) -> str:
    command = ["cargo", verb, "--release", "--quiet", *arguments]
    done = subprocess.run(
        command, cwd=REPOSITORY, input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def simulated(program: Program) -> Program:
    """Without what only a kernel's program does."""
    return [step for step in program if step[0] != "await"]


def simulate(case: Case) -> list[list[Packet]]:
    client, server = case.programs
    settings = f'key_store = "software"\n[link]\nprofile = "loopback"\nrtt = "{case.rtt_ms} ms"\n'
    if case.hold_up or case.hold_down:
        settings += "keep_order = false\n"
    if case.rate_kbit_s is not None:
        settings += f'rate_up = "{case.rate_kbit_s} kbit/s"\n'
        settings += f'rate_down = "{case.rate_kbit_s} kbit/s"\n'
    if case.queue_packets is not None:
        settings += f"queue_packets = {case.queue_packets}\n"
    settings += (
        '[stack]\nprotocol = "https"\ntls = "1.3"\n'
        f'congestion_control = "{case.congestion_control}"\n'
        f"nagle = {str(case.nagle).lower()}\ninitcwnd = {case.initcwnd}\n"
        'kernel = "grows"\n'
    )
    question = {
        "settings": settings,
        "client": simulated(client),
        "server": simulated(server),
        "drop_up": case.up,
        "drop_down": case.down,
        "hold_up": case.hold_up,
        "hold_down": case.hold_down,
        "seeds": SEEDS,
        "cost": "100 us",
        "quick_acks": case.quick_acks,
    }
    lines = cargo("run", "-p", "warifu-sim", "--example", "timeline", text=json.dumps(question))
    return [
        [
            Packet(time, way, flags, seq, length, ack, tuple((a, b) for a, b in sack))
            for time, way, flags, seq, length, ack, sack, _ in json.loads(line)
        ]
        for line in lines.splitlines()
    ]


def telling(packets: list[Packet], case: Case) -> list[Packet]:
    """What is compared, up to the last segment of data: SYNs and data, and acknowledgements alone
    where the case says so."""
    data = [index for index, packet in enumerate(packets) if packet.length > 0]
    upto = packets[: data[-1] + 1] if data else packets
    if case.acknowledgements:
        # What acknowledges nothing new opens the window.
        new = {packet.ack: packet for packet in reversed(upto) if packet.length == 0}
        return [packet for packet in upto if packet.length > 0 or new[packet.ack] is packet]
    return [packet for packet in upto if packet.length > 0 or "S" in packet.flags]


def shape(packets: list[Packet]) -> tuple[tuple[str, int, int, int], ...]:
    """What does not depend on time; of data, what it acknowledges on its way does."""
    return tuple(
        (packet.heading, packet.seq, packet.length, 0 if packet.length else packet.ack)
        for packet in packets
    )


def differences(case: Case, kernel: list[Packet], simulated: list[list[Packet]]) -> list[str]:
    """What the kernel did that no simulated trial did; empty when they agree."""
    seen_packets = telling(kernel, case)
    trials = [telling(trial, case) for trial in simulated]
    alike = [trial for trial in trials if shape(trial) == shape(seen_packets)]
    if not alike:
        return ["the kernel sent other segments than any simulated trial"]
    found = []
    for index, packet in enumerate(seen_packets):
        times = [trial[index].time_ns / 1e6 for trial in alike]
        seen = packet.time_ns / 1e6
        if not min(times) - EARLY_MS <= seen <= max(times) + LATE_MS:
            found.append(f"{packet}: simulated from {min(times):.3f} to {max(times):.3f} ms")
    return found


def link(case: Case) -> dict[str, object]:
    delay = case.rtt_ms * 500_000
    rate = None if case.rate_kbit_s is None else case.rate_kbit_s * 1_000
    return {
        "rate_a_to_b_bps": rate,
        "rate_b_to_a_bps": rate,
        "queue_packets": case.queue_packets,
        "delay_a_to_b_ns": delay,
        "delay_b_to_a_ns": delay,
        "drop_script_a_to_b": list(case.up),
        "drop_script_b_to_a": list(case.down),
        "hold_script_a_to_b_ns": [(packet, ms * 1_000_000) for packet, ms in case.hold_up],
        "hold_script_b_to_a_ns": [(packet, ms * 1_000_000) for packet, ms in case.hold_down],
        "keep_order": not (case.hold_up or case.hold_down),
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_kernel_does_what_is_simulated(case: Case, lab: Lab) -> None:
    lab.set_routes(case.initcwnd, case.congestion_control)
    trials = simulate(case)
    client, server = case.programs
    found: list[str] = []
    for _ in range(ATTEMPTS):
        kernel = lab.run(client, server, link(case), nagle=case.nagle)
        found = differences(case, kernel, trials)
        if not found:
            return
    text = "\n".join(map(str, kernel))
    trial = "\n".join(map(str, trials[0]))
    pytest.fail(f"{found}\nkernel:\n{text}\none simulated trial:\n{trial}")

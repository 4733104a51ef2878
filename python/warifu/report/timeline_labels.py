# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What is written beside a timeline: who does what, and what is sent, in few words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warifu.printable import printable
from warifu.report.figures import number
from warifu.results import Timeline
from warifu.results.timelines import Activity, End, Message, Packet

#: What takes less of a timeline than this is in the picture, and has no words.
_LEAST_SHARE = 0.01
#: Waiting that is said.
_LEAST_WAIT = 0.06

#: Letters that have room between the lanes.
_FLIGHT = 27

_SYSTEM = {"wake": "woken, reads", "http_respond": "HTTP server"}
_KINDS = {
    "compute": "computing",
    "system": "operating system",
    "key_store": "key store",
    "queue": "waiting for what is busy with others",
    "pause": "pause",
}


@dataclass(frozen=True)
class Label:
    """Words beside a lane, at the height of what they are of."""

    end: End
    at_ns: float
    words: str
    took: str
    style: str


@dataclass(frozen=True)
class Flight:
    """What an end sent before the other spoke."""

    end: End
    messages: Sequence[Message]
    packets: Sequence[Packet]


def duration_ms(ns: float) -> str:
    """A time with its unit, to three digits: `0.66 ms`, `483 ms`, `12.4 s`."""
    if ns >= 1e10:
        return f"{number(ns / 1e9, 1)} s"
    if ns >= 1e9:
        return f"{number(ns / 1e9, 2)} s"
    value = ns / 1e6
    return f"{number(value, 0 if value >= 100 else 1 if value >= 10 else 2)} ms"


def activity_words(one: Activity) -> str:
    """`processes Certificate` for `client.receive.Certificate`."""
    parts = one.name.split(".")
    if one.kind in {"compute", "system"} and len(parts) == 3:
        _, way, what = parts
        if way == "system":
            return _SYSTEM.get(what, what)
        return f"{'makes' if way == 'send' else 'processes'} {what}"
    if one.kind == "compute" and parts[-1] == "sign":
        return "signs"
    return one.name


def kind_words(one: Activity) -> str:
    """What kind of work it is."""
    return _KINDS[one.kind]


def side_labels(timeline: Timeline) -> list[Label]:
    """Marks, what takes long, long waiting of the device, and timers that sent something."""
    total = float(max(timeline.total_ns, 1))
    labels = [
        Label("client", mark.at_ns, mark.name, duration_ms(mark.at_ns), "mark")
        for mark in timeline.marks
        if mark.at_ns > 0
    ]
    for one in timeline.activities:
        took = one.until_ns - one.from_ns
        if took >= _LEAST_SHARE * total and one.kind != "pause":
            middle = (one.from_ns + one.until_ns) / 2
            labels.append(Label(one.end, middle, activity_words(one), duration_ms(took), one.kind))
    labels += _waits(timeline, total)
    for timer in timeline.timers:
        if timer.kind == "retransmit":
            labels.append(Label(timer.end, timer.at_ns, "timer: sends again", "", "timer"))
    return sorted(labels, key=lambda label: label.at_ns)


def _waits(timeline: Timeline, total: float) -> Iterator[Label]:
    """When the device did nothing for long."""
    since = 0
    for begin, end in [
        *((one.from_ns, one.until_ns) for one in timeline.activities if one.end == "client"),
        (timeline.total_ns, timeline.total_ns),
    ]:
        if begin - since >= _LEAST_WAIT * total:
            lost = any(
                since <= one.at_ns < begin for one in timeline.packets if one.arrives_ns is None
            )
            words = "loss, waits" if lost else "waits"
            yield Label("client", (since + begin) / 2, words, duration_ms(begin - since), "wait")
        since = max(since, end)


def flights(timeline: Timeline) -> list[Flight]:
    """Messages by who sent them before the other did, with the packets that brought them."""
    groups: list[list[int]] = []
    for index, message in enumerate(timeline.messages):
        if groups and timeline.messages[groups[-1][0]].end == message.end:
            groups[-1].append(index)
        else:
            groups.append([index])
    found = []
    for group in groups:
        first, last = group[0], group[-1]
        own = [
            packet
            for packet in timeline.packets
            if packet.messages[0] < packet.messages[1]
            and packet.messages[0] <= last
            and packet.messages[1] > first
            and packet.end == timeline.messages[first].end
        ]
        found.append(
            Flight(timeline.messages[first].end, [timeline.messages[i] for i in group], own)
        )
    return found


def flight_words(flight: Flight) -> tuple[str, str]:
    """Its first and last message, and its size."""
    names = list(dict.fromkeys(_bare(message.label) for message in flight.messages))
    ways = (", ".join(names), f"{names[0]} … {names[-1]}", f"{names[0]} + {len(names) - 1} more")
    shown = next((way for way in ways if len(way) <= _FLIGHT), f"{names[0][:_FLIGHT]} …")
    size = sum(message.bytes for message in flight.messages)
    first = [packet for packet in flight.packets if not packet.again]
    packets = f" in {len(first)} packets" if len(first) > 1 else ""
    return shown, f"{size:,} B{packets}"


def packet_words(packet: Packet, timeline: Timeline) -> str:
    """What a packet is, for a tooltip and for tables."""
    names = [message.label for message in timeline.messages[slice(*packet.messages)]]
    kind = ", ".join(names) or _flag_words(packet.flags)
    again = ", sent again" if packet.again else ""
    lost = ", lost" if packet.arrives_ns is None else ""
    return f"{kind}, {packet.bytes:,} B{again}{lost}"


def _flag_words(flags: str) -> str:
    """What TCP's flags are called."""
    names = {"S": "SYN", "S.": "SYN-ACK", ".": "ACK", "F.": "FIN", "FP.": "FIN", "R": "RST"}
    return names.get(flags, "data" if "P" in flags else flags)


def _bare(label: str) -> str:
    """A message without the brackets that say with which keys it is protected."""
    return label.strip("{}[]()")


def events(timeline: Timeline) -> list[tuple[float, str, str, str]]:
    """Everything in the order of time: when (ns), which end, what, and how long or until when."""
    found: list[tuple[float, str, str, str]] = [
        (mark.at_ns, "device", f"* {mark.name}", "") for mark in timeline.marks
    ]
    ends = {"client": "device", "server": "server"}
    for timer in timeline.timers:
        name = "sends again" if timer.kind == "retransmit" else "acknowledges"
        found.append((timer.at_ns, ends[timer.end], f"timer expires: {name}", ""))
    for one in timeline.activities:
        took = duration_ms(one.until_ns - one.from_ns)
        found.append((one.from_ns, ends[one.end], activity_words(one), took))
    for packet in timeline.packets:
        arrow = "->" if packet.end == "client" else "<-"
        until = ""
        if packet.arrives_ns is not None:
            until = f"arrives {duration_ms(packet.arrives_ns)}"
        words = f"{arrow} {packet_words(packet, timeline)}"
        found.append((packet.at_ns, ends[packet.end], words, until))
    return sorted(found, key=lambda event: event[0])


def lines(timeline: Timeline) -> list[str]:
    """The same as text: time, end, what happens, and how long it takes or when it arrives. Each is
    one line, whatever the name of a message has in it."""
    return [
        printable(f"{at / 1e6:10.3f} ms  {end:<6}  {what}{f'  ({more})' if more else ''}")
        for at, end, what, more in events(timeline)
    ]


def description(timeline: Timeline, title: str) -> str:
    """What the picture shows, in words."""
    lost = sum(packet.arrives_ns is None for packet in timeline.packets)
    again = sum(packet.again for packet in timeline.packets)
    marks = ", ".join(f"{one.name} at {duration_ms(one.at_ns)}" for one in timeline.marks[1:])
    busy = {
        end: sum(
            one.until_ns - one.from_ns
            for one in timeline.activities
            if one.end == end and one.kind in {"compute", "system", "key_store"}
        )
        for end in ("client", "server")
    }
    sent = "; ".join(
        f"{'device' if one.end == 'client' else 'server'} sends {', '.join(flight_words(one))}"
        for one in flights(timeline)
    )
    return (
        f"{title}: {duration_ms(timeline.total_ns)}. {marks}. The device is busy for "
        f"{duration_ms(busy['client'])}, the server for {duration_ms(busy['server'])}. "
        f"{len(timeline.packets)} packets, {lost} lost, {again} sent again. {sent}."
    )

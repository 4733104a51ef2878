# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the runs for the two papers on DDS Security are reduced to, and the model of calls."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from warifu.dds.recording import PARTS
from warifu.dds.sending import Sent

FRAGMENT_BYTES = 64_608
"""Of a sample in one message: Fast DDS 2.9's 65,500 B for UDP less its headers and what DDS
Security adds (`largest` of the profiler; tests/system/dds holds it)."""
SERIALISED_BYTES = 8
"""Before a string in CDR: the encapsulation header and the string's length."""
DATA_BYTES, DATA_FRAG_BYTES, INFO_TS_BYTES = 24, 36, 12
"""Submessages, without the payload (RTPS 2.2, section 9.4.5)."""
ENCODED_BYTES = 44
"""Around an encrypted payload: CryptoHeader (20), its length (4) and CryptoFooter (20) (DDS
Security 1.1, section 9.5.3.3)."""
HEARTBEAT = "::add_heartbeat"
"""The function of Fast DDS 2.9 that adds one to an RTPS message (RTPSMessageGroup.cpp)."""
UPDATES_COUNTED = 2
"""EVP_CipherUpdate calls EVP_EncryptUpdate (OpenSSL 3.0, crypto/evp/evp_enc.c), so that the
profiler sees each update of OpenSSL's generator twice."""


@dataclass(frozen=True)
class Calls:
    """Operations for a message under SROS2's governance."""

    fragments: int
    encryptions: int
    macs: int
    randoms: int
    bytes: int
    """Encrypted."""

    @property
    def with_generator(self) -> int:
        """Encryptions and those of OpenSSL's generator, CTR_DRBG: one makes the random bytes, one
        its next state (SP 800-90A, section 10.2.1.5.1)."""
        return self.encryptions + 2 * self.randoms


def calls(message_bytes: int) -> Calls:
    """The model: each fragment has its payload encrypted (data), then the DATA or DATA_FRAG
    submessage with it and INFO_TS (metadata), and the RTPS message gets a MAC (rtps SIGN). Each of
    these four takes a nonce. Heartbeats are left out."""
    sample = message_bytes + SERIALISED_BYTES
    fragments = math.ceil(sample / FRAGMENT_BYTES)
    head = DATA_BYTES if fragments == 1 else DATA_FRAG_BYTES
    around = head + ENCODED_BYTES + INFO_TS_BYTES
    return Calls(
        fragments, 3 * fragments, fragments, 4 * fragments, 2 * sample + fragments * around
    )


@dataclass(frozen=True)
class Summary:
    """Times of many sends, ns."""

    n: int
    mean: float
    minimum: float
    p5: float
    median: float
    p95: float
    maximum: float
    outliers: int
    """Above the third quartile by more than three times the distance of the quartiles (Tukey's
    "far out")."""


def summary(values: Sequence[float]) -> Summary:
    """Raises ValueError without any."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")

    def at(share: float) -> float:
        return ordered[round(share * (len(ordered) - 1))]

    fence = at(0.75) + 3 * (at(0.75) - at(0.25))
    return Summary(
        len(ordered),
        statistics.fmean(ordered),
        ordered[0],
        at(0.05),
        at(0.5),
        at(0.95),
        ordered[-1],
        sum(one > fence for one in ordered),
    )


@dataclass(frozen=True)
class Sends:
    """Sets of messages of one kind, a process each."""

    sets: tuple[Sent, ...]

    @cached_property
    def total(self) -> Summary:
        """Of a send: the middleware's write."""
        return summary(self.values("ns"))

    @cached_property
    def crypto(self) -> Summary:
        """Of what a send asks of OpenSSL."""
        return summary(self.values("crypto_ns"))

    @cached_property
    def rest(self) -> Summary:
        """Of all else in a send."""
        pairs = zip(self.values("ns"), self.values("crypto_ns"), strict=True)
        return summary([total - crypto for total, crypto in pairs])

    @property
    def left_out(self) -> int:
        """Messages that began before their reader had one."""
        return sum(one.written - len(one.messages) for one in self.sets)

    def values(self, name: str) -> list[int]:
        """A number of each message."""
        return [message[name] for one in self.sets for message in one.messages]

    def each(self, name: str) -> float:
        """A number's mean over the messages."""
        return statistics.fmean(self.values(name))

    def set_means(self, name: str) -> tuple[float, float]:
        """The least and the greatest mean of a set."""
        means = [statistics.fmean(message[name] for message in one.messages) for one in self.sets]
        return min(means), max(means)

    @property
    def share(self) -> float:
        """Of cryptography in the sends' time."""
        return sum(self.values("crypto_ns")) / sum(self.values("ns"))

    @property
    def with_generator(self) -> float:
        """Encryptions a message as who counts EVP_EncryptUpdate finds them."""
        return self.each("encryptions") + self.each("inner_updates") / UPDATES_COUNTED

    @property
    def heartbeats(self) -> float:
        """Of a write, each encrypted by itself: by the site that adds them, whose share of all
        encryptions in writes is taken, since messages that are left out are in a site's count."""
        sites = [
            site for one in self.sets for site in one.recording.sites if site.operation == "encrypt"
        ]
        whole = sum(site.numbers["in_message"] for site in sites)
        added = sum(
            site.numbers["in_message"]
            for site in sites
            if any(frame.endswith(HEARTBEAT) for frame in site.frames)
        )
        return self.each("encryptions") * added / whole if whole else 0.0

    @property
    def with_generator_of_samples(self) -> float:
        """`with_generator` without heartbeats, of which each has an encryption and a nonce: how
        many a write sends along depends on the time since the last one."""
        of_a_nonce = self.each("inner_updates") / UPDATES_COUNTED / (self.each("randoms") or 1.0)
        return self.with_generator - self.heartbeats * (1 + of_a_nonce)

    @property
    def one_way_ns(self) -> float:
        """From node to node: the median of the sets' medians."""
        return statistics.median(one.one_way_ns["median"] for one in self.sets)

    @property
    def read_ns(self) -> float:
        """Of cryptography in reading a message: the median of the sets' means."""
        return statistics.median(one.read_ns for one in self.sets)

    @property
    def node_share(self) -> float:
        """Of both ends' cryptography in the time from node to node."""
        return (self.crypto.median + self.read_ns) / self.one_way_ns

    def took_ns(self, operation: str) -> float:
        """Time a message in operations of this kind, ns."""
        messages = sum(one.written for one in self.sets)
        return sum(one.took_ns(operation) * one.written for one in self.sets) / messages

    def parts(self, operation: str) -> dict[str, float]:
        """Shares of context, init, update, final and tag in the operations' time."""
        sites = [
            site
            for one in self.sets
            for site in one.recording.sites
            if site.operation == operation and not site.of_openssl
        ]
        found = {part: sum(site.numbers[f"{part}_ns"] for site in sites) for part in PARTS}
        whole = sum(found.values()) or 1
        return {part: ns / whole for part, ns in found.items()}

    @property
    def probe_ns(self) -> float:
        """What the profiler added to a message, by its own calibration, ns."""
        messages = sum(one.written for one in self.sets)
        return sum(_probe_ns(one) for one in self.sets) / messages


def _probe_ns(sent: Sent) -> float:
    numbers = sent.recording.numbers
    # Calls before the first message are discovery's: those of messages are counted by kind.
    return (
        numbers["messages"] * numbers["message_cost_ps"]
        + _calls_in_messages(sent) * numbers["call_cost_ps"]
    ) / 1000


def _calls_in_messages(sent: Sent) -> float:
    """The process's calls, by the share of its operations that lie in messages."""
    totals = sent.recording.totals["now"].values()
    operations = sum(one["operations"] for one in totals)
    inside = sum(one["in_message"] for one in totals)
    return sent.recording.numbers["calls"] * inside / operations if operations else 0.0


@dataclass(frozen=True)
class Call:
    """One encryption, by warifu-aead-bench, ns."""

    mean: float
    minimum: float
    maximum: float
    median: float
    warm: float
    """A call's share of many in a row, the key set up before."""

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The paper on offloading DDS Security's encryption: its arithmetic, this host's figures over
payload, and what accelerators would save with set-up, bus and every pass over a byte."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from warifu.reproduce.dds_sends import FRAGMENT_BYTES, Sends, calls
from warifu.reproduce.papers import Judge, Missing, Outcome, Verdicts, judge, load

NAME = "dds_offload"
FAST = "fastdds-probe"
PAYLOADS = (16, 1_000, 16_000, 64_000, 65_000, 100_000, 128_000, 256_000, 512_000, 1_000_000)
"""B; 64,000 fit one fragment here, 65,000 do not. KB and MB are powers of ten, as the paper's
176 MB/s show."""
SMALL, WHOLE, DIVIDED, LARGE = 16, 64_000, 65_000, 1_000_000
CALIBRATED = (SMALL, WHOLE, LARGE)
"""The payloads that the model's terms are taken from; it is judged at the others."""
STEP = (64_000, 128_000)
"""On either side of the paper's step."""
OVER = 100_000
"""From which on the paper sees several calls."""
PAPER_CORE, ON_BUS = "fpga-387-slices", "fpga-387-slices-axi"
"""Profiles of the paper's circuit: as it reckons, and behind a bus (profiles/accelerators)."""
DEVICE = "raspberry-pi-3"
"""Of profiles/devices."""
AEAD = "AES-256-GCM"

Span = tuple[float, float]
"""The least and the most."""


@dataclass(frozen=True)
class Terms:
    """What a call takes, ns: the least and the most for itself, and for each byte."""

    set_up_ns: Span
    byte_ns: float


def terms(device: str) -> dict[str, Terms]:
    """`seal` and `mac` of AES-256-GCM in a device profile's text, the key set up in each call;
    nothing of what it does not state in microseconds and nanoseconds."""
    found = {}
    for primitive in tomllib.loads(device).get("primitive", []):
        kind, _, aead = str(primitive.get("name", "")).removeprefix("aead.").partition(".")
        warm, each = primitive.get("warm", {}), str(primitive.get("per_byte", "")).split()
        times = warm.get("quantiles", []) if isinstance(warm, dict) else []
        if aead != AEAD or not times or warm.get("unit") != "us" or each[1:] != ["ns"]:
            continue
        found[kind] = Terms((1000 * times[0], 1000 * times[-1]), float(each[0]))
    return found


@dataclass(frozen=True)
class Seen:
    """What was measured here, and the accelerators that are known."""

    secured: Mapping[int, Sends] = field(default_factory=dict)
    """By bytes of the message."""
    plain: Mapping[int, Sends] = field(default_factory=dict)
    accelerators: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By name, as `_core.accelerator` reads a profile."""
    raspberry_pi: Mapping[str, Terms] = field(default_factory=dict)
    """Of the profile of the paper's device: what `seal` and `mac` take; empty without it."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """What could not be run, with the fix."""


@dataclass(frozen=True)
class Model:
    """What cryptography takes here: a part for the message, whose first calls find cold caches, one
    for each further fragment, and one for each byte that a cipher or a MAC goes over."""

    message_ns: float
    fragment_ns: float
    byte_ns: float

    def crypto_ns(self, bytes_each: int) -> float:
        """Of a message."""
        terms = (self.message_ns, self.fragment_ns, self.byte_ns)
        return sum(term * count for term, count in zip(terms, counts(bytes_each), strict=True))


def counts(bytes_each: int) -> tuple[int, int, int]:
    """What the model's terms are multiplied with. An RTPS message, which gets the MAC, has half of
    the bytes that are encrypted."""
    found = calls(bytes_each)
    return 1, found.fragments - 1, found.bytes + found.bytes // 2


def fit(secured: Mapping[int, Sends]) -> Model:
    """The three terms by the medians at `CALIBRATED`, none below zero."""
    from scipy.optimize import nnls

    times = [secured[size].crypto.median for size in CALIBRATED]
    # Relative errors count: a microsecond is much at 16 B, nothing at 1 MB.
    rows = [
        [count / time for count in counts(size)]
        for size, time in zip(CALIBRATED, times, strict=True)
    ]
    # Terms of like size: bytes are many.
    scale = (1.0, 1.0, 1e-5)
    scaled = [[one * by for one, by in zip(row, scale, strict=True)] for row in rows]
    found, _ = nnls(scaled, [1.0] * len(times))
    return Model(*(float(one * by) for one, by in zip(found, scale, strict=True)))


@dataclass(frozen=True)
class Software:
    """The Raspberry Pi at 1 MB, by the paper's own figures, ms."""

    crypto: float
    total: float

    @property
    def other(self) -> float:
        """All but encryption."""
        return self.total - self.crypto


def software(published: Mapping[str, Any]) -> Software:
    """Encryption by its throughput, and all by its share."""
    crypto = published["message_mb"] / published["throughput_mb_s"] * 1000
    return Software(crypto, crypto / published["share"])


def offloaded_ms(
    accelerator: Mapping[str, Any], bytes_each: int, times: int, calls_each: int
) -> Span:
    """A message's encryption on an accelerator: `times` over each byte in so many calls, ms."""
    own, bus = accelerator["ciphers"][AEAD], accelerator["bus"]

    def end(which: int) -> float:
        set_up = float(own["set_up_ns"][which] + bus["set_up_ns"][which])
        per_byte = float(own["per_byte_ns"][which] + bus["per_byte_ns"][which])
        return (calls_each * set_up + times * bytes_each * per_byte) / 1e6

    return end(0), end(1)


def saving(before: float, after: Span) -> Span:
    """The least and the most that is saved, as shares; below zero it costs."""
    return 1 - after[1] / before, 1 - after[0] / before


def pays_from(accelerator: Mapping[str, Any], software_byte_ns: float) -> Span | None:
    """Bytes of a call from which an accelerator is faster than software whose own set-up is
    nothing; None if it never is."""
    own, bus = accelerator["ciphers"][AEAD], accelerator["bus"]
    gain = [software_byte_ns - own["per_byte_ns"][at] - bus["per_byte_ns"][at] for at in (0, 1)]
    if min(gain) <= 0:
        return None
    set_up = [own["set_up_ns"][at] + bus["set_up_ns"][at] for at in (0, 1)]
    return set_up[0] / gain[0], set_up[1] / gain[1]


def percent(span: Span) -> str:
    """A share or a range of shares: `87 %`, `-12 to 40 %`."""
    low, high = (f"{100 * one:.1f}" for one in span)
    return f"{low} %" if low == high else f"{low} to {high} %"


class Judges:
    """Says of each claim what comes of it."""

    def __init__(self, seen: Seen) -> None:
        """Of these measurements."""
        self.seen = seen
        self.paper = load(NAME)
        self.figures = self.paper.published
        self.model = fit(seen.secured) if seen.secured else None

    def all(self) -> dict[str, Judge]:
        """By claim."""
        return {
            "figure1": self._figure1,
            "authentication": self._authentication,
            "step": self._step,
            "cause.fragments": self._fragments,
            "cause.bytes": self._fragment_bytes,
            "cause.time": self._cause,
            "share.grows": self._share_grows,
            "share": self._share,
            "throughput": self._throughput,
            "core": self._core,
            "range": self._range,
            "crypto.saving": self._crypto_saving,
            "node.saving": self._node_saving,
            "node.ms": self._node_ms,
            "figure3": self._figure3,
            "real.saving": self._real_saving,
            "conclusion": self._conclusion,
        }

    def verdicts(self) -> Verdicts:
        """Of all claims."""
        return judge(self.paper, self.all())

    def _lacks(self) -> Missing | None:
        why = self.seen.missing.get(FAST)
        return Missing(why) if why else None

    def _figure1(self) -> Outcome | Missing:
        if lacks := self._lacks():
            return lacks
        every = [one for sends in self.seen.secured.values() for one in sends.sets]
        fewest = min(message["encryptions"] for one in every for message in one.messages)
        received = sum(one.received for one in every)
        return Outcome(
            fewest >= 1 and received == sum(one.written for one in every),
            f"at least {fewest} encryptions a write; {received:,} messages read",
        )

    def _authentication(self) -> Outcome | Missing:
        if lacks := self._lacks():
            return lacks
        before = after = 0
        for sends in self.seen.secured.values():
            for one in sends.sets:
                totals = one.recording.totals
                for kind in ("sign", "verify"):
                    first = totals["first_message"][kind]["operations"]
                    before += first
                    after += totals["last_message"][kind]["operations"] - first
        return Outcome(
            before > 0 and after == 0,
            f"{before:,} signatures made and checked before the messages, {after:,} during them",
        )

    def _step(self) -> Outcome | Missing:
        if lacks := self._lacks():
            return lacks
        return Outcome(None, *(f"{one:.2f} times, 64 to 128 KB" for one in self._grown(*STEP)))

    def _grown(self, low: int, high: int) -> tuple[float, float]:
        """Of cryptography from one payload to another: measured, and by the model."""
        here = self.seen.secured[high].crypto.median / self.seen.secured[low].crypto.median
        model = self._model()
        return here, model.crypto_ns(high) / model.crypto_ns(low)

    def _fragments(self) -> Outcome | Missing:
        if lacks := self._lacks():
            return lacks
        found = {size: sends.each("encryptions") for size, sends in self.seen.secured.items()}
        one = found[SMALL]
        large = {size: each for size, each in found.items() if size >= OVER}
        return Outcome(
            min(large.values()) >= 2 * one,
            f"{one:.1f} encryptions at 16 B, {large[OVER]:.1f} at 100 KB, {large[LARGE]:.1f} at "
            "1 MB",
            ", ".join(str(calls(size).encryptions) for size in (SMALL, OVER, LARGE)),
        )

    def _fragment_bytes(self) -> Outcome | Missing:
        if lacks := self._lacks():
            return lacks
        largest = max(self.seen.secured[LARGE].values("largest"))
        low, high = (1000 * one for one in self.figures["call_kb"])
        # Within the bytes of the submessage's header and the like.
        model = abs(largest - FRAGMENT_BYTES) <= 64
        return Outcome(
            low <= largest <= high,
            f"{largest:,} B at most" + ("" if model else ", which the model does not know"),
            f"{FRAGMENT_BYTES:,} B",
            "Fast DDS 2.9 divides what exceeds a UDP message of 65,500 B; Fast RTPS 1.x is not "
            "here",
        )

    def _cause(self) -> Outcome | Missing:
        if lacks := self._lacks():
            return lacks
        here, guess = self._grown(WHOLE, DIVIDED)
        least = min(self.figures["step_rpi"], self.figures["step_notebook"])
        return Outcome(
            here >= least,
            f"{here:.2f} times, 64 to 65 KB",
            f"{guess:.2f} times",
            "there all calls double and bytes stay; twice the bytes are the other cause",
        )

    def _share_grows(self) -> Outcome | Missing:
        if lacks := self._lacks():
            return lacks
        small, large = (self.seen.secured[size].node_share for size in (SMALL, LARGE))
        return Outcome(
            large > small,
            f"{small:.0%} at 16 B, {large:.0%} at 1 MB",
        )

    def _share(self) -> Outcome | Missing:
        if lacks := self._lacks():
            return lacks
        large = self.seen.secured[LARGE]
        return Outcome(None, f"{large.node_share:.0%}, both ends; {large.share:.0%} of a write")

    def _throughput(self) -> Outcome:
        here = ""
        if LARGE in self.seen.secured:
            here = f"this host {LARGE / self.seen.secured[LARGE].crypto.median * 1000:,.0f} MB/s"
        return Outcome(None, here, self._raspberry_pi())

    def _raspberry_pi(self) -> str:
        """The paper's device by its profile: encryption as SROS2 has it, with and without the MAC
        over the message."""
        known, found = self.seen.raspberry_pi, calls(LARGE)
        if not {"seal", "mac"} <= set(known):
            return ""
        seal, mac = known["seal"], known["mac"]
        least = found.encryptions * seal.set_up_ns[0] + found.bytes * seal.byte_ns
        most = found.encryptions * seal.set_up_ns[1] + found.bytes * seal.byte_ns
        most += found.macs * mac.set_up_ns[1] + found.bytes / 2 * mac.byte_ns
        return f"{LARGE / most * 1000:.1f} to {LARGE / least * 1000:.1f} MB/s by its profile"

    def _core(self) -> Outcome:
        found = self.figures["core_gbit_s"] * 1000 / 8
        return Outcome(
            abs(found - self.figures["core_mb_s"]) < 0.65,  # half of 0.01 Gbit/s
            f"{found:.2f} MB/s",
            why="follows from its own figures",
        )

    def _range(self) -> Outcome:
        core = self.figures["core_mb_s"] / 1000
        low, high = self.figures["fpga_gb_s"]
        bits = self.figures["core_gbit_s"]
        inside = low <= core <= high
        gigabits = f"as Gbit/s, {low / 8:.3f} to {high / 8:.2f} GB/s, the range would hold it"
        return Outcome(
            inside,
            f"the circuit's {core:.3f} GB/s is {'inside' if inside else 'outside'}",
            why=gigabits if not inside and low <= bits <= high else "",
        )

    def _crypto_saving(self) -> Outcome:
        found = 1 - self.figures["throughput_mb_s"] / self.figures["core_mb_s"]
        return Outcome(
            abs(found - self.figures["crypto_saving"]) <= 0.0005,
            f"1 - 22.53 / 176 = {found:.1%}",
            self._saved(crypto=True),
            "follows from its own figures, which leave out set-up and bus",
        )

    def _node_saving(self) -> Outcome:
        found = self.figures["share"] * self.figures["crypto_saving"]
        return Outcome(
            abs(found - self.figures["node_saving"]) <= 0.0005,
            f"0.47 x 0.872 = {found:.1%}",
            self._saved(crypto=False),
            "follows from its own figures",
        )

    def _node_ms(self) -> Outcome:
        crypto, less = software(self.figures).crypto, float(self.figures["crypto_saving"])

        def after(share: float) -> float:
            return crypto / share * (1 - share * less)

        half, share = 0.005, self.figures["share"]  # 47 % is rounded
        low, high = sorted((after(share - half), after(share + half)))
        return Outcome(
            low <= self.figures["node_ms"] <= high,
            f"{after(self.figures['share']):.2f} ms ({low:.1f} to {high:.1f} by the rounding of "
            "47 %)",
            why="follows from its own figures; 1 MB is 10^6 B",
        )

    def _figure3(self) -> Outcome:
        if ON_BUS not in self.seen.accelerators:
            return Outcome(None)
        low, high = self._behind_bus()
        other = software(self.figures).other
        return Outcome(None, predicted=f"{other + low:.1f} to {other + high:.1f} ms at 1 MB")

    def _real_saving(self) -> Outcome:
        return Outcome(None, predicted=self._saved(crypto=False))

    def _conclusion(self) -> Outcome:
        if ON_BUS not in self.seen.accelerators:
            return Outcome(None)
        # Each byte is passed over three times, and its time divided by them.
        byte_ns = 1000 / self.figures["throughput_mb_s"] / 3
        found = pays_from(self.seen.accelerators[ON_BUS], byte_ns)
        if found is None:
            return Outcome(None, predicted="never")
        return Outcome(None, predicted=f"from {found[0]:,.0f} to {found[1]:,.0f} B a call")

    def _behind_bus(self) -> Span:
        found = calls(1_000_000)
        accelerator = self.seen.accelerators[ON_BUS]
        return offloaded_ms(accelerator, 1_000_000, 3, found.encryptions + found.macs)

    def _saved(self, *, crypto: bool) -> str:
        """With set-up, bus and three passes; nothing without the profile."""
        if ON_BUS not in self.seen.accelerators:
            return ""
        now = software(self.figures)
        low, high = self._behind_bus()
        if crypto:
            return percent(saving(now.crypto, (low, high)))
        return percent(saving(now.total, (now.other + low, now.other + high)))

    def _model(self) -> Model:
        if self.model is None:
            raise ValueError("nothing was measured")
        return self.model


def errors(seen: Seen) -> Sequence[float]:
    """The model's, at the payloads that it was not calibrated at, as shares."""
    model = fit(seen.secured)
    return [
        abs(model.crypto_ns(size) / sends.crypto.median - 1)
        for size, sends in seen.secured.items()
        if size not in CALIBRATED
    ]

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A device profile from figures: what is known of it, what is scaled, what is assumed, as TOML."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from warifu.devices import cores
from warifu.devices.catalog import PUBLIC_KEY, Device, Known
from warifu.devices.figures import Code, Figure
from warifu.devices.scaling import Corpus, Estimate
from warifu.devices.text import CONTROL

#: Primitives that a TLS connection may ask for; what is not here has stand-ins (`aead.open`,
#: `hmac`, `hkdf` and `prf` by their definitions).
NEEDED = (
    "ecdh.keygen.secp256r1",
    "ecdh.derive.secp256r1",
    "ecdh.keygen.x25519",
    "ecdh.derive.x25519",
    "sign.ecdsa_secp256r1",
    "verify.ecdsa_secp256r1",
    "sign.rsa-2048",
    "verify.rsa-2048",
    "hash.sha-256",
    "hash.sha-384",
    "aead.seal.AES_128_GCM",
    "aead.seal.AES_256_GCM",
    "aead.seal.CHACHA20_POLY1305",
    "random",
)
#: Where scaled and assumed figures begin in a shipped profile (scripts/devices_page.py).
MARK = "# What follows is scaled or assumed by `warifu init device`"


@dataclass(frozen=True)
class Stated:
    """Something that is known of a device, with where it is from."""

    value: str
    source: str = ""
    kind: str = "assumed"

    def toml(self) -> str:
        """As a profile has it."""
        value = json.dumps(self.value, ensure_ascii=False)
        if self.kind == "assumed":
            return f'{{ value = {value}, kind = "assumed" }}'
        return (
            f"{{ value = {value}, source = {_text(self.source)}, kind = {json.dumps(self.kind)} }}"
        )


@dataclass(frozen=True)
class Given:
    """A figure that is known."""

    figure: Figure
    source: str
    kind: str


@dataclass
class Draft:
    """What is known of a device to be."""

    name: str
    description: str
    given: list[Given] = field(default_factory=list)
    library: Stated | None = None
    core: Stated | None = None
    clock_hz: float | None = None
    clock: Stated | None = None
    code: Code | None = None
    ram: Stated | None = None
    flash: Stated | None = None

    def device(self) -> Device:
        """As devices are scaled: the given figures count as known."""
        known = {
            one.figure.primitive: Known(
                one.figure.call_ns,
                one.figure.byte_ns,
                # A data sheet's figure without a source is as good an anchor.
                "measured" if one.figure.is_read else one.kind,
                one.source,
                one.figure.code or (self.code if _is_public(one.figure.primitive) else None),
                one.figure.call_ns,
                one.figure.call_ns,
            )
            for one in self.given
        }
        return Device(
            self.name,
            self.description,
            self.library.value if self.library else None,
            self.core.value if self.core else None,
            self.clock_hz,
            self.code,
            primitives=known,
        )


@dataclass(frozen=True)
class Completed:
    """What was added to a draft."""

    scaled: tuple[Estimate, ...]
    instruction_ns: float | None
    instruction_why: str
    missing: tuple[str, ...]
    """What no device could be scaled for."""


#: A byte of SHA-256 in C takes as long as so many instructions of other code: on a simulated
#: Cortex-M3 (Mbed TLS 2.28.3, GCC 12.2 -Os, `warifu m3 run`) 1 KiB executes 48,558 instructions at
#: 1.17 cycles each, and parsing a certificate 18,996 (ECDSA P-256) or 10,536 (RSA-2048) at 1.6; in
#: Thumb alone, as a Cortex-M0+ has it, 99,087 at 1.22, and 33,328 or 13,738 at 1.5.
INSTRUCTIONS_PER_HASHED_BYTE = {"armv6-m": 76.0, None: 33.0}
#: Of a certificate parsed, the two together.
PARSE_INSTRUCTIONS = {"armv6-m": (13_738, 33_328), None: (10_536, 18_996)}
_COUNTED = "Mbed TLS 2.28.3 on a simulated Cortex-M3"
#: Of an instruction, on a core that begins one in a cycle; below 1, since what is counted above is
#: another compiler's.
_FEWEST_CYCLES = 0.7
#: How far the price of an instruction is trusted: the same code built with -O2 executes 10 % more
#: (22 % in Thumb alone), and memories and compilers differ more than that.
INSTRUCTION_BAND = 1.5
#: Instructions of an embedded TCP/IP stack and its driver for a packet; assumed. A Cortex-M7 at
#: 216 MHz that fills 100 Mbit/s has 26,000 cycles for a packet of 1,500 B.
PACKET_INSTRUCTIONS = (4_000, 20_000)
CONNECT_INSTRUCTIONS = (8_000, 40_000)


def complete(draft: Draft, corpus: Corpus) -> Completed:
    """Scales what a draft lacks."""
    device = draft.device()
    scaled, missing = [], []
    for primitive in NEEDED:
        if primitive in device.primitives:
            continue
        estimate = corpus.estimate(device, primitive)
        if estimate is None:
            missing.append(primitive)
        else:
            scaled.append(estimate)
    price, why = _instruction(device, corpus)
    return Completed(tuple(scaled), price, why, tuple(missing))


def _instruction(device: Device, corpus: Corpus) -> tuple[float | None, str]:
    """The time of an instruction, ns, from SHA-256 in C."""
    key = "armv6-m" if cores.family(device.core) == "armv6-m" else None
    count = INSTRUCTIONS_PER_HASHED_BYTE[key]
    own = device.primitives.get("instruction")
    if own is not None:
        return own.call_ns, "its own figure"
    known = device.primitives.get("hash.sha-256")
    if known is not None and _is_c(device, known, count):
        return known.byte_ns / count, f"its hash.sha-256: a byte as {count:g} instructions"
    estimate = corpus.estimate(device, "hash.sha-256", anchored=False, code=Code.C)
    if estimate is None:
        return None, ""
    return (
        estimate.byte_ns / count,
        f"SHA-256 in C of {estimate.origin.name} by the clock: a byte as {count:g} instructions",
    )


def _is_c(device: Device, known: Known, count: float) -> bool:
    """Whether a figure of SHA-256 prices C. Where nothing says so: no core that begins one
    instruction in a cycle executes C that quickly. Of a call alone no byte's part is known."""
    if known.byte_ns <= 0:
        return False
    if known.code is not None or cores.family(device.core) not in cores.ONE_A_CYCLE:
        return known.code in {Code.C, None}
    return known.byte_ns / count * (device.clock_hz or 0) / 1e9 > _FEWEST_CYCLES


def toml(draft: Draft, completed: Completed, head: Sequence[str]) -> str:
    """The profile's text; `head` are comment lines behind the licence."""
    lines = ["# SPDX-License-Identifier: Apache-2.0 OR MIT", *(f"# {one}".rstrip() for one in head)]
    lines += [f"name = {json.dumps(draft.name)}", f"description = {_text(draft.description)}"]
    lines += [f"{key} = {value}" for key, value in _about(draft)]
    for given in draft.given:
        lines += ["", *_given(given)]
    lines += ["", *rest(draft, completed)]
    return "\n".join(lines) + "\n"


def rest(draft: Draft, completed: Completed) -> list[str]:
    """The lines of what is scaled and assumed."""
    lines = [MARK]
    for estimate in completed.scaled:
        lines += ["", *_scaled(estimate)]
    if completed.instruction_ns is not None:
        lines += ["", *_priced(draft, completed.instruction_ns, completed.instruction_why)]
    return lines


def _about(draft: Draft) -> Iterable[tuple[str, str]]:
    for key, stated in (
        ("library", draft.library),
        ("core", draft.core),
        ("clock", draft.clock),
        ("ram", draft.ram),
        ("flash", draft.flash),
    ):
        if stated is not None:
            yield key, stated.toml()
    if draft.code is not None:
        yield "code", f'{{ value = "{draft.code}", kind = "assumed" }}'


def _given(given: Given) -> list[str]:
    one = given.figure
    # That of an instruction may be finer than 1 ns.
    warm = f"{one.call_ns:.4g} ns" if one.primitive == "instruction" else _ns(one.call_ns)
    lines = ["[[primitive]]", f"name = {json.dumps(one.primitive)}", f'warm = "{warm}"']
    if one.byte_ns:
        lines.append(f'per_byte = "{one.byte_ns:.4g} ns"')
    if one.code is not None:
        lines.append(f'code = "{one.code}"')
    if given.kind == "assumed":
        lines.append('kind = "assumed"')
    else:
        lines += [f"source = {_text(given.source)}", f'kind = "{given.kind}"']
    if one.derived:
        lines.append(f"note = {_text(one.derived)}")
    return lines


def _scaled(one: Estimate) -> list[str]:
    lines = ["[[primitive]]", f"name = {json.dumps(one.primitive)}"]
    lines.append(f"warm = {band(one.call_ns, one.factor)}")
    if one.byte_ns:
        lines.append(f"per_byte = {rate(one.byte_ns, one.factor)}")
    if one.code is not None:
        lines.append(f'code = "{one.code}"')
    is_cut = math.isfinite(one.factor) and one.byte_ns * one.factor > _LONGEST_RATE_NS
    note = f"{one.says()}; a byte's is cut below 1 s" if is_cut else one.says()
    return [*lines, 'kind = "assumed"', f"note = {_text(note)}"]


def _priced(draft: Draft, price: float, why: str) -> list[str]:
    """What the price of an instruction gives: itself, parsing, the system's part of a packet."""
    family = "armv6-m" if draft.core and cores.family(draft.core.value) == "armv6-m" else None
    parse = PARSE_INSTRUCTIONS[family]
    given = {one.figure.primitive for one in draft.given}
    lines: list[str] = []
    if "instruction" not in given:
        lines += [
            "[[primitive]]",
            'name = "instruction"',
            f"warm = {rate(price, INSTRUCTION_BAND)}",
            'kind = "assumed"',
            f"note = {_text(f'from {why}; /{INSTRUCTION_BAND} to x{INSTRUCTION_BAND} is assumed')}",
            "",
        ]
    if "x509.parse" not in given:
        lines += [
            "[[primitive]]",
            'name = "x509.parse"',
            f"warm = {_range(parse, price)}",
            'kind = "assumed"',
            f"note = {_text(f'{parse[0]:,} to {parse[1]:,} instructions ({_COUNTED})')}",
            "",
        ]
    for call, counts in (
        ("connect", CONNECT_INSTRUCTIONS),
        ("write", PACKET_INSTRUCTIONS),
        ("wake", PACKET_INSTRUCTIONS),
    ):
        lines += [
            "[[operation]]",
            f'name = "client.system.{call}"',
            f"warm = {_range(counts, price)}",
            'kind = "assumed"',
            f"note = {_text(f'{counts[0]:,} to {counts[1]:,} instructions of a TCP/IP stack')}",
            "",
        ]
    return [
        *lines,
        "[[operation]]",
        'name = "client.system.interface"',
        'warm = "0 ms"',
        'kind = "assumed"',
        'note = "the link has its own delay"',
    ]


#: Quantiles of the standard normal law at 0, 0.1 .. 1, the ends at its 5 and 95 %: inside of its
#: 90 % interval a band is taken for a normal law of the logarithm.
_NORMAL = (-1.645, -1.282, -0.842, -0.524, -0.253, 0.0, 0.253, 0.524, 0.842, 1.282, 1.645)


#: The longest time of a byte that a profile can have lies below 1 s, ns
#: (crates/core/model/src/profile/rate.rs); a band beyond it, at a few kilohertz, is cut.
_LONGEST_RATE_NS = 999_900_000.0


def band(value_ns: float, factor: float) -> str:
    """A law from low to high, the estimate in its middle."""
    if not math.isfinite(factor) or not value_ns:
        return f'"{_ns(value_ns)}"'
    return _quantiles(f"{round(one)}" for one in _within(value_ns, factor))


def rate(value_ns: float, factor: float) -> str:
    """The same of what a byte or an instruction takes, which may be finer than 1 ns."""
    if not math.isfinite(factor):
        return f'"{value_ns:.4g} ns"'
    fine = (float(f"{one:.4g}") for one in _within(value_ns, factor))
    # An estimate beyond it stays, and is refused.
    most = _LONGEST_RATE_NS if value_ns < _LONGEST_RATE_NS else math.inf
    return _quantiles(f"{min(one, most):.12g}" for one in fine)


def _within(value: float, factor: float) -> list[float]:
    return [value * factor ** (one / _NORMAL[-1]) for one in _NORMAL]


def _quantiles(values: Iterable[str]) -> str:
    return f'{{ quantiles = "{" ".join(values)}", unit = "ns" }}'


def _range(counts: tuple[int, int], price: float) -> str:
    low, high = (round(count * price) for count in counts)
    return f'{{ quantiles = [{low}, {high}], unit = "ns" }}'


def _ns(value: float) -> str:
    return f"{max(1, round(value)) if value else 0} ns"


def _text(text: str) -> str:
    # JSON's strings may hold DEL, and an escape that a terminal would take; TOML's may not.
    return json.dumps(CONTROL.sub(" ", text), ensure_ascii=False)


def _is_public(primitive: str) -> bool:
    return primitive.startswith(PUBLIC_KEY)

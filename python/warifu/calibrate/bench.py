# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs `warifu-calibrate-bench tls` and makes its times into entries of a profile."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from warifu.calibrate import program
from warifu.calibrate.profile import Condition, Entry, Law
from warifu.calibrate.variants import Variant, condition

SIGNED = {
    ("1.2", "server"): "ServerKeyExchange",
    ("1.2", "client"): "CertificateVerify",
    ("1.3", "server"): "CertificateVerify",
    ("1.3", "client"): "CertificateVerify",
}
"""The message that holds a side's signature. It is taken out of the message's time, since another
key store may make it."""

_SILENT = "libssl reports no such message; its time is in that of the message after it"

_NOT_TRACED = ("Alert",)
"""close_notify comes after all that is predicted."""


class Message(NamedTuple):
    """A TLS message that a side makes or processes; as text, its operation in a profile."""

    role: str
    verb: str
    name: str

    @staticmethod
    def of(row: dict[str, Any]) -> Message:
        """The one that a row of the bench's report is about."""
        return Message(row["side"], "send" if row["sent"] else "receive", row["message"])

    def __str__(self) -> str:
        """Its operation."""
        return f"{self.role}.{self.verb}.{self.name}"


@dataclass(frozen=True)
class Effort:
    """How often everything is timed."""

    warm: int
    cold: int
    gap_ms: float
    primitives: int
    rested: int = 0
    rest_ms: float = 500.0
    """Before each rested connection other data goes through the caches, and then nothing runs for
    so long (crates/lab/calibrate-bench/src/tls/rest.rs)."""


@dataclass(frozen=True)
class Times:
    """What the bench found: the version of libssl, and the entries."""

    openssl: str
    entries: tuple[Entry, ...]


def run(variants: list[Variant], effort: Effort, progress: Callable[[str], None]) -> Times:
    """Times the variants. Raises CalibrateError if the bench fails, ToolMissing without it."""
    config = {
        "variants": [variant.json() for variant in variants],
        "warm": effort.warm,
        "cold": effort.cold,
        "gap_ms": effort.gap_ms,
        "primitives": effort.primitives,
        "rested": effort.rested,
        "rest_ms": effort.rest_ms,
    }
    progress(f"timing {len(variants)} TLS variants over memory")
    report = json.loads(program.output_of("warifu-calibrate-bench", "tls", config))
    source = f"warifu-calibrate-bench tls over memory BIOs, {report['openssl']}"
    return Times(report["openssl"], tuple(entries(report, variants, source)))


def entries(report: dict[str, Any], variants: list[Variant], source: str) -> list[Entry]:
    """The entries that a report gives."""
    signatures = _signatures(report, variants)
    per_byte = _per_byte(report["primitives"])
    laws: dict[tuple[int, Message], dict[str, Law]] = {}
    for row in report["messages"]:
        if row["message"] in _NOT_TRACED:
            continue
        laws.setdefault((row["variant"], Message.of(row)), {})[row["temperature"]] = _law(row)
    found: dict[tuple[str, str], Entry] = {}
    for (index, message), by_temperature in laws.items():
        variant, operation = variants[index], str(message)
        when = condition(message.name, variant)
        if when is None:
            continue
        warm = by_temperature["warm"]
        cold, rested = by_temperature.get("cold", warm), by_temperature.get("rested")
        if _signs(message, variant):
            sign = signatures[message.role, variant.tls, variant.certificate]
            warm, cold = _without(warm, sign.warm), _without(cold, sign.cold)
            rested = None if rested is None else _without(rested, sign.rested or sign.cold)
        rate = per_byte[variant.aead] if message.name == "ApplicationData" else 0.0
        entry = Entry(operation, when, warm, cold, per_byte_ns=rate, source=source, rested=rested)
        found.setdefault((operation, str(when)), entry)
    for (role, tls, certificate), sign in signatures.items():
        when_signed: Condition = {"tls": tls, "certificate": certificate}
        entry = Entry(
            f"{role}.sign", when_signed, sign.warm, sign.cold, source=source, rested=sign.rested
        )
        found[entry.operation, str(when_signed)] = entry
    for role in ("client", "server"):
        operation = f"{role}.receive.ChangeCipherSpec"
        if not any(entry.operation == operation for entry in found.values()):
            entry = Entry(operation, {}, Law.constant(0.0), source=source, note=_SILENT)
            found[operation, ""] = entry
    return sorted(found.values(), key=lambda entry: (entry.operation, str(entry.when)))


def _signs(message: Message, variant: Variant) -> bool:
    signed = SIGNED[variant.tls, message.role] == message.name
    by_certificate = variant.session == "full" and not variant.psk_mode
    return message.verb == "send" and by_certificate and signed


def _signatures(
    report: dict[str, Any], variants: list[Variant]
) -> dict[tuple[str, str, str], _Signature]:
    """The laws of a signature by role, TLS version and key type.

    Warm, it is the stand-alone operation. Cold, it is not: alone after a pause it pays for all that
    the pause took from the caches, while in its place in a handshake the message's earlier work has
    paid for some. So cold it gets the share of the cold message that it has of the warm one, and
    after a rest that of the rested one.
    """
    alone = {
        row["algorithm"]: _law(row)
        for row in report["primitives"]
        if row["operation"] == "sign" and row["temperature"] == "warm"
    }
    messages: dict[tuple[str, str, str], dict[str, Law]] = {}
    for row in report["messages"]:
        variant = variants[row["variant"]]
        if _signs(Message.of(row), variant):
            key = (row["side"], variant.tls, variant.certificate)
            messages.setdefault(key, {}).setdefault(row["temperature"], _law(row))
    found = {}
    for key, laws in messages.items():
        warm = alone[key[2]]
        share = min(1.0, warm.mean_ns / laws["warm"].mean_ns)
        rested = laws["rested"].scaled(share) if "rested" in laws else None
        found[key] = _Signature(warm, laws.get("cold", laws["warm"]).scaled(share), rested)
    return found


class _Signature(NamedTuple):
    warm: Law
    cold: Law
    rested: Law | None


_FAMILIES = {
    "keygen": "ecdh.keygen", "derive": "ecdh.derive", "seal": "aead.seal", "open": "aead.open",
    "parse": "x509.parse",
}  # fmt: skip
"""What the bench's operations are called as primitives, where not by their own names."""


def primitives(report: Mapping[str, Any], quantile: int) -> dict[str, tuple[float, float]]:
    """Each primitive's time of a call and of a byte without reading the clock, ns: the line through
    a quantile (of 0 to 20) of its warm times at the shortest and at the longest of the lengths that
    were timed."""
    found: dict[str, dict[int, float]] = {}
    for row in report["primitives"]:
        if row["temperature"] == "warm":
            times = found.setdefault(_primitive(row), {})
            all_calls = max(0.0, row["cpu_ns"][quantile] - report["reading_cpu_ns"])
            times[row["bytes"]] = all_calls / row["calls"]
    return {name: _line(times) for name, times in found.items()}


def _primitive(row: dict[str, Any]) -> str:
    family = _FAMILIES.get(row["operation"], row["operation"])
    alone = family in ("random", "x509.parse")
    return family if alone else f"{family}.{row['algorithm']}"


def _line(times: dict[int, float]) -> tuple[float, float]:
    small, large = min(times), max(times)
    if small == large:
        return times[small], 0.0
    byte = (times[large] - times[small]) / (large - small)
    if byte <= 0.0:
        return sum(times.values()) / len(times), 0.0
    return max(0.0, times[small] - byte * small), byte


def _per_byte(primitives: list[dict[str, Any]]) -> dict[str, float]:
    """What each byte adds to sealing a record, ns, by AEAD: the slope between the record sizes."""
    medians: dict[str, dict[int, float]] = {}
    for row in primitives:
        if row["operation"] == "seal" and row["temperature"] == "warm":
            medians.setdefault(row["algorithm"], {})[row["bytes"]] = _law(row).median_ns
    found = {}
    for name, by_bytes in medians.items():
        small, large = min(by_bytes), max(by_bytes)
        found[name] = max(0.0, (by_bytes[large] - by_bytes[small]) / (large - small))
    return found


def _without(whole: Law, part: Law) -> Law:
    """What is left of a message's time when a signature's is taken out: a constant, since nearly
    all of the spread is the signature's."""
    return Law.constant(max(0.0, whole.mean_ns - part.mean_ns))


def _law(row: dict[str, Any]) -> Law:
    return Law.of(row["cpu_ns"], row["mean_cpu_ns"])

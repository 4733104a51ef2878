# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Mbed TLS's `programs/test/benchmark`, and what NXP and Zephyr made of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from warifu.devices.figures import NO_CASE, Code, Collected, Figure, Output, of_block, of_stream
from warifu.devices.text import number, time_ns

TOOL = "Mbed TLS benchmark"
_VERSION = re.compile(r"\bmbed ?TLS version (\d[\w.-]{0,31})", re.IGNORECASE)
_CLOCK = re.compile(r"\bfsys=(\d{5,10})\b")
#: `AES-GCM-128              :     214.54 KB/s,  438.55 cycles/byte`
_STREAM = re.compile(
    r"^\s*(?:\S+ )?([A-Za-z0-9][\w ()-]{0,40}?) {0,30}: {1,20}"
    r"([\d.,]{1,20}) {1,8}([KM]i?B)/s"
    r"(?:, +([\d.]+) +(cycles|ns|us)/byte)?"
)
#: `ECDSA-secp256r1          :    7.33 sign/s`, or `136 ms/sign`
_CALL = re.compile(
    r"^\s*(?:\S+ )?((?:RSA|DHE?|ECDSA|ECDHE?|EdDSA)-[\w-]{1,40}?) {0,30}: {1,20}"
    r"([\d.,]{1,20}) {1,8}(?:(full handshake|handshake|sign|verify|public|private)/s|"
    r"(ms|us|cycles)/(full handshake|handshake|sign|verify|public|private))"
)
#: NXP's says what its accelerators do.
_WHERE = re.compile(r"^\s*(SHA|AES|AES GCM|Asymmetric cryptography): (.+)$")

#: A message is 1024 B, and a kilobyte of a rate 1024 B, whatever it is called.
_BLOCK = 1024
_SIZES = {"KiB": 1024, "KB": 1024, "MiB": 1024**2, "MB": 1024**2}
_CIPHERS = {
    "AES-GCM-128": "aead.seal.AES_128_GCM",
    "AES-GCM-256": "aead.seal.AES_256_GCM",
    "ChaCha20-Poly1305": "aead.seal.CHACHA20_POLY1305",
    "SHA-256": "hash.sha-256",
    "SHA-384": "hash.sha-384",
    "SHA-512": "hash.sha-512",
    "CTR_DRBG (NOPR)": "random",
}
_CALLS = {
    ("RSA-2048", "public"): "verify.rsa-2048",
    ("RSA-2048", "private"): "sign.rsa-2048",
    ("ECDSA-secp256r1", "sign"): "sign.ecdsa_secp256r1",
    ("ECDSA-secp256r1", "verify"): "verify.ecdsa_secp256r1",
}
_CURVES = {"secp256r1": "secp256r1", "x25519": "x25519", "Curve25519": "x25519"}
_NO_TIME = "its figure is no time above 0"
_NO_CLOCK = "cycles need the clock: add --clock, such as --clock 64MHz"
_GROUPS = {"hash": "SHA", "random": "AES", "aead": "AES GCM"}


def read(lines: Sequence[str], clock_hz: int | None) -> Output | None:
    """The output of one run."""
    found = Collected()
    version = clock = None
    exchanges: dict[tuple[str, str], _Exchange] = {}
    where: dict[str, Code] = {}
    for line in lines:
        if match := _VERSION.search(line):
            version = version or match[1]
        elif match := _CLOCK.search(line):
            clock = int(match[1])
        elif match := _WHERE.search(line):
            where[match[1]] = Code.HARDWARE if "HW" in match[2] else Code.C
        elif match := _CALL.search(line):
            name, verb = match[1], match[3] or match[5]
            ns = _call_ns(number(match[2]), match[4], clock or clock_hz)
            kind, _, curve = name.partition("-")
            what = f"{name} {verb}"
            is_exchange = kind in {"ECDHE", "ECDH"} and curve in _CURVES
            primitive = _CALLS.get((name, verb))
            if not is_exchange and primitive is None:
                found.leave(what, NO_CASE, understood=True)
            elif ns is None:
                needs_clock = match[4] == "cycles" and not (clock or clock_hz)
                found.leave(what, _NO_CLOCK if needs_clock else _NO_TIME, understood=True)
            elif primitive is None:
                _exchange(found, exchanges, _Exchange(ns, what), kind, _CURVES[curve])
            else:
                code = where.get("Asymmetric cryptography")
                found.add(Figure(primitive, ns, code=code), what)
        elif match := _STREAM.search(line):
            rate = number(match[2])
            _stream(found, match[1].strip(), rate and rate * _SIZES[match[3]], where)
            # Whole cycles a byte are too coarse for it.
            if match[4] and "." in match[4] and match[5] == "cycles" and rate:
                per_byte = number(match[4]) or 0.0
                clock = clock or _round(rate * _SIZES[match[3]] * per_byte)
    _exchanges(found, exchanges, where.get("Asymmetric cryptography"))
    output = found.output(TOOL, version=version and f"Mbed TLS {version}")
    if output is None:
        return None
    return replace(output, library="mbedtls-3.6", clock_hz=clock or clock_hz)


def _call_ns(value: float | None, unit: str | None, clock_hz: int | None) -> float | None:
    if value is None:
        return None
    match unit:
        case None:
            return time_ns(1e9 / value)
        case "cycles":
            return time_ns(value * 1e9 / clock_hz) if clock_hz else None
    return time_ns(value * {"ms": 1e6, "us": 1e3}[unit])


def _stream(found: Collected, name: str, rate: float | None, where: dict[str, Code]) -> None:
    primitive = _CIPHERS.get(name)
    byte_ns = time_ns(rate and 1e9 / rate)
    if primitive is None:
        found.leave(name, NO_CASE, understood=True)
    elif byte_ns is None:
        found.leave(name, "its figure is no rate above 0")
    else:
        code = where.get(_GROUPS[primitive.partition(".")[0]])
        if primitive == "random":
            found.add(of_stream(primitive, byte_ns, code), name)
        else:
            found.add(of_block(primitive, byte_ns * _BLOCK, _BLOCK, code), name)


@dataclass(frozen=True)
class _Exchange:
    """The figure of a key exchange, and its row's name."""

    ns: float
    what: str


def _exchange(
    found: Collected,
    exchanges: dict[tuple[str, str], _Exchange],
    one: _Exchange,
    kind: str,
    curve: str,
) -> None:
    """Takes a row of a key exchange; the first of its kind and curve stays."""
    found.lines += 1
    of = "full" if one.what.endswith("full handshake") else kind
    known = exchanges.setdefault((of, curve), one)
    if known is not one:
        # The curve may have two names.
        found.leave(one.what, f"{known.what} was given before")


def _exchanges(
    found: Collected, exchanges: dict[tuple[str, str], _Exchange], code: Code | None
) -> None:
    """Key pair and shared secret. `ECDHE` is both, `ECDH` the secret alone, and a `full handshake`
    both for both ends (programs/test/benchmark.c)."""
    for curve in dict.fromkeys(curve for _, curve in exchanges):
        whole, full = exchanges.get(("ECDHE", curve)), exchanges.get(("full", curve))
        secret = exchanges.get(("ECDH", curve))
        both, how = whole.ns if whole else None, "ECDHE"
        if whole is None and full is not None:
            whole, both, how = full, full.ns / 2, "half of ECDHE's full handshake"
        elif whole is not None and full is not None:
            found.leave(full.what, f"{whole.what} was given")
        derive = secret.ns if secret else None
        sign = found.figures.get(f"sign.ecdsa_{curve}")
        keygen, why = None, ""
        if both is not None and derive is not None and both > derive:
            keygen, why = both - derive, f"{how} less ECDH"
        elif sign is not None and (both is not None or derive is not None):
            # Both multiply the base point; what a signature has beside that is short.
            keygen, why = sign.call_ns, "as a signature: a multiple of the base point"
            if whole is not None and secret is not None:
                found.leave(whole.what, f"takes no longer than {secret.what} alone")
        elif both is not None:
            keygen, why = both / 2, f"a half of {how}"
        if derive is None and both is not None and keygen is not None:
            if keygen > both / 2:
                keygen, why = both / 2, f"a half of {how}, since a signature takes longer"
            derive = both - keygen
        if keygen is not None:
            found.figures.setdefault(
                f"ecdh.keygen.{curve}", Figure(f"ecdh.keygen.{curve}", keygen, 0.0, code, why)
            )
        if derive is not None:
            rest = "" if secret is not None else f"{how} less the key pair"
            found.figures.setdefault(
                f"ecdh.derive.{curve}", Figure(f"ecdh.derive.{curve}", derive, 0.0, code, rest)
            )


def _round(hz: float) -> int:
    return max(1, round(hz / 1e6)) * 1_000_000

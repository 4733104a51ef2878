# SPDX-License-Identifier: Apache-2.0 OR MIT
"""BearSSL's `testspeed` (test/test_speed.c)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from warifu.devices.figures import NO_CASE, Code, Collected, Figure, Output, of_stream
from warifu.devices.text import number, time_ns

TOOL = "BearSSL testspeed"
_LINE = re.compile(
    r"^\s*((?:AES|3DES|DES|ChaCha20|Poly1305|GHASH|SHA|MD5|HMAC|RSA|EC|ECDSA|EAX|SHAKE)\b"
    r"[\w ()/+-]{0,40}?) {1,30}"
    r"([\d.]+) (MB/s|mul/s|sign/s|verify/s|pub/s|priv/s|kgen\[\d+\]/s)\s*$"
)
#: Its RSA keys of this test have 1024 or 2048 bits by version; 0.6 has 2048 (test_speed_rsa_inner).
_CALLS = {
    ("RSA", "pub/s"): "verify.rsa-2048",
    ("RSA", "priv/s"): "sign.rsa-2048",
    ("ECDSA", "sign/s"): "sign.ecdsa_secp256r1",
    ("ECDSA", "verify/s"): "verify.ecdsa_secp256r1",
}


def read(lines: Sequence[str], clock_hz: int | None) -> Output | None:
    """The output of one run. Of several implementations the quickest counts: the library chooses
    by the processor (br_ec_get_default and the like)."""
    found = Collected()
    best: dict[str, Figure] = {}
    parts: dict[str, float] = {}
    for line in lines:
        match = _LINE.search(line)
        if match is None:
            continue
        found.lines += 1
        name, rate, unit = match[1].strip(), number(match[2]), match[3]
        if rate is None:
            found.leave(name, "its figure is no rate above 0")
            continue
        for primitive, figure in _figures(name, rate, unit, parts):
            if primitive not in best or figure.call_ns < best[primitive].call_ns:
                best[primitive] = figure
            break
        else:
            if not _is_part(name, unit):
                found.leave(name, NO_CASE)
    for key, (cipher, tag) in {
        "AES_128_GCM": ("AES-128", "GHASH"),
        "AES_256_GCM": ("AES-256", "GHASH"),
        "CHACHA20_POLY1305": ("ChaCha20", "Poly1305"),
    }.items():
        if cipher in parts and tag in parts:
            figure = of_stream(f"aead.seal.{key}", parts[cipher] + parts[tag], Code.C)
            best[figure.primitive] = replace(
                figure, derived=f"{cipher} and {tag}; {figure.derived}"
            )
    found.figures = best
    output = found.output(TOOL)
    return None if output is None else replace(output, clock_hz=clock_hz)


def _figures(
    name: str, rate: float, unit: str, parts: dict[str, float]
) -> list[tuple[str, Figure]]:
    if unit == "MB/s":
        # It divides by 1,000,000.
        byte_ns = 1000 / rate
        for part in ("AES-128", "AES-256"):
            if name.startswith(part) and "CTR" in name:
                parts[part] = min(byte_ns, parts.get(part, byte_ns))
        for part in ("GHASH", "Poly1305", "ChaCha20"):
            if name.startswith(part):
                parts[part] = min(byte_ns, parts.get(part, byte_ns))
        hashes = {"SHA-256": "hash.sha-256", "SHA-384": "hash.sha-384", "SHA-512": "hash.sha-512"}
        if name in hashes and time_ns(byte_ns):
            return [(hashes[name], of_stream(hashes[name], byte_ns, Code.C))]
        return []
    ns = time_ns(1e9 / rate)
    if ns is None:
        return []
    kind = name.split()[0]
    if kind == "EC" and unit == "mul/s":
        group = _group(name)
        if group is None:
            return []
        # (FP) multiplies the base point, whose multiples are at hand.
        verb = "keygen" if name.endswith("(FP)") else "derive"
        primitive = f"ecdh.{verb}.{group}"
        return [(primitive, Figure(primitive, ns, code=Code.C))]
    primitive = _CALLS.get((kind, unit), "")
    if not primitive or (kind == "ECDSA" and not name.endswith("P-256")):
        return []
    return [(primitive, Figure(primitive, ns, code=Code.C))]


def _group(name: str) -> str | None:
    if "25519" in name:
        return "x25519"
    if "P-256" in name or "p256" in name:
        return "secp256r1"
    return None


def _is_part(name: str, unit: str) -> bool:
    return unit == "MB/s" and (
        name.startswith(("GHASH", "Poly1305", "ChaCha20")) or ("AES" in name and "CTR" in name)
    )

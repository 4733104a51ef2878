# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`openssl speed`, as text and with `-mr` (apps/speed.c of OpenSSL 1.1.1 to 3.5)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from warifu.devices.figures import NO_CASE, Collected, Figure, Output, of_sizes
from warifu.devices.text import number, time_ns

TOOL = "openssl speed"
_VERSION = re.compile(r"^\s*(?:version: |OpenSSL )(\d[\w.+-]{0,31})")
#: `rsa 2048 bits 0.000526s 0.000023s   1902.3  42704.8`; since 3.2 with encryption behind it.
_RSA = re.compile(r"^\s*+rsa ++(\d++) bits? ++(?:[\d.]++s ++){2,4}+([\d. ]*+)$")
#: ` 256 bits ecdsa (nistp256)   0.0000s   0.0001s  39504.5  12626.9`
_SIGN = re.compile(
    r"^\s*+(\d++) bits? ++(ecdsa|EdDSA) \((\w++)\) ++[\d.]++s ++[\d.]++s ++([\d.]++) ++([\d.]++)"
)
_ECDH = re.compile(r"^\s*+(\d++) bits? ++ecdh \((\w++)\) ++[\d.]++s ++([\d.]++)")
_TYPE = re.compile(r"^\s*type {1,40}((?:\d{1,9} bytes {0,20}){1,12})$")
_RATE = re.compile(r"^\s*([A-Za-z][\w()-]{0,40}) {1,40}((?:[\d.]{1,20}k?(?: {1,20}|$)){1,12})$")
_MR = re.compile(r"^\+(F\d?|H|DT|DTP|R\d|D\d?):(.*)$")

_CIPHERS = {
    "aes-128-gcm": "aead.seal.AES_128_GCM",
    "aes-256-gcm": "aead.seal.AES_256_GCM",
    "chacha20-poly1305": "aead.seal.CHACHA20_POLY1305",
    "sha256": "hash.sha-256",
    "sha384": "hash.sha-384",
    "sha512": "hash.sha-512",
    "hmac(sha256)": "hmac.sha-256",
    "hmac(sha384)": "hmac.sha-384",
    "hmac(sha512)": "hmac.sha-512",
    "rand": "random",
}
_CURVES = {"nistp256": "secp256r1", "X25519": "x25519", "Ed25519": "ed25519"}
#: What a shared secret and a key pair take is not told apart: `speed` derives from made keys.
_EXCHANGES = {"secp256r1", "x25519"}


def read(lines: Sequence[str], clock_hz: int | None) -> Output | None:
    """The output of one run."""
    found = Collected()
    version = None
    sizes: list[int] = []
    for line in lines:
        if match := _VERSION.search(line):
            version = version or match[1]
        elif match := _MR.search(line):
            sizes = _machine(found, match[1], match[2].split(":"), sizes)
        elif match := _RSA.search(line):
            _rsa(found, match[1], [number(one) for one in match[2].split()])
        elif match := _SIGN.search(line):
            _signature(found, match[3], (number(match[4]), number(match[5])))
        elif match := _ECDH.search(line):
            _exchange(found, match[2], number(match[3]))
        elif match := _TYPE.search(line):
            sizes = [int(one) for one in re.findall(r"(\d+) bytes", match[1])]
        elif sizes and (match := _RATE.search(line)):
            rates = [number(one.removesuffix("k")) for one in match[2].split()]
            if len(rates) == len(sizes):
                _stream(found, match[1], sizes, [one and one * 1000 for one in rates])
    output = found.output(TOOL, version=version and f"OpenSSL {version}")
    if output is None:
        return None
    return replace(output, library="openssl-3", clock_hz=clock_hz)


def _machine(found: Collected, mark: str, parts: list[str], sizes: list[int]) -> list[int]:
    """A line of `-mr`; the sizes that hold for those behind it."""
    values = [number(one) for one in parts]
    match mark:
        case "H":
            return [int(one) for one in values if one and one < 1 << 30]
        case "F" if len(parts) >= 3 and sizes:
            _stream(found, parts[1], sizes, values[2 : 2 + len(sizes)])
        case "F2" if len(parts) >= 4:
            _rsa(found, parts[1], values[2:4])
        case "F4" if len(parts) >= 4:
            _signature(found, _curve(parts), (values[2], values[3]))
        case "F5" if len(parts) >= 3:
            _exchange(found, _curve(parts), values[2])
        case "F6" if len(parts) >= 5:
            _signature(found, parts[2], (values[3], values[4]))
        case _ if mark.startswith("F"):
            found.leave(":".join(parts[:3])[:40], NO_CASE, understood=True)
    return sizes


def _curve(parts: list[str]) -> str:
    """A curve by its place in speed's list and its bits: others have 256 bits as well."""
    if parts[1] == "253":
        return "X25519"
    return "nistp256" if parts[:2] == ["3", "256"] else f"{parts[1]} bits"


def _rsa(found: Collected, bits: str, rates: Sequence[float | None]) -> None:
    if bits != "2048" or len(rates) < 2:
        found.leave(f"rsa {bits} bits", NO_CASE, understood=True)
        return
    for verb, rate in zip(("sign", "verify"), rates, strict=False):
        _take(found, f"{verb}.rsa-2048", rate, f"rsa 2048 bits {verb}")


def _signature(found: Collected, curve: str, rates: tuple[float | None, float | None]) -> None:
    name = {"nistp256": "ecdsa_secp256r1", "Ed25519": "ed25519"}.get(curve)
    if name is None:
        found.leave(f"signatures with {curve}", NO_CASE, understood=True)
        return
    for verb, rate in zip(("sign", "verify"), rates, strict=True):
        _take(found, f"{verb}.{name}", rate, f"{curve} {verb}")


def _exchange(found: Collected, curve: str, rate: float | None) -> None:
    group = _CURVES.get(curve)
    if group not in _EXCHANGES:
        found.leave(f"ecdh ({curve})", NO_CASE, understood=True)
        return
    _take(found, f"ecdh.derive.{group}", rate, f"ecdh ({curve})")


def _take(found: Collected, primitive: str, rate: float | None, what: str) -> None:
    ns = time_ns(rate and 1e9 / rate)
    if ns is None:
        found.leave(what, "its figure is no rate above 0", understood=True)
    else:
        found.add(Figure(primitive, ns), what)


def _stream(
    found: Collected, name: str, sizes: Sequence[int], rates: Sequence[float | None]
) -> None:
    primitive = _CIPHERS.get(name.lower())
    if primitive is None:
        found.leave(name, NO_CASE, understood=True)
        return
    times = [
        (size, size / rate * 1e9)
        for size, rate in zip(sizes, rates, strict=False)
        if rate and time_ns(size / rate * 1e9)
    ]
    if not times:
        found.leave(name, "its figures are no rates above 0", understood=True)
        return
    found.add(of_sizes(primitive, times, None), name)

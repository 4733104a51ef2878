# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Salsa20, Poly1305 and Ed25519 as their specifications write them, to hold munacl against."""

from __future__ import annotations

import hashlib
import struct

MASK = 0xFFFFFFFF
SIGMA = b"expand 32-byte k"


def _rounds(x: list[int]) -> list[int]:
    """Salsa20's twenty rounds ("Salsa20 specification", sections 3 to 7)."""

    def quarter(a: int, b: int, c: int, d: int) -> None:
        for to, one, two, bits in ((b, a, d, 7), (c, b, a, 9), (d, c, b, 13), (a, d, c, 18)):
            value = (x[one] + x[two]) & MASK
            x[to] ^= (value << bits | value >> (32 - bits)) & MASK

    for _ in range(10):
        for i in range(4):
            quarter(5 * i, (5 * i + 4) % 16, (5 * i + 8) % 16, (5 * i + 12) % 16)
        for i in range(4):
            quarter(*(4 * i + (i + j) % 4 for j in range(4)))
    return x


def _words(key: bytes, block: bytes) -> list[int]:
    k, n, c = (struct.unpack(f"<{len(part) // 4}I", part) for part in (key, block, SIGMA))
    return [c[0], *k[:4], c[1], *n, c[2], *k[4:], c[3]]


def hsalsa20(key: bytes, block: bytes) -> bytes:
    x = _rounds(_words(key, block))
    return struct.pack("<8I", *(x[i] for i in (0, 5, 10, 15, 6, 7, 8, 9)))


def salsa20(key: bytes, nonce: bytes, length: int) -> bytes:
    """The stream's first bytes."""
    stream = b""
    for counter in range(-(-length // 64)):
        x = _words(key, nonce + struct.pack("<Q", counter))
        stream += struct.pack(
            "<16I", *((a + b) & MASK for a, b in zip(x, _rounds(list(x)), strict=True))
        )
    return stream[:length]


def xsalsa20(key: bytes, nonce: bytes, length: int) -> bytes:
    return salsa20(hsalsa20(key, nonce[:16]), nonce[16:], length)


def poly1305(key: bytes, message: bytes) -> bytes:
    """RFC 8439 section 2.5."""
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    h = 0
    for at in range(0, len(message), 16):
        h = (h + int.from_bytes(message[at : at + 16] + b"\1", "little")) * r % (2**130 - 5)
    return ((h + int.from_bytes(key[16:], "little")) % 2**128).to_bytes(16, "little")


P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, P) % P
_BASE_Y = 4 * pow(5, -1, P) % P
_BASE_X = 0x216936D3CD6E53FEC0A4E231FDD6DC5C692CC7609525A7B2C9562D608F25D51A

Point = tuple[int, int, int]


def _add(a: Point, b: Point) -> Point:
    """The sum on Ed25519's curve in projective coordinates (RFC 8032 section 5.1.4, without T)."""
    x, y, z = a[0] * b[0], a[1] * b[1], a[2] * b[2]
    crossed = (a[0] + a[1]) * (b[0] + b[1]) - x - y
    both = _D * x * y
    square = z * z
    return (
        z * crossed * (square - both) % P,
        z * (y + x) * (square + both) % P,
        (square - both) * (square + both) % P,
    )


def _multiple(scalar: int) -> Point:
    point, result = (_BASE_X, _BASE_Y, 1), (0, 1, 1)
    while scalar:
        if scalar & 1:
            result = _add(result, point)
        point, scalar = _add(point, point), scalar >> 1
    return result


def _clamped(scalar: bytes) -> int:
    return int.from_bytes(scalar, "little") & (2**254 - 8) | 2**254


def _encoded(point: Point) -> bytes:
    inverse = pow(point[2], -1, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def x25519_base(scalar: bytes) -> bytes:
    """By the map from Ed25519's curve (RFC 7748 section 4.1)."""
    _, y, z = _multiple(_clamped(scalar))
    return ((z + y) * pow(z - y, -1, P) % P).to_bytes(32, "little")


def x25519(scalar: bytes, point: bytes) -> bytes:
    """RFC 7748 section 5: the ladder as it is written there."""
    u, k = int.from_bytes(point, "little") % 2**255 % P, _clamped(scalar)
    x2, z2, x3, z3 = 1, 0, u, 1
    for bit in reversed(range(255)):
        swap = k >> bit & 1
        if swap:
            x2, z2, x3, z3 = x3, z3, x2, z2
        a, b = x2 + z2, x2 - z2
        da, cb = (x3 - z3) * a, (x3 + z3) * b
        aa, bb = a * a, b * b
        e = aa - bb
        x3, z3 = (da + cb) ** 2 % P, u * (da - cb) ** 2 % P
        x2, z2 = aa * bb % P, e * (aa + 121665 * e) % P
        if swap:
            x2, z2, x3, z3 = x3, z3, x2, z2
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")


def ed25519_public(seed: bytes) -> bytes:
    return _encoded(_multiple(_clamped(hashlib.sha512(seed).digest()[:32])))


def ed25519_sign(seed: bytes, message: bytes) -> bytes:
    """RFC 8032 section 5.1.6."""

    def scalar_of(*parts: bytes) -> int:
        return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little") % ORDER

    expanded, public = hashlib.sha512(seed).digest(), ed25519_public(seed)
    r = scalar_of(expanded[32:], message)
    big_r = _encoded(_multiple(r))
    s = (r + scalar_of(big_r, public, message) * _clamped(expanded[:32])) % ORDER
    return big_r + s.to_bytes(32, "little")

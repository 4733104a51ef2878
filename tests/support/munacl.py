# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Salsa20 and Poly1305 as their specifications write them, to hold munacl against."""

from __future__ import annotations

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

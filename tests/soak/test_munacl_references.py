# SPDX-License-Identifier: Apache-2.0 OR MIT
"""munacl on the simulated chip against references, over inputs that carries are likely in."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from support.munacl import ed25519_public, ed25519_sign, x25519
from support.munacl_builds import make
from warifu.reproduce import munacl_checks as checks

COUNT = {"fast": 2_000, "small": 300}
#: Words at which sums and products carry.
WORDS = (0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFF0000, 0xFFFFFFFF)


def number(chance: random.Random) -> bytes:
    """32 bytes: random ones, words at which there are carries, and some just below 2^255."""
    match chance.randrange(4):
        case 0:
            words = [chance.choice(WORDS) for _ in range(8)]
            return b"".join(word.to_bytes(4, "little") for word in words)
        case 1:
            return (2**255 - 19 + chance.randrange(-40, 19)).to_bytes(32, "little")
        case 2:
            return (2 ** chance.randrange(255) - chance.randrange(2)).to_bytes(32, "little")
    return chance.randbytes(32)


@pytest.mark.parametrize("profile", COUNT)
def test_x25519_equals_the_ladder_of_rfc_7748(tmp_path: Path, profile: str) -> None:
    chance = random.Random(5)
    expected = []
    for _ in range(COUNT[profile]):
        scalar, point = number(chance), number(chance)
        call = f"scalarmult {scalar.hex()} {point.hex()}"
        expected.append((call, f"0 {x25519(scalar, point).hex()}"))
    assert checks.vectors(make(tmp_path, profile, "answers.elf"), expected).problems == ()


@pytest.mark.parametrize("profile", COUNT)
def test_signatures_equal_those_of_rfc_8032_and_open(tmp_path: Path, profile: str) -> None:
    chance = random.Random(6)
    expected = []
    for _ in range(COUNT[profile] // 2):
        seed, message = number(chance), chance.randbytes(chance.randrange(300))
        pk, signature = ed25519_public(seed).hex(), ed25519_sign(seed, message).hex()
        call = f"sign {seed.hex()}{pk} {message.hex() or '-'}"
        expected.append((call, f"0 {signature}{message.hex()}"))
        signed = bytearray.fromhex(signature) + message
        expected.append((f"sign_open {pk} {signed.hex()}", f"0 {message.hex()}".rstrip()))
        # One bit of R, S or the message is another.
        signed[chance.randrange(len(signed))] ^= 1 << chance.randrange(8)
        expected.append((f"sign_open {pk} {signed.hex()}", f"-1 {bytes(len(signed)).hex()}"))
    assert checks.vectors(make(tmp_path, profile, "answers.elf"), expected).problems == ()

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""munacl on the simulated chip: published answers, references written here, and bad input."""

from __future__ import annotations

import hashlib
import hmac
import random
import re
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.munacl import (
    ORDER,
    P,
    ed25519_public,
    ed25519_sign,
    poly1305,
    salsa20,
    x25519_base,
    xsalsa20,
)
from support.paths import ROOT
from warifu.reproduce import munacl_checks as checks

Answers = Callable[[list[str]], list[str]]
VECTORS = ROOT / "vectors"
SEED = bytes(range(32)).hex()
#: The vectors of a source that `small`, three to eight times as slow, has time for here, or twice
#: as many.
MOST_SMALL = 60


def check(answers: Answers, expected: list[tuple[str, str]]) -> None:
    got = answers([call for call, _ in expected])
    assert len(got) == len(expected)
    wrong = [
        f"{call[:200]}: {result[:200]} expected, {answer[:200]}"
        for (call, result), answer in zip(expected, got, strict=True)
        if answer != result
    ]
    assert not wrong, "\n".join(wrong[:5])


@pytest.mark.parametrize("name", checks.SOURCES)
def test_published_vectors_on_the_chip(build: Callable[..., Path], profile: str, name: str) -> None:
    expected = checks.read_vectors(VECTORS, name)
    if profile == "small":
        # Its 1,000 iterations take half a minute, and other sources have as many as that:
        # tests/system/munacl/test_long_vectors.py has all of them.
        expected = [(call, result) for call, result in expected if checks.LONG not in call]
        expected = expected[:: max(1, len(expected) // MOST_SMALL)]
    found = checks.vectors(build(profile, "answers.elf"), expected)
    assert found.problems == ()


def test_page_counts_the_vectors_of_every_source() -> None:
    _, _, page = (ROOT / "docs" / "reference" / "munacl.md").read_text().partition("| `vectors/` |")
    said = dict(re.findall(r"^\| `([\w-]+)` \| (\d+) \|", page, re.MULTILINE))
    there = {name: str(len(checks.read_vectors(VECTORS, name))) for name in checks.SOURCES}
    assert said == there


def on_host(program: Path, calls: list[str]) -> list[str]:
    """Results of calls, by the C on this host. The sanitizers end it at a fault."""
    text = "\n".join(calls) + "\n"
    done = subprocess.run(
        [program], input=text, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", checks.SOURCES)
def test_published_vectors_of_the_c_under_sanitizers(
    build_host: Callable[..., Path], profile: str, name: str
) -> None:
    expected = checks.read_vectors(VECTORS, name)
    got = on_host(build_host(profile, "answers"), [call for call, _ in expected])
    assert got == [result for _, result in expected]


def test_empty_arguments_may_be_null_under_sanitizers(
    build_host: Callable[..., Path], profile: str
) -> None:
    zeros = bytes(64).hex()
    key, nonce = zeros[:64], zeros[:48]
    calls = ["hash -", f"auth {key} -", f"onetimeauth {key} -", f"stream_xor - {nonce} {key}"]
    calls += [f"stream_salsa20_xor - {nonce[:16]} {key}", f"secretbox - {nonce} {key}"]
    calls += [f"secretbox_open - {nonce} {key}", f"sign_open {key} -", f"sign {zeros} -"]
    calls += [f"box - {nonce} {key} {key}", f"box_open - {nonce} {key} {key}"]
    answers = on_host(build_host(profile, "answers"), calls)
    assert answers[0] == f"0 {hashlib.sha512(b'').hexdigest()}"
    assert [line.split()[0] for line in answers] == ["0"] * 5 + ["-1"] * 3 + ["0", "-1", "-1"]


def test_salsa20_core_less_its_input_is_hsalsa20(answers: Answers) -> None:
    # NaCl's test core6: core5's output.
    (published,) = (
        call
        for call, _ in checks.read_vectors(VECTORS, "nacl")
        if call.startswith("core_hsalsa20 81918ef2")
    )
    _, block, _, sigma = published.split()
    (hashed,) = answers([published])
    (core,) = answers([published.replace("core_hsalsa20", "core_salsa20")])
    c, n = (struct.unpack("<4I", bytes.fromhex(one)) for one in (sigma, block))
    x = struct.unpack("<16I", bytes.fromhex(core.split()[1]))
    words = [(x[5 * i] - c[i]) % 2**32 for i in range(4)]
    words += [(x[6 + i] - n[i]) % 2**32 for i in range(4)]
    assert hashed == f"0 {struct.pack('<8I', *words).hex()}"


def test_boxes_of_all_lengths_open_and_altered_ones_do_not(answers: Answers) -> None:
    # NaCl's tests box7, box8, secretbox7, secretbox8, auth5 and onetimeauth7, with fewer lengths.
    chance = random.Random(5)
    key, nonce, other = (chance.randbytes(n).hex() for n in (32, 24, 32))
    (public,) = answers([f"scalarmult_base {key}"])
    (other_public,) = answers([f"scalarmult_base {other}"])
    there = f"{nonce} {other_public.split()[1]} {key}"
    back = f"{nonce} {public.split()[1]} {other}"
    lengths = [*range(70), 127, 128, 129, 511, 1000]
    messages = [bytes(32) + chance.randbytes(length) for length in lengths]
    some = messages[::10]
    sealed = answers([f"secretbox {m.hex()} {nonce} {key}" for m in messages])
    boxed = answers([f"box {m.hex()} {there}" for m in some])
    expected = []
    for m, line in zip(messages, sealed, strict=True):
        box = bytearray.fromhex(line.split()[1])
        expected.append((f"secretbox_open {box.hex()} {nonce} {key}", f"0 {m.hex()}"))
        box[chance.randrange(16, len(box))] ^= 1 << chance.randrange(8)
        refused = f"-1 {bytes(len(box)).hex()}"
        expected.append((f"secretbox_open {box.hex()} {nonce} {key}", refused))
    for m, line in zip(some, boxed, strict=True):
        box = bytearray.fromhex(line.split()[1])
        expected.append((f"box_open {box.hex()} {back}", f"0 {m.hex()}"))
        box[chance.randrange(16, len(box))] ^= 1 << chance.randrange(8)
        expected.append((f"box_open {box.hex()} {back}", f"-1 {bytes(len(box)).hex()}"))
    for name, size in (("auth", 32), ("onetimeauth", 16)):
        tags = answers([f"{name} {key} {m.hex()}" for m in messages])
        for m, line in zip(messages, tags, strict=True):
            tag = bytearray.fromhex(line.split()[1])
            expected.append((f"{name}_verify {key} {m.hex()} {tag.hex()}", "0"))
            tag[chance.randrange(size)] ^= 1 << chance.randrange(8)
            expected.append((f"{name}_verify {key} {m.hex()} {tag.hex()}", "-1"))
    check(answers, expected)


def test_all_lengths_against_references(answers: Answers) -> None:
    chance = random.Random(1)
    key, nonce = chance.randbytes(32), chance.randbytes(24)
    expected = []
    for length in [*range(150), 239, 240, 241, 255, 256, 257, 1000, 4097]:
        m = chance.randbytes(length)
        text = m.hex() or "-"
        auth = hmac.new(key, m, "sha512").digest()[:32]
        stream, short = xsalsa20(key, nonce, length), salsa20(key, nonce[:8], length)
        mixed = bytes(a ^ b for a, b in zip(m, stream, strict=True))
        mixed_short = bytes(a ^ b for a, b in zip(m, short, strict=True))
        two = length.to_bytes(2, "little").hex()
        for call, result in [
            (f"hash {text}", hashlib.sha512(m).digest()),
            (f"auth {key.hex()} {text}", auth),
            (f"onetimeauth {key.hex()} {text}", poly1305(key, m)),
            (f"stream_xor {text} {nonce.hex()} {key.hex()}", mixed),
            (f"stream_salsa20_xor {text} {nonce[:8].hex()} {key.hex()}", mixed_short),
            (f"stream {two} {nonce.hex()} {key.hex()}", stream),
            (f"stream_salsa20 {two} {nonce[:8].hex()} {key.hex()}", short),
        ]:
            expected.append((call, f"0 {result.hex()}".rstrip()))
    check(answers, expected)


def test_poly1305_extremes_against_reference(answers: Answers) -> None:
    expected = []
    for r in (b"\xff" * 16, b"\x01" + bytes(15), bytes(16), b"\x02" + bytes(15)):
        for s in (bytes(16), b"\xff" * 16):
            for m in (b"\xff" * 16, b"\xff" * 15, b"\xfb" + b"\xff" * 15, b"\xff" * 64, bytes(33)):
                tag = poly1305(r + s, m).hex()
                expected.append((f"onetimeauth {(r + s).hex()} {m.hex()}", f"0 {tag}"))
    check(answers, expected)


def test_short_or_forged_boxes_are_refused_and_zeroed(answers: Answers) -> None:
    chance = random.Random(2)
    key, nonce = chance.randbytes(32).hex(), chance.randbytes(24).hex()
    plain = bytes(32) + chance.randbytes(40)
    (box,) = answers([f"secretbox {plain.hex()} {nonce} {key}"])
    good = bytes.fromhex(box.split()[1])
    expected = [(f"secretbox_open {good.hex()} {nonce} {key}", f"0 {plain.hex()}")]
    for at in range(16, len(good)):
        bad = bytearray(good)
        bad[at] ^= 1 << chance.randrange(8)
        call = f"secretbox_open {bad.hex()} {nonce} {key}"
        expected.append((call, f"-1 {bytes(len(bad)).hex()}"))
    for length in (0, 1, 16, 31):
        call = f"secretbox_open {good[:length].hex() or '-'} {nonce} {key}"
        expected.append((call, f"-1 {bytes(length).hex()}".rstrip()))
        expected.append((f"secretbox {plain[:length].hex() or '-'} {nonce} {key}", "-1"))
    check(answers, expected)


def test_comparison_finds_every_bit(answers: Answers) -> None:
    expected = []
    for size in (16, 32):
        x = bytes(range(size))
        expected.append((f"verify_{size} {x.hex()} {x.hex()}", "0"))
        for bit in range(8 * size):
            y = bytearray(x)
            y[bit // 8] ^= 1 << bit % 8
            expected.append((f"verify_{size} {x.hex()} {y.hex()}", "-1"))
    check(answers, expected)


def test_x25519_checked_refuses_low_order_and_non_canonical_points(answers: Answers) -> None:
    scalar, zero = bytes(range(1, 33)).hex(), bytes(32).hex()
    # The points of low order (RFC 7748 section 7): of order 4, 2 and 8.
    low = [0, 1, P - 1, 0x57119FD0DD4E22D8868E1C58C45C44045BEF839C55B1D0B1248C50A3BC959C5F]
    low.append(0x00B8495F16056286FDB1329CEB8D09DA6AC49FF1FAE35616AEB8413B7C7AEBE0)
    points = [value.to_bytes(32, "little").hex() for value in low]
    expected = [(f"scalarmult {scalar} {point}", f"0 {zero}") for point in points]
    expected += [(f"scalarmult_checked {scalar} {point}", f"-1 {zero}") for point in points]
    for value in (P, P + 1, P + 9, 2**255 - 1, 2**255 + 9):
        point = value.to_bytes(32, "little").hex()
        expected.append((f"scalarmult_checked {scalar} {point}", f"-1 {zero}"))
        reduced = (value % 2**255 % P).to_bytes(32, "little").hex()
        (same,) = answers([f"scalarmult {scalar} {reduced}"])
        expected.append((f"scalarmult {scalar} {point}", same))
    nine = (9).to_bytes(32, "little").hex()
    (base,) = answers([f"scalarmult_base {scalar}"])
    expected.append((f"scalarmult_checked {scalar} {nine}", base))
    check(answers, expected)


def test_signatures_of_all_lengths_verify_and_changed_ones_do_not(answers: Answers) -> None:
    chance = random.Random(3)
    (pair,) = answers([f"sign_keypair {SEED}"])
    pk, sk = pair.split()[1][:64], pair.split()[1][64:]
    messages = [chance.randbytes(length).hex() for length in (0, 1, 47, 48, 63, 64, 111, 112, 200)]
    signed = answers([f"sign {sk} {m or '-'}" for m in messages])
    expected = [
        (f"sign_open {pk} {sm.split()[1]}", f"0 {m}".rstrip())
        for sm, m in zip(signed, messages, strict=True)
    ]
    sm = bytes.fromhex(signed[3].split()[1])
    refused = f"-1 {bytes(len(sm)).hex()}"
    for at in (0, 31, 32, 63, 64, len(sm) - 1):
        bad = bytearray(sm)
        bad[at] ^= 4
        expected.append((f"sign_open {pk} {bad.hex()}", refused))
    # S + L is the same scalar, and refused (RFC 8032 section 5.1.7).
    s = int.from_bytes(sm[32:64], "little") + ORDER
    bad = sm[:32] + s.to_bytes(32, "little") + sm[64:]
    expected.append((f"sign_open {pk} {bad.hex()}", refused))
    # R = S = 0 fit every message under a key that is the neutral element, whose y is 1: as p + 1,
    # and with the sign of x = 0 set, it is not a key.
    neutral = (1).to_bytes(32, "little")
    forged = neutral + bytes(32) + b"any message"
    zeros = f"-1 {bytes(len(forged)).hex()}"
    expected.append((f"sign_open {neutral.hex()} {forged.hex()}", f"0 {b'any message'.hex()}"))
    for y in (P + 1, 1 + 2**255, P + 1 + 2**255):
        other = y.to_bytes(32, "little")
        expected.append((f"sign_open {other.hex()} {forged.hex()}", zeros))
        bad = other + bytes(32) + b"any message"
        expected.append((f"sign_open {neutral.hex()} {bad.hex()}", zeros))
    # No point has this y.
    expected.append((f"sign_open {(2).to_bytes(32, 'little').hex()} {forged.hex()}", zeros))
    check(answers, expected)


def test_secret_key_with_another_public_half_gives_its_scalar_away(answers: Answers) -> None:
    # What docs/reference/munacl.md warns of: one nonce, two challenges.
    (pair,) = answers([f"sign_keypair {SEED}"])
    pk = bytes.fromhex(pair.split()[1][:64])
    other = bytes([pk[0] ^ 1]) + pk[1:]
    found = []
    for half in (pk, other):
        (signed,) = answers([f"sign {SEED}{half.hex()} {b'message'.hex()}"])
        sm = bytes.fromhex(signed.split()[1])
        h = hashlib.sha512(sm[:32] + half + b"message").digest()
        found.append((sm[:32], int.from_bytes(sm[32:64], "little"), int.from_bytes(h, "little")))
    (r, s, h), (other_r, other_s, other_h) = found
    assert r == other_r
    scalar = (s - other_s) * pow(h - other_h, -1, ORDER) % ORDER
    expanded = bytearray(hashlib.sha512(bytes.fromhex(SEED)).digest()[:32])
    expanded[0] &= 248
    expanded[31] = expanded[31] & 63 | 64
    assert scalar == int.from_bytes(expanded, "little") % ORDER


def test_keys_and_signatures_of_random_seeds_against_reference(answers: Answers) -> None:
    chance = random.Random(4)
    expected = []
    edges = [bytes(32), b"\xff" * 32, bytes(31) + b"\x80", b"\x07" + bytes(30) + b"\x40"]
    for seed in [*edges, *(chance.randbytes(32) for _ in range(20))]:
        text, message = seed.hex(), chance.randbytes(chance.randrange(100))
        pk, signature = ed25519_public(seed).hex(), ed25519_sign(seed, message).hex()
        expected.append((f"sign_keypair {text}", f"0 {pk}{text}{pk}"))
        call = f"sign {text}{pk} {message.hex() or '-'}"
        expected.append((call, f"0 {signature}{message.hex()}"))
        opened = f"sign_open {pk} {signature}{message.hex()}"
        expected.append((opened, f"0 {message.hex()}".rstrip()))
        expected.append((f"scalarmult_base {text}", f"0 {x25519_base(seed).hex()}"))
        nine = (9).to_bytes(32, "little").hex()
        expected.append((f"scalarmult {text} {nine}", f"0 {x25519_base(seed).hex()}"))
    check(answers, expected)

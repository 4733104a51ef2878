# SPDX-License-Identifier: Apache-2.0 OR MIT
"""wolfSSL's `wolfcrypt/benchmark`: as text (3.9 to 5.8) and with `-csv`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from warifu.devices.figures import NO_CASE, Code, Collected, Figure, Output, of_block, of_stream
from warifu.devices.text import number, time_ns

TOOL = "wolfCrypt benchmark"
_VERSION = re.compile(r"\bwolfSSL version (\d[\w.-]{0,31})")
_START = re.compile(r"\bwolfCrypt Benchmark \(block bytes (\d{1,9})")
#: ESP-IDF prints the processor's clock while it starts.
_CLOCK = re.compile(r"\bcpu freq: (\d{5,10}) Hz|\bCPU_FREQ_MHZ\b\D{1,3}(\d{1,4}) ?MHz")
_TARGET = re.compile(r"\bCONFIG_IDF_TARGET = (\w{1,16})")
_CORES = {"esp32": "xtensa-lx6", "esp32s2": "xtensa-lx7", "esp32s3": "xtensa-lx7"}
_RISC_V = {"esp32c2", "esp32c3", "esp32c6", "esp32h2"}

_STREAM = re.compile(
    r"([\d.,]{1,20}) ([KMG]?i?B|bytes|megs|kB) took "
    r"([\d.]{1,20}) seconds, {1,20}([\d.,]{1,20}) ([KMG]?i?B|kB)/s"
    r"(?: {1,8}Cycles per byte = {1,20}([\d.]{1,20}))?"
)
#: What stands before it. Repetitions are bounded, so that no line takes long to be refused.
_NAME = re.compile(
    r"(?:^|[^\w/-])([A-Z][\w/-]{0,40}(?: [A-Za-z0-9-]{1,12}){0,2}?)(?: {1,8}(SW|HW))? *$"
)
#: A call's row ends so. Every pattern takes a time that is linear in a line's length: quantifiers
#: are bounded, or possessive where the next sign cannot be one of theirs.
_CALL = re.compile(r"(?<!\d)(\d{1,12}+) ops took ([\d.]{1,20}+) sec, avg ([\d.]{1,20}+) ms")
_CALLED = re.compile(
    r"(?<![\w-])(RSA|DH|ECC|ECDHE|ECDSA|CURVE|ED|ML-(?:KEM|DSA) {1,8}+\d{1,5}+|KYBER\w{0,20}+|"
    r"DILITHIUM\w{0,20}+|FALCON\w{0,20}+|SPHINCS\w{0,20}+|ECCSI|SAKKE|SM2|X448|SRP|"
    r"XMSS\S{0,40}+|LMS\S{0,40}+)(?: {0,12}+\[ {0,20}+(\w{1,20}+) {0,8}+\])?+ {1,32}+"
    r"(?:(\d{2,5}+) {0,12}+)?+(key gen|[A-Za-z_-]{1,20}+)(?: {1,8}+(SW|HW))?+$"
)
#: Until version 3.9.
_OLD_CALL = re.compile(
    r"\b(RSA 2048 (?:public|private|encryption|decryption)|ECC +256 key generation|"
    r"EC-DHE +key agreement|EC-DSA +sign +time|EC-DSA +verify +time) ++([\d.]++) milliseconds, avg"
)
_CSV_STREAM = re.compile(r"Algorithm,([KMG]i?B)/s,")
_CSV_CALL = re.compile(r"Algorithm,key size,operation,avg ms,ops/sec")
_CSV_ROW = re.compile(r"\b([A-Z][\w/ \[\].-]{0,60}),([\d.]{1,20}),(?:([\d.]{1,20}),?|)\s*$")
_CSV_CALL_ROW = re.compile(
    r"(?<![\w-])([A-Z][\w-]*+) *+(?:\[ *+(\w++) *+\])?+,(\d{0,5}+),([\w -]++),"
    r"([\d.]++),([\d.]++),"
)

_OLD = {
    "RSA 2048 public": "verify.rsa-2048",
    "RSA 2048 encryption": "verify.rsa-2048",
    "RSA 2048 private": "sign.rsa-2048",
    "RSA 2048 decryption": "sign.rsa-2048",
    "ECC 256 key generation": "ecdh.keygen.secp256r1",
    "EC-DHE key agreement": "ecdh.derive.secp256r1",
    "EC-DSA sign time": "sign.ecdsa_secp256r1",
    "EC-DSA verify time": "verify.ecdsa_secp256r1",
}
_CALLS = {
    ("RSA", "2048", "public"): "verify.rsa-2048",
    ("RSA", "2048", "verify"): "verify.rsa-2048",
    ("RSA", "2048", "private"): "sign.rsa-2048",
    ("RSA", "2048", "sign"): "sign.rsa-2048",
    ("ECC", "256", "key gen"): "ecdh.keygen.secp256r1",
    ("ECDHE", "256", "agree"): "ecdh.derive.secp256r1",
    ("ECDSA", "256", "sign"): "sign.ecdsa_secp256r1",
    ("ECDSA", "256", "verify"): "verify.ecdsa_secp256r1",
    ("CURVE", "25519", "key gen"): "ecdh.keygen.x25519",
    ("CURVE", "25519", "agree"): "ecdh.derive.x25519",
    ("ED", "25519", "sign"): "sign.ed25519",
    ("ED", "25519", "verify"): "verify.ed25519",
}
#: A cipher takes one message a block of the benchmark, a hash one in many blocks.
_CIPHERS = {
    "AES-128-GCM-enc": "aead.seal.AES_128_GCM",
    "AES-128-GCM-dec": "aead.open.AES_128_GCM",
    "AES-256-GCM-enc": "aead.seal.AES_256_GCM",
    "AES-256-GCM-dec": "aead.open.AES_256_GCM",
    "CHA-POLY": "aead.seal.CHACHA20_POLY1305",
}
_HASHES = {
    "SHA-256": "hash.sha-256",
    "SHA-384": "hash.sha-384",
    "SHA-512": "hash.sha-512",
    "HMAC-SHA256": "hmac.sha-256",
    "HMAC-SHA384": "hmac.sha-384",
    "HMAC-SHA512": "hmac.sha-512",
    "RNG": "random",
}
_BINARY = {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "B": 1, "bytes": 1, "megs": 1024**2}
_DECIMAL = {"KB": 1000, "MB": 1000**2, "GB": 1000**3, "kB": 1000}
#: A benchmark counts in 25 blocks of 1024 B, which are 25 of its kilobytes where these are 1024 B.
_STEP = 25


def runs(lines: Sequence[str]) -> list[tuple[str, int, int]]:
    """The runs of a file: what stands above each, its first line and the one behind its last."""
    starts: list[int] = []
    for index, line in enumerate(lines):
        # Version and start stand in two lines of the same run.
        if (_VERSION.search(line) or _START.search(line)) and not (
            starts and index < starts[-1] + 6
        ):
            starts.append(index)
    ends = [*starts[1:], len(lines)] if starts else []
    return [(_heading(lines, start), start, end) for start, end in zip(starts, ends, strict=True)]


def read(lines: Sequence[str], clock_hz: int | None) -> Output | None:
    """The output of one run."""
    found = Collected()
    version = clock = core = None
    block, unit = 1024, None
    sizes = _sizes(lines)
    table = ""
    for line in lines:
        if match := _VERSION.search(line):
            version = version or match[1]
        elif match := _START.search(line):
            block = int(match[1]) or 1024
        elif match := _CLOCK.search(line):
            clock = int(match[1]) if match[1] else int(match[2]) * 1_000_000
        elif match := _TARGET.search(line):
            core = _CORES.get(match[1], "rv32imc" if match[1] in _RISC_V else None)
        elif match := _CSV_STREAM.search(line):
            table, unit = "stream", match[1]
        elif _CSV_CALL.search(line):
            table = "call"
        elif match := _STREAM.search(line):
            rate, size = number(match[4]), sizes.get(match[5])
            if name := _NAME.search(line[: match.start()].rstrip()):
                _stream(found, name[1], rate and size and rate * size, block, name[2])
            cycles = number(match[6] or "")
            if cycles and rate and size:
                clock = clock or _round(rate * size * cycles)
        elif match := _CALL.search(line):
            took, ops = number(match[2]), number(match[1])
            ns = took / ops * 1e9 if took and ops else None
            if called := _CALLED.search(line[: match.start()].rstrip()):
                _call(found, (called[1], called[2], called[3], called[4]), ns, called[5])
        elif match := _OLD_CALL.search(line):
            value = number(match[2])
            what = " ".join(match[1].split())
            _take(found, _OLD[what], value and value * 1e6, what, None)
        elif table == "call" and (match := _CSV_CALL_ROW.search(line)):
            rate = number(match[6])
            _call(
                found, (match[1], match[2], match[3], match[4].strip()), rate and 1e9 / rate, None
            )
        elif table == "stream" and (match := _CSV_ROW.search(line)):
            rate = number(match[2])
            # `-csv` computes its MB with 1024 * 1024 in every version.
            size = {**_BINARY, "MB": 1024**2, "KB": 1024}.get(unit or "")
            _stream(found, match[1].strip(), rate and size and rate * size, block, None)
    output = found.output(TOOL, version=version and f"wolfSSL {version}")
    if output is None:
        return None
    from dataclasses import replace

    return replace(output, library="wolfssl-5", clock_hz=clock or clock_hz, core=core)


def _sizes(lines: Sequence[str]) -> dict[str, int]:
    """What its units are: until 5.5 `KB` and `MB` are powers of 1024; 5.6.0 printed powers of 1000
    under these names, later ones call each by its own. Amounts in steps of 25 tell."""
    steps = [
        amount
        for line in lines
        if (match := _STREAM.search(line))
        and match[2] == "KB"
        and (amount := number(match[1]))
        and amount > _STEP
    ]
    is_decimal = bool(steps) and not all(one % _STEP == 0 for one in steps)
    if not steps:
        version = next((found[1] for line in lines if (found := _VERSION.search(line))), "")
        is_decimal = version.startswith("5.6.0")
    named = _DECIMAL if is_decimal else {"KB": 1024, "MB": 1024**2, "GB": 1024**3, "kB": 1000}
    return {**_BINARY, **named}


def _stream(found: Collected, name: str, rate: float | None, block: int, where: str | None) -> None:
    code = Code.HARDWARE if where == "HW" else None
    if name not in _CIPHERS and name not in _HASHES:
        found.leave(name, NO_CASE, understood=True)
    elif (byte_ns := time_ns(rate and 1e9 / rate)) is None:
        found.leave(name, "its figure is no rate above 0")
    elif name in _CIPHERS:
        found.add(of_block(_CIPHERS[name], byte_ns * block, block, code), name)
    else:
        found.add(of_stream(_HASHES[name], byte_ns, code), name)


def _call(
    found: Collected,
    row: tuple[str, str | None, str | None, str],
    ns: float | None,
    where: str | None,
) -> None:
    algorithm, curve, bits, verb = row
    what = " ".join(filter(None, (algorithm, curve, bits, verb)))
    primitive = _CALLS.get((algorithm, bits or "", verb))
    if primitive is None or curve not in {None, "SECP256R1"}:
        found.leave(what, NO_CASE, understood=True)
    else:
        _take(found, primitive, ns, what, Code.HARDWARE if where == "HW" else None)


def _take(found: Collected, primitive: str, ns: float | None, what: str, code: Code | None) -> None:
    known = time_ns(ns)
    if known is None:
        found.leave(what, "its figure is no time above 0")
    else:
        found.add(Figure(primitive, known, code=code), what)


def _heading(lines: Sequence[str], start: int) -> str:
    """The last line above with letters that is not a rule or part of a menu."""
    for line in reversed(lines[max(0, start - 12) : start]):
        text = line.strip(" #=-`*\t")
        if len(text) > 3 and not text.startswith(("Running", "define", "Benchmark")):
            return text[:80]
    return ""


def _round(hz: float) -> int:
    """A clock that was computed from rates with three digits, to whole megahertz."""
    return max(1, round(hz / 1e6)) * 1_000_000

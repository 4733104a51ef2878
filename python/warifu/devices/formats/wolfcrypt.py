# SPDX-License-Identifier: Apache-2.0 OR MIT
"""wolfSSL's `wolfcrypt/benchmark`: as text (3.9 to 5.8) and with `-csv`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

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

#: A number, or what C prints where there is none.
_FIGURE = r"([-+]?(?:[\d.,]{1,20}|inf|nan)(?:\([a-z]{1,8}\))?)"
_FIGURE_OF_CSV = _FIGURE.replace(",", "", 1)
_UNIT = r"(bytes|megs|[kKmMG]i?B|B)"
_STREAM = re.compile(
    rf"([\d.,]{{1,20}}) {_UNIT} took {_FIGURE} seconds, {{1,20}}{_FIGURE} {_UNIT}/s"
    r"(?: {1,8}Cycles per byte = {1,20}([\d.]{1,20}))?"
)
#: What stands before it. Repetitions are bounded, so that no line takes long to be refused.
_NAME = re.compile(
    r"(?:^|[^\w/-])([A-Z][\w/-]{0,40}(?: [A-Za-z0-9-]{1,12}){0,2}?)(?: {1,8}(SW|HW))? *$"
)
#: A call's row ends so. Every pattern takes a time that is linear in a line's length: quantifiers
#: are bounded, or possessive where the next sign cannot be one of theirs.
_CALL = re.compile(rf"(?<!\d)(\d{{1,12}}+) ops took {_FIGURE} sec, avg {_FIGURE} ms")
_CALLED = re.compile(
    r"(?<![\w-])(RSA|DH|ECC|ECDHE|ECDSA|CURVE|ED|ML-(?:KEM|DSA) {1,8}+\d{1,5}+|KYBER\w{0,20}+|"
    r"DILITHIUM\w{0,20}+|FALCON\w{0,20}+|SPHINCS\w{0,20}+|ECCSI|SAKKE|SM2|X448|SRP|"
    r"XMSS\S{0,40}+|LMS\S{0,40}+)(?: {0,12}+\[ {0,20}+(\w{1,20}+) {0,8}+\])?+ {1,32}+"
    r"(?:(\d{2,5}+) {0,12}+)?+(key gen|[A-Za-z_-]{1,20}+)(?: {1,8}+(SW|HW))?+$"
)
#: Until version 3.9.
_OLD_CALL = re.compile(
    r"\b(RSA 2048 (?:public|private|encryption|decryption)|ECC +256 key generation|"
    r"EC-DHE +key agreement|EC-DSA +sign +time|EC-DSA +verify +time) ++"
    rf"{_FIGURE} milliseconds, avg"
)
_CSV_STREAM = re.compile(r"Algorithm,([KMG]i?B)/s,")
_CSV_CALL = re.compile(r"Algorithm,key size,operation,avg ms,ops/sec")
_CSV_ROW = re.compile(
    rf"\b([A-Z][\w/ \[\].-]{{0,60}}),{_FIGURE_OF_CSV},(?:{_FIGURE_OF_CSV},?|)\s*$"
)
_CSV_CALL_ROW = re.compile(
    r"(?<![\w-])([A-Z][\w-]*+) *+(?:\[ *+(\w++) *+\])?+,(\d{0,5}+),([\w -]++),"
    rf"{_FIGURE_OF_CSV},{_FIGURE_OF_CSV},"
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
#: With -base10, whatever the version.
_DECIMAL = {"mB": 1000**2}
#: What is a power of 1024 until 5.5, where 3.x had kB as well, and of 1000 since 5.5.4, which calls
#: the others KiB and so on (bench_stats_sym_finish; wolfSSL's pull requests 5871, 5967 and 6237).
_EITHER = {"KB": 1, "MB": 2, "GB": 3, "kB": 1}
_SINCE = (5, 5, 4)
#: A benchmark counts in 25 blocks of 1024 B, which are 25 of its kilobytes where these are 1024 B.
_STEP = 25
#: How far a row's figures may be from each other beside their rounding.
_APART = 0.02
_AVERAGE_ROUNDED_MS = 0.0005
_CONTRADICTS = "its rate is not its amount over its time"


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
    units = _units(lines)
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
            row = _Row.of(match)
            rate = row.rate and row.rate * units.size(row.rate_unit)
            cycles = number(match[6] or "")
            name = _NAME.search(line[: match.start()].rstrip())
            if not row.agrees(units):
                found.leave(name[1] if name else "a row", _CONTRADICTS, understood=True)
                continue
            if name:
                _stream(found, name[1], rate, block, name[2])
            if cycles and rate:
                clock = clock or _round(rate * cycles)
        elif match := _CALL.search(line):
            ops, took, average = (number(one) for one in match.groups())
            if called := _CALLED.search(line[: match.start()].rstrip()):
                row_of = (called[1], called[2], called[3], called[4])
                ns = took / ops * 1e9 if took and ops and average else None
                slack = 0.5 / ops if ops else 0.0
                _call(found, row_of, ns, called[5], average, slack)
        elif match := _OLD_CALL.search(line):
            value = number(match[2])
            what = " ".join(match[1].split())
            _take(found, _OLD[what], value and value * 1e6, what, None)
        elif table == "call" and (match := _CSV_CALL_ROW.search(line)):
            average, rate = number(match[5]), number(match[6])
            row_of = (match[1], match[2], match[3], match[4].strip())
            _call(found, row_of, rate and average and 1e9 / rate, None, average)
        elif table == "stream" and (match := _CSV_ROW.search(line)):
            rate = number(match[2])
            # `-csv` computes its MB with 1024 * 1024 in every version.
            size = {**_BINARY, "MB": 1024**2, "KB": 1024}.get(unit or "")
            _stream(found, match[1].strip(), rate and size and rate * size, block, None)
    output = found.output(TOOL, version=version and f"wolfSSL {version}")
    if output is None:
        return None
    return replace(
        output,
        library="wolfssl-5",
        clock_hz=clock or clock_hz,
        core=core,
        units=_said(lines, units) if output.figures else "",
    )


@dataclass(frozen=True)
class _Units:
    """What its units are."""

    base: int
    """1000 or 1024, of those that may be either."""
    why: str
    """What tells."""

    def size(self, unit: str) -> int:
        """A unit in B."""
        known = _BINARY.get(unit) or _DECIMAL.get(unit)
        return known or self.base ** _EITHER.get(unit, 1)


@dataclass(frozen=True)
class _Row:
    """A cipher's or hash's row: `350 KiB took 1.022 seconds, 342.466 KiB/s`."""

    amount: float | None
    unit: str
    seconds: float | None
    rate: float | None
    rate_unit: str

    @classmethod
    def of(cls, match: re.Match[str]) -> _Row:
        """From what `_STREAM` found."""
        return cls(number(match[1]), match[2], number(match[3]), number(match[4]), match[5])

    def apart(self, units: _Units) -> float | None:
        """How far its rate is from its amount over its time, as a share, beside what they
        are rounded by; None where one of them is no number above 0."""
        if not (self.amount and self.seconds and self.rate):
            return None
        size, rate = units.size(self.unit), self.rate * units.size(self.rate_unit)
        rounding = 0.5 * size + 0.0005 * (rate + self.seconds * units.size(self.rate_unit))
        away = abs(rate * self.seconds - self.amount * size)
        return max(0.0, away - rounding) / (self.amount * size)

    def agrees(self, units: _Units) -> bool:
        """Whether its figures do not contradict each other. What has none is no such row."""
        apart = self.apart(units)
        return apart is None or apart <= _APART


def _rows(lines: Sequence[str]) -> list[_Row]:
    return [_Row.of(match) for line in lines if (match := _STREAM.search(line))]


def _units(lines: Sequence[str]) -> _Units:
    """What its units are: by a row with two of them, by its amounts, or else by its version."""
    rows = _rows(lines)
    apart = {1000: 0.0, 1024: 0.0}
    for row in rows:
        if row.unit != row.rate_unit and {row.unit, row.rate_unit} & set(_EITHER):
            for base in apart:
                apart[base] += row.apart(_Units(base, "")) or 0.0
    if apart[1000] != apart[1024]:
        return _Units(min(apart, key=lambda base: apart[base]), "rows")
    steps = [row.amount for row in rows if row.unit in {"KB", "kB"} and (row.amount or 0.0) > _STEP]
    if steps:
        whole = sum(not amount % _STEP for amount in steps if amount)
        # Of powers of 1000 one in 25 or so is whole by chance, and PBKDF2's has a step of its own.
        return _Units(1024 if 2 * whole > len(steps) else 1000, "amounts")
    version = next((found[1] for line in lines if (found := _VERSION.search(line))), "")
    if version:
        numbers = tuple(int(one) for one in re.findall(r"\d{1,6}", version)[:3])
        return _Units(1000 if numbers >= _SINCE else 1024, "version")
    return _Units(1024, "lack of a version")


def _said(lines: Sequence[str], units: _Units) -> str:
    """`KB of 1000 B by its amounts`, where its units may be either."""
    used = {row.rate_unit for row in _rows(lines)} & set(_EITHER)
    if not used:
        return ""
    unit = min(used, key=lambda one: (_EITHER[one], one))
    return f"{unit} of {units.size(unit)} B by its {units.why}"


def _stream(found: Collected, name: str, rate: float | None, block: int, where: str | None) -> None:
    code = Code.HARDWARE if where == "HW" else None
    if name not in _CIPHERS and name not in _HASHES:
        found.leave(name, NO_CASE, understood=True)
    elif (byte_ns := time_ns(rate and 1e9 / rate)) is None:
        found.leave(name, "its figure is no rate above 0", understood=True)
    elif name in _CIPHERS:
        found.add(of_block(_CIPHERS[name], byte_ns * block, block, code), name)
    else:
        found.add(of_stream(_HASHES[name], byte_ns, code), name)


def _call(
    found: Collected,
    row: tuple[str, str | None, str | None, str],
    ns: float | None,
    where: str | None,
    average_ms: float | None,
    slack_ms: float = 0.0,
) -> None:
    """A call's row; its time and its average differ by their rounding at most."""
    algorithm, curve, bits, verb = row
    what = " ".join(filter(None, (algorithm, curve, bits, verb)))
    primitive = _CALLS.get((algorithm, bits or "", verb))
    if primitive is None or curve not in {None, "SECP256R1"}:
        found.leave(what, NO_CASE, understood=True)
    elif (
        ns
        and average_ms
        and abs(ns / 1e6 - average_ms) > (_APART * average_ms + slack_ms + _AVERAGE_ROUNDED_MS)
    ):
        found.leave(what, "its average is not its time over its operations", understood=True)
    else:
        _take(found, primitive, ns, what, Code.HARDWARE if where == "HW" else None)


def _take(found: Collected, primitive: str, ns: float | None, what: str, code: Code | None) -> None:
    known = time_ns(ns)
    if known is None:
        found.leave(what, "its figure is no time above 0", understood=True)
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

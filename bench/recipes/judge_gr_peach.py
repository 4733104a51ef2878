# SPDX-License-Identifier: Apache-2.0 OR MIT
"""GR-PEACH: wolfSSL on a Cortex-A9 as Komatsu, Matsubara and Takada timed it (their Table 2, as
`profiles/devices/gr-peach.toml` has it). Primitives are solved for from two columns, and the other
two are predicted. The paper's wolfSSL is 3.14.0, the recipe's 5.5.4."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from judge import Figure, Judgement, Line, Option, judge, lowered
from scipy.optimize import nnls

ROOT = Path(__file__).resolve().parent.parent.parent
LIBRARY = "wolfssl-5"
UNIT = ("ms", 1e6, 2)
FITTED = ("AES_128_GCM+secp256r1", "CHACHA20_POLY1305+x25519")
"""The columns that primitives come from: between them, each group and each AEAD once."""
SUITES = {
    "AES_128_GCM": "TLS_AES_128_GCM_SHA256",
    "CHACHA20_POLY1305": "TLS_CHACHA20_POLY1305_SHA256",
}
MESSAGES = (
    "client.send.ClientHello",
    "client.receive.ServerHello",
    "client.receive.EncryptedExtensions",
    "client.receive.Certificate",
    "client.receive.CertificateVerify",
    "client.receive.Finished",
    "client.send.Finished",
)
CYCLES_AN_INSTRUCTION = 2.3
"""Of the remainder, on another device: the simulated Cortex-M3 (`judge.py m3`)."""
CLOCK_MHZ = 400.0
UNKNOWN = (
    ("ecdh.keygen.secp256r1",),
    ("ecdh.derive.secp256r1",),
    ("ecdh.keygen.x25519",),
    ("ecdh.derive.x25519",),
    ("verify.rsa-2048",),
    ("hash.sha-256",),
    ("aead.seal.AES_128_GCM", "aead.open.AES_128_GCM"),
    ("aead.seal.CHACHA20_POLY1305", "aead.open.CHACHA20_POLY1305"),
)
"""What is solved for; an HMAC and an HKDF follow from the hash by their definitions."""
BY_BYTE = ("hash", "aead")


def columns(chain_length: int) -> list[Option]:
    """Table 2's columns, if the server sent so many certificates."""
    text = (ROOT / "profiles" / "devices" / "gr-peach.toml").read_text()
    timed: dict[tuple[str, str], dict[str, float]] = {}
    for entry in tomllib.loads(text)["operation"]:
        when = entry.get("when", {})
        # A ClientHello prepared ahead has no AEAD there: it is none of the table's columns.
        if entry["name"] in MESSAGES and "group" in when and "aead" in when:
            column = timed.setdefault((when["aead"], when["group"]), {})
            column[entry["name"]] = float(entry["warm"].removesuffix(" ms")) * 1e6
    found = []
    for (aead, group), messages in timed.items():
        choices = (
            ("stack.tls", "1.3"), ("stack.session", "full"), ("stack.authentication", "server"),
            ("stack.group", group), ("stack.certificate", "rsa-2048"),
            ("stack.chain_length", str(chain_length)), ("stack.cipher_suite", SUITES[aead]),
        )  # fmt: skip
        found.append(Option(f"{aead}+{group}", choices, messages))
    return found


def solve(options: Sequence[Option]) -> tuple[float, dict[str, Figure]]:
    """The primitives that give these columns best, by non-negative least squares of the relative
    errors: a time for each call, and for those that take bytes one for each byte. Before them, what
    is left of the errors."""
    fixed = {"random": Figure(0.0), "sign.rsa-2048": Figure(0.0)}
    fixed["instruction"] = Figure(CYCLES_AN_INSTRUCTION * 1e3 / CLOCK_MHZ)
    terms = [(names, byte) for names in UNKNOWN
             for byte in (False, True) if not byte or names[0].startswith(BY_BYTE)]  # fmt: skip
    none = {name: Figure(0.0) for names in UNKNOWN for name in names}
    rows, wanted = [], []
    for option in options:
        base = lowered(none | fixed, LIBRARY, option.choices, ("client",))
        parts = []
        for names, byte in terms:
            unit = Figure(0.0, 1.0) if byte else Figure(1.0)
            trial = none | fixed | dict.fromkeys(names, unit)
            parts.append(lowered(trial, LIBRARY, option.choices, ("client",)))
        for message, timed in option.timed.items():
            rows.append([(part[message] - base[message]) / timed for part in parts])
            wanted.append(1.0 - base[message] / timed)
    found, left = nnls(np.array(rows), np.array(wanted))
    figures = dict(none) | fixed
    for (names, byte), value in zip(terms, found, strict=True):
        for name in names:
            before = figures[name]
            figures[name] = (
                Figure(before.call, float(value)) if byte else Figure(float(value), before.byte)
            )
    return float(left), figures


def cause(line: Line) -> str:
    """Why a message misses its gate."""
    if line.message.endswith(".Finished"):
        return "Table 2's Finished depends on the group, which no recipe explains"
    return ""


def judgement() -> Judgement:
    """The two columns that the primitives do not come from."""
    found = []
    for chain_length in (1, 2, 3):
        options = columns(chain_length)
        left, figures = solve([one for one in options if one.label in FITTED])
        found.append((left, chain_length, options, figures))
    left, chain_length, options, figures = min(found, key=lambda one: one[0])
    result = Judgement("GR-PEACH, wolfSSL: Table 2 of Komatsu, Matsubara and Takada")
    result.notes = [f"primitives from the columns {' and '.join(FITTED)}"]
    result.notes.append(
        f"a chain of {chain_length}, which the paper does not say, fits these columns best: "
        + ", ".join(f"{length}: {off:.3f}" for off, length, _, _ in found)
    )
    result.notes += [
        f"{name}: {figure.call / 1e6:.3f} ms a call, {figure.byte:.1f} ns a byte"
        for name, figure in figures.items()
        if name not in ("random", "instruction", "sign.rsa-2048")
        and not name.startswith("aead.seal")
    ]
    rate = figures["instruction"].call
    result.notes.append(
        f"an instruction: {rate:.2f} ns, {CYCLES_AN_INSTRUCTION} cycles as on the simulated "
        f"Cortex-M3 at {CLOCK_MHZ:.0f} MHz"
    )
    result.causes = cause
    judge(
        result, figures, LIBRARY, [one for one in options if one.label not in FITTED], ("client",)
    )
    return result

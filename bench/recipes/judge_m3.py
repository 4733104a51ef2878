# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Mbed TLS on the simulated Cortex-M3: `crates/m3/test-programs/tls/primitives.c` times its
cryptography there, and the handshakes of `make m3-tls` are predicted message by message."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from judge import Figure, Judgement, Line, Option, judge, price

from warifu import m3
from warifu.calibrate.m3 import fit, samples

ROOT = Path(__file__).resolve().parent.parent.parent
HOME = ROOT / "target" / "m3-tls"
LIBRARY = "mbedtls-3.6"
UNIT = ("kcycles", 1e3, 1)
GROUPS = {"SECP256R1": "secp256r1", "X25519": "x25519"}
CERTIFICATES = {"RSA": "rsa-2048", "ECDSA": "ecdsa_secp256r1"}
FITTED = "AES_128_GCM_SHA256+SECP256R1+RSA"
"""The option on which the price of an instruction is fitted, and which is not judged."""
MESSAGES = {
    "ClientHello": "client.send.ClientHello",
    "ServerHello": "client.receive.ServerHello",
    "EncryptedExtensions": "client.receive.EncryptedExtensions",
    "Certificate": "client.receive.Certificate",
    "CertificateVerify": "client.receive.CertificateVerify",
    "Finished_received": "client.receive.Finished",
    "Finished_sent": "client.send.Finished",
}
FITTED_MESSAGES = ("client.receive.Finished", "client.send.Finished")
"""Not those with a primitive of millions of cycles, beside which the rest is noise, and not
EncryptedExtensions, which s_server makes longer for secp256r1 (supported_groups) than a trace has
it."""


def primitives() -> dict[str, Figure]:
    """Cycles a call and a byte, by the high reading of the chip's rules."""
    elf = HOME / "cortex-m3-mbedtls.elf"
    found = samples(_run(elf)["output"].encode(), elf)
    return {one.name: Figure(one.call[1], one.per_byte[1]) for one in fit(found, found)}


def _run(elf: Path) -> dict[str, Any]:
    """A run's marks with their cycles, and its output. A simulated run can be repeated exactly, so
    what was found is kept beside the program."""
    kept = elf.with_suffix(f".{hashlib.sha256(elf.read_bytes()).hexdigest()[:16]}.json")
    if not kept.exists():
        run = m3.run(elf, m3.Options())
        if not run.ok:
            raise SystemExit(f"{elf}: {run.message}")
        marks = [(mark.name, mark.at.high) for mark in run.marks]
        kept.write_text(json.dumps({"marks": marks, "output": run.output.decode()}))
    found: dict[str, Any] = json.loads(kept.read_text())
    return found


def option(client: str) -> Option:
    """A handshake, replayed with the flights that a server sent."""
    suite, group, certificate = client.split("+")
    cycles: dict[str, float] = defaultdict(float)
    marks = _run(HOME / f"{client}.replay.elf")["marks"]
    for (name, at), (_, after) in pairwise(marks):
        if name in MESSAGES:
            cycles[MESSAGES[name]] += after - at
    choices = (
        ("stack.tls", "1.3"), ("stack.session", "full"), ("stack.authentication", "server"),
        ("stack.group", GROUPS[group]), ("stack.certificate", CERTIFICATES[certificate]),
        ("stack.cipher_suite", f"TLS_{suite}"),
    )  # fmt: skip
    return Option(client, choices, cycles)


def cause(line: Line) -> str:
    """Why a message misses its gate."""
    return ""


def judgement() -> Judgement:
    """The handshakes of both groups, both AEADs and both certificates."""
    clients = sorted(file.name.removesuffix(".replay.elf") for file in HOME.glob("*.replay.elf"))
    if not clients:
        raise SystemExit(f"{HOME} has no handshakes: run make m3-tls")
    figures = primitives()
    options = [option(client) for client in clients]
    fitted = [one for one in options if one.label == FITTED]
    roles = ("client",)
    figures["instruction"] = Figure(
        price({**figures, "instruction": Figure(0.0)}, LIBRARY, fitted, roles,
              lambda message: message in FITTED_MESSAGES)
    )  # fmt: skip
    result = Judgement("Mbed TLS 3.6 on the simulated Cortex-M3 (mps2-an385, no wait states)")
    rate = figures["instruction"].call
    result.notes = [
        f"{len(figures) - 1} primitives from crates/m3/test-programs/tls/primitives.c",
        f"an instruction: {rate:.2f} cycles, fitted on both Finished of {FITTED}, not judged",
        "cycles by the high reading of the chip's published rules",
    ]
    result.causes = cause
    judge(result, figures, LIBRARY, [one for one in options if one.label != FITTED], roles)
    return result

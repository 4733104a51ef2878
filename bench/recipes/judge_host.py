# SPDX-License-Identifier: Apache-2.0 OR MIT
"""This machine: OpenSSL's primitives and messages timed by turns in one run of the calibration
bench, the release build, and the messages predicted. What an instruction takes is fitted on
the two options of TLS 1.3 with RSA-2048 and with ChaCha20-Poly1305; the others are judged."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge import Figure, Judgement, Line, Option, implied, judge, price

from warifu.calibrate.bench import SIGNED, Message, primitives
from warifu.calibrate.variants import Variant

ROOT = Path(__file__).resolve().parent.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
BENCH = TARGET / "release" / "warifu-calibrate-bench"
LIBRARY = "openssl-3"
UNIT = ("us", 1e3, 1)
ROUNDS = 400
MEDIAN = 10
"""Its index among the bench's 21 quantiles."""
LEFT_OUT = ("Alert",)
"""close_notify, which traces do not have."""


def variants() -> list[Variant]:
    """What is timed: both versions of TLS in full with both groups and certificates, mutual, a
    longer chain, and resumed."""
    found = []
    for tls in ("1.2", "1.3"):
        for group, certificate in (
            ("secp256r1", "ecdsa_secp256r1"), ("x25519", "ecdsa_secp256r1"),
            ("x25519", "rsa-2048"),
        ):  # fmt: skip
            found.append(Variant(tls=tls, group=group, certificate=certificate))
    found.append(Variant(group="x25519", authentication="server", aead="CHACHA20_POLY1305"))
    found.append(Variant(group="x25519", certificate="ecdsa_secp256r1", chain_length=3))
    found.append(Variant(group="x25519", authentication="server", session="psk_dhe_ke"))
    found.append(Variant(tls="1.2", group="x25519", authentication="server", session="ticket"))
    return found


def timed(wanted: list[Variant]) -> dict[str, Any]:
    """The bench's report."""
    config = {"variants": [variant.json() for variant in wanted], "warm": ROUNDS, "cold": 0,
              "primitives": ROUNDS}  # fmt: skip
    if not BENCH.exists():
        raise SystemExit(f"{BENCH} is missing: run scripts/setup --release")
    run = subprocess.run([str(BENCH), "tls"], input=json.dumps(config), capture_output=True,
                         text=True, check=False)  # fmt: skip
    if run.returncode != 0:
        raise SystemExit(f"{BENCH}: {run.stderr.strip()}")
    report: dict[str, Any] = json.loads(run.stdout)
    (ROOT / "target" / "recipes" / "host.json").write_text(run.stdout)
    return report


def medians(report: Mapping[str, Any]) -> dict[str, Figure]:
    """Each primitive's median of a call, and what a byte adds, without reading the clock."""
    return {name: Figure(call, byte) for name, (call, byte) in primitives(report, MEDIAN).items()}


def options(
    report: Mapping[str, Any], wanted: list[Variant], figures: Mapping[str, Figure]
) -> list[Option]:
    """Each variant's messages of one side; its signature apart, since it is no part of them."""
    by_option: dict[tuple[int, str], dict[str, float]] = {}
    for row in report["messages"]:
        if row["message"] in LEFT_OUT:
            continue
        message, variant = Message.of(row), wanted[row["variant"]]
        of = by_option.setdefault((row["variant"], message.role), {})
        each = row["cpu_ns"][MEDIAN] - report["reading_cpu_ns"]
        signs = SIGNED[variant.tls, message.role] == message.name and message.verb == "send"
        if signs and variant.session == "full":
            # The message holds the signature, whose recipe is its primitive.
            each -= figures[f"sign.{variant.certificate}"].call
        of[str(message)] = each * (row["n"] / ROUNDS)
    return [
        Option(f"{_label(wanted[index])}: {role}", _choices(wanted[index]), messages)
        for (index, role), messages in by_option.items()
    ]


def _label(variant: Variant) -> str:
    chain = f", chain of {variant.chain_length}" if variant.chain_length > 1 else ""
    return (f"TLS {variant.tls} {variant.session} {variant.authentication} {variant.group} "
            f"{variant.certificate} {variant.aead}{chain}")  # fmt: skip


def _choices(variant: Variant) -> tuple[tuple[str, str], ...]:
    names = ("tls", "session", "authentication", "group", "certificate", "chain_length",
             "cipher_suite")  # fmt: skip
    return tuple((f"stack.{name}", str(getattr(variant, name))) for name in names)


def cause(line: Line, instruction: float, rates: Mapping[str, float]) -> str:
    """Why a figure misses its gate. Where libssl's own work is much of a message, its instructions
    take another time than where their price was fitted: `rates`, by option, ns. Elsewhere the calls
    take another time in the message, after other code, than by themselves."""
    if line.message == "total":
        here = rates[line.option]
        return f"an instruction takes {here:.2f} ns here, {instruction:.2f} where it was fitted"
    if "remainder" in line.misses:
        return "libssl's own work"
    calls = line.predicted - line.remainder
    return (f"its calls take {(line.timed - line.remainder) / 1e3:.0f} us in the message, "
            f"{calls / 1e3:.0f} us by themselves")  # fmt: skip


def judgement() -> Judgement:
    """The messages of both ends."""
    wanted = variants()
    report = timed(wanted)
    figures = medians(report)
    every = options(report, wanted, figures)
    fitted = [one for one in every if one.label.startswith("TLS 1.3") and
              ("rsa-2048" in one.label or "CHACHA20_POLY1305" in one.label)]  # fmt: skip
    roles = ("client", "server")
    figures["instruction"] = Figure(price(figures, LIBRARY, fitted, roles))
    result = Judgement(f"This machine, {report['openssl']}")
    rate = figures["instruction"].call
    result.notes = [
        f"{len(figures) - 1} primitives and {len(wanted)} variants, {ROUNDS} of each by turns",
        "medians of the thread's processor time, without reading the clock",
        f"an instruction: {rate:.3f} ns, fitted on TLS 1.3 with RSA-2048 and ChaCha20-Poly1305",
    ]
    judged = [one for one in every if one not in fitted]
    rates = {}
    for one in judged:
        role = (one.label.rsplit(": ")[-1],)
        # Of one option by itself: below zero where its calls alone are dearer than its messages.
        rates[one.label] = implied(figures, LIBRARY, [one], role)
        judge(result, figures, LIBRARY, [one], role)
    result.causes = lambda line: cause(line, rate, rates)
    return result

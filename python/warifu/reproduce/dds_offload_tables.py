# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The figures of the paper on offloading DDS Security, published, here and predicted."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from warifu.report.table import Column, Table
from warifu.reproduce.dds_offload import (
    AEAD,
    CALIBRATED,
    SMALL,
    Judges,
    Seen,
    errors,
    fit,
    offloaded_ms,
    percent,
    saving,
    software,
)
from warifu.reproduce.dds_sends import FRAGMENT_BYTES, calls
from warifu.reproduce.papers import verdict_table


def tables(seen: Seen) -> tuple[list[Table], bool]:
    """The verdict, then the paper's figures; and whether all came out as recorded."""
    judges = Judges(seen)
    verdicts = judges.verdicts()
    notes = [f"Not run here: {part}: {why}" for part, why in seen.missing.items()]
    found = [verdict_table("Offloading DDS Security", verdicts, notes)]
    if seen.secured:
        found += [over_payload(seen), call_counts(seen)]
    if seen.accelerators:
        found.append(offload(seen, judges.figures))
    found.append(blind(seen, judges.figures))
    return found, verdicts.holds


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3f}"


def over_payload(seen: Seen) -> Table:
    """Figure 2 on this host."""
    heads = ["payload, B", "node to node, plain", "secured", "a write", "its cryptography"]
    heads += ["predicted", "error", "reading's cryptography", "share of node to node", "MB/s"]
    table = Table("Figure 2 on this host: time over payload, medians, ms", [*map(Column, heads)])
    model = fit(seen.secured)
    for size, sends in seen.secured.items():
        plain, guess = seen.plain.get(size), model.crypto_ns(size)
        error = guess / sends.crypto.median - 1
        table.add(
            [
                f"{size:,}",
                _ms(plain.one_way_ns) if plain else "",
                _ms(sends.one_way_ns),
                _ms(sends.total.median),
                _ms(sends.crypto.median),
                _ms(guess),
                "" if size in CALIBRATED else f"{error:+.0%}",
                _ms(sends.read_ns),
                f"{sends.node_share:.0%}",
                f"{size / sends.crypto.median * 1000:,.1f}",
            ],
            {
                "payload_bytes": size,
                "n": sends.total.n,
                "plain_one_way_ns": plain.one_way_ns if plain else None,
                "plain_write_ns": plain.total.median if plain else None,
                "one_way_ns": sends.one_way_ns,
                "write_ns": sends.total.median,
                "write_p5_ns": sends.total.p5,
                "write_p95_ns": sends.total.p95,
                "crypto_ns": sends.crypto.median,
                "crypto_p5_ns": sends.crypto.p5,
                "crypto_p95_ns": sends.crypto.p95,
                "crypto_share_of_write": sends.share,
                "predicted_crypto_ns": guess,
                "reading_crypto_ns": sends.read_ns,
                "crypto_share_of_one_way": sends.node_share,
            },
        )
    off = sorted(errors(seen))
    table.notes += [
        (
            f"Predicted: {model.message_ns / 1000:,.1f} us for a message, "
            f"{model.fragment_ns / 1000:,.1f} us for each further fragment and "
            f"{model.byte_ns:.3f} ns for each byte that a cipher or a MAC goes over, by the rows "
            f"without an error; the others' median error is {statistics.median(off):.0%}."
        ),
        (
            f"n = {seen.secured[SMALL].total.n} at {SMALL} B; what began before the reader had a "
            "message is left out. Node to node: from before a write to the "
            "receipt, where ends overlap; the profiler is in both. Reading: a mean, discovery "
            "included. MB/s: payload by a write's cryptography."
        ),
    ]
    return table


def call_counts(seen: Seen) -> Table:
    """The explanation of the step."""
    heads = ["payload, B", "fragments", "encryptions", "model", "MACs", "model"]
    heads += ["with the generator's", "model", "bytes encrypted", "model"]
    table = Table("Calls a message", [*map(Column, heads)])
    for size, sends in seen.secured.items():
        model = calls(size)
        here = {name: sends.each(name) for name in ("encryptions", "macs", "bytes")}
        table.add(
            [
                f"{size:,}",
                str(model.fragments),
                f"{here['encryptions']:.2f}",
                str(model.encryptions),
                f"{here['macs']:.2f}",
                str(model.macs),
                f"{sends.with_generator:.2f}",
                str(model.with_generator),
                f"{here['bytes']:,.0f}",
                f"{model.bytes:,}",
            ],
            {
                "payload_bytes": size,
                "fragments": model.fragments,
                "encryptions": here["encryptions"],
                "model_encryptions": model.encryptions,
                "macs": here["macs"],
                "model_macs": model.macs,
                "with_generator": sends.with_generator,
                "model_with_generator": model.with_generator,
                "encrypted_bytes": here["bytes"],
                "model_encrypted_bytes": model.bytes,
            },
        )
    table.notes += [
        (
            f"Model: three encryptions and a MAC for each fragment of {FRAGMENT_BYTES:,} B, which "
            "fits a UDP message of 65,500 B; what exceeds it are heartbeats, and what is sent "
            "again. The paper: a call for each 85 to 90 KB."
        ),
        "With the generator's: encryptions and those that OpenSSL makes for random bytes.",
    ]
    return table


def offload(seen: Seen, figures: Mapping[str, Any]) -> Table:
    """Section 4's estimate, and with what it leaves out."""
    columns = [Column("accelerator", number=False)]
    columns += [Column(head) for head in ("as the paper: encryption", "saved", "of all saved")]
    columns += [Column(head) for head in ("with set-up, bus, passes: ms", "saved", "of all saved")]
    table = Table("Section 4: 1 MB on the Raspberry Pi with an accelerator, predicted", columns)
    now, size = software(figures), round(figures["message_mb"] * 1_000_000)
    found = calls(size)
    for name, accelerator in seen.accelerators.items():
        if AEAD not in accelerator["ciphers"]:
            continue
        bare = {**accelerator, "bus": {"set_up_ns": (0, 0), "per_byte_ns": (0, 0)}}
        own = {**accelerator["ciphers"][AEAD], "set_up_ns": (0, 0)}
        once = offloaded_ms({**bare, "ciphers": {AEAD: own}}, size, 1, 1)
        full = offloaded_ms(accelerator, size, 3, found.encryptions + found.macs)
        record: dict[str, str | float] = {"accelerator": name}
        cells = [f"{name} (another processor)" if accelerator["built_in"] else name]
        for key, after in (("throughput", once), ("full", full)):
            whole = (now.other + after[0], now.other + after[1])
            crypto, total = saving(now.crypto, after), saving(now.total, whole)
            low, high = (f"{one:.2f}" for one in after)
            cells += [low if low == high else f"{low} to {high}", percent(crypto), percent(total)]
            for end, at in (("low", 0), ("high", 1)):
                record[f"{key}_crypto_{end}_ms"] = after[at]
                record[f"{key}_crypto_saving_{end}"] = crypto[at]
                record[f"{key}_total_saving_{end}"] = total[at]
        table.add(cells, record)
    table.notes += [
        (
            f"Software, by its own figures: {now.crypto:.2f} ms of encryption in {now.total:.2f} "
            f"ms. As the paper: throughput alone, each byte once. With all: {found.encryptions} "
            f"encryptions and {found.macs} MACs, each byte encrypted twice and then in a MAC, "
            "as SROS2's governance has it; the paper does not say its own."
        ),
        (
            "Kinds of the figures: profiles/accelerators; buses and set-up are assumed but where "
            "a data sheet has them. Below zero it takes longer than the software."
        ),
    ]
    return table


def blind(seen: Seen, figures: Mapping[str, Any]) -> Table:
    """What the paper's method cannot see."""
    columns = [Column("what", number=False, wrap=26), Column("here", number=False, wrap=60)]
    table = Table("Where the paper's method is blind", columns)
    rows = {
        "set-up and bus of each call": (
            f"its {figures['crypto_saving']:.1%} is throughput alone; 1 MB takes "
            f"{calls(1_000_000).encryptions + calls(1_000_000).macs} calls, each with a way to "
            "the circuit and back"
        ),
        "every byte three times": (
            "SROS2's governance encrypts data and metadata and signs the message; "
            f"{figures['throughput_mb_s']} MB/s of messages are as many of each"
        ),
        "what stays in the processor": (
            "nonces, key schedules, copies between the passes; with them fewer than all calls move"
        ),
        "fragments": (
            f"here a message is divided at {FRAGMENT_BYTES:,} B, whatever its encryption: that is "
            "the transport's, and calls follow it"
        ),
    }
    if seen.secured:
        model = fit(seen.secured)
        share = model.message_ns / model.crypto_ns(SMALL)
        rows["small messages"] = (
            f"at 16 B {share:.1%} of the cryptography is for calls, not for bytes: a faster "
            "cipher, offloaded or not, changes little"
        )
    for what, here in rows.items():
        table.add([what, here], {"what": what, "here": here})
    return table

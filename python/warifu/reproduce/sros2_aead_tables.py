# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The tables and figures of the paper on other AEADs in SROS2, published and here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warifu.report.table import Column, Table
from warifu.reproduce.dds_sends import FRAGMENT_BYTES, Summary
from warifu.reproduce.papers import verdict_table
from warifu.reproduce.sros2_aead import (
    BY_KEY,
    CIPHERS,
    PLAIN,
    Judges,
    Seen,
    arithmetic,
    estimate,
    plugin_ns,
)


def tables(seen: Seen) -> tuple[list[Table], bool]:
    """The verdict, then the paper's tables and figures; and whether all came out as recorded."""
    judges = Judges(seen)
    verdicts = judges.verdicts()
    notes = [f"Not run here: {part}: {why}" for part, why in seen.missing.items()]
    if seen.build == "development":
        notes.append(
            "The development build times ciphers that are not fully optimised: `make release` "
            "before figures are kept."
        )
    found = [verdict_table("SROS2's AEADs", verdicts, notes)]
    figures = judges.figures
    found.append(own_arithmetic(figures))
    if seen.sends:
        found += [table3(seen, figures), distributions(seen), blind(seen)]
    if seen.calls:
        found.append(table4(seen, figures))
    if seen.sends and seen.calls:
        found.append(table5(seen, figures))
    return found, verdicts.holds


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.4f}"


def table3(seen: Seen, figures: Mapping[str, Any]) -> Table:
    """Times of a send."""
    heads = ["part", "published mean", "max.", "min.", "here mean", "max.", "min.", "set means"]
    columns = [Column(heads[0], number=False), *map(Column, heads[1:])]
    table = Table("Table 3: a send of 16 bytes with AES-GCM, ms", columns)
    aes = seen.sends["aes_gcm"]
    rows: list[tuple[str, str, Mapping[str, float] | None, Summary, tuple[float, float] | None]] = [
        ("SROS2 as a whole", "total", figures["table3"]["total"], aes.total, aes.set_means("ns")),
        (
            "cryptography",
            "crypto",
            figures["table3"]["crypto"],
            aes.crypto,
            aes.set_means("crypto_ns"),
        ),
        ("without cryptography", "rest", {"mean": figures["rest"]}, aes.rest, None),
    ]
    if PLAIN in seen.sends:
        plain = seen.sends[PLAIN]
        rows.append(("no security at all", PLAIN, None, plain.total, plain.set_means("ns")))
    for name, key, paper, here, sets in rows:
        known = {one: (paper or {}).get(one) for one in ("mean", "max", "min")}
        table.add(
            [
                name,
                *("" if one is None else f"{one:.3f}" for one in known.values()),
                _ms(here.mean),
                _ms(here.maximum),
                _ms(here.minimum),
                f"{_ms(sets[0])} to {_ms(sets[1])}" if sets else "",
            ],
            {
                "part": key,
                **{f"published_{one}_ms": value for one, value in known.items()},
                "n": here.n,
                "mean_ns": here.mean,
                "median_ns": here.median,
                "maximum_ns": here.maximum,
                "minimum_ns": here.minimum,
                "set_mean_low_ns": sets[0] if sets else None,
                "set_mean_high_ns": sets[1] if sets else None,
            },
        )
    table.notes.append(
        f"n = {aes.total.n:,} in {len(aes.sets)} processes, without the {aes.left_out} that began "
        "before their reader had a message; Fast DDS 2.9, OpenSSL 3, one message "
        f"every {aes.sets[0].exchange.period_us / 1000:g} ms. The profiler's own calls, "
        f"{aes.probe_ns / 1000:.1f} us a message, are in the times."
    )
    return table


def table4(seen: Seen, figures: Mapping[str, Any]) -> Table:
    """One call."""
    heads = ["AEAD", "published mean, us", "max.", "min.", "here mean, ns", "max.", "min.", "warm"]
    columns = [Column(heads[0], number=False), *map(Column, heads[1:])]
    table = Table("Table 4: one encryption of 16 bytes", columns)
    for cipher in CIPHERS:
        call, paper = seen.calls[cipher.key], figures["table4"].get(cipher.key, {})
        table.add(
            [
                f"{cipher.name} ({cipher.aead})",
                *(
                    f"{paper[one] * 1000:g}" if one in paper else ""
                    for one in ("mean", "max", "min")
                ),
                *(f"{one:,.0f}" for one in (call.mean, call.maximum, call.minimum, call.warm)),
            ],
            {
                "aead": cipher.aead,
                **{f"published_{one}_ms": paper.get(one) for one in ("mean", "max", "min")},
                "mean_ns": call.mean,
                "median_ns": call.median,
                "maximum_ns": call.maximum,
                "minimum_ns": call.minimum,
                "warm_keyed_ns": call.warm,
            },
        )
    table.notes.append(
        "Here each call sets its key up, as SUPERCOP's does; warm: keyed once, many in a row. The "
        "ciphers are those of the plugin, not SUPERCOP's code."
    )
    return table


def own_arithmetic(figures: Mapping[str, Any]) -> Table:
    """Table 5 by its own arithmetic."""
    heads = ["AEAD", "encryption", "11.28 x one call", "total", "1.530 + encryption", "follows"]
    columns = [Column(heads[0], number=False), *map(Column, heads[1:-1])]
    columns.append(Column(heads[-1], number=False))
    table = Table("Table 5 by its own arithmetic, ms", columns)
    for cipher in CIPHERS:
        row, check = figures["table5"][cipher.key], arithmetic(figures, cipher.key)
        exact = check.crypto_low == check.crypto_high
        table.add(
            [
                cipher.name,
                f"{row['crypto']:.3f}",
                "measured"
                if exact
                else f"{check.crypto:.3f} ({check.crypto_low:.3f} to {check.crypto_high:.3f})",
                f"{row['total']:.3f}",
                f"{check.total:.3f}",
                "yes" if check.follows else "no",
            ],
            {
                "aead": cipher.name,
                "published_crypto_ms": row["crypto"],
                "crypto_ms": check.crypto,
                "crypto_low_ms": check.crypto_low,
                "crypto_high_ms": check.crypto_high,
                "published_total_ms": row["total"],
                "total_ms": check.total,
                "follows": check.follows,
            },
        )
    table.notes.append("In brackets: what a call of Table 4 may be before it was rounded.")
    return table


def table5(seen: Seen, figures: Mapping[str, Any]) -> Table:
    """Estimates and the AEADs built in."""
    columns = [Column("AEAD", number=False)]
    columns += [
        Column(f"{who} {what}")
        for who in ("published", "predicted", "Fast DDS")
        for what in ("total", "cryptography")
    ]
    columns.append(Column("Cyclone DDS plugin"))
    table = Table("Table 5: a send of 16 bytes by AEAD, ms: estimates, and built in", columns)
    for cipher in CIPHERS:
        paper = figures["table5"][cipher.key]
        guess = estimate(seen, cipher.key)
        built = seen.sends.get(cipher.key)
        plugin = seen.cyclone.get(cipher.key)
        table.add(
            [
                cipher.name,
                f"{paper['total']:.3f}",
                f"{paper['crypto']:.3f}",
                _ms(guess[0]),
                _ms(guess[1]),
                _ms(built.total.mean) if built else "no such swap",
                _ms(built.crypto.mean) if built else "",
                _ms(plugin_ns(plugin)) if plugin else "",
            ],
            {
                "aead": cipher.aead,
                "published_total_ms": paper["total"],
                "published_crypto_ms": paper["crypto"],
                "predicted_total_ns": guess[0],
                "predicted_crypto_ns": guess[1],
                "fastdds_total_ns": built.total.mean if built else None,
                "fastdds_total_median_ns": built.total.median if built else None,
                "fastdds_crypto_ns": built.crypto.mean if built else None,
                "fastdds_crypto_median_ns": built.crypto.median if built else None,
                "cyclone_plugin_ns": plugin_ns(plugin) if plugin else None,
            },
        )
    table.notes += [
        (
            "Predicted: the paper's method with this machine's figures: all but cryptography, and "
            "encryptions and MACs times one call of Table 4."
        ),
        (
            "Fast DDS: built in by `warifu dds profile --swap`, an experiment. Cyclone DDS: "
            "Warifu's plugin by its own clock, discovery included."
        ),
    ]
    return table


def distributions(seen: Seen) -> Table:
    """Figures 8, 9 and 11 as numbers."""
    heads = ["what", "n", "min.", "5 %", "median", "95 %", "max.", "mean", "outliers"]
    columns = [Column(heads[0], number=False), *map(Column, heads[1:])]
    table = Table("Figures 8, 9 and 11: the sends' distribution here, ms", columns)
    for key, sends in seen.sends.items():
        name = BY_KEY[key].name if key in BY_KEY else "no security"
        for what, found in (("whole", sends.total), ("cryptography", sends.crypto)):
            if key == PLAIN and what != "whole":
                continue
            values = (
                found.minimum, found.p5, found.median, found.p95, found.maximum, found.mean
            )  # fmt: skip
            table.add(
                [f"{name}, {what}", f"{found.n:,}", *map(_ms, values), str(found.outliers)],
                {
                    "aead": name,
                    "what": what,
                    "n": found.n,
                    "minimum_ns": found.minimum,
                    "p5_ns": found.p5,
                    "median_ns": found.median,
                    "p95_ns": found.p95,
                    "maximum_ns": found.maximum,
                    "mean_ns": found.mean,
                    "outliers": found.outliers,
                },
            )
    return table


def blind(seen: Seen) -> Table:
    """What the paper's method cannot see, with what it is here."""
    columns = [Column("what", number=False, wrap=26), Column("here", number=False, wrap=60)]
    table = Table("Where the paper's method is blind", columns)
    aes = seen.sends["aes_gcm"]
    parts, crypto = aes.parts("encrypt"), aes.crypto.mean
    took = {kind: aes.took_ns(kind) for kind in ("encrypt", "mac", "random")}
    size = aes.sets[0].exchange.bytes
    rows = {
        "set-up of each call": (
            f"{parts['context'] + parts['init']:.0%} of an encryption is its context, cipher, key "
            f"and nonce, {parts['update']:.0%} the bytes"
        ),
        "two encryptions of each byte, by governance": (
            f"{aes.each('bytes'):,.0f} B are encrypted for a message of {size} B: the payload "
            "(data), then the submessage with it (metadata), and INFO_TS"
        ),
        "the generator counted as encryption": (
            f"{aes.each('encryptions'):.2f} encryptions and {aes.each('macs'):.2f} MACs a "
            f"message, but {aes.with_generator:.2f} encryptions with those of the "
            f"{aes.each('randoms'):.2f} requests for random bytes, which another AEAD does not "
            "replace"
        ),
        "what of the cryptography another AEAD changes": (
            f"encryption {took['encrypt'] / crypto:.0%}, MACs {took['mac'] / crypto:.0%}; nonces, "
            f"{took['random'] / crypto:.0%}, stay"
        ),
        "a benchmark's time times a count": (
            "caches are warm in a benchmark: in a send an encryption takes "
            f"{took['encrypt'] / aes.each('encryptions'):,.0f} ns"
        ),
        "fragments": (
            f"16 B fit one; each further {FRAGMENT_BYTES:,} B are encrypted, signed and given "
            "nonces by themselves (`warifu reproduce dds-offload`)"
        ),
    }
    for what, here in rows.items():
        table.add([what, here], {"what": what, "here": here})
    return table

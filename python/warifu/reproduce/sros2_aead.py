# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The paper on other AEADs in SROS2 beside Fast DDS and Cyclone DDS with those AEADs built in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warifu.dds.counters import PROTECTS
from warifu.dds.sending import Sent
from warifu.reproduce.dds_sends import Call, Sends, calls
from warifu.reproduce.papers import Judge, Missing, Outcome, Verdicts, judge, load

NAME = "sros2_aead"


@dataclass(frozen=True)
class Cipher:
    """One of the paper's, and what stands for it here."""

    key: str
    """In the paper's TOML."""
    name: str
    aead: str
    """The plugin's name of it."""
    init: str
    """The plugin's function that selects it."""
    swap: str | None = None
    """The profiler's name of it, by which it takes AES-GCM's place in Fast DDS."""


CIPHERS = (
    Cipher("aes_gcm", "AES-GCM", "AES-256-GCM", "init_crypto_aes_256_gcm"),
    Cipher("ascon", "Ascon", "Ascon-AEAD128", "init_crypto_ascon_aead128", "ascon-aead128"),
    Cipher("aegis_128", "AEGIS-128", "AEGIS-128L", "init_crypto_aegis_128l", "aegis-128l"),
    Cipher("deoxys_ii", "Deoxys-II", "Deoxys-II-128-128", "init_crypto_deoxys_ii_128_128"),
)
BY_KEY = {cipher.key: cipher for cipher in CIPHERS}
PLAIN = "plain"

#: What a needed part of the measurement is called in `Seen.missing`.
FAST, CYCLONE, BENCH = "fastdds-probe", "cyclonedds-probe", "warifu-aead-bench"


@dataclass(frozen=True)
class Seen:
    """What was measured here."""

    sends: Mapping[str, Sends] = field(default_factory=dict)
    """Fast DDS with AES-GCM and with those AEADs that can be swapped in; `PLAIN` unsecured."""
    cyclone: Mapping[str, Sent] = field(default_factory=dict)
    """Cyclone DDS with Warifu's plugin."""
    calls: Mapping[str, Call] = field(default_factory=dict)
    """One call on the paper's 16 bytes, the key set up in it."""
    build: str = ""
    """How the bench was built."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """What could not be run, with the fix."""


@dataclass(frozen=True)
class Check:
    """One AEAD of Table 5 by its own arithmetic, ms."""

    crypto_low: float
    crypto_high: float
    """11.28 x one call, whose third decimal is rounded."""
    crypto: float
    total: float
    follows: bool


def arithmetic(published: Mapping[str, Any], key: str) -> Check:
    """Whether a row of Table 5 follows from Table 4, the call count and the rest."""
    row, half = published["table5"][key], 0.0005
    if key == "aes_gcm":
        crypto = published["table3"]["crypto"]["mean"]
        low, high = crypto, crypto
    else:
        one = published["table4"][key]["mean"]
        crypto = published["calls"] * one
        low, high = published["calls"] * (one - half), published["calls"] * (one + half)
    total = published["rest"] + row["crypto"]
    follows = (
        low - half <= row["crypto"] <= high + half and abs(total - row["total"]) <= half + 1e-9
    )
    return Check(low, high, crypto, total, follows)


def plugin_ns(sent: Sent) -> float:
    """Time a message in Warifu's plugin protecting something, discovery included, ns."""
    spent = sum(one.time_ns for one in sent.plugin if one.site in PROTECTS)
    return spent / max(sent.written, 1)


def estimate(seen: Seen, key: str) -> tuple[float, float]:
    """The paper's method with the figures from here: total and encryption of a send, ns."""
    aes = seen.sends["aes_gcm"]
    operations = aes.each("encryptions") + aes.each("macs")
    crypto = operations * seen.calls[key].mean
    return aes.rest.mean + crypto, crypto


class Judges:
    """Says of each claim what comes of it."""

    def __init__(self, seen: Seen) -> None:
        """Of these measurements."""
        self.seen = seen
        self.paper = load(NAME)
        self.figures = self.paper.published

    def all(self) -> dict[str, Judge]:
        """By claim."""
        return {
            "calls": self._calls,
            "rest": self._rest,
            "share": self._share,
            "table4": self._shortest_call,
            "table4.deoxys": self._longest_call,
            "table4.size": self._size_of_calls,
            "table5.arithmetic": self._table5_arithmetic,
            "table5.aegis": lambda: self._crypto_ratio("aegis_128", 0.5),
            "table5.ascon": lambda: self._crypto_ratio("ascon", 1.0),
            "table5.deoxys": self._deoxys,
            "table5.total": self._total_shorter,
            "figure8": self._outliers,
            "figure9": self._extremes_of_crypto,
            "figure10": self._extremes_of_calls,
            "deadline": self._deadline,
            "deadline.own": self._deadline_by_its_own_extremes,
            "advice": self._advice,
            "not.built": self._built,
            "method": self._method,
            "encrypts.each": self._encrypts_each,
        }

    def verdicts(self) -> Verdicts:
        """Of all claims."""
        return judge(self.paper, self.all())

    def _lacks(self, *needed: str) -> Missing | None:
        """Why something of what a claim needs was not run."""
        for part in needed:
            if part in self.seen.missing:
                return Missing(self.seen.missing[part])
        return None

    def _calls(self) -> Outcome | Missing:
        if lacks := self._lacks(FAST):
            return lacks
        aes = self.seen.sends["aes_gcm"]
        low = aes.with_generator_of_samples
        high = low + aes.each("macs")
        model = calls(self.figures["message_bytes"])
        return Outcome(
            low <= self.figures["calls"] <= high,
            f"{low:.2f} to {high:.2f} updates of EVP contexts",
            f"{model.with_generator} to {model.with_generator + model.macs}",
            f"but {aes.each('encryptions') - aes.heartbeats:.2f} encryptions and "
            f"{aes.each('macs'):.2f} MACs; the others are of OpenSSL's random generator, which is "
            f"AES as well. Not counted: {aes.heartbeats:.2f} heartbeats a write (site "
            "add_heartbeat), each an encryption and a nonce, which come by time, not by message",
        )

    def _rest(self) -> Outcome:
        table = self.figures["table3"]
        rest = table["total"]["mean"] - table["crypto"]["mean"]
        return Outcome(
            abs(rest - self.figures["rest"]) < 0.0015,
            f"{rest:.3f} ms by Table 3",
            why="follows from its own figures",
        )

    def _share(self) -> Outcome | Missing:
        if lacks := self._lacks(FAST):
            return lacks
        table = self.figures["table3"]
        own = table["crypto"]["mean"] / table["total"]["mean"]
        here = self.seen.sends["aes_gcm"].share
        return Outcome(
            0.5 * own <= here <= 1.5 * own,
            f"{here:.0%}",
            why=f"{own:.1%} by its own Table 3; reproduced from half to one and a half times that",
        )

    def _shortest_call(self) -> Outcome | Missing:
        if lacks := self._lacks(BENCH):
            return lacks
        keys = ("aegis_128", "ascon", "deoxys_ii")
        aegis, *others = (self.seen.calls[key].median for key in keys)
        return Outcome(
            aegis < min(others),
            f"{aegis:,.0f}; " + ", ".join(f"{one:,.0f}" for one in others) + " ns",
            why="medians, the key set up in each call",
        )

    def _longest_call(self) -> Outcome | Missing:
        if lacks := self._lacks(BENCH):
            return lacks
        table = self.figures["table4"]
        ratio = self.seen.calls["deoxys_ii"].median / self.seen.calls["ascon"].median
        own = table["deoxys_ii"]["mean"] / table["ascon"]["mean"]
        return Outcome(
            0.5 * own <= ratio <= 1.5 * own,
            f"{ratio:.1f} times",
            why=f"reproduced from {0.5 * own:.1f} to {1.5 * own:.1f}; AES instructions decide it",
        )

    def _size_of_calls(self) -> Outcome | Missing:
        if lacks := self._lacks(BENCH):
            return lacks
        table = self.figures["table4"]
        factors = {key: table[key]["mean"] * 1e6 / self.seen.calls[key].median for key in table}
        cycles = table["aegis_128"]["mean"] * 1.7e6  # the paper's processor has 1.7 GHz
        return Outcome(
            max(factors.values()) < 10,
            f"{min(self.seen.calls[key].median for key in table):,.0f} to "
            f"{max(self.seen.calls[key].median for key in table):,.0f} ns",
            why=(
                f"medians, up to {max(factors.values()):,.0f} times less; 14 us are some "
                f"{cycles:,.0f} cycles of its processor for 16 bytes: not the cipher"
            ),
        )

    def _table5_arithmetic(self) -> Outcome:
        rows = {cipher.name: arithmetic(self.figures, cipher.key) for cipher in CIPHERS}
        wrong = [name for name, row in rows.items() if not row.follows]
        return Outcome(
            not wrong,
            f"{len(rows) - len(wrong)} of {len(rows)} rows follow",
            why=f"not {', '.join(wrong)}" if wrong else "within the rounding of Table 4",
        )

    def _crypto_ratio(self, key: str, most: float) -> Outcome | Missing:
        """Of another AEAD's time in Fast DDS to AES-GCM's."""
        if lacks := self._lacks(FAST):
            return lacks
        aes, other = self.seen.sends["aes_gcm"], self.seen.sends[key]
        ratio = other.crypto.median / aes.crypto.median
        alone = other.took_ns("encrypt") / aes.took_ns("encrypt")
        still = other.took_ns("random") / sum(map(other.took_ns, ("encrypt", "mac", "random")))
        return Outcome(
            ratio < most,
            f"{ratio:.0%} in Fast DDS",
            self._ratio_estimated(key),
            f"encryption alone {alone:.0%}; {still:.0%} of what is left makes nonces",
        )

    def _ratio_estimated(self, key: str) -> str:
        if BENCH in self.seen.missing:
            return ""
        crypto = self.seen.sends["aes_gcm"].crypto.mean
        return f"{estimate(self.seen, key)[1] / crypto:.0%} by its method here"

    def _deoxys(self) -> Outcome | Missing:
        if lacks := self._lacks(CYCLONE):
            return lacks
        aes, other = (plugin_ns(self.seen.cyclone[key]) for key in ("aes_gcm", "deoxys_ii"))
        return Outcome(
            other > aes,
            f"{other / aes:.0%} in Cyclone DDS",
            why="in Warifu's plugin, whose keys are set up once a session",
        )

    def _total_shorter(self) -> Outcome | Missing:
        if lacks := self._lacks(FAST):
            return lacks
        aes = self.seen.sends["aes_gcm"].total.median
        ratios = {
            BY_KEY[key].name: self.seen.sends[key].total.median / aes
            for key in ("ascon", "aegis_128")
        }
        return Outcome(
            max(ratios.values()) < 1,
            ", ".join(f"{name} {ratio:.0%}" for name, ratio in ratios.items()),
            why="medians of whole writes, built in",
        )

    def _outliers(self) -> Outcome | Missing:
        if lacks := self._lacks(FAST):
            return lacks
        total = self.seen.sends["aes_gcm"].total
        return Outcome(
            total.outliers / total.n <= 0.01,
            f"{total.outliers} of {total.n:,}",
            why="more than three quartile distances above the upper quartile; few: 1 % at most",
        )

    def _extremes_of_crypto(self) -> Outcome | Missing:
        if lacks := self._lacks(FAST):
            return lacks
        table = self.figures["table3"]["crypto"]
        found = self.seen.sends["aes_gcm"].crypto
        return Outcome(
            found.maximum / found.mean > 2,
            f"{found.maximum / found.mean:.1f} times its mean",
            why=f"published {table['max'] / table['mean']:.1f} times; reproduced above 2 times",
        )

    def _extremes_of_calls(self) -> Outcome | Missing:
        if lacks := self._lacks(BENCH):
            return lacks
        ratios = [
            one.maximum / one.mean for key, one in self.seen.calls.items() if key != "aes_gcm"
        ]
        return Outcome(
            min(ratios) >= 2,
            f"{min(ratios):,.0f} to {max(ratios):,.0f} times",
            why="the most of many calls is an interrupt, whatever the cipher",
        )

    def _deadline(self) -> Outcome | Missing:
        if lacks := self._lacks(FAST):
            return lacks
        limit = self.figures["deadline"] * 1e6
        totals = {key: self.seen.sends[key].total for key in ("aes_gcm", "ascon", "aegis_128")}
        late = sum(one > limit for one in self.seen.sends["aes_gcm"].values("ns"))
        return Outcome(
            min(one.mean for one in totals.values()) > limit,
            f"{min(one.mean for one in totals.values()) / 1e6:.2f} to "
            f"{max(one.mean for one in totals.values()) / 1e6:.2f} ms",
            why=f"another machine; with AES-GCM {late} of {totals['aes_gcm'].n:,} sends are late",
        )

    def _deadline_by_its_own_extremes(self) -> Outcome:
        table = self.figures["table3"]["total"]
        return Outcome(
            table["min"] > self.figures["deadline"],
            f"{table['min']} ms by Table 3",
            why="its means exceed 1 ms; its fastest send with AES-GCM does not",
        )

    def _advice(self) -> Outcome | Missing:
        if lacks := self._lacks(FAST):
            return lacks
        aes = self.seen.sends["aes_gcm"]
        best = min(("ascon", "aegis_128"), key=lambda key: self.seen.sends[key].crypto.median)
        saved = (aes.crypto.median - self.seen.sends[best].crypto.median) / aes.total.median
        made = aes.took_ns("random") / aes.total.mean
        return Outcome(
            saved >= 0.1,
            f"{BY_KEY[best].name} saves {saved:.0%} of a send",
            why=f"reproduced from 10 % on; nonces take {made:.0%}, which no AEAD saves",
        )

    def _built(self) -> Outcome | Missing:
        if lacks := self._lacks(FAST, CYCLONE):
            return lacks
        swapped = [BY_KEY[key].aead for key in self.seen.sends if key in ("ascon", "aegis_128")]
        plugged = [BY_KEY[key].aead for key in self.seen.cyclone if key != "aes_gcm"]
        received = sum(self.seen.cyclone[key].received for key in self.seen.cyclone)
        return Outcome(
            not (swapped and plugged and received),
            f"{' and '.join(swapped)} in Fast DDS, {', '.join(plugged)} in Cyclone DDS",
            why=f"{received:,} messages read through the plugin; an experiment, not DDS Security",
        )

    def _method(self) -> Outcome | Missing:
        if lacks := self._lacks(FAST, BENCH):
            return lacks
        known = all(one > 0 for one in self.seen.sends["aes_gcm"].values("crypto_ns"))
        return Outcome(known, "done, and the AEADs built in", why="what it cannot see: next table")

    def _encrypts_each(self) -> Outcome | Missing:
        if lacks := self._lacks(FAST):
            return lacks
        fewest = min(self.seen.sends["aes_gcm"].values("encryptions"))
        return Outcome(fewest >= 1, f"at least {fewest} encryptions a write")

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How the claims of the paper on other AEADs in SROS2 are judged: each verdict can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.dds_sends import sends_of
from warifu.dds.counters import Count
from warifu.report.table import Format, render
from warifu.reproduce import sros2_aead_tables
from warifu.reproduce.dds_sends import Call, Sends
from warifu.reproduce.sros2_aead import CIPHERS, PLAIN, Judges, Seen, estimate, plugin_ns

AES_NS = 30_000


def _seen() -> Seen:
    """A host where AEGIS takes seven tenths of AES-GCM's time, and each call a tenth of a us."""
    sends = {
        PLAIN: sends_of(16, 0, total_ns=60_000),
        "aes_gcm": sends_of(16, AES_NS),
        "ascon": sends_of(16, 25_000),
        "aegis_128": sends_of(16, 21_000),
    }
    (sent,) = sends["aes_gcm"].sets
    spent = {"aes_gcm": 300, "ascon": 280, "aegis_128": 200, "deoxys_ii": 700}
    cyclone = {
        key: replace(
            sent, plugin=(Count(1, key, "encode_serialized_payload", 2, 48, 2 * ns, {}),)
        )
        for key, ns in spent.items()
    }  # fmt: skip
    times = {"aes_gcm": 400, "ascon": 180, "aegis_128": 90, "deoxys_ii": 190}
    calls = {key: Call(ns, ns - 20, 5000, ns, ns / 2) for key, ns in times.items()}
    return Seen(sends, cyclone, calls, "release")


def _words(seen: Seen) -> dict[str, str]:
    return {claim.id: str(word) for claim, word, _ in Judges(seen).verdicts().rows}


def _with(seen: Seen, key: str, sends: Sends) -> Seen:
    return replace(seen, sends={**seen.sends, key: sends})


def test_a_host_like_this_comes_out_as_recorded() -> None:
    verdicts = Judges(_seen()).verdicts()
    assert verdicts.holds, verdicts.headline
    tables, holds = sros2_aead_tables.tables(_seen())
    assert holds
    assert [len(table.records) > 0 for table in tables] == [True] * 7
    assert max(map(len, render(tables, Format.TABLE, 80).splitlines())) <= 80


@pytest.mark.parametrize(
    ("claim", "seen", "verdict"),
    [
        # Without the generator's calls there are three, not eleven.
        ("calls", _with(_seen(), "aes_gcm", sends_of(16, AES_NS, inner_updates=0)),
         "not reproduced"),
        ("encrypts.each", _with(_seen(), "aes_gcm", sends_of(16, AES_NS, encryptions=0)),
         "not reproduced"),
        ("table5.aegis", _with(_seen(), "aegis_128", sends_of(16, 14_000)), "reproduced"),
        ("table5.ascon", _with(_seen(), "ascon", sends_of(16, 31_000)), "not reproduced"),
        ("table5.total", _with(_seen(), "ascon", sends_of(16, 25_000, total_ns=200_000)),
         "not reproduced"),
        ("deadline", _with(_with(_with(
            _seen(), "ascon", sends_of(16, 25_000, total_ns=1_500_000)),
            "aegis_128", sends_of(16, 21_000, total_ns=1_400_000)),
            "aes_gcm", sends_of(16, AES_NS, total_ns=1_600_000)), "reproduced"),
        ("share", _with(_seen(), "aes_gcm", sends_of(16, AES_NS, total_ns=1_000_000)),
         "not reproduced"),
    ],
)  # fmt: skip
def test_other_measurements_have_another_verdict(claim: str, seen: Seen, verdict: str) -> None:
    assert _words(_seen())[claim] != verdict
    assert _words(seen)[claim] == verdict


@pytest.mark.parametrize("heartbeats", [1, 2, 5])
def test_heartbeats_in_writes_change_no_verdict_on_calls(heartbeats: int) -> None:
    """They come by time, so that a slow period or a busy machine has more of them a write."""
    sends = sends_of(16, AES_NS, heartbeats=heartbeats)
    assert sends.with_generator == 11 + 3 * heartbeats
    assert (sends.heartbeats, sends.with_generator_of_samples) == (heartbeats, 11)
    verdicts = Judges(_with(_seen(), "aes_gcm", sends)).verdicts()
    (outcome,) = (outcome for claim, _, outcome in verdicts.rows if claim.id == "calls")
    assert outcome.holds
    assert f"{heartbeats}.00 heartbeats a write" in outcome.why


def test_calls_that_take_as_long_as_published_are_seen() -> None:
    published = {"aes_gcm": 35_000, "ascon": 26_000, "aegis_128": 14_000, "deoxys_ii": 61_000}
    calls = {key: Call(ns, ns, 9 * ns, ns, ns) for key, ns in published.items()}
    words = _words(replace(_seen(), calls=calls))
    assert words["table4.size"] == "reproduced"
    assert words["table4.deoxys"] == "reproduced"
    assert words["table4"] == "reproduced"


def test_a_slow_aegis_is_seen() -> None:
    seen = _seen()
    calls = {**seen.calls, "aegis_128": replace(seen.calls["aegis_128"], median=1000)}
    assert _words(replace(seen, calls=calls))["table4"] == "not reproduced"
    # A time decides no exit code.
    assert Judges(replace(seen, calls=calls)).verdicts().holds


def test_the_papers_method_here() -> None:
    """All but cryptography, and 3 encryptions and a MAC times one call."""
    total, crypto = estimate(_seen(), "aegis_128")
    assert crypto == 4 * 90
    assert total == 3 * AES_NS + crypto


def test_the_plugins_time_is_by_message() -> None:
    assert plugin_ns(_seen().cyclone["deoxys_ii"]) == 700
    assert {cipher.key for cipher in CIPHERS} == set(_seen().cyclone)


def test_what_began_before_the_reader_had_a_message_is_no_send() -> None:
    """Fast DDS then neither encrypts nor sends, which would be the fastest sends of all."""
    (sent,) = sends_of(16, AES_NS).sets
    early, later = ({**one, "begun_ns": at} for one, at in zip(sent.messages, (5, 9), strict=True))
    early |= {"ns": 1, "crypto_ns": 0, "encryptions": 0}
    recording = replace(sent.recording, messages=(early, later))
    sends = Sends((replace(sent, recording=recording, first_received_ns=7),))
    assert (sends.left_out, sends.total.n, sends.total.minimum) == (1, 1, 4 * AES_NS)
    seen = _with(_seen(), "aes_gcm", sends)
    assert _words(seen)["encrypts.each"] == "reproduced"
    every = Sends((replace(sent, recording=recording, first_received_ns=0),))
    assert (every.left_out, every.total.minimum) == (0, 1)

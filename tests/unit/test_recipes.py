# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Recipes: what was counted becomes calls, conditions and instructions; what is shipped covers
every message that a trace has; the judgements' gates can be missed."""

from __future__ import annotations

import importlib
import math
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from warifu import _core
from warifu.calibrate import bench as calibrate_bench
from warifu.calibrate.variants import Variant, everything

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "bench" / "recipes"
RECIPES = sorted((ROOT / "profiles" / "recipes").glob("*.toml"))


def module(name: str) -> ModuleType:
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


write, judge, count = module("write"), module("judge"), module("count")


def row(operation: str = "client.receive.Certificate", **choices: str | int) -> dict[str, Any]:
    """A message as it was counted: two certificates are parsed, verified and hashed."""
    chain = int(choices.get("chain_length", 1))
    length = 13 + 480 * chain
    variant = {
        "tls": "1.3", "session": "full", "authentication": "mutual", "group": "secp256r1",
        "certificate": "ecdsa_secp256r1", "chain_length": chain, "aead": "AES_128_GCM",
    } | choices  # fmt: skip
    calls = {
        "verify": [chain, 0], "x509.parse": [chain, length - 13], "aead.open": [1, length],
        "hash": [chain, length + 390 * chain], "hkdf": [0, 0],
    }  # fmt: skip
    return {"operation": operation, "variant": variant, "bytes": length,
            "instructions": 1000 + 2 * length, "calls": calls}  # fmt: skip


def test_calls_by_certificate_record_and_byte() -> None:
    found = write.recipes([row(chain_length=chain) for chain in (1, 2, 3)])
    ((operation, when, recipe),) = [one for one in found if one[0].endswith("Certificate")]
    assert (operation, when) == (
        "client.receive.Certificate", {"tls": "1.3", "session": "full"},
    )  # fmt: skip
    assert recipe.instructions == pytest.approx(1000, abs=1)
    assert recipe.instructions_per_byte == pytest.approx(2, abs=0.01)
    calls = {call.primitive: call for call in recipe.calls}
    assert "hkdf" not in calls
    assert calls["verify"] == write.Call("verify", 0, 1)
    assert (calls["aead.open"].per_record, calls["aead.open"].per_message_byte) == (1, 1)
    assert (calls["hash"].per_certificate, calls["hash"].per_message_byte) == (1, 1)
    assert calls["hash"].bytes == pytest.approx(390)
    assert calls["x509.parse"].per_certificate == 1


def test_a_choice_is_a_condition_only_where_counts_differ() -> None:
    rows = [row(group=group, certificate=certificate)
            for group in ("secp256r1", "x25519")
            for certificate in ("ecdsa_secp256r1", "rsa-2048")]  # fmt: skip
    for one in rows:
        if one["variant"]["certificate"] == "rsa-2048":
            one["instructions"] += 5_000
    found = [when for operation, when, _ in write.recipes(rows) if operation.endswith("icate")]
    assert [when["certificate"] for when in found] == ["ecdsa_secp256r1", "rsa-2048"]
    assert all("group" not in when for when in found)
    rows[0]["calls"]["verify"] = [7, 0]
    assert len([one for one in write.recipes(rows) if one[0].endswith("icate")]) > 2


def test_counts_that_no_choice_explains_are_refused() -> None:
    one, other = row(), row()
    other["calls"]["verify"] = [2, 0]
    with pytest.raises(SystemExit, match="counts differ where no choice does"):
        write.recipes([one, other])


def test_an_outlier_among_repeated_counts_makes_no_condition() -> None:
    rows = [row(), row(), row()]
    rows[1]["instructions"] *= 3
    ((_, when, recipe),) = [one for one in write.recipes(rows) if one[0].endswith("Certificate")]
    assert when == {"tls": "1.3", "session": "full"}
    assert recipe.instructions == rows[0]["instructions"]
    # Calls are exact: another number of them is no outlier.
    calls = row()
    calls["calls"]["verify"] = [2, 0]
    with pytest.raises(SystemExit, match="counts differ where no choice does"):
        write.recipes([*rows, calls])


def test_a_signature_is_an_operation_of_its_own() -> None:
    made = row("server.send.CertificateVerify")
    made["calls"]["sign"] = [1, 130]
    found = {operation: recipe for operation, _, recipe in write.recipes([made])}
    assert found["server.sign"].calls == (write.Call("sign", 1, 0, 0, 130),)
    names = [call.primitive for call in found["server.send.CertificateVerify"].calls]
    assert "sign" not in names


def test_prepared_key_share_needs_no_key_pair() -> None:
    hello = row("client.send.ClientHello")
    hello["calls"] = {"ecdh.keygen": [1, 0], "random": [1, 32]}
    found = {
        when["key_share"]: [call.primitive for call in recipe.calls]
        for operation, when, recipe in write.recipes([hello])
        if operation == "client.send.ClientHello"
    }
    assert found == {"fresh": ["ecdh.keygen", "random"], "prepared": ["random"]}


def test_a_ticket_is_as_long_as_its_library_makes_it() -> None:
    """The traces' tickets are OpenSSL's: what was opened says how long the one at hand was."""
    rows = []
    for tls, calls in (("1.3", {"aead.open": [1, 173]}), ("1.2", {"hash": [0, 624]})):
        one = row("client.receive.NewSessionTicket", tls=tls)
        rows.append(one | {"bytes": 729, "calls": calls, "instructions": 3000})
    done = row("client.receive.ServerHelloDone", tls="1.2")
    rows.append(done | {"bytes": 4, "calls": {"hash": [0, 16]}, "instructions": 900})
    found = {
        when["tls"]: recipe.calls
        for operation, when, recipe in write.recipes(rows)
        if operation.endswith("Ticket")
    }
    assert found["1.3"] == (write.Call("aead.open", per_record=1, bytes=1, per_message_byte=1),)
    assert found["1.2"] == (write.Call("hash", per_message_byte=4),)


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_longer_tickets_take_longer(file: Path) -> None:
    """RFC 8446 section 5.2: all of a record is sealed, and its type."""
    recipes = tomllib.loads(file.read_text())["recipe"]
    tickets = [one for one in recipes if one["operation"] == "client.receive.NewSessionTicket"]
    opened = [
        call
        for one in tickets
        for call in one["call"]
        if one["when"]["tls"] == "1.3" and call["primitive"] == "aead.open"
    ]
    assert opened
    assert all((call["per_message_byte"], call["bytes"]) == (1, 1) for call in opened)


def test_the_parts_of_a_count_are_put_together() -> None:
    output = (
        "=\t\t0\n-\t\t0\nclient\tsend ClientHello\t0\tecdh.keygen\t1\t0\n"
        "client\t+\t0\thash\t0\t198\nserver\treceive ClientHello\t203\thash\t0\t198\n"
    )
    ((hello, received),) = count.parse(output, [5, 9, 100, 20, 300])
    assert (hello.operation, hello.instructions) == ("client.send.ClientHello", 120)
    assert hello.calls == {"ecdh.keygen": (1, 0), "hash": (0, 198)}
    assert (received.bytes, received.instructions) == (198, 300)
    parts = (
        "=\t\t0\npart\t\t0\npart\t\t0\trandom\t1\t32\npart\t\t0\thash\t0\t7\n"
        "parts client send ClientHello 1,2\n"
    )
    ((hello,),) = count.parse(parts, [1, 2, 30, 400])
    assert (hello.instructions, hello.calls) == (430, {"random": (1, 32), "hash": (0, 7)})
    with pytest.raises(SystemExit, match="counts do not fit"):
        count.parse(output, [5, 9])


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_every_message_of_a_trace_has_a_recipe(file: Path) -> None:
    """Of all variants that a device profile can tell apart."""
    figures = {name: judge.Figure(1.0) for name in _core.primitives()}
    mine = ("device", judge.NAME, judge.figures_toml(figures, file.stem), "judged.toml")
    others = judge.profiles()
    without_early_data = file.stem == "wolfssl-5"
    for variant in everything():
        if variant.session == "0-rtt" and without_early_data:
            continue
        study = _core.Study.from_choices(
            [("device", judge.NAME), ("server", judge.NAME), ("link", "loopback"),
             *choices(variant)], [*others, mine],
        )  # fmt: skip
        missing = _core.missing_operations(study, 0)
        if variant.psk_mode and variant.tls == "1.2":
            # No resumption of TLS 1.2 is like it, so it is not counted: each message is named.
            client, server = missing
            assert "client.send.ClientKeyExchange" in client
            assert "server.receive.ClientKeyExchange" in server
        else:
            # TLS 1.3's is a resumption without a client certificate (RFC 8446 section 2.2).
            assert missing == ([], []), variant


def choices(variant: Variant) -> list[tuple[str, str]]:
    keys = ["tls", "session", "authentication", "group", "certificate", "chain_length",
            "cipher_suite"]  # fmt: skip
    if variant.psk_mode:
        keys = ["tls", "authentication", "psk_mode", "cipher_suite"]
        if variant.psk_mode == "psk_dhe_ke":
            keys.append("group")
    return [(f"stack.{key}", str(getattr(variant, key))) for key in keys]


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_calls_that_the_protocol_asks_for(file: Path) -> None:
    """Whichever library: a full handshake's key pair, shared secret and signatures (RFC 8446
    sections 4.2.8, 4.4.2 and 4.4.3)."""
    tables = tomllib.loads(file.read_text())["recipe"]

    def calls(operation: str) -> list[dict[str, tuple[int, int]]]:
        wanted = [
            one for one in tables
            if one["operation"] == operation and one["when"]["tls"] == "1.3"
            and "full" in one["when"]["session"] and one["when"].get("key_share") != "prepared"
        ]  # fmt: skip
        assert wanted, operation
        return [
            {call["primitive"]: (call.get("count", 0), call.get("per_certificate", 0))
             for call in one.get("call", [])}
            for one in wanted
        ]  # fmt: skip

    assert all(one["ecdh.keygen"] == (1, 0) for one in calls("client.send.ClientHello"))
    assert all(one["ecdh.derive"] == (1, 0) for one in calls("client.receive.ServerHello"))
    assert all(one["verify"] == (0, 1) for one in calls("client.receive.Certificate"))
    assert all(one["verify"] == (1, 0) for one in calls("client.receive.CertificateVerify"))
    assert all(one["sign"] == (1, 0) for one in calls("server.sign"))


DIGESTS = {"AES_128_GCM": 32, "AES_256_GCM": 48, "CHACHA20_POLY1305": 32}
"""Of the suites' hashes, B."""


@pytest.mark.parametrize("library", ["mbedtls", "openssl", "wolfssl"])
def test_all_of_tls_1_2_is_counted_with_each_aead(library: str) -> None:
    counted = {variant for variant, _ in count.variants(library) if variant.tls == "1.2"}
    assert {replace(one, aead=aead) for one in counted for aead in DIGESTS} == counted
    found = {(one.session, one.authentication, one.chain_length) for one in counted}
    assert {("full", "server", 1), ("full", "mutual", 3), ("ticket", "server", 1)} <= found


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_tls_1_2_derives_keys_of_the_suite(file: Path) -> None:
    """Whole digests of the suite's hash, however the client is known (RFC 5246 sections 5, 6.3,
    7.4.9 and 8.1)."""
    figures = {name: judge.Figure(0.0) for name in _core.primitives()}
    # A call and a digest of each are told apart.
    for name, digest in (("prf.sha-256", 32), ("prf.sha-384", 48)):
        figures[name] = judge.Figure(1_000.0, 1 / digest)
    found: dict[tuple[str, str, str], set[tuple[float, float]]] = {}
    for variant in everything():
        if variant.tls != "1.2" or variant.psk_mode:
            continue
        for aead in DIGESTS:
            made = choices(replace(variant, aead=aead))
            costs = judge.lowered(figures, file.stem, made, ("client", "server"))
            for role in ("client", "server"):
                total = sum(cost for message, cost in costs.items() if message.startswith(role))
                of_role = found.setdefault((variant.session, aead, role), set())
                of_role.add(divmod(round(total, 3), 1_000))
    for (session, aead, role), totals in found.items():
        ((calls, digests),) = totals
        assert calls == (4 if session == "full" else 3), (session, aead, role)
        assert digests == int(digests), (session, aead, role)
        key, salt = {"AES_128_GCM": (16, 4), "AES_256_GCM": (32, 4)}.get(aead, (32, 12))
        needed = [12, 12, 2 * (key + salt), *([48] if session == "full" else [])]
        least = sum(math.ceil(one / DIGESTS[aead]) for one in needed)
        # Mbed TLS derives 256 B whatever the AEAD, wolfSSL a hash's keys of 2 x 32 B or 2 x 48 B.
        assert digests == least if file.stem.startswith("openssl") else digests >= least


Line = judge.Line


def line(message: str, timed: float, predicted: float, remainder: float = 0.0) -> Line:
    return judge.Line("an option", message, timed, predicted, remainder, True)


def test_gates_can_be_missed() -> None:
    assert line("client.send.ClientHello", 100, 109.9).misses == []
    assert line("client.send.ClientHello", 100, 110.1).misses == ["error"]
    assert line("client.send.ClientHello", 100, 100, 20.1).misses == ["remainder"]
    assert line("total", 100, 104.9, 90).misses == []
    assert line("total", 100, 94.9).misses == ["error"]
    small = judge.Line("an option", "client.send.Finished", 1, 9, 9, False)
    assert small.misses == []


def test_lowering_and_the_price_of_an_instruction() -> None:
    """A message made of known figures gives the price that it was made with."""
    figures = {name: judge.Figure(1_000.0) for name in _core.primitives()}
    figures["instruction"] = judge.Figure(0.0)
    choices = (("stack.tls", "1.3"), ("stack.authentication", "server"))
    client = ("client",)
    counts = judge.instructions(figures, "mbedtls-3.6", judge.Option("", choices, {}), client)
    assert counts["client.send.ClientHello"] > 100
    known = judge.lowered(figures, "mbedtls-3.6", choices, client)
    timed = {message: known[message] + 2.5 * counts[message] for message in known}
    option = judge.Option("", choices, timed)
    assert judge.price(figures, "mbedtls-3.6", [option], client) == pytest.approx(2.5, rel=1e-3)
    # Else the gate of the remainder would pass whatever it is.
    shorter = judge.Option("", choices, {message: time / 2 for message, time in known.items()})
    with pytest.raises(SystemExit, match="longer than the messages"):
        judge.price(figures, "mbedtls-3.6", [shorter], client)
    judgement = judge.Judgement("")
    judge.judge(judgement, figures | {"instruction": judge.Figure(2.5)}, "mbedtls-3.6",
                [option], client)  # fmt: skip
    assert judgement.lines[-1].message == "total"
    assert not any(one.misses for one in judgement.lines if "error" in one.misses)


def test_primitives_of_the_calibration_bench() -> None:
    def timed(
        operation: str, algorithm: str, length: int, ns: int, temperature: str = "warm",
        calls: int = 1,
    ) -> dict[str, object]:  # fmt: skip
        return {"operation": operation, "algorithm": algorithm, "bytes": length, "calls": calls,
                "temperature": temperature, "cpu_ns": [ns + 20] * 21}  # fmt: skip

    rows = [
        timed("keygen", "x25519", 0, 900), timed("seal", "AES_128_GCM", 100, 300),
        timed("seal", "AES_128_GCM", 1_100, 800), timed("random", "", 32, 40),
        timed("parse", "rsa-2048", 800, 90), timed("parse", "ecdsa_secp256r1", 400, 110),
        timed("keygen", "x25519", 0, 9_000, "cold"), timed("hkdf", "sha-256", 0, 480, calls=4),
    ]  # fmt: skip
    # The clock is read once for all calls of a time.
    report = {"primitives": rows, "reading_cpu_ns": 20.0}
    assert calibrate_bench.primitives(report, 10) == {
        "hkdf.sha-256": (120.0, 0.0),
        "ecdh.keygen.x25519": (900.0, 0.0),
        "aead.seal.AES_128_GCM": (250.0, 0.5),
        "random": (40.0, 0.0),
        # Longer, and quicker all the same: no line through both, so their mean.
        "x509.parse": (100.0, 0.0),
    }
    assert set(calibrate_bench.primitives(report, 10)) <= set(_core.primitives())

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""DDS's costs from samples that are made up with known ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from support.laboratory import make_case, make_dds_case
from support.paths import ROOT
from warifu import _core, study
from warifu.calibrate import dds, dds_ciphers, dds_fit, parts
from warifu.calibrate.dds_fit import Known, Measured, Own, Sends, Steps
from warifu.calibrate.part import Draft, Target
from warifu.calibrate.profile import Entry, Law
from warifu.calibrate.system import Costs

FLAT = Law.constant(1.0)
SENDS = Sends({"client": 40_000.0, "server": 35_000.0}, part=12_000.0, byte=0.4)


def layers(payload: float, submessage: float, message: float) -> dict[str, float]:
    """A byte's cost, ns, in each."""
    return dict(zip(dds_fit.PROTECTIONS, (payload, submessage, message), strict=True))


OWN = {
    "builtin": Own(7_000.0, layers(9_000.0, 12_000.0, 5_000.0), 4_000.0, layers(0.1, 0.2, 0.5)),
    "warifu": Own(2_000.0, layers(3_000.0, 9_000.0, 1_000.0), 500.0, layers(0.1, 0.1, 0.4)),
}
RECEIVED_PLAIN = {"client": (0.3, 15_000.0), "server": (0.5, 18_000.0)}
"""A byte and a further part, ns, by role."""
RECEIVED = {
    "builtin": (6_000.0, layers(12_000.0, 15_000.0, 8_000.0), 5_000.0),
    "warifu": (4_000.0, layers(3_500.0, 9_000.0, 2_000.0), 700.0),
}
"""Of a sample more than without security, of the first call of a layer, of another, ns."""

HELD_OUT = """\
name = "held-out"
seed = 1
trials = 1
predict_trials = 20
device = "this-host"
server = "this-host"
link = "loopback"
[pattern]
path = "/other"
[vary]
stack = ["dds/none", "dds/builtin", "dds/warifu/AEGIS-256"]
"pattern.response_body" = ["200 B", "50 KiB"]
"""


def ciphers() -> list[Entry]:
    """What a bench says: AES takes 100 ns and 0.2 ns a byte, and with its set-up 800 ns more."""
    calls = [
        {
            "operation": operation,
            "aead": aead,
            "keyed": keyed,
            "bytes": size,
            "ns": (100.0 if keyed else 900.0) + 0.2 * size,
        }
        for operation in ("seal", "open", "mac")
        for aead, keyed in (("AES-256-GCM", True), ("AES-256-GCM", False), ("AEGIS-256", True))
        for size in (16, 1_024, 65_536)
    ]
    authentication = {"sign.ecdsa_secp256r1": 30_000.0, "verify.ecdsa_secp256r1": 80_000.0}
    return dds_ciphers.entries(
        {"openssl": "OpenSSL 3", "calls": calls, "authentication": authentication}
    )


def truth() -> list[Entry]:
    sends = [*dds_fit._system_entries(), *dds_fit._send_entries(SENDS, FLAT)]
    found = [*sends]
    for role in dds_fit.ROLES:
        name = f"{role}.receive.{dds_fit.SAMPLE}"
        byte, part = RECEIVED_PLAIN[role]
        plain = Entry(name, {}, Law.constant(45_000.0), Law.constant(70_000.0), per_byte_ns=byte)
        found += [plain, Entry(f"{role}.receive.DdsPart", {}, Law.constant(part))]
        (sent,) = (entry for entry in sends if entry.operation == f"{role}.send.{dds_fit.SAMPLE}")
        for crypto, (fixed, first, again) in RECEIVED.items():
            found.append(dds_fit._slower(plain, crypto, fixed))
            found.append(dds_fit._slower(sent, crypto, OWN[crypto].sample))
            found += dds_fit._protections(role, "send", crypto, OWN[crypto])
            receiving = Own(fixed, first, again, OWN[crypto].byte)
            found += dds_fit._protections(role, "receive", crypto, receiving)
    return found


def without_costs() -> Draft:
    texts = study.profile_texts([ROOT / "profiles"])
    others = [text for text in texts if text[:2] != ("device", "this-host")]
    draft = Draft(others).having(Costs.start().entries(FLAT, "a test"))
    return draft.having(ciphers())


def made_up(draft: Draft, texts: Sequence[str]) -> Measured:
    """What a lab with these costs would measure."""
    medians: dict[Target, float] = {}
    crypto: dict[str, str] = {}
    steps: dict[str, Steps] = {}
    for text in texts:
        medians |= draft.predict(text)
        parsed = draft.study(text)
        for index, view in enumerate(parsed.cases):
            crypto[view.id] = str(view.columns["dds_crypto"])
            rows = _core.step_costs(parsed, index)
            steps[view.id] = Steps.of(rows)
            for role, name in (
                ("client", dds_fit.CLIENT_WRITE),
                ("server", dds_fit.SERVER_WRITE),
            ):
                medians[view.id, name] = write_ns(rows, steps[view.id], role)
    return Measured(medians, dict.fromkeys(medians, 1_000.0), crypto, steps)


def write_ns(rows: Sequence[Mapping[str, Any]], steps: Steps, role: str) -> float:
    """All that an end does to send; what it does first has cold caches."""
    # The link's program works beside a burst that the server writes.
    parts = [step for step in steps.sending(role) if step.message == "DdsPart"]
    total = 150_000.0 if role == "server" and parts else 0.0
    for row, step in zip(rows, steps.steps, strict=True):
        if (step.role, step.verb) == (role, "send"):
            total += row["own_ns" if step.again else "own_cold_ns"] + row["cipher_ns"]
    return total


@pytest.fixture(scope="module")
def found() -> list[Entry]:
    draft = without_costs()
    texts = dds.study_texts(10)
    measured = made_up(draft.having(truth()), texts)

    def predict(of: Sequence[str], more: Sequence[Entry]) -> dict[Target, float]:
        answer: dict[Target, float] = {}
        for text in of:
            answer |= draft.having(more).predict(text)
        return answer

    plain, *secured = texts
    return dds_fit.entries(
        measured,
        Known.of(ciphers()),
        FLAT,
        lambda more: predict([plain], more),
        lambda more: predict(secured, more),
    )


def test_sending_is_told_apart(found: list[Entry]) -> None:
    by_name = {(entry.operation, entry.when.get("crypto")): entry for entry in found}
    for role, sample_ns in SENDS.sample.items():
        sample = by_name[f"{role}.send.DdsSample", None]
        assert sample.warm.median_ns == pytest.approx(sample_ns, rel=0.02)
        assert sample.per_byte_ns == pytest.approx(SENDS.byte, rel=0.02)
        part = by_name[f"{role}.send.DdsPart", None]
        assert part.warm.median_ns == pytest.approx(SENDS.part, rel=0.02)
        for crypto, own in OWN.items():
            secured = by_name[f"{role}.send.DdsSample", crypto]
            more = secured.warm.median_ns - sample.warm.median_ns
            assert more == pytest.approx(own.sample, abs=200.0)
            for layer, byte in own.byte.items():
                call = by_name[f"{role}.send.{layer}", crypto]
                assert call.cold is not None
                assert call.cold.median_ns == pytest.approx(own.first[layer], rel=0.05)
                assert call.warm.median_ns == pytest.approx(own.again, rel=0.05)
                assert call.per_byte_ns == pytest.approx(byte, rel=0.05)


def test_receiving_is_told_apart(found: list[Entry]) -> None:
    by_name = {(entry.operation, entry.when.get("crypto")): entry for entry in found}
    for role, (byte, part) in RECEIVED_PLAIN.items():
        plain = by_name[f"{role}.receive.DdsSample", None]
        assert plain.per_byte_ns == pytest.approx(byte, rel=0.1)
        assert by_name[f"{role}.receive.DdsPart", None].warm.median_ns == pytest.approx(
            part, rel=0.1
        )
        for crypto, (sample, first, again) in RECEIVED.items():
            secured = by_name[f"{role}.receive.DdsSample", crypto]
            more = secured.warm.median_ns - plain.warm.median_ns
            assert more == pytest.approx(sample, abs=1_000.0)
            for layer, ns in first.items():
                call = by_name[f"{role}.receive.{layer}", crypto]
                assert call.cold is not None
                assert call.cold.median_ns == pytest.approx(ns, abs=1_000.0)
                assert call.warm.median_ns == pytest.approx(again, abs=1_000.0)


def test_cases_that_were_not_run_are_predicted(found: list[Entry]) -> None:
    draft = without_costs()
    right = draft.having(truth()).predict(HELD_OUT)
    ours = draft.having(found).predict(HELD_OUT)
    for target in right:
        assert ours[target] == pytest.approx(right[target], rel=0.03), target
    assert {metric for _, metric in right} >= {"dds.one_way", "dds.round_trip"}


def test_ciphers_as_primitives() -> None:
    by_name = {entry.operation: entry for entry in ciphers()}
    assert all(entry.is_primitive for entry in by_name.values())
    keyed = by_name["aead.seal.AES-256-GCM.keyed"]
    assert keyed.warm.median_ns == pytest.approx(100.0)
    assert keyed.per_byte_ns == pytest.approx(0.2)
    assert by_name["aead.mac.AES-256-GCM"].warm.median_ns == pytest.approx(900.0)
    assert by_name["verify.ecdsa_secp256r1"].warm.median_ns == pytest.approx(80_000.0)
    assert set(by_name) <= set(_core.primitives())


def test_device_that_has_ciphers() -> None:
    draft = without_costs()
    text = draft.profile("run", "a host").toml()
    profile = ("device", "this-host", text, "this-host.toml")
    assert _core.device_measures_ciphers(profile)
    assert _core.device_measures_ciphers(profile, "AEGIS-256")
    assert not _core.device_measures_ciphers(profile, "Ascon-AEAD128")
    bare = Draft(()).having(Costs.start().entries(FLAT, "a test")).profile("run", "a host")
    assert not _core.device_measures_ciphers(("device", "this-host", bare.toml(), "x.toml"))
    with pytest.raises(_core.WarifuError, match=r"x\.toml: is a profile of kind link"):
        _core.device_measures_ciphers(("link", "x", "", "x.toml"))


def test_missing_cipher_is_named() -> None:
    text = HELD_OUT.replace("AEGIS-256", "Ascon-AEAD128")
    draft = without_costs().having(truth())
    with pytest.raises(_core.WarifuError) as error:
        draft.predict(text)
    message = str(error.value)
    assert "aead.seal.Ascon-AEAD128.keyed" in message
    assert len(message) < 600


def test_calibration_of_dds_where_it_is_needed() -> None:
    https, one = make_case().canonical, make_dds_case().canonical
    assert parts.needed([https, one])["dds"] == [dds.SAMPLE]
    assert parts.needed([https])["dds"] == []
    assert parts.missing(parts.needed([https]), parts.needed([one])) == {"dds": [dds.SAMPLE]}


def test_time_of_nothing_is_the_least_there_is() -> None:
    call, byte = dds_ciphers.line([(16, 0.0), (1_024, 100.0), (65_536, 6_000.0)])
    assert call >= 0.0
    assert byte == pytest.approx(0.0, abs=0.1)


def test_calls_are_reported_in_the_order_of_the_studies() -> None:
    def record(ns: int) -> Mapping[str, Any]:
        call = {"function": "encode_rtps_message", "calls": 4, "time_ns": ns}
        return {"dds": {"plugin": {"client": [call], "server": [call]}}}

    # The second case's first part was rejected, so that its records come last; one has no plugin.
    plain: Mapping[str, Any] = {"dds": {"plugin": {}}}
    records = {
        "c": [record(800)],
        "plain": [plain],
        "a": [record(400)],
        "b": [record(2), record(6)],
    }
    labels = {"a": "first", "b": "second", "plain": "without", "c": "third"}
    assert list(dds._counted(records, labels).items()) == [
        ("first", {"encode_rtps_message": 100.0}),
        ("second", {"encode_rtps_message": 1.0}),
        ("third", {"encode_rtps_message": 200.0}),
    ]

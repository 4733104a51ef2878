# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Our cryptographic plugin and Cyclone's builtin one, in two ddsperf processes that talk to each
other; the wire is looked at in a capture."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import cyclone, dds_matrix, needs
from support.cyclone import BUILTIN, PLAIN_SAMPLE, End, Outcome, ours
from support.dds_matrix import GOVERNANCE, TOPIC
from support.dds_nonces import Header, datagrams, headers
from warifu.dds.governance import Governance
from warifu.dds.keystore import Enclave, create

pytestmark = [needs.root, needs.program("ddsperf"), needs.program("tcpdump")]

AES_GCM = bytes([0, 0, 0, 4])
"""The transformation kind with keys of 256 bit (DDS Security 1.1, section 9.5.2.1.1)."""

GOVERNANCES = (
    "all-signed",
    "all-encrypted",
    "signed-by-origin",
    "encrypted-by-origin",
    "samples-and-submessages",
    "samples-alone",
    "submessages-alone",
    "messages-alone",
    "as-sros2",
)

Talk = Callable[[End, End], Outcome]
Keys = Callable[[Governance], tuple[Enclave, Enclave]]


@pytest.fixture(scope="module")
def network() -> Iterator[str]:
    with cyclone.network() as name:
        yield name


@pytest.fixture
def talk(network: str, tmp_path: Path) -> Talk:
    count = iter(range(100))
    return lambda writer, reader: cyclone.talk(
        network, tmp_path / f"run-{next(count)}", writer, reader
    )


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    def make(governance: Governance) -> tuple[Enclave, Enclave]:
        now = datetime.datetime.now(datetime.UTC)
        made = create(tmp_path / "keys", ["/writer", "/reader"], governance, now=now)
        return made["/writer"], made["/reader"]

    return make


def sent_nothing(outcome: Outcome) -> bool:
    """No sample arrived, none was sent in plain text, and no topic was announced so."""
    in_plain_text = PLAIN_SAMPLE in outcome.wire or TOPIC["cyclone"] in outcome.wire
    return outcome.samples == 0 and not in_plain_text


def said(outcome: Outcome) -> str:
    return f"writer:\n{outcome.writer_log[-2000:]}\nreader:\n{outcome.reader_log[-2000:]}"


def test_samples_are_readable_in_a_capture_of_plain_text(talk: Talk) -> None:
    outcome = talk(End(), End())
    assert outcome.works, said(outcome)
    assert PLAIN_SAMPLE in outcome.wire


@pytest.mark.parametrize("name", GOVERNANCES)
def test_ours_talks_with_the_builtin_plugin(network: str, tmp_path: Path, name: str) -> None:
    cells = dds_matrix.with_cyclone(network, tmp_path, name)
    # Cyclone's own with itself first: what fails there says nothing about ours.
    control = next(cells)
    assert control.role == dds_matrix.CONTROL
    assert control.works, f"not judgeable: {control.said}"
    seen = [control.role]
    for cell in cells:
        assert cell.works, f"{cell.role}: {cell.said}"
        assert cell.problems == (), f"{cell.role}: {cell.said}"
        seen.append(cell.role)
    assert seen == [dds_matrix.CONTROL, "writes", "reads", "both"]


@pytest.mark.parametrize("aead", cyclone.INIT)
def test_each_aead_runs_and_is_on_the_wire(talk: Talk, keys: Keys, aead: str) -> None:
    governance = GOVERNANCE["encrypted-by-origin"]
    writer, reader = keys(governance)
    outcome = talk(End(writer, ours(aead)), End(reader, ours(aead)))
    assert outcome.works, said(outcome)
    assert PLAIN_SAMPLE not in outcome.wire
    kinds = {
        "AES-128-GCM": bytes([0, 0, 0, 2]),
        "AES-256-GCM": AES_GCM,
        "AEGIS-128L": b"wa\x01\x01",
        "AEGIS-256": b"wa\x02\x01",
        "Ascon-AEAD128": b"wa\x03\x01",
        "Deoxys-II-128-128": b"wa\x04\x01",
        "ChaCha20-Poly1305": b"wa\x05\x01",
    }
    assert outcome.wire.count(kinds[aead]) > 100
    # Keys are exchanged under the standard's cipher, whichever is chosen for all else.
    assert AES_GCM in outcome.wire


def test_aes_of_128_bit_talks_with_the_builtin_plugins_256(talk: Talk, keys: Keys) -> None:
    writer, reader = keys(GOVERNANCE["all-encrypted"])
    outcome = talk(End(writer, ours("AES-128-GCM")), End(reader, BUILTIN))
    assert outcome.works, said(outcome)


@pytest.mark.parametrize("peer", ["AES-256-GCM", "AEGIS-256", "builtin"])
def test_unlike_ciphers_match_nothing_and_say_why(talk: Talk, keys: Keys, peer: str) -> None:
    writer, reader = keys(GOVERNANCE["all-encrypted"])
    plugin = BUILTIN if peer == "builtin" else ours(peer)
    outcome = talk(End(writer, ours("AEGIS-128L")), End(reader, plugin))
    assert sent_nothing(outcome), said(outcome)
    assert (outcome.writer_code, outcome.reader_code) != (0, 0)
    theirs = "Warifu:Crypto:AEGIS-256" if peer == "AEGIS-256" else "DDS:Crypto:AES_GCM_GMAC"
    assert f"of class {theirs}, ours of Warifu:Crypto:AEGIS-128L" in outcome.writer_log
    assert "Failed to set remote participant crypto tokens" in outcome.reader_log


def test_a_cipher_that_nobody_knows_ends_the_participant(talk: Talk, keys: Keys) -> None:
    writer, reader = keys(GOVERNANCE["all-encrypted"])
    path, _ = ours()
    unknown = End(writer, (path, "init_crypto"), (("WARIFU_DDS_AEAD", "ROT-13"),))
    outcome = talk(unknown, End(reader, ours()))
    assert outcome.writer_code != 0
    lines = [line for line in outcome.writer_log.splitlines() if "ROT-13" in line]
    assert len(lines) == 1, said(outcome)
    assert "WARIFU_DDS_AEAD" in lines[0]
    assert "AEGIS-128L" in lines[0], "the line names what there is"
    assert sent_nothing(outcome)


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        (("/no/such/plugin.so", "init_crypto"), "/no/such/plugin.so: cannot open shared object"),
        ((None, "init_nothing"), "Could not find the function: init_nothing"),
    ],
    ids=["path", "function"],
)
def test_a_wrong_plugin_ends_the_participant(
    talk: Talk, keys: Keys, wrong: tuple[str | None, str], cause: str
) -> None:
    writer, reader = keys(GOVERNANCE["all-encrypted"])
    path, init = wrong
    outcome = talk(End(writer, (path or ours()[0], init)), End(reader, ours()))
    assert outcome.writer_code != 0
    assert [cause in line for line in outcome.writer_log.splitlines()].count(True) == 1
    assert sent_nothing(outcome), said(outcome)


def test_a_certificate_of_another_ca_matches_nothing(
    talk: Talk, keys: Keys, tmp_path: Path
) -> None:
    governance = GOVERNANCE["all-encrypted"]
    writer, _ = keys(governance)
    now = datetime.datetime.now(datetime.UTC)
    (stranger,) = create(tmp_path / "other", ["/reader"], governance, now=now).values()
    outcome = talk(End(writer, ours()), End(stranger, ours()))
    assert 0 not in (outcome.writer_code, outcome.reader_code)
    assert sent_nothing(outcome), said(outcome)
    # Whose handshake is answered follows from the GUIDs; each attempt is a line.
    causes = [
        line
        for line in (outcome.writer_log + outcome.reader_log).splitlines()
        if "Certificate not valid: error: certificate signature failure" in line
    ]
    assert causes, said(outcome)
    assert all("subject: /CN=" in line for line in causes)


def test_expired_permissions_end_the_participant(talk: Talk, tmp_path: Path) -> None:
    governance = GOVERNANCE["all-encrypted"]
    today = datetime.datetime.now(datetime.UTC)
    long_ago = today - datetime.timedelta(days=30)
    # Certificates are valid from today on; permissions were for ten days, a month ago.
    made = create(tmp_path / "keys", ["/writer", "/reader"], governance, now=long_ago, days=10)
    outcome = talk(End(made["/writer"], ours()), End(made["/reader"], ours()))
    assert 0 not in (outcome.writer_code, outcome.reader_code), said(outcome)
    for log, name in ((outcome.writer_log, "/writer"), (outcome.reader_log, "/reader")):
        cause = f"Permissions validity period expired for CN={name} (expired: "
        assert [cause in line for line in log.splitlines()].count(True) == 1, said(outcome)
    assert sent_nothing(outcome)


@pytest.mark.parametrize("aead", ["AES-256-GCM", "AEGIS-128L"])
def test_no_nonce_and_no_ciphertext_returns_after_a_restart(
    talk: Talk, keys: Keys, aead: str
) -> None:
    ends = [End(enclave, ours(aead)) for enclave in keys(GOVERNANCE["samples-alone"])]
    runs = []
    for _ in range(2):
        outcome = talk(*ends)
        assert outcome.works, said(outcome)
        runs.append(payloads(outcome.wire))
    first, second = runs
    # ddsperf writes the same samples again: a number, a key, and octets of 0xee.
    for of in (first, second):
        assert len(of) >= 100
        assert len({(one.sender, one.key_id, one.session, one.count) for one in of}) == len(of)
        assert len({one.sender for one in of}) == 2
    for what in ("sender", "digest"):
        assert not {getattr(one, what) for one in first} & {getattr(one, what) for one in second}
    # Nonces begin at random, so that they would not return even if keys did.
    nonces = [{(one.session, one.count) for one in of} for of in runs]
    assert not nonces[0] & nonces[1]
    assert not {session for session, _ in nonces[0]} & {session for session, _ in nonces[1]}


def payloads(wire: bytes) -> list[Header]:
    """Those of protected payloads, each once: a capture may have a multicast datagram twice."""
    found = (header for message in datagrams(wire) for header in headers(message))
    return list(dict.fromkeys(header for header in found if header.site == "payload"))


def test_sessions_are_renewed_while_the_builtin_plugin_reads(talk: Talk, keys: Keys) -> None:
    writer, reader = keys(GOVERNANCE["all-encrypted"])
    path, _ = ours()
    often = (("WARIFU_DDS_MAX_BLOCKS_PER_SESSION", "100"),)
    for ends in (
        (End(writer, (path, "init_crypto"), often), End(reader, BUILTIN)),
        (End(writer, BUILTIN), End(reader, (path, "init_crypto"), often)),
    ):
        outcome = talk(*ends)
        assert outcome.works, said(outcome)


def test_calls_bytes_and_times_are_counted_by_function(
    talk: Talk, keys: Keys, tmp_path: Path
) -> None:
    writer, reader = keys(GOVERNANCE["all-encrypted"])
    path, _ = ours()
    file = tmp_path / "counters.jsonl"
    counted = (("WARIFU_DDS_COUNTERS", str(file)), ("WARIFU_DDS_AEAD", "AEGIS-128L"))
    plugin = (path, "init_crypto")
    outcome = talk(End(writer, plugin, counted), End(reader, plugin, counted))
    assert outcome.works, said(outcome)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert len({row["process"] for row in rows}) == 2
    assert {row["aead"] for row in rows} == {"AEGIS-128L"}
    for site in ("serialized_payload", "datawriter_submessage", "rtps_message"):
        sent = [row for row in rows if row["site"] == f"encode_{site}"]
        read = [row for row in rows if row["site"] == f"decode_{site}"]
        assert len(sent) == len(read) == 2, "both write, and both read"
        for row in (*sent, *read):
            assert row["calls"] >= outcome.round_trips
            assert row["bytes"] > row["calls"]
            assert row["time_ns"] > row["calls"]
    # 256 B of a sample, at least.
    (most,) = sorted(row["bytes"] for row in rows if row["site"] == "encode_serialized_payload")[1:]
    assert most > outcome.samples * 256
    refused = {cause: sum(row["refused"][cause] for row in rows) for cause in rows[0]["refused"]}
    assert {cause: refused[cause] for cause in ("malformed", "forged", "replayed")} == {
        "malformed": 0,
        "forged": 0,
        "replayed": 0,
    }

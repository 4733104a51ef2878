# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu dds profile` on real middlewares with ROS 2's topic, type and keystore: what it counts
is what was sent."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import cyclone as cyclone_dds
from support import dds_probes, needs
from support.dds_probes import MARK, Pair
from warifu import Results
from warifu.dds.governance import Basic, Governance, Protection
from warifu.dds.keystore import Enclave, create
from warifu.dds.middlewares import cyclone_folders
from warifu.tools import find

pytestmark = [needs.root, needs.program("tcpdump"), needs.program("ip")]
fast_dds = needs.file(
    Path("/usr/include/fastdds/dds/domain/DomainParticipant.hpp"), "libfastrtps-dev"
)
cyclone = needs.file(Path("/usr/include/dds/dds.h"), "cyclonedds-dev")

_PROFILE = [sys.executable, "-m", "warifu.cli", "dds", "profile", "--format", "json"]
_NONE, _SIGN, _ENCRYPT = Protection.NONE, Protection.SIGN, Protection.ENCRYPT
DATA = Governance(Basic.ENCRYPT, _NONE, _NONE, _NONE, _NONE)
DATA_AND_METADATA = Governance(Basic.ENCRYPT, _ENCRYPT, _NONE, _NONE, _NONE)
SROS2 = Governance()
COUNT = 300

Keys = Callable[[Governance], tuple[Enclave, Enclave]]


@pytest.fixture(scope="module")
def fast(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dds_probes.build(tmp_path_factory.mktemp("probes"), "fastdds-probe")


@pytest.fixture(scope="module")
def cyclone_probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dds_probes.build(tmp_path_factory.mktemp("probes"), "cyclonedds-probe")


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    def make(governance: Governance) -> tuple[Enclave, Enclave]:
        now = datetime.datetime.now(datetime.UTC)
        made = create(
            tmp_path / "keys", ["/talker", "/listener"], governance, now=now, days=1
        )  # fmt: skip
        return made["/talker"], made["/listener"]

    return make


def _enclave(enclave: Enclave | None) -> list[str | Path]:
    return [] if enclave is None else ["--enclave", enclave.folder]


def _talk(
    probe: Path,
    ends: tuple[Enclave | None, Enclave | None],
    *,
    profile: list[str] | None = None,
    bytes_each: int = 16,
    capture: Path | None = None,
    environment: dict[str, str] | None = None,
    timeout: int = 10,
) -> Pair:
    common = ["--bytes", str(bytes_each), "--count", str(COUNT), "--timeout", str(timeout)]
    wrapped = [*_PROFILE, *(profile or []), "--"]
    return dds_probes.run(
        [*wrapped, probe, "publish", *common, *_enclave(ends[0])],
        [probe, "subscribe", *common, *_enclave(ends[1])],
        capture=capture,
        environment=environment,
    )


def _tables(pair: Pair) -> list[dict[str, Any]]:
    """Those of the profiled end, before what the other end says."""
    whole, _ = json.JSONDecoder().raw_decode(pair.out)
    return list(whole["tables"])


def _rows(pair: Pair, title: str) -> list[dict[str, Any]]:
    (table,) = (table for table in _tables(pair) if title in table["title"])
    return list(table["rows"])


def _calls(pair: Pair, *functions: str, operation: str = "encrypt") -> int:
    """Operations of the sites whose chains hold these functions."""
    rows = [row for row in _rows(pair, "by call site") if row["operation"] == operation]
    return sum(row["calls"] for row in rows if all(name in row["site"] for name in functions))


@fast_dds
def test_fast_dds_encrypts_the_payload_of_each_message_once(fast: Path, keys: Keys) -> None:
    pair = _talk(fast, keys(DATA), profile=["--top", "99"])
    assert pair.code == 0, pair.err
    assert pair.reports["publish"]["sent"] == COUNT
    assert pair.reports["subscribe"]["received"] == COUNT
    assert _calls(pair, "encode_serialized_payload") == COUNT
    by_kind = {row["operation"]: row for row in _rows(pair, "first message to the last")}
    assert by_kind["encrypt"]["messages"] == COUNT
    assert by_kind["encrypt"]["in_write"] == COUNT
    # One nonce each, from OpenSSL's generator.
    assert by_kind["random"]["in_write"] == COUNT
    # CDR: encapsulation (4), length (4), the string with its zero (16).
    assert by_kind["encrypt"]["bytes"] == COUNT * 24


@fast_dds
def test_fast_dds_encrypts_submessages_as_well_with_metadata(fast: Path, keys: Keys) -> None:
    pair = _talk(fast, keys(DATA_AND_METADATA), profile=["--top", "99"])
    assert pair.code == 0, pair.err
    assert _calls(pair, "encode_serialized_payload") == COUNT
    # What is sent of each message, and again of what was lost or asked for.
    assert _calls(pair, "encode_datawriter_submessage", "add_data") >= COUNT
    (answer,) = (table["title"] for table in _tables(pair) if "messages, each" in table["title"])
    assert f"Fast DDS 2.9.1: {COUNT} messages, each " in answer
    inside = {row["operation"]: row["in_write"] for row in _rows(pair, "first message to the last")}
    # The payload, INFO_TS and DATA with each; HEARTBEAT with some, by the time since the last.
    assert 3 * COUNT <= inside["encrypt"] <= 4 * COUNT


@fast_dds
def test_fast_dds_as_sros2_signs_each_rtps_message(fast: Path, keys: Keys) -> None:
    pair = _talk(fast, keys(SROS2), profile=["--top", "99"])
    assert pair.code == 0, pair.err
    assert pair.reports["subscribe"]["received"] == COUNT
    assert _calls(pair, "encode_serialized_payload") == COUNT
    assert _calls(pair, "encode_rtps_message", operation="mac") >= COUNT
    # Discovery and handshake came before.
    assert (
        _calls(pair, "process_handshake", operation="sign")
        + _calls(pair, "begin_handshake", operation="sign")
        + _calls(pair, "PKIDH", operation="sign")
        > 0
    )


@fast_dds
def test_fast_dds_without_security_is_told_so(fast: Path, tmp_path: Path) -> None:
    capture = tmp_path / "plain.pcap"
    pair = _talk(fast, (None, None), bytes_each=64, capture=capture)
    assert pair.code == 0, pair.err
    (answer,) = _tables(pair)
    assert (
        "NO SECURITY: Fast DDS 2.9.1 could, and this program does not ask for it"
        in (answer["title"])
    )
    assert f"{COUNT} messages were published in plain text" in answer["title"]
    assert answer["rows"][0]["encrypt"] == 0
    # On a busy machine tcpdump may miss some.
    assert capture.read_bytes().count(MARK) > COUNT / 2


@fast_dds
@pytest.mark.parametrize(
    ("governance", "says"),
    [
        pytest.param(
            Governance(Basic.NONE, _NONE, _NONE, _ENCRYPT, _ENCRYPT),
            "NOT PROTECTED: Fast DDS 2.9.1 authenticated its peers",
            id="discovery-alone",
        ),
        pytest.param(
            Governance(Basic.NONE, _NONE, _SIGN, _NONE, _NONE),
            f"SIGNED, NOT ENCRYPTED: Fast DDS 2.9.1: {COUNT} messages",
            id="signed",
        ),
    ],
)
def test_security_that_does_not_encrypt_messages_is_told_so(
    fast: Path, keys: Keys, governance: Governance, says: str
) -> None:
    pair = _talk(fast, keys(governance))
    assert pair.code == 0, pair.err
    assert pair.reports["subscribe"]["received"] == COUNT
    assert says in _tables(pair)[0]["title"]


@fast_dds
def test_wire_of_what_is_said_to_be_encrypted_has_no_plain_text(
    fast: Path, keys: Keys, tmp_path: Path
) -> None:
    capture = tmp_path / "secured.pcap"
    pair = _talk(fast, keys(DATA), bytes_each=64, capture=capture)
    assert pair.code == 0, pair.err
    # It holds the messages: each has 64 B in it, and a header of its own.
    assert len(capture.read_bytes()) > COUNT / 2 * (64 + 42)
    assert MARK not in capture.read_bytes()


@fast_dds
def test_swapped_ends_understand_each_other_and_no_other_end(fast: Path, keys: Keys) -> None:
    ends = keys(DATA_AND_METADATA)
    swapped = {
        "LD_PRELOAD": str(find("libwarifu_evp_probe.so")),
        "WARIFU_EVP_SWAP": "aegis-128l",
    }
    both = _talk(fast, ends, profile=["--swap", "aegis-128l"], environment=swapped)
    assert both.code == 0, both.err
    assert both.reports["subscribe"]["received"] == COUNT
    (answer,) = (table for table in _tables(both) if "messages, each" in table["title"])
    assert any("EXPERIMENT: aegis-128l" in note for note in answer["notes"])
    one = _talk(fast, ends, profile=["--swap", "aegis-128l"], timeout=4)
    assert one.reports.get("subscribe", {}).get("received", 0) == 0


@cyclone
def test_cyclone_encrypts_the_payload_of_each_message_once(cyclone_probe: Path, keys: Keys) -> None:
    pair = _talk(cyclone_probe, keys(DATA), environment=_plugins())
    assert pair.code == 0, pair.err
    assert pair.reports["subscribe"]["received"] == COUNT
    by_kind = {row["operation"]: row for row in _rows(pair, "first message to the last")}
    assert by_kind["encrypt"]["in_write"] == COUNT
    (answer,) = (table["title"] for table in _tables(pair) if "messages, each" in table["title"])
    assert f"Cyclone DDS 0.10.2: {COUNT} messages, each 1.00 encryptions" in answer


@needs.program("ddsperf")
def test_messages_that_ddsperf_batches_have_what_their_flush_asks_for(
    keys: Keys, tmp_path: Path
) -> None:
    """RTPS messages are encrypted as they are sent, which ddsperf's writer does by a flush."""
    ends = keys(Governance(Basic.NONE, _NONE, _ENCRYPT, _NONE, _NONE))
    files = [tmp_path / "talker.xml", tmp_path / "listener.xml"]
    for file, enclave in zip(files, ends, strict=True):
        file.write_text(cyclone_dds.configuration(cyclone_dds.End(enclave)))
    ddsperf = find("ddsperf")
    publish = [ddsperf, "-D", "3", "-Qminmatch:1", "-Qmaxwait:5", "pub", "100Hz", "size", "256"]
    with cyclone_dds.network() as network:
        listener = cyclone_dds.start(
            network, files[1], tmp_path / "listener.log", [ddsperf, "-D", "60", "sub"]
        )
        done = subprocess.run(
            [find("ip"), "netns", "exec", network, *_PROFILE, "--", *publish],
            env=os.environ | _plugins() | {"CYCLONEDDS_URI": f"file://{files[0]}"},
            text=True, capture_output=True, timeout=120, check=False,
        )  # fmt: skip
        listener.terminate()
        listener.wait(10)
    assert done.returncode == 0, done.stderr
    tables = json.loads(done.stdout)["tables"]
    (rows,) = (
        table["rows"] for table in tables if "first message to the last" in table["title"]
    )  # fmt: skip
    (encrypted,) = (row for row in rows if row["operation"] == "encrypt")
    assert encrypted["messages"] >= 100
    # Some are ddsperf's own, of which a few go to nobody.
    assert encrypted["in_write"] >= 0.8 * encrypted["messages"]
    assert encrypted["in_write_ns"] > 0.5 * encrypted["ns"]
    assert 0.8 * encrypted["messages"] <= tables[0]["rows"][0]["flushes"]
    assert tables[0]["rows"][0]["flushes"] <= encrypted["messages"]


@cyclone
def test_plugin_of_warifu_says_what_it_was_called_for(
    cyclone_probe: Path, keys: Keys, tmp_path: Path
) -> None:
    plugin = ["--crypto", f"{find('libwarifu_dds_crypto.so')}:init_crypto"]
    ends = keys(DATA_AND_METADATA)
    out = ["--out", str(tmp_path / "seen")]
    publish = ["publish", "--count", "50", "--bytes", "1024"]
    pair = dds_probes.run(
        [*_PROFILE, *out, "--", cyclone_probe, *publish, *_enclave(ends[0]), *plugin],
        [cyclone_probe, "subscribe", "--count", "50", "--timeout", "10", *_enclave(ends[1])],
        environment=_plugins(),
    )
    assert pair.code == 0, pair.err
    assert pair.reports["subscribe"]["received"] == 50
    title = _tables(pair)[0]["title"]
    assert "Cyclone DDS 0.10.2 with Warifu's plugin (AES-256-GCM): 50 messages, and" in title
    assert "for each 1.00 payloads, " in title
    assert "0 refused." in title
    rows = {row["function"]: row for row in _rows(pair, "by function of Warifu's plugin")}
    payloads = rows["encode_serialized_payload"]
    # CDR: encapsulation (4), length (4), the string with its zero.
    assert (payloads["calls"], payloads["bytes"]) == (50, 50 * (4 + 4 + 1024))
    assert payloads["ns"] > 0
    # Each again, as a submessage; heartbeats beside.
    assert rows["encode_datawriter_submessage"]["bytes"] > 50 * 1024
    results = Results.open(tmp_path / "seen")
    (case,) = results.cases
    frame = results.rows(case)
    for metric, value in (("calls", 50.0), ("bytes", 50.0 * 1032), ("refused", 0.0)):
        at_site = frame.filter(
            (frame["metric"] == f"dds.plugin.{metric}")
            & (frame["stage"] == "encode_serialized_payload")
        )
        assert at_site["value"].to_list() == [value]


@cyclone
def test_cyclone_without_security_is_told_so(cyclone_probe: Path) -> None:
    pair = _talk(cyclone_probe, (None, None))
    assert pair.code == 0, pair.err
    (answer,) = _tables(pair)
    assert "NO SECURITY: Cyclone DDS 0.10.2 could" in answer["title"]


@fast_dds
@cyclone
def test_round_trips_are_timed_and_answered(fast: Path, cyclone_probe: Path) -> None:
    for probe in (fast, cyclone_probe):
        pair = dds_probes.run(
            [probe, "ping", "--count", "50"], [probe, "pong", "--count", "50", "--timeout", "5"]
        )
        assert pair.code == 0, pair.err
        ping, pong = pair.reports["ping"], pair.reports["pong"]
        assert (ping["sent"], ping["received"], pong["received"]) == (50, 50, 50)
        assert pong["one_way_ns"]["minimum"] < ping["round_trip_ns"]["minimum"]


@fast_dds
@cyclone
def test_both_probes_speak_the_same_topic_and_type(fast: Path, cyclone_probe: Path) -> None:
    pair = dds_probes.run(
        [fast, "publish", "--count", "50"],
        [cyclone_probe, "subscribe", "--count", "50", "--timeout", "5"],
    )
    assert pair.code == 0, pair.err
    assert pair.reports["subscribe"]["received"] == 50


def _plugins() -> dict[str, str]:
    """Debian has Cyclone's plugins in a folder of their own."""
    return {"LD_LIBRARY_PATH": ":".join(map(str, cyclone_folders()))}


@fast_dds
@cyclone
def test_program_whose_files_are_refused_is_not_said_to_ask_for_nothing(
    fast: Path, cyclone_probe: Path, keys: Keys
) -> None:
    """No participant is made, so that nothing is sent."""
    enclave, _ = keys(SROS2)
    signed = enclave.permissions.read_bytes()
    enclave.permissions.write_bytes(signed.replace(b"<topic>*<", b"<topic>x<", 1))
    for probe in (fast, cyclone_probe):
        done = subprocess.run(
            [*_PROFILE, "--", probe, "publish", "--timeout", "1", "--enclave", enclave.folder],
            env=os.environ | _plugins(), text=True, capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 2, done.stderr
        title = json.loads(done.stdout)["tables"][0]["title"]
        assert "SECURITY ASKED FOR, NOTHING PROTECTED: " in title
        assert "it refused its own files" in title
        assert "The command ended with exit code 2." in title


@cyclone
def test_plugin_of_warifu_without_protection_or_with_an_experiment_is_told_first(
    cyclone_probe: Path, keys: Keys
) -> None:
    plugin = ["--crypto", f"{find('libwarifu_dds_crypto.so')}:init_crypto"]
    publish = ["publish", "--count", "150", "--timeout", "10"]
    subscribe = ["subscribe", "--count", "150", "--timeout", "10"]

    def title(governance: Governance, aead: str) -> str:
        ends = keys(governance)
        pair = dds_probes.run(
            [*_PROFILE, "--", cyclone_probe, *publish, *_enclave(ends[0]), *plugin],
            [cyclone_probe, *subscribe, *_enclave(ends[1]), *plugin],
            environment=_plugins() | {"WARIFU_DDS_AEAD": aead},
        )
        assert pair.code == 0, pair.err
        assert pair.reports["subscribe"]["received"] == 150
        return str(_tables(pair)[0]["title"])

    alone = title(Governance(Basic.NONE, _NONE, _NONE, _ENCRYPT, _ENCRYPT), "AES-256-GCM")
    assert "NOT PROTECTED: Cyclone DDS 0.10.2 with Warifu's plugin (AES-256-GCM)" in alone
    assert "of 150 messages none was encrypted or signed" in alone
    experiment = title(SROS2, "AEGIS-128L")
    assert "EXPERIMENT, Cyclone DDS 0.10.2 with Warifu's plugin (AEGIS-128L), no st" in experiment
    assert "NOT PROTECTED" not in experiment

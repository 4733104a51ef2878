# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The first line of a profile, by what a process did."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from warifu.dds.counters import Count
from warifu.dds.profiling import Process
from warifu.dds.recording import OPERATIONS, Recording, Site
from warifu.dds.verdict import verdict

# Files that are not there: what cannot be read is not judged to be without security.
CYCLONE = "/nowhere/libddsc.so.0.10.2"
FAST = "/nowhere/libfastrtps.so.2.9.1"
AUTHENTICATION = "/nowhere/libdds_security_auth.so"
PLUGIN = "/nowhere/libwarifu_dds_crypto.so"
_TOTALS = ("operations", "failed", "bytes", "aad_bytes", "ns", "in_message", "in_message_ns")
_PARTS = ("encode_serialized_payload", "encode_datawriter_submessage", "encode_rtps_message")


def process(
    libraries: tuple[str, ...],
    *,
    messages: int = 0,
    each: Mapping[str, int] | None = None,
    sites: Mapping[str, str] | None = None,
    plugin: Mapping[str, int] | None = None,
    aead: str = "AES-256-GCM",
    swap: str = "",
) -> Process:
    """`each` are operations of a message, `sites` who asked for an operation of a kind once,
    `plugin` calls of the plugin's functions."""
    zero = dict.fromkeys(_TOTALS, 0)
    now = {kind: zero | {"operations": (each or {}).get(kind, 0) * messages} for kind in OPERATIONS}
    none = dict.fromkeys(OPERATIONS, zero)
    numbers = dict.fromkeys(("pid", "messages_ns", "foreign_calls"), 0) | {"messages": messages}
    recording = Recording(
        "/bin/talker", "release", swap, numbers,
        {"now": now, "first_message": none, "last_message": now}, libraries,
        tuple(
            Site(kind, "?", (frame,), {"operations": 1}, ())
            for kind, frame in (sites or {}).items()
        ),
        (),
    )  # fmt: skip
    counts = tuple(Count(0, aead, site, n, 0, 0, {}) for site, n in (plugin or {}).items())
    return Process(recording, libraries, counts)


def test_plugin_that_is_called_for_no_message_is_not_protected() -> None:
    discovery = {"encode_datawriter_submessage": 24, "encode_datareader_submessage": 31}
    said = verdict(process((CYCLONE, PLUGIN), messages=1000, plugin=discovery))
    assert said.startswith("NOT PROTECTED: Cyclone DDS")
    assert "of 1,000 messages none was encrypted or signed" in said
    assert "nobody had keys" not in said
    assert "nobody had keys" in verdict(
        process((CYCLONE, PLUGIN), messages=60, plugin={} | {"decode_rtps_message": 3})
    )


@pytest.mark.parametrize("site", _PARTS)
def test_plugin_that_is_called_for_each_message_is_said_to_protect(site: str) -> None:
    said = verdict(process((CYCLONE, PLUGIN), messages=1000, plugin={site: 1004}))
    assert "NOT PROTECTED" not in said
    assert "1,000 messages, and for each 1.00 " in said
    assert "EXPERIMENT" not in said


def test_few_messages_are_not_told_from_discovery() -> None:
    plugin = {"encode_datawriter_submessage": 24}
    said = verdict(process((CYCLONE, PLUGIN), messages=10, plugin=plugin))
    assert "it is not known whether these were protected" in said
    plugin["encode_serialized_payload"] = 10
    assert "not known" not in verdict(process((CYCLONE, PLUGIN), messages=10, plugin=plugin))


@pytest.mark.parametrize("aead", ["AEGIS-128L", "AES-256-GCM, Ascon-AEAD128", "ChaCha20-Poly1305"])
@pytest.mark.parametrize("messages", [0, 1000])
def test_experiment_is_named_in_the_first_line(aead: str, messages: int) -> None:
    plugin = {"encode_rtps_message": 1000}
    said = verdict(process((CYCLONE, PLUGIN), messages=messages, plugin=plugin, aead=aead))
    assert said.startswith("EXPERIMENT, ")
    assert f"({aead}), no standard of DDS Security" in said


def test_swap_is_named_in_the_first_line_of_any_verdict() -> None:
    for one in (process((FAST,), swap="aegis-256"), process((), swap="aegis-256")):
        assert verdict(one).startswith("EXPERIMENT, aegis-256 in the place of AES-GCM: ")


def test_secured_program_that_met_nobody_is_not_called_unsecured() -> None:
    made_keys = {"random": "libfastrtps.so.2.9!AESGCMGMAC_KeyFactory::create_key"}
    for one in (
        process((FAST,), sites=made_keys),
        process((CYCLONE, AUTHENTICATION)),
        # Its certificate was checked, and its permissions were not valid.
        process((FAST,), sites={"verify": "libcrypto.so.3!X509_verify"}),
    ):
        said = verdict(one)
        assert said.startswith("SECURITY ASKED FOR, NOTHING PROTECTED: ")
        assert "no message of it was seen" in said
        assert "plain text" not in said
    said = verdict(process((FAST,), sites=made_keys, messages=9))
    assert said.startswith("NOT PROTECTED: Fast DDS")
    assert "authenticated nobody; 9 messages were published" in said


def test_cryptography_of_the_program_is_not_its_middlewares() -> None:
    tls = {"encrypt": "libcurl.so.4!connect", "random": "talker+0x12"}
    said = verdict(process((FAST,), sites=tls, messages=9, each={"encrypt": 0}))
    assert said.startswith("NO SECURITY: Fast DDS")
    assert "9 messages were published in plain text" in said


@pytest.mark.parametrize(
    ("each", "says"),
    [
        ({"encrypt": 3, "mac": 1}, "Fast DDS 2.9.1: 50 messages, each 3.00 encryptions"),
        ({"mac": 1}, "SIGNED, NOT ENCRYPTED: Fast DDS 2.9.1: 50 messages"),
        ({}, "NOT PROTECTED: Fast DDS 2.9.1 authenticated its peers"),
    ],
)
def test_governance_is_told_by_what_messages_had(each: Mapping[str, int], says: str) -> None:
    sites = {"mac": "libfastrtps.so.2.9!PKIDH::process_handshake_request"}
    assert verdict(process((FAST,), messages=50, each=each, sites=sites)).startswith(says)

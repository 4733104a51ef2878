# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the lab can run of DDS."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from support.laboratory import make_case, make_dds_case
from warifu.dds.governance import Basic, Governance, Protection
from warifu.lab.dds import place as place_module
from warifu.lab.dds.cyclone import configuration
from warifu.lab.dds.driver import rate
from warifu.lab.dds.end import MIDDLEWARE
from warifu.lab.dds.exchange import Exchange
from warifu.lab.dds.place import Place, missing_buffers
from warifu.lab.drivers import DRIVERS, why_not_measurable
from warifu.lab.errors import LabError


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pattern__response_body": 15}, "pattern.response_body is 15: expected a sample of 16"),
        ({"pattern__response_body": 9 << 20}, "to 8388608 B"),
        ({"key_store__profile": "sim"}, "the keys of DDS participants are files here"),
        ({"pattern__concurrent": 2}, "pattern.concurrent is 2"),
    ],
)
def test_unmeasurable_dds_names_setting_and_reason(change: dict[str, Any], words: str) -> None:
    assert why_not_measurable(make_dds_case()) is None
    assert why_not_measurable(make_dds_case(stack__crypto="warifu")) is None
    reason = why_not_measurable(make_dds_case(**change), {"sim"})
    assert reason is not None
    assert words in reason
    assert "\n" not in reason


def test_exchange_of_a_case() -> None:
    exchange = Exchange.of(make_dds_case(stack__crypto="builtin").case)
    assert (exchange.topic, exchange.sample_bytes, exchange.is_secured) == ("chatter", 64, True)
    assert exchange.governance == Governance(), "SROS2's"
    assert not Exchange.of(make_dds_case().case).is_secured
    with pytest.raises(LabError, match="expected dds"):
        Exchange.of(make_case().case)


def test_governance_has_each_kind_of_the_case() -> None:
    changes = {
        "stack__crypto": "warifu",
        "stack__data_protection": "SIGN",
        "stack__metadata_protection": "NONE",
        "stack__rtps_protection": "ENCRYPT_WITH_ORIGIN_AUTHENTICATION",
        "stack__discovery_protection": "SIGN_WITH_ORIGIN_AUTHENTICATION",
    }
    assert Exchange.of(make_dds_case(**changes).case).governance == Governance(
        Basic.SIGN,
        Protection.NONE,
        Protection.ENCRYPT_WITH_ORIGIN_AUTHENTICATION,
        Protection.SIGN_WITH_ORIGIN_AUTHENTICATION,
        Protection.SIGN_WITH_ORIGIN_AUTHENTICATION,
    )


def test_configuration_names_both_ends_and_no_multicast() -> None:
    root = ElementTree.fromstring(configuration("10.9.0.1", "10.9.0.2"))
    (interface,) = root.iter("NetworkInterface")
    (peer,) = root.iter("Peer")
    assert (interface.get("address"), peer.get("address")) == ("10.9.0.1", "10.9.0.2")
    assert [one.text for one in root.iter("AllowMulticast")] == ["false"]


def test_fast_dds_has_addresses_and_no_profile_of_the_caller() -> None:
    case = make_dds_case(stack__middleware="fastdds", stack__crypto="builtin")
    assert why_not_measurable(case) is None
    middleware = MIDDLEWARE[Exchange.of(case.case).stack.middleware]
    place = Place(Path("/nowhere"), None, None, "10.9.0.1", "10.9.0.2")
    arguments = middleware.arguments(Exchange.of(case.case), None, place)
    assert arguments == ["--address", "10.9.0.1", "--peer", "10.9.0.2"]
    assert "FASTRTPS_DEFAULT_PROFILES_FILE" in middleware.without
    assert middleware.environment(Exchange.of(case.case), place) == {"SKIP_DEFAULT_XML_FILE": "1"}


def test_stream_has_a_rate_and_an_exchange_none() -> None:
    stream = make_dds_case(pattern__kind="stream", pattern__rate=250)
    assert Exchange.of(stream.case).rate == 250
    assert Exchange.of(make_dds_case().case).rate is None


@pytest.mark.parametrize(
    ("one_ways", "expected"),
    [({}, None), ({5: 1}, None), ({0: 10, 10: 0}, None), ({0: 5, 1_000_000_000: 5}, 1.0)],
)
def test_rate_is_counted_between_the_first_and_the_last(
    one_ways: dict[int, int], expected: float | None
) -> None:
    assert rate(one_ways) == expected


def test_small_socket_buffers_are_named_with_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place_module, "_LIMITS", tmp_path)
    (tmp_path / "rmem_max").write_text("212992\n")
    (tmp_path / "wmem_max").write_text("4194304\n")
    assert missing_buffers(64 << 10) is None
    words = missing_buffers(1 << 20)
    assert words is not None
    assert words.startswith("net.core.rmem_max is 212992: ")
    assert words.endswith("sysctl -w net.core.rmem_max=4194304")


def test_large_samples_are_bursts_and_are_said_to_be() -> None:
    driver = DRIVERS["dds"]
    large = make_dds_case(pattern__response_body=1 << 20)
    assert driver.is_burst(large)
    assert driver.remark(large) is not None
    assert not driver.is_burst(make_dds_case())
    assert driver.remark(make_dds_case()) is None

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the lab can run of DDS."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from support.laboratory import make_case, make_dds_case
from warifu.dds.governance import Basic, Governance, Protection
from warifu.lab.dds.cyclone import configuration
from warifu.lab.dds.exchange import Exchange
from warifu.lab.drivers import why_not_measurable
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

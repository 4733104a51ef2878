# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the lab can run of CoAP."""

from __future__ import annotations

from typing import Any

import pytest

from support.laboratory import make_case, make_coap_case
from warifu import _core
from warifu.lab.client import trials_of
from warifu.lab.coap.client import COLUMNS, STEPS, values
from warifu.lab.coap.exchange import Exchange
from warifu.lab.drivers import DRIVERS, driver_of, why_not_measurable
from warifu.lab.errors import LabError
from warifu.results import metrics


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pattern__path": "/time"}, "pattern.path is /time"),
        ({"pattern__path": "/"}, "pattern.path is /:"),
        ({"pattern__response_body": 2_000_000}, "pattern.response_body is 2000000"),
        ({"pattern__concurrent": 2}, "pattern.concurrent is 2"),
        ({"stack__ack_timeout": 500_000_000}, "stack.ack_timeout is 500 ms"),
        ({"stack__max_retransmit": 0}, "stack.max_retransmit is 0"),
        ({"stack__ack_random_factor_percent": 900}, "stack.ack_random_factor is 9.0"),
    ],
)
def test_unmeasurable_coap_names_setting_and_reason(change: dict[str, Any], words: str) -> None:
    assert why_not_measurable(make_coap_case()) is None
    reason = why_not_measurable(make_coap_case(**change))
    assert reason is not None
    assert words in reason
    assert "\n" not in reason


def test_key_store_without_security() -> None:
    sim = make_coap_case(key_store__profile="sim")
    assert "CoAP without security uses no key" in (why_not_measurable(sim, {"sim"}) or "")


def test_exchange_of_a_case() -> None:
    exchange = Exchange.of(make_coap_case(stack__message_type="NON").case)
    assert (exchange.confirmable, exchange.path, exchange.response_body_bytes) == (
        False,
        "/data",
        64,
    )
    assert (exchange.ack_timeout_ms, exchange.ack_random_factor) == (2_000, 1.5)
    assert exchange.give_up_seconds == 93.0
    with pytest.raises(LabError, match="expected coap"):
        Exchange.of(make_case().case)


@pytest.mark.parametrize("protocol", DRIVERS)
def test_driver_records_metrics_of_its_protocol(protocol: str) -> None:
    columns = DRIVERS[protocol].columns
    assert set(columns) <= {metric["name"] for metric in _core.metrics(protocol)}
    assert metrics.whole(protocol) in columns
    assert set(metrics.phases(protocol)) <= set(columns)


def test_parts_are_small() -> None:
    assert driver_of(make_coap_case()).trials_a_part == 250
    assert driver_of(make_case()).trials_a_part == 1_000


def test_columns_of_a_retransmitted_and_a_failed_exchange() -> None:
    row = {
        "trial": 0, "done_ns": 2_100_000_000, "first_ns": 2_099_000_000, "request_ns": 90_000,
        "sent": 20, "retransmitted_bytes": 10, "received": 70, "retransmitted": 1,
        "datagrams_sent": 2, "datagrams_received": 1,
    }  # fmt: skip
    columns = trials_of(
        [row, {"trial": 1, "error": "timeout"}], (*COLUMNS.values(), *STEPS), values
    ).columns
    assert columns["failed"] == [False, True]
    assert columns["exchange_ns"] == [2_100_000_000, 0]
    # A retransmission is no byte that the program wrote.
    assert columns["bytes_client_sent"] == [10, 0]
    assert columns["retransmitted"] == [1, 0]

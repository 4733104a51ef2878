# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the lab can run, how a cell is cut, and in which order."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laboratory import make_case

from warifu.lab import seeds
from warifu.lab.case import kernel_remark, parts_of, why_not_measurable
from warifu.lab.link import configuration, impairments
from warifu.lab.store import Part


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"device__profile": "gr-peach"}, "device is gr-peach"),
        ({"server__profile": "gr-peach"}, "server is gr-peach"),
        ({"key_store__profile": "iot-safe-sakomoto"}, "needs that card"),
        ({"pattern__concurrent": 4}, "pattern.concurrent is 4"),
        ({"link__mtu": 80}, "link.mtu is 80"),
    ],
)
def test_what_the_lab_cannot_run_is_named(change: dict[str, Any], words: str) -> None:
    assert why_not_measurable(make_case()) is None
    reason = why_not_measurable(make_case(**change))
    assert reason is not None
    assert words in reason
    assert "\n" not in reason


def test_another_kernel_is_remarked_on() -> None:
    running = ".".join(os.uname().release.split(".")[:2])
    assert kernel_remark(make_case(stack__kernel=f"linux-{running}")) is None
    remark = kernel_remark(make_case(stack__kernel="linux-2.4"))
    assert remark is not None
    assert "linux-2.4" in remark


@given(st.integers(0, 30_000), st.integers(1, 2_000))
def test_parts_add_up_and_are_even(trials: int, most: int) -> None:
    parts = parts_of(trials, most)
    assert sum(parts) == trials
    assert all(0 < part <= most for part in parts)
    assert max(parts, default=0) - min(parts, default=0) <= 1


@given(st.lists(st.integers(1, 5), max_size=8), st.integers(0, 2**64 - 1))
def test_rounds_hold_one_part_of_each_cell(lengths: list[int], seed: int) -> None:
    cells = [
        [Part(str(cell), index, 1, 0) for index in range(length)]
        for cell, length in enumerate(lengths)
    ]
    order = seeds.interleave(seed, cells)
    assert sorted(map(repr, order)) == sorted(repr(part) for cell in cells for part in cell)
    assert [part.first_trial for part in order] == sorted(part.first_trial for part in order)
    assert order == seeds.interleave(seed, cells)


def test_seeds_depend_on_case_and_part_alone() -> None:
    case = make_case()
    parts = seeds.cut(1, case, 3000, 1000)
    assert len({part.seed for part in parts}) == 3
    assert parts == seeds.cut(1, case, 3000, 1000)
    assert {part.seed for part in parts}.isdisjoint(
        part.seed for part in seeds.cut(1, make_case(link__rtt=1), 3000, 1000)
    )
    assert all(0 <= part.seed < 2**63 for part in parts)


def test_the_link_is_told_what_the_case_says() -> None:
    case = make_case(
        link__rtt=60_000_001,
        link__rate_up=250_000,
        link__jitter=[0, 5],
        link__keep_order=False,
        link__loss={
            "kind": "gilbert_elliott",
            "good_to_bad": 0.01,
            "bad_to_good": 0.3,
            "loss_good": 0.0,
            "loss_bad": 0.5,
        },
    )
    link = impairments(case.link)
    assert link["delay_a_to_b_ns"] + link["delay_b_to_a_ns"] == 60_000_001
    assert (link["rate_a_to_b_bps"], link["rate_b_to_a_bps"]) == (250_000, None)
    assert (link["jitter_ns"], link["keep_order"], link["queue_packets"]) == ([0, 5], False, 1000)
    assert link["loss"]["p_good_to_bad"] == 0.01
    config = configuration(case, "c", "s", 5)
    assert (config["congestion_control"], config["initcwnd"], config["seed"]) == ("cubic", 10, 5)

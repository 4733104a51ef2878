# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the lab can run, how a cell is cut, and in which order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.laboratory import make_case
from warifu import _core, study
from warifu.lab import seeds
from warifu.lab.case import (
    LEAST_TRIALS_OF_A_PART,
    MAX_TRIALS_A_PART,
    PARTS,
    Cell,
    parts_of,
    trials_a_part,
)
from warifu.lab.drivers import LEAST_MTU, driver_of, why_not_measurable
from warifu.lab.https.driver import kernel_remark
from warifu.lab.https.stack import CERTIFICATE_BYTES, https_of
from warifu.lab.kernel import running
from warifu.lab.link import configuration, impairments
from warifu.lab.store import Part
from warifu.results.parts import LEAST_PARTS


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"device__profile": "gr-peach"}, "device is gr-peach"),
        ({"server__profile": "gr-peach"}, "server is gr-peach"),
        ({"key_store__profile": "iot-safe-sakomoto"}, "names no virtual card"),
        ({"pattern__concurrent": 4}, "pattern.concurrent is 4"),
        ({"server__workers": 2}, "server.workers is 2"),
        ({"link__mtu": 80}, "link.mtu is 80"),
        ({"tls__server_certificate_bytes": [474]}, "stack.server_certificate_bytes is [474]"),
        ({"tls__client_certificate_bytes": [474]}, "stack.client_certificate_bytes is [474]"),
        ({"tls__chain_length": 2, "tls__server_certificate_bytes": [496, 465]}, "[496, 455] B"),
        ({"kernel__server": (2, 4, None)}, "server.tcp is linux-2.4, the TCP of Linux 2.4; this"),
        ({"kernel__device": None}, 'names no kernel: add kernel = "'),
    ],
)
def test_unmeasurable_cases_name_setting_and_reason(change: dict[str, Any], words: str) -> None:
    assert why_not_measurable(make_case()) is None
    reason = why_not_measurable(make_case(**change))
    assert reason is not None
    assert words in reason
    assert "\n" not in reason


def test_kernel_of_another_patch_level_or_version() -> None:
    same = make_case()
    assert (why_not_measurable(same), kernel_remark(same)) == (None, None)
    major, minor, _ = running()
    patched = make_case(kernel__server=(major, minor, 99999))
    assert why_not_measurable(patched) is None
    assert f"server.tcp is linux-{major}.{minor}.99999" in (kernel_remark(patched) or "")
    other = make_case(kernel__server=(major, minor * 10, None))
    assert f"only a TCP profile of Linux {major}.{minor} can" in (why_not_measurable(other) or "")


@pytest.mark.parametrize(
    "change",
    [
        {"tls__authentication": "server"},
        {"tls__server_certificate_bytes": [486], "tls__client_certificate_bytes": [486]},
    ],
)
def test_stated_certificate_sizes_equal_to_the_labs(change: dict[str, Any]) -> None:
    assert why_not_measurable(make_case(**change)) is None


def test_least_mtu_is_the_one_of_studies() -> None:
    profiles = list(study.profile_texts(study.profile_folders()))
    text = STATED + f"[link]\nmtu = {LEAST_MTU - 1}\n"
    with pytest.raises(_core.WarifuError, match=f"expected a whole number from {LEAST_MTU} to"):
        _core.Study.parse(text, "narrow.toml", profiles)
    assert why_not_measurable(make_case(link__mtu=LEAST_MTU)) is None
    reason = why_not_measurable(make_case(link__mtu=LEAST_MTU - 1)) or ""
    assert reason == "link.mtu is 575: expected at least 576, as in a study"


STATED = """name = "chains"
device = "gr-peach"
server = "gr-peach"
[vary]
"stack.certificate" = ["ecdsa_secp256r1", "rsa-2048"]
"stack.chain_length" = [1, 2, 3]
"""


def test_default_certificate_sizes_match_the_model() -> None:
    profiles = list(study.profile_texts(study.profile_folders()))
    seen = set()
    for view in _core.Study.parse(STATED, "chains.toml", profiles).cases:
        tls = https_of(Cell.of(view)).tls
        key = (tls.certificate, tls.chain_length)
        assert tls.server_certificate_bytes == CERTIFICATE_BYTES[key]
        seen.add(key)
    assert seen == set(CERTIFICATE_BYTES)


BURSTS = {
    "kind": "gilbert_elliott",
    "good_to_bad": 0.01,
    "bad_to_good": 0.3,
    "loss_good": 0.0,
    "loss_bad": 0.5,
}


@given(st.integers(0, 30_000), st.integers(1, 2_000))
def test_parts_sum_to_trials_and_differ_by_one(trials: int, most: int) -> None:
    parts = parts_of(trials, most)
    assert sum(parts) == trials
    assert all(0 < part <= most for part in parts)
    assert max(parts, default=0) - min(parts, default=0) <= 1
    # Five tell how parts differ, and a cell with the trials for them has them.
    assert len(parts) <= max(PARTS, -(-trials // most))
    assert len(parts) >= LEAST_PARTS or trials < LEAST_PARTS * LEAST_TRIALS_OF_A_PART


@given(st.lists(st.integers(1, 5), max_size=8), st.integers(0, 2**64 - 1))
def test_interleaving_takes_one_part_of_each_cell_a_round(lengths: list[int], seed: int) -> None:
    cells = [
        [Part(str(cell), index, 1, 0) for index in range(length)]
        for cell, length in enumerate(lengths)
    ]
    order = seeds.interleave(seed, cells)
    assert sorted(map(repr, order)) == sorted(repr(part) for cell in cells for part in cell)
    assert [part.first_trial for part in order] == sorted(part.first_trial for part in order)
    assert order == seeds.interleave(seed, cells)


def test_part_seeds_depend_on_case_and_part() -> None:
    case = make_case()
    parts = seeds.cut(1, case, 3000, 1000)
    assert len({part.seed for part in parts}) == len(parts) == PARTS
    assert parts == seeds.cut(1, case, 3000, 1000)
    assert {part.seed for part in parts}.isdisjoint(
        part.seed for part in seeds.cut(1, make_case(link__rtt=1), 3000, 1000)
    )
    assert all(0 <= part.seed < 2**63 for part in parts)


def test_link_configuration_of_a_case() -> None:
    case = make_case(
        link__rtt=60_000_001,
        link__rate_up=250_000,
        link__jitter=[0, 5],
        link__keep_order=False,
        link__loss=BURSTS,
    )
    link = impairments(case.link)
    assert link["delay_a_to_b_ns"] + link["delay_b_to_a_ns"] == 60_000_001
    assert (link["rate_a_to_b_bps"], link["rate_b_to_a_bps"]) == (250_000, None)
    assert (link["jitter_ns"], link["keep_order"], link["queue_packets"]) == ((0, 5), False, 1000)
    assert link["loss"] == BURSTS
    config = configuration(case, "c", "s", 5)
    assert config["seed"] == 5
    assert driver_of(case).routing(case) == {"congestion_control": "cubic", "initcwnd": 10}


@pytest.mark.parametrize(
    ("change", "memory"),
    [
        ({"link__rtt": 60_000_000}, False),
        ({"link__loss": {"kind": "independent", "probability": 0.1}}, False),
        ({"link__jitter": [0, 1_000_000], "link__keep_order": False}, False),
        ({"link__jitter": [0, 1_000_000]}, True),
        ({"link__rate_down": 1_000_000}, True),
        ({"link__loss": BURSTS}, True),
    ],
)
def test_links_whose_packets_depend_on_earlier_ones(change: dict[str, Any], memory: bool) -> None:
    assert make_case(**change).has_memory is memory


def test_settling_time_of_queue_and_jitter() -> None:
    change = {"link__rate_up": 1_000, "link__jitter": [0, 5], "link__rtt": 7}
    assert make_case(**change).settling_ns == 2 * (7 + 10) + 8_000_000_000


def test_parts_of_a_slow_cell() -> None:
    slow = make_case(link__rate_up=100_000, link__rtt=800_000_000)
    fast = make_case(link__rtt=800_000_000)
    assert trials_a_part(fast) == MAX_TRIALS_A_PART
    assert 10 < trials_a_part(slow) < 100

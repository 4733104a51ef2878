# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The way of a DDS sample in rows: sums, what waits for what, and what a change saves."""

from __future__ import annotations

from typing import Any

import pytest

from warifu.dds import way

LAW = (10, 20, 40, 5)


def work(
    operation: str,
    law: tuple[int, ...],
    size: int = 0,
    cipher: dict[str, Any] | None = None,
    protected: int = 0,
) -> dict[str, Any]:
    writer = operation.startswith("client")
    return {"step": "work", "operation": operation, "writer": writer, "bytes": size,
            "own_ns": law, "own_per_byte_ns": 0.0, "protected_ns": protected,
            "cipher": cipher}  # fmt: skip


def cipher(call: int, per_byte: float, tags: int = 0) -> dict[str, Any]:
    return {"primitive": "aead.seal.AES-256-GCM", "call_ns": (call, call, call, 0),
            "per_byte_ns": per_byte, "tags_ns": tags}  # fmt: skip


def path(
    writes: int, reads: int, datagrams: int = 1, rate: int | None = None, delay: int = 0
) -> dict[str, Any]:
    """So many datagrams of 1,000 B, each made in ``writes`` ns and taken in in ``reads``."""
    steps: list[dict[str, Any]] = []
    for index in range(datagrams):
        steps.append(work("client.send.DdsPart", (writes,) * 3 + (0,)))
        steps.append({"step": "send", "message": index, "bytes": 1000})
    for index in range(datagrams):
        steps.append({"step": "receive", "message": index})
        steps.append(work("server.receive.DdsPart", (reads,) * 3 + (0,)))
    return {"steps": steps, "wake_ns": (100, 100, 100, 0), "delay_ns": delay, "rate": rate}


def test_rows_of_one_datagram_add_up_at_each_bound() -> None:
    of = path(0, 0, rate=8_000_000_000, delay=7)
    sealed = work("client.send.DdsProtectedPayload", LAW, 1000, cipher(3, 0.5, tags=11))
    of["steps"] = [work("client.send.DdsSample", LAW, protected=3), sealed,
                   work("client.system.write", LAW),
                   *of["steps"][1:3], work("server.receive.DdsSample", LAW)]  # fmt: skip
    found = way.read(of)
    # Rows by hand: 1,000 B at 8 Gbit/s are 1,000 ns.
    expected = {
        (way.WRITER, way.MIDDLEWARE): (10, 20, 40),
        (way.WRITER, way.PLUGIN): (13, 23, 43),
        (way.WRITER, way.CALL): (14, 14, 14),
        (way.WRITER, way.BYTES): (500, 500, 500),
        (way.WRITER, way.SYSTEM): (10, 20, 40),
        (way.WRITER, way.COLD): (0, 0, 15),
        (way.LINK, way.TRANSIT): (1007, 1007, 1007),
        (way.READER, way.SYSTEM): (100, 100, 100),
        (way.READER, way.MIDDLEWARE): (10, 20, 40),
        (way.READER, way.COLD): (0, 0, 5),
    }
    for index in range(3):
        rows = found.rows(way.at(index))
        assert rows == {row: bounds[index] for row, bounds in expected.items()}
        assert found.total(way.at(index)) == sum(bounds[index] for bounds in expected.values())


@pytest.mark.parametrize(
    ("writes", "reads", "total"),
    [
        # The writer is slower: its four datagrams, and the reader's last one, woken for it.
        (500, 30, 4 * 500 + 100 + 30),
        # The reader is slower: it waits for the first alone.
        (30, 500, 30 + 100 + 4 * 500),
    ],
)
def test_what_is_done_meanwhile_does_not_count(writes: int, reads: int, total: int) -> None:
    found = way.read(path(writes, reads, datagrams=4))
    rows = found.rows(way.at(1))
    assert sum(rows.values()) == total
    slower = way.WRITER if writes > reads else way.READER
    assert rows[slower, way.MIDDLEWARE] == 4 * 500


def test_datagrams_wait_for_the_link() -> None:
    # 1,000 B at 8 Mbit/s are 1 ms each; the writer has made all four by then.
    found = way.read(path(10, 20, datagrams=4, rate=8_000_000))
    assert found.total(way.at(1)) == 10 + 4_000_000 + 100 + 20
    assert found.rows(way.at(1))[way.LINK, way.TRANSIT] == pytest.approx(4_000_000 - 30)


def test_a_figure_that_both_have_is_no_uncertainty_of_the_difference() -> None:
    def of(*works: dict[str, Any]) -> way.Way:
        plain = path(0, 0)
        return way.read({**plain, "steps": [*works, *plain["steps"][1:3]]})

    sample = work("client.send.DdsSample", (100, 500, 900, 0))
    sealed = work("client.send.DdsProtectedPayload", (10, 20, 40, 0))
    assert way.saved(of(sample, sealed), of(sample)) == (10, 20, 40)
    # Another figure in its place: both may be at their worst.
    other = work("client.send.DdsProtectedMessage", (15, 18, 19, 0))
    assert way.saved(of(sample, sealed), of(sample, other)) == (10 - 19, 2, 40 - 15)
    # What protection adds to a sample leaves the middleware's figure as it is.
    protected = work("client.send.DdsSample", (100, 500, 900, 0), protected=30)
    assert way.saved(of(protected), of(sample)) == (30, 30, 30)
    # The same one twice instead of once costs itself once more.
    assert way.saved(of(sample, sealed), of(sample, sealed, sealed)) == (-40, -20, -10)


def test_an_accelerator_replaces_the_cipher_alone() -> None:
    accelerator = {
        "name": "core", "bus": {"set_up_ns": (1000.0, 3000.0), "per_byte_ns": (0.5, 0.5)},
        "ciphers": {"AES-256-GCM": {"set_up_ns": (7.0, 7.0), "per_byte_ns": (2.0, 2.0)}},
    }  # fmt: skip
    assert way.Offload.of(accelerator, "AEGIS-256") is None
    offload = way.Offload.of(accelerator, "AES-256-GCM")
    of = path(0, 0)
    sealed = work("client.send.DdsProtectedPayload", LAW, 1000, cipher(3, 24.0))
    of["steps"] = [sealed, *of["steps"][1:3]]
    rows = way.read(of, offload).rows(way.at(2))
    assert rows[way.WRITER, way.PLUGIN] == 40
    assert rows[way.WRITER, way.CALL] == 3007
    assert rows[way.WRITER, way.BYTES] == 2500
    # It saves 24,003 - 2,500 - (1,007 to 3,007).
    assert way.saved(way.read(of), way.read(of, offload)) == (18_496, 19_496, 20_496)

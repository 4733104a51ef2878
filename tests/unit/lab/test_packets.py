# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The link's packet log: parsed or refused in one line, and joined to the right trials."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warifu.lab import packets
from warifu.lab.packets import PacketLogRefused, keep, parse
from warifu.lab.trials import Connection
from warifu.results.manifest import ResultsDamaged
from warifu.results.packets import COLUMNS, parts_with_packets

HEADER = b"WRFLINK1" + (1).to_bytes(4, "little") + (48).to_bytes(4, "little")
SYN, ACK, PSH, FIN = 2, 16, 8, 1
CLIENT_ISN, SERVER_ISN = 2**32 - 2, 7
TCP, UDP = 6, 17


def record(**values: int) -> np.ndarray[Any, Any]:
    """A record with some of its fields; the others are 0, but TCP and port 4000."""
    one = np.zeros(1, packets.RECORD)
    for name, value in {"protocol": TCP, "client_port": 4000, **values}.items():
        one[name] = value
    return one


def segment(at: int, *, up: bool, seq: int, ack: int = 0, **values: int) -> np.ndarray[Any, Any]:
    """A segment that came at a time and takes 30 ns to the other end, its numbers from the SYNs
    on."""
    own, peers = (CLIENT_ISN, SERVER_ISN) if up else (SERVER_ISN, CLIENT_ISN)
    delivered = values.get("fate", 0) == 0
    return record(
        arrival_ns=at,
        due_ns=at + 30 if delivered else 0,
        seq=(own + seq) % 2**32,
        ack=(peers + ack) % 2**32 if values["flags"] & ACK else 0,
        direction=0 if up else 1,
        **values,
    )


def opening(at: int, **values: int) -> list[np.ndarray[Any, Any]]:
    """SYN, SYN-ACK and the client's first data."""
    return [
        segment(at, up=True, seq=0, flags=SYN, **values),
        segment(at + 1, up=False, seq=0, ack=1, flags=SYN | ACK, **values),
        segment(at + 2, up=True, seq=1, ack=1, payload=9, flags=PSH | ACK, **values),
    ]


@given(st.binary(max_size=300))
def test_any_bytes_are_parsed_or_refused_in_one_line(content: bytes) -> None:
    for given_bytes in (content, HEADER + content, HEADER[: len(content) % 17] + content):
        try:
            found = parse(given_bytes, "packets.log")
        except PacketLogRefused as refused:
            assert str(refused).startswith("packets.log: ")
            assert "\n" not in str(refused)
        else:
            assert given_bytes == HEADER + found.tobytes()


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_records_are_read_as_they_were_written(arrivals: list[int]) -> None:
    log = np.concatenate(
        [record(arrival_ns=at) for at in arrivals] or [np.zeros(0, packets.RECORD)]
    )
    assert (parse(HEADER + log.tobytes(), "log") == log).all()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is no packet log of warifu-link"),
        (b"WRFLINK2" + HEADER[8:], "is no packet log of warifu-link"),
        (HEADER[:15], "was cut in its header, after 15 bytes"),
        (HEADER[:8] + b"\2" + HEADER[9:], "version 2 with records of 48 bytes, expected version 1"),
        (HEADER[:12] + b"\x30\1\0\0", "records of 304 bytes"),
        (HEADER + bytes(48 + 47), "was cut in record 1, of which 47 of 48 bytes"),
    ],
)
def test_what_is_no_whole_log_says_why(content: bytes, said: str) -> None:
    with pytest.raises(PacketLogRefused) as refused:
        parse(content, "packets.log")
    assert str(refused.value).startswith("packets.log: ")
    assert said in str(refused.value)


def test_numbers_and_times_are_from_the_trials_own(tmp_path: Path) -> None:
    log = np.concatenate(
        [
            *opening(1_000),
            segment(1_100, up=True, seq=1, ack=1, payload=9, flags=PSH | ACK, fate=1),
            segment(1_200, up=False, seq=1, ack=10, flags=ACK),
        ]
    )
    kept = keep(log, [Connection(4000, 990, client_messages=(("ClientHello", 9),))], 5)
    assert kept.packets.rows() == [
        # trial, direction, seq, ack, payload, flags, copy, fate, delay, at, start
        (5, 0, 0, 0, 0, SYN, 1, 0, 30, 10, 990),
        (5, 1, 0, 1, 0, SYN | ACK, 1, 0, 30, 11, 990),
        (5, 0, 1, 1, 9, PSH | ACK, 1, 0, 30, 12, 990),
        (5, 0, 1, 1, 9, PSH | ACK, 2, 1, None, 110, 990),
        (5, 1, 1, 10, 0, ACK, 1, 0, 30, 210, 990),
    ]
    assert kept.messages.rows() == [(5, 0, 0, "ClientHello", 9)]
    assert kept.elsewhere == 0


def test_port_used_again_is_told_by_time() -> None:
    late = segment(1_950, up=False, seq=50, ack=9, flags=ACK | FIN)
    log = np.concatenate(
        [
            *opening(500),  # before any trial: a session was got
            *opening(1_000),
            *opening(1_500, client_port=4001),
            # After the second trial of the port has begun, but of the one before.
            late,
            *opening(2_000),
            record(protocol=UDP, arrival_ns=2_010),
        ]
    )
    connections = [Connection(4000, 900), Connection(4001, 1_400), Connection(4000, 1_900)]
    kept = keep(log, connections, 0)
    assert kept.packets["trial"].to_list() == [0] * 3 + [1] * 3 + [2] * 3
    assert kept.packets["at_ns"].to_list() == [100, 101, 102] * 3
    assert kept.elsewhere == 3 + 1


def test_trial_without_a_connection_has_no_packets() -> None:
    kept = keep(np.concatenate(opening(1_000)), [Connection(0, 10), Connection(4000, 20)], 0)
    assert kept.packets["trial"].to_list() == [1, 1, 1]
    assert keep(np.zeros(0, packets.RECORD), [], 0).packets.height == 0


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=30),
    st.integers(0, 2**32 - 1),
)
def test_copies_are_counted_and_no_packet_is_lost(
    sent: list[tuple[int, int]], initial: int
) -> None:
    """Segments of two connections by turns, whatever their initial sequence number."""
    begun = [record(arrival_ns=at, client_port=4000 + at, seq=initial, flags=SYN) for at in (0, 1)]
    rest = [
        record(
            arrival_ns=10 + number, client_port=4000 + number % 2, seq=(initial + 1 + seq) % 2**32,
            payload=payload, flags=ACK,
        )
        for number, (seq, payload) in enumerate(sent)
    ]  # fmt: skip
    kept = keep(np.concatenate([*begun, *rest]), [Connection(4000, 0), Connection(4001, 1)], 0)
    assert kept.packets.height == 2 + len(sent)
    counts: dict[tuple[int, int, int], int] = {}
    found = kept.packets.filter(kept.packets["flags"] == ACK)
    for trial, seq, payload, copy in found.select("trial", "seq", "payload", "copy").rows():
        key = (trial, seq, payload)
        counts[key] = counts.get(key, 0) + 1
        assert copy == counts[key]
    of_zero = [(1 + seq, payload) for seq, payload in sent[::2]]
    zero = found.filter(found["trial"] == 0)
    assert zero.select("seq", "payload").rows() == of_zero


def folder_with_packets(tmp_path: Path, **about: Any) -> dict[str, Any]:  # noqa: ANN401
    """A run's packets in a folder, and its manifest as far as they go."""
    run = {"run_id": "run-a", "case_id": "0123456789abcdef", "first_trial": 0, "trials": 1}
    kept = keep(np.concatenate(opening(1_000)), [Connection(4000, 990)], 0)
    (tmp_path / "packets").mkdir(parents=True)
    files, said = {}, {}
    for kind, table in (("packets", kept.packets), ("messages", kept.messages)):
        name = f"packets/0123456789abcdef-0.{kind}.parquet"
        packets.write(tmp_path / name, table, run | about)
        content = (tmp_path / name).read_bytes()
        files[name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        said[kind] = {"file": name}
    part = {"first_trial": 0, "trials": 1, "packets": said}
    return {"run_id": "run-a", "files": files, "cells": {"0123456789abcdef": {"parts": [part]}}}


def read(tmp_path: Path, manifest: dict[str, Any]) -> Any:  # noqa: ANN401
    return list(parts_with_packets(tmp_path, manifest, "0123456789abcdef"))


def test_kept_packets_are_read_back(tmp_path: Path) -> None:
    manifest = folder_with_packets(tmp_path)
    (part,) = read(tmp_path, manifest)
    assert (part.first_trial, part.trials, part.packets.height) == (0, 1, 3)
    assert (COLUMNS["packets"], COLUMNS["messages"]) == (packets.PACKETS, packets.MESSAGES)
    assert list(parts_with_packets(tmp_path, manifest, "fedcba9876543210")) == []
    del manifest["cells"]["0123456789abcdef"]["parts"][0]["packets"]
    assert read(tmp_path, manifest) == []


def test_packets_of_the_first_version_do_not_say_when_a_trial_began(tmp_path: Path) -> None:
    manifest = folder_with_packets(tmp_path, version=1)
    (part,) = read(tmp_path, manifest)
    assert part.packets["start_ns"].to_list() == [990] * 3
    name = "packets/0123456789abcdef-0.packets.parquet"
    about = {"run_id": "run-a", "case_id": "0123456789abcdef", "first_trial": 0, "trials": 1}
    packets.write(tmp_path / name, part.packets.drop("start_ns"), about | {"version": 1})
    content = (tmp_path / name).read_bytes()
    manifest["files"][name] = {"sha256": hashlib.sha256(content).hexdigest()}
    (part,) = read(tmp_path, manifest)
    assert part.packets.schema == pl.Schema(COLUMNS["packets"])
    assert part.packets["start_ns"].null_count() == 3


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"run_id": "run-b"}, "is a packet log of run_id run-b, but its folder is of run-a"),
        ({"first_trial": 9}, "is a packet log of first_trial 9, but its folder is of 0"),
        ({"case_id": "f" * 16}, "of case_id ffffffffffffffff, but"),
    ],
)
def test_log_of_another_run_or_part_is_refused(
    tmp_path: Path, about: dict[str, Any], said: str
) -> None:
    manifest = folder_with_packets(tmp_path, **about)
    with pytest.raises(ResultsDamaged) as refused:
        read(tmp_path, manifest)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_changed_or_missing_packets_are_refused(tmp_path: Path) -> None:
    manifest = folder_with_packets(tmp_path)
    file = tmp_path / "packets" / "0123456789abcdef-0.packets.parquet"
    content = file.read_bytes()
    for spoilt, said in (
        (content[:4] + bytes([content[4] ^ 1]) + content[5:], "was changed after it was written"),
        (content[:-9], "is no packet log that Warifu kept"),
        (b"", "is no packet log that Warifu kept"),
    ):
        file.write_bytes(spoilt)
        with pytest.raises(ResultsDamaged, match=said):
            read(tmp_path, manifest)
    file.unlink()
    with pytest.raises(ResultsDamaged, match=r"cannot be read \(No such file"):
        read(tmp_path, manifest)
    unlisted = json.loads(json.dumps(manifest)) | {"files": {}}
    with pytest.raises(ResultsDamaged, match=r"is not listed in manifest\.json"):
        read(tmp_path, unlisted)


@pytest.mark.parametrize(
    ("kind", "columns", "words"),
    [
        *(("packets", {name: None}, f"has a row without {name}")
          for name in COLUMNS["packets"] if name != "delay_ns"),
        *(("messages", {name: None}, f"has a row without {name}") for name in COLUMNS["messages"]),
        ("packets", {"trial": 1}, "has a trial that no packet log has"),
        ("messages", {"trial": -1}, "has a trial that no packet log has"),
        ("packets", {"direction": 2}, "has a direction that no"),
        ("messages", {"direction": 2}, "has a direction that no"),
        ("packets", {"fate": 6, "delay_ns": None}, "has a fate that no"),
        ("packets", {"fate": 1}, "has a delay_ns that no"),
        ("packets", {"delay_ns": None}, "has a delay_ns that no"),
        ("packets", {"delay_ns": -5}, "has a delay_ns that no"),
        ("packets", {"delay_ns": 2**62}, "has a delay_ns that no"),
        ("packets", {"at_ns": -(2**62)}, "has a at_ns that no"),
        ("packets", {"at_ns": 2**63 - 1}, "has a at_ns that no"),
        ("packets", {"payload": 65_535}, "has a payload that no"),
        ("packets", {"copy": 0}, "has a copy that no"),
        ("messages", {"bytes": 0}, "has a bytes that no"),
        ("messages", {"bytes": 2**32 - 1}, "has a bytes that no"),
    ],
)  # fmt: skip
def test_packets_that_no_link_told(
    tmp_path: Path, kind: str, columns: dict[str, int | None], words: str
) -> None:
    manifest = folder_with_packets(tmp_path)
    with pytest.raises(ResultsDamaged, match=words):
        read(tmp_path, changed(tmp_path, manifest, kind, columns))


@pytest.mark.parametrize("columns", [{"fate": 1, "delay_ns": None}, {"at_ns": -1_000}])
def test_packets_that_a_link_may_tell(tmp_path: Path, columns: dict[str, int | None]) -> None:
    manifest = folder_with_packets(tmp_path)
    (part,) = read(tmp_path, changed(tmp_path, manifest, "packets", columns))
    assert part.packets.height == 3


@pytest.mark.parametrize(
    ("times", "rows", "words"),
    [
        (1, 4, "has 3 rows, and manifest.json says 4"),
        (40_000, None, "has 120,000 rows of one trial, and 100,000 are the most"),
    ],
)
def test_packets_without_number(tmp_path: Path, times: int, rows: int | None, words: str) -> None:
    manifest = changed(tmp_path, folder_with_packets(tmp_path), "packets", {}, times)
    said = manifest["cells"]["0123456789abcdef"]["parts"][0]["packets"]["packets"]
    said["rows"] = rows
    with pytest.raises(ResultsDamaged, match=words):
        read(tmp_path, manifest)


def test_long_name_of_another_run_is_cut_short(tmp_path: Path) -> None:
    manifest = folder_with_packets(tmp_path, run_id="A" * 3_000_000)
    with pytest.raises(ResultsDamaged, match=r"is a packet log of run_id A{80}\.\.\., but"):
        read(tmp_path, manifest)


def changed(
    folder: Path,
    manifest: dict[str, Any],
    kind: str,
    columns: dict[str, int | None],
    times: int = 1,
) -> dict[str, Any]:
    """The manifest of a folder whose packets say something else, so many times."""
    name = f"packets/0123456789abcdef-0.{kind}.parquet"
    table = pl.read_parquet(folder / name)
    if kind == "messages":
        row = {"trial": 0, "direction": 0, "message": 0, "name": "ClientHello", "bytes": 9}
        table = pl.DataFrame([row], schema=COLUMNS[kind])
    values = {key: pl.lit(one, table.schema[key]) for key, one in columns.items()}
    run = {"run_id": "run-a", "case_id": "0123456789abcdef", "first_trial": 0, "trials": 1}
    packets.write(folder / name, pl.concat([table.with_columns(**values)] * times), run)
    content = (folder / name).read_bytes()
    sealed = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return manifest | {"files": manifest["files"] | {name: sealed}}

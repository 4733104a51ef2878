# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What Warifu's DDS plugin counted, read from the file that it writes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from warifu.dds.counters import CountersDamaged, by_site, read

LINE: dict[str, Any] = {
    "process": 12,
    "aead": "AEGIS-128L",
    "site": "encode_serialized_payload",
    "calls": 3,
    "bytes": 48,
    "time_ns": 900,
    "refused": {"malformed": 0, "forged": 1},
}


def write(folder: Path, *lines: object) -> Path:
    file = folder / "plugin.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_domain_that_has_not_ended_has_no_counts(tmp_path: Path) -> None:
    assert read(tmp_path / "plugin.jsonl") == []


def test_domains_of_a_process_are_added_up_by_function(tmp_path: Path) -> None:
    other = LINE | {"aead": "AES-256-GCM", "calls": 4, "bytes": 2, "refused": {"forged": 2}}
    elsewhere = LINE | {"site": "decode_rtps_message"}
    counts = by_site(read(write(tmp_path, LINE, elsewhere, other)))
    assert list(counts) == ["encode_serialized_payload", "decode_rtps_message"]
    both = counts["encode_serialized_payload"]
    assert (both.calls, both.bytes, both.time_ns) == (7, 50, 1800)
    assert both.refused == {"malformed": 0, "forged": 3}
    assert both.aead == "AEGIS-128L, AES-256-GCM"


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param({"calls": -1}, id="negative"),
        pytest.param({"calls": True}, id="no number"),
        pytest.param({"bytes": 1.5}, id="no whole number"),
        pytest.param({"aead": None}, id="no name"),
        pytest.param({"refused": {"forged": "many"}}, id="no number of refusals"),
        pytest.param({"refused": 3}, id="no refusals"),
        pytest.param({"time_ns": 2**64}, id="beyond 64 bits"),
        pytest.param({"refused": {"forged": 10**400}}, id="far beyond 64 bits"),
        pytest.param({"more": "x" * 5000}, id="long line"),
    ],
)
def test_line_that_the_plugin_does_not_write_is_named(
    tmp_path: Path, damaged: dict[str, Any]
) -> None:
    file = write(tmp_path, LINE, LINE | damaged)
    with pytest.raises(CountersDamaged, match=r"plugin\.jsonl, line 2: is not a line of"):
        read(file)


def test_line_that_was_cut_is_named(tmp_path: Path) -> None:
    file = write(tmp_path, LINE)
    file.write_text(file.read_text()[:40])
    with pytest.raises(CountersDamaged, match="line 1"):
        read(file)


def test_highest_number_is_read(tmp_path: Path) -> None:
    (count,) = read(write(tmp_path, LINE | {"time_ns": 2**64 - 1}))
    assert count.time_ns == 2**64 - 1


def test_file_of_gigabytes_is_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "plugin.jsonl"
    with file.open("wb") as sparse:
        sparse.truncate(20 * 2**30)
    with pytest.raises(CountersDamaged, match=r"plugin\.jsonl: is longer than 16,000,000 bytes"):
        read(file)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(write(tmp_path, LINE))
    for file, what in ((pipe, "a pipe"), (link, "a link")):
        with pytest.raises(CountersDamaged, match=f"{file.name}: is {what}, not a file"):
            read(file)

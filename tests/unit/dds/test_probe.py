# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The probe on a program whose calls of OpenSSL are known."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.paths import ROOT
from warifu.dds.profiling import Process
from warifu.dds.recording import Recording, RecordingDamaged, quantile_ns, read
from warifu.dds.verdict import verdict
from warifu.tools import find

_SOURCES = ROOT / "tests" / "support"
_CC = ("cc", "-O1", "-Wall", "-Werror", "-pthread")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("evp") / "evp-program"
    _compile(path, "evp_program.c", "-lcrypto")
    return path


@pytest.fixture(scope="module")
def recorded(program: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("recorded") / "r"
    _probed(folder, program, "gcm", "5")
    (path,) = folder.glob("*.evp")
    return path.read_bytes()


def _compile(path: Path, source: str, *more: str) -> None:
    subprocess.run([*_CC, "-o", path, _SOURCES / source, *more], check=True)


def _probed(
    folder: Path, *command: str | Path, code: int = 0, **environment: str
) -> tuple[list[Recording], str]:
    """The recordings that a command leaves, by the order of their files, and what it says."""
    folder.mkdir(mode=0o700)
    library = find("libwarifu_evp_probe.so")
    variables = {"LD_PRELOAD": str(library), "WARIFU_EVP_PROBE": str(folder), **environment}
    done = subprocess.run(
        list(map(str, command)), env=os.environ | variables, text=True, capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return [read(path) for path in sorted(folder.glob("*.evp"))], done.stderr


def _totals(recording: Recording, kind: str) -> dict[str, int]:
    return dict(recording.totals["now"][kind])


def _own(recording: Recording, kind: str) -> list[tuple[str, int]]:
    return [(one.algorithm, one.count) for one in recording.sites if one.operation == kind]


def test_every_encryption_is_counted_with_its_bytes(program: Path, tmp_path: Path) -> None:
    (seen,), _ = _probed(tmp_path / "r", program, "gcm", "500", "100")
    totals = _totals(seen, "encrypt")
    assert (totals["operations"], totals["failed"]) == (500, 0)
    assert (totals["bytes"], totals["aad_bytes"]) == (50_000, 6_500)
    (site,) = (one for one in seen.sites if one.operation == "encrypt")
    assert site.algorithm.endswith("GCM")
    calls = {part: site.numbers[f"{part}_calls"] for part in ("context", "init", "update", "tag")}
    assert calls == {"context": 1000, "init": 1000, "update": 1000, "tag": 500}
    assert sum(site.histogram) == 500
    middle = quantile_ns(site.histogram, 0.5)
    assert middle is not None
    assert site.numbers["minimum_ns"] * 0.9 <= middle <= site.numbers["maximum_ns"]


@pytest.mark.parametrize("size", ["-1", "65537"])
def test_program_asks_for_no_more_than_it_has_room_for(program: Path, size: str) -> None:
    for kind in ("gcm", "gmac", "cached", "wrong-tag", "round-trip", "random", "hmac"):
        done = subprocess.run(
            [program, kind, "1", size], text=True, capture_output=True, check=False
        )  # fmt: skip
        assert (done.returncode, "65536" in done.stderr) == (1, True), kind


def test_authenticated_data_alone_is_a_mac(program: Path, tmp_path: Path) -> None:
    (seen,), _ = _probed(tmp_path / "r", program, "gmac", "50", "200")
    assert _totals(seen, "mac")["operations"] == 50
    assert _totals(seen, "mac")["aad_bytes"] == 10_000
    assert _totals(seen, "encrypt")["operations"] == 0


def test_one_shot_hmac_is_a_mac(program: Path, tmp_path: Path) -> None:
    (seen,), _ = _probed(tmp_path / "r", program, "hmac", "40", "10")
    assert _own(seen, "mac") == [("HMAC", 40)]
    assert _totals(seen, "mac")["aad_bytes"] == 400


def test_wrong_tag_is_a_decryption_that_failed(program: Path, tmp_path: Path) -> None:
    (seen,), _ = _probed(tmp_path / "r", program, "wrong-tag", "30", "16")
    totals = _totals(seen, "decrypt")
    assert (totals["operations"], totals["failed"], totals["bytes"]) == (30, 30, 480)


def test_random_generator_is_one_request_whatever_it_calls(program: Path, tmp_path: Path) -> None:
    (seen,), _ = _probed(tmp_path / "r", program, "random", "20", "8")
    assert _own(seen, "random") == [("RAND", 20)]
    assert _totals(seen, "random")["bytes"] == 160
    assert seen.numbers["inner_updates"] >= 20
    assert not [one for one in seen.sites if one.operation == "encrypt" and not one.of_openssl]


def test_cached_context_is_one_context_and_many_encryptions(program: Path, tmp_path: Path) -> None:
    (seen,), _ = _probed(tmp_path / "r", program, "cached", "100")
    # The first operation begins where its cipher is set, the others where their nonce is.
    sites = [one for one in seen.sites if one.operation == "encrypt"]
    assert sorted(site.count for site in sites) == [1, 99]
    # One made, one freed; each operation sets its nonce, the first also cipher and key.
    assert sum(site.numbers["context_calls"] for site in sites) == 2
    assert sum(site.numbers["init_calls"] for site in sites) == 101


def test_threads_lose_no_count(program: Path, tmp_path: Path) -> None:
    (seen,), _ = _probed(tmp_path / "r", program, "threads", "5000")
    assert _totals(seen, "encrypt")["operations"] == 20_000
    assert sum(sum(one.histogram) for one in seen.sites if one.operation == "encrypt") == 20_000


def test_killed_process_leaves_its_counts(program: Path, tmp_path: Path) -> None:
    (seen,), _ = _probed(tmp_path / "r", program, "killed", "70", code=-9)
    assert _totals(seen, "encrypt")["operations"] == 70
    assert seen.numbers["finished_ns"] == 0


def test_forked_child_does_not_count_in_its_parents_file(program: Path, tmp_path: Path) -> None:
    (seen,), _ = _probed(tmp_path / "r", program, "forked", "60")
    assert _totals(seen, "encrypt")["operations"] == 60


def test_executed_program_of_the_same_process_has_a_file_of_its_own(
    program: Path, tmp_path: Path
) -> None:
    before, after = _probed(tmp_path / "r", program, "executed", "25")[0]
    assert before.numbers["pid"] == after.numbers["pid"]
    assert [_totals(one, "encrypt")["operations"] for one in (before, after)] == [25, 25]


def test_library_in_a_scope_of_its_own_is_seen(tmp_path: Path) -> None:
    """As ROS 2 loads its middleware, and OpenSSL with it: dlsym's RTLD_NEXT does not see that."""
    library, loader = tmp_path / "libevp.so", tmp_path / "loader"
    _compile(library, "evp_program.c", "-DLIBRARY", "-shared", "-fPIC", "-lcrypto")
    _compile(loader, "evp_loader.c")
    (seen,), _ = _probed(tmp_path / "r", loader, library, "gcm", "33")
    # The loader's argument counts as the program's name.
    assert _totals(seen, "encrypt")["operations"] == 33
    (site,) = (one for one in seen.sites if one.operation == "encrypt")
    assert [frame.split("!")[0].split("+")[0] for frame in site.frames[:2]] == ["libevp.so"] * 2


def test_cost_of_the_probe_is_measured_in_each_process(program: Path, tmp_path: Path) -> None:
    (seen,), _ = _probed(tmp_path / "r", program, "gcm", "1")
    numbers = seen.numbers
    assert 0 < numbers["call_inside_ps"] < numbers["call_cost_ps"] < 1e9
    assert 0 < numbers["message_cost_ps"] < 1e9
    assert numbers["messages"] == 0


def test_without_its_variable_the_probe_does_nothing(program: Path, tmp_path: Path) -> None:
    seen, said = _probed(tmp_path / "r", program, "gcm", "3", WARIFU_EVP_PROBE="")
    assert (seen, said) == ([], "")


def test_folder_that_others_can_write_to_is_refused_and_the_program_runs(
    program: Path, tmp_path: Path
) -> None:
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o777)
    seen, said = _probed(
        tmp_path / "r", program, "gcm", "3", WARIFU_EVP_PROBE=str(open_folder)
    )  # fmt: skip
    assert seen == []
    assert list(open_folder.iterdir()) == []
    assert "nobody else can write to" in said


@pytest.mark.parametrize("aead", ["aegis-128l", "aegis-256", "ascon-aead128"])
def test_swap_takes_the_place_of_gcm_and_says_so_loudly(
    program: Path, tmp_path: Path, aead: str
) -> None:
    (seen,), said = _probed(
        tmp_path / "r", program, "round-trip", "20", "1000", WARIFU_EVP_SWAP=aead
    )
    assert "EXPERIMENT" in said
    assert aead in said
    assert seen.swap == aead
    assert _totals(seen, "encrypt")["operations"] == 20
    assert _totals(seen, "decrypt")["operations"] == 20
    assert _totals(seen, "decrypt")["failed"] == 0


def test_swap_refuses_a_wrong_tag(program: Path, tmp_path: Path) -> None:
    (seen,), _ = _probed(
        tmp_path / "r", program, "wrong-tag", "5", "16", WARIFU_EVP_SWAP="aegis-256"
    )
    assert _totals(seen, "decrypt")["failed"] == 5


def test_unknown_swap_ends_the_program(program: Path, tmp_path: Path) -> None:
    _, said = _probed(tmp_path / "r", program, "gcm", "5", code=2, WARIFU_EVP_SWAP="rot13")
    assert "rot13: expected aegis-128l, aegis-256, ascon-aead128" in said


def _described(content: bytes) -> dict[str, Any]:
    return dict(json.loads(content[:4096].split(b"\0", 1)[0]))


def _describing(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    """Damage of a file's description of itself."""

    def damage(content: bytes) -> bytes:
        about = _described(content)
        change(about)
        text = json.dumps(about, separators=(",", ":")).encode()
        assert len(text) < 4096
        return text.ljust(4096, b"\0") + content[4096:]

    return damage


def _naming(size: int) -> Callable[[bytes], bytes]:
    """Damage by which all sites there can be have functions with names of this length."""

    def damage(content: bytes) -> bytes:
        layout = _described(content)["sites"]
        begin, each = layout["at"], layout["bytes"]
        sites = [content[begin + at * each :][:each] for at in range(layout["count"])]
        one = bytearray(next(site for site in sites if any(site[:8])))
        for number, name in enumerate(layout["names"]):
            if name.startswith("frame") and name.endswith("_bytes"):
                struct.pack_into("<Q", one, layout["numbers_at"] + 8 * number, size)
        return content[:begin] + bytes(one) * len(sites) + content[begin + each * len(sites) :]

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(_describing(lambda it: it["sites"].update(buckets=513)), id="buckets"),
        pytest.param(_describing(lambda it: it["sites"].update(bytes=8)), id="sites in sites"),
        pytest.param(
            _describing(lambda it: it["sites"].update(histogram_at=0)), id="numbers in numbers"
        ),
        pytest.param(
            _describing(lambda it: it["sites"].update(histogram_at=2_000)), id="beyond its site"
        ),
        pytest.param(
            _describing(lambda it: it["text"].update(at=0, bytes=(1 << 20) + 1)), id="text"
        ),
        pytest.param(
            _describing(lambda it: it["libraries"].update(at=0, bytes=(1 << 20) + 1)),
            id="libraries",
        ),
        pytest.param(
            _describing(lambda it: it["sites"]["names"].append(5)), id="a number for a name"
        ),
        pytest.param(_naming(40_000), id="a long name"),
        pytest.param(_naming(2_000), id="many names"),
        pytest.param(lambda content: content[:-1], id="cut"),
        pytest.param(lambda content: content[:100], id="cut within its description"),
        pytest.param(lambda content: b"", id="empty"),
        pytest.param(lambda content: b"{" * 4096, id="nested"),
        pytest.param(
            lambda content: content.replace(b'"sites":{"at":', b'"sites":{"at":-', 1),
            id="a place before its beginning",
        ),
        pytest.param(
            lambda content: content.replace(b'"version":1,', b'"version":2,', 1),
            id="another version",
        ),
    ],
)
def test_damaged_recording_is_refused_in_one_line(
    program: Path, tmp_path: Path, damage: object
) -> None:
    _probed(tmp_path / "r", program, "gcm", "2")
    (path,) = (tmp_path / "r").glob("*.evp")
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(RecordingDamaged) as refused:
        read(path)
    assert "\n" not in str(refused.value)


def test_description_that_is_written_anew_is_read(recorded: bytes, tmp_path: Path) -> None:
    """So that it is no damage by itself; nor are as many sites as there can be."""
    path = tmp_path / "anew.evp"
    path.write_bytes(_describing(lambda it: None)(_naming(20)(recorded)))
    seen = read(path)
    assert len(seen.sites) == 256
    assert len(seen.sites[0].frames[0]) == 20


def test_what_is_no_recording_is_refused_at_once(tmp_path: Path) -> None:
    names = [tmp_path / name for name in ("1-0.evp", "2-0.evp", "3-0.evp")]
    os.mkfifo(names[0])
    names[1].symlink_to("/dev/zero")
    with names[2].open("wb") as sparse:
        sparse.truncate(20 * 2**30)
    for path, says in zip(names, ("is a pipe", "is a link", "is longer than"), strict=True):
        with pytest.raises(RecordingDamaged, match=f"{path.name}: {says}"):
            read(path)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    places=st.lists(
        st.tuples(
            st.one_of(st.integers(0, 2000), st.integers(0, 2_000_000)), st.binary(max_size=4)
        ),
        min_size=1,
        max_size=6,
    )
)
def test_any_recording_is_read_or_refused(
    recorded: bytes, tmp_path: Path, places: list[tuple[int, bytes]]
) -> None:
    content = bytearray(recorded)
    for place, new in places:
        content[place : place + len(new)] = new
    path = tmp_path / "changed.evp"
    path.write_bytes(content)
    try:
        seen = read(path)
    except RecordingDamaged:
        return
    # What is read can be shown.
    process = Process(seen, seen.libraries)
    verdict(process)
    for site in seen.sites:
        quantile_ns(site.histogram, 0.5)


def test_quantile_of_a_histogram_is_within_its_bucket() -> None:
    histogram = [0] * 280
    assert quantile_ns(histogram, 0.5) is None
    # Bucket 64: the eighth octave's first, 1,024 to 1,151 ns.
    histogram[64] = 9
    assert quantile_ns(histogram, 0.5) == 1088.0

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reading a results folder ends in tables or in one line, whatever the folder holds."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.commands import Run, one_line
from support.synthetic import (
    Cell,
    Half,
    case_used,
    change_manifest,
    figure_used,
    write_manifest,
)
from support.synthetic import study as made_up
from warifu.cli.errors import ENVIRONMENT, OK, USAGE
from warifu.compare import store
from warifu.compare.comparison import Comparison
from warifu.compare.join import compare_folder
from warifu.report import page, sections
from warifu.report.charts import Picture
from warifu.report.table import Format, render
from warifu.report.tables import report_tables
from warifu.results import Results, ResultsDamaged, ResultsError, halves, limits, pages

CELLS = [Cell(), Cell(rtt_ms=99)]
SPEED = {"by_round": [1.0, 1.1], "began": [0.0, 60.0], "cells": 1, "delayed": True}
TWO_VALUES = [
    figure_used("d ClientHello", "1 us", "simulated", cases=[CELLS[0].case_id]),
    figure_used("d ClientHello", "2 us", "simulated", cases=[CELLS[1].case_id]),
]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(elsewhere: None) -> None:
    """Commands write where they are."""


@pytest.mark.parametrize("form", [(), ("--format", "md")])
def test_manifest_that_lists_figures_and_no_cases(warifu: Run, form: tuple[str, ...]) -> None:
    half = Half("predicted", CELLS, 50, 1, manifest={"cases": [], "figures": TWO_VALUES})
    half.write(Path("s"))
    assert warifu("report", "s", *form)[0] == OK


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cells": {"x": 3}}, "cells.x is 3: expected an object"),
        ({"cells": {"x": {"parts": [{"route": 1}]}}}, "cells.x.parts[0].route is 1: expected an"),
        ({"link_reports": {"x": 3}}, "link_reports.x is 3: expected a"),
        ({"link_reports": {"x": [{"a_to_b": []}]}}, "link_reports.x[0].a_to_b is a list: expected"),
        ({"machine": {"tcp": "cubic"}}, 'machine.tcp is "cubic": expected an object'),
        ({"machine": None}, "machine is null: expected an object"),
        ({"study": []}, "study is a list of 0: expected an object"),
        ({"require": [["tcp.connect", "p99", "<"]]}, "require[0] is a list of 3: expected 5"),
        ({"require": [["tcp.connect", "p98", "<", 1, ""]]}, 'require[0] has "p98": expected one'),
        ({"require": [["no.metric", "p99", "<", 1, ""]]}, 'require[0] judges "no.metric", which'),
        ({"schema_version": "two"}, 'schema_version is "two": this version of Warifu reads 1 and'),
        ({"schema_version": None}, "schema_version is null: this version"),
        ({"half": "emulated"}, "half is emulated, but its folder is that of the predicted half"),
        ({"half": "whole"}, 'half is "whole": expected predicted, measured, emulated, board,'),
        ({"more": 1}, "more is a key that no manifest has"),
        ({"cases": [{"case_id": "x", "evidence": "assumed", "case": 3}]}, "cases[0].case is 3: ex"),
        (
            {"cases": [{"case_id": "x", "evidence": "assumed", "case": {"link": {"jitter": 3}}}]},
            "cases[0].case.link.jitter is 3: expected a list",
        ),
        ({"cases": [{"case_id": "x", "evidence": "none", "case": {}}]}, "cases[0].evidence"),
    ],
)
def test_manifest_of_another_shape(warifu: Run, change: dict[str, Any], words: str) -> None:
    made_up(Path("s"), CELLS, n=50)
    change_manifest(Path("s/predicted"), **change)
    for verb in (("report", "s"), ("report", "s", "--format", "csv"), ("compare", "s")):
        code, out, err = warifu(*verb)
        assert (code, out) == (USAGE, "")
        assert f"s/predicted/manifest.json: {words}" in one_line(err)
        # No word of the library's, nor of Python's.
        for foreign in ("invalid type", "u64", "struct", "field", "NoneType", "line 1"):
            assert foreign not in one_line(err).replace("schema_version", "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"{", "manifest is cut off at line 1, column 1: run the study again"),
        (b"[" * 100_000, "manifest is not JSON at line 1, column "),
        (b"7", "manifest is 7: expected an object"),
        (b"\xff\xfe", "is not UTF-8 text (byte 0)"),
        (b'{"schema_version": 2}', "(manifest_sha256 is missing)"),
        (b'{"schema_version": 1, "study": 7, "half": "predicted", "cases": {"a": {}}}', "study is"),
    ],
)
def test_text_that_is_no_manifest(warifu: Run, text: bytes, words: str) -> None:
    made_up(Path("s"), CELLS, n=50)
    Path("s/predicted/manifest.json").write_bytes(text)
    code, _, err = warifu("report", "s")
    assert code == USAGE
    assert "s/predicted/manifest.json: " in one_line(err)
    assert words in one_line(err)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"study": {"name": "s", "text": "a\ud800", "sha256": "0" * 64}}, "study.text"),
        ({"run_id": "\udfff"}, "run_id"),
        ({"warnings": ["fine", ["\ud83d", "\U0001f600"]]}, "warnings[1][0]"),
        ({"tools": {"a\ud800": "x"}}, r"tools.a\ud800"),
    ],
)
def test_half_a_letter_in_a_manifest(
    warifu: Run, version: int, change: dict[str, Any], key: str
) -> None:
    made_up(Path("s"), CELLS[:1], n=50)
    change_manifest(Path("s/predicted"), schema_version=version, **change)
    for verb in ("report", "compare"):
        code, _, err = warifu(verb, "s")
        assert code == USAGE
        words = f"s/predicted/manifest.json: {key} holds half a letter (a lone surrogate)"
        assert words in one_line(err)


def test_whole_letter_of_two_surrogates_is_text(warifu: Run) -> None:
    made_up(Path("s"), CELLS[:1], n=50)
    change_manifest(Path("s/predicted"), warnings=["\U0001f600"])
    assert "\\ud83d" in Path("s/predicted/manifest.json").read_text()
    assert warifu("report", "s")[0] == OK


def test_manifest_that_is_a_pipe(warifu: Run) -> None:
    made_up(Path("s"), CELLS, n=50)
    Path("s/predicted/manifest.json").unlink()
    os.mkfifo("s/predicted/manifest.json")
    code, _, err = warifu("report", "s")
    assert code == USAGE
    assert "s/predicted/manifest.json: is a pipe, not a file" in one_line(err)


def sealed_as(part: Path, size: int, digest: str = hashlib.sha256(b"").hexdigest()) -> None:
    """Writes into the manifest of a prediction what its file of observations is."""
    seal = {"bytes": size, "sha256": digest}
    change_manifest(Path("s/predicted"), files={f"observations/{part.name}": seal})


def report_ends() -> str:
    """What `warifu report` says of a folder that it refuses; it must not wait."""
    command = [sys.executable, "-m", "warifu.cli", "report", "s"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == USAGE
    *warnings, said = done.stderr.splitlines()
    assert all(line.startswith("warning: ") for line in warnings)
    return said


@pytest.fixture
def part() -> Path:
    """The file of observations of a prediction in `s`."""
    made_up(Path("s"), CELLS[:1], n=50)
    return next(Path("s/predicted/observations").iterdir())


@pytest.mark.parametrize("listed", [True, False])
def test_observations_that_are_a_pipe(part: Path, listed: bool) -> None:
    part.unlink()
    os.mkfifo(part)
    if listed:
        sealed_as(part, 0)
    else:
        change_manifest(Path("s/predicted"), files={}, complete=False)
    assert f"{part}: is a pipe, not a file" in report_ends()


def test_pipe_beside_the_observations(part: Path) -> None:
    os.mkfifo(part.with_name("part-00001.parquet"))
    change_manifest(Path("s/predicted"), files={}, complete=False)
    assert "part-00001.parquet: is a pipe, not a file" in report_ends()


@pytest.mark.parametrize("target", ["/dev/zero", "/etc/passwd", "../../../elsewhere.parquet"])
def test_observations_that_are_a_link_out_of_their_folder(part: Path, target: str) -> None:
    part.rename("elsewhere.parquet")
    part.symlink_to(target)
    sealed_as(part, 0)
    assert f"{part}: is a link that leads out of its folder, to /" in report_ends()


@pytest.mark.parametrize("name", ["manifest.json", "timelines.json"])
def test_other_file_that_is_a_link_out_of_its_folder(part: Path, name: str) -> None:
    content = b"{}"
    change_manifest(Path("s/predicted"), complete=False)
    seal = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    change_manifest(Path("s/predicted"), files={"timelines.json": seal})
    file = Path("s/predicted", name)
    file.touch()
    Path("elsewhere.json").write_bytes(file.read_bytes() or content)
    file.unlink()
    file.symlink_to("../../elsewhere.json")
    assert f"{file}: is a link that leads out of its folder, to /" in report_ends()


def test_folder_and_file_may_be_links(warifu: Run, part: Path) -> None:
    part.rename(part.with_name("kept"))
    part.symlink_to("kept")
    Path("s").rename("moved")
    Path("s").symlink_to("moved")
    assert warifu("report", "s")[0] == OK


def test_file_of_holes_is_not_hashed(part: Path) -> None:
    """As many zeros as a disk could not hold are hashed for hours."""
    size = 1 << 40
    with part.open("wb") as file:
        file.truncate(size)
    sealed_as(part, size)
    assert f"{part}: has 1,099,511,627,776 bytes, and " in report_ends()


def test_name_of_a_file_is_no_pattern(warifu: Run, part: Path) -> None:
    """Polars took `[.]x.parquet` for `.x.parquet` as well, which nobody has looked at."""
    change_manifest(Path("s/predicted"), files={}, complete=False)
    part.rename(part.with_name("[.]x.parquet"))
    os.mkfifo(part.with_name(".x.parquet"))
    assert warifu("report", "s")[0] == OK


def test_observations_without_their_manifest(warifu: Run) -> None:
    made_up(Path("s"), CELLS, n=50)
    Path("s/measured/manifest.json").unlink()
    for verb in ("report", "compare"):
        code, _, err = warifu(verb, "s")
        assert code == USAGE
        assert "s/measured/manifest.json: is missing, but observations are beside it" in err


def test_only_file_of_a_half_is_missing(warifu: Run) -> None:
    folder = Half("predicted", [Cell()], 50, seed=1).write(Path("s"))
    (part,) = (folder / "observations").iterdir()
    seal = {"bytes": 1, "sha256": "0" * 64}
    change_manifest(folder, files={f"observations/{part.name}": seal})
    part.unlink()
    for form in ((), ("--format", "md")):
        code, _, err = warifu("report", "s", *form)
        assert code == USAGE
        assert f"{part}: is missing, but manifest.json lists it: run `warifu predict`" in err


def test_link_reports_of_nothing(warifu: Run) -> None:
    made_up(Path("s"), CELLS, n=50)
    window = {"accepted": True, "late_fraction": 0.0}
    nothing: dict[str, Any] = dict.fromkeys(("accepted", "late_fraction", "a_to_b"))
    nothing |= {"b_to_a": dict.fromkeys(("lateness_us", "delivered", "dropped_by_loss"))}
    reports = {"another": [window], CELLS[0].case_id: [nothing]}
    change_manifest(Path("s/measured"), link_reports=reports)
    assert warifu("report", "s", "--format", "md")[0] == OK


def rewrite(change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    """Changes every file of a prediction, under seals that fit."""
    files = {}
    for part in Path("s/predicted/observations").iterdir():
        change(pl.read_parquet(part)).write_parquet(part)
        content = part.read_bytes()
        seal = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        files[f"observations/{part.name}"] = seal
    change_manifest(Path("s/predicted"), files=files)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows.drop("weight"), "has no column weight"),
        (lambda rows: rows.with_columns(pl.lit("x").alias("value")), "column value is of type"),
        (lambda rows: rows.with_columns(pl.lit("60").alias("rtt_ns")), "column rtt_ns is of type"),
        (lambda rows: rows.with_columns(pl.lit(float("nan")).alias("value")), "is no number"),
        (lambda rows: rows.with_columns(pl.lit(-1.0).alias("weight")), "is no number"),
        (lambda rows: rows.with_columns(pl.lit("smtp").alias("protocol")), 'protocol is "smtp"'),
        (lambda rows: rows.with_columns(pl.lit("guessed").alias("evidence")), "evidence is"),
    ],
)
def test_observations_of_another_shape(
    warifu: Run, change: Callable[[pl.DataFrame], pl.DataFrame], words: str
) -> None:
    made_up(Path("s"), [Cell()], n=50)
    rewrite(change)
    code, _, err = warifu("report", "s", "--format", "md")
    assert code == USAGE
    assert words in one_line(err)
    assert "s/predicted" in one_line(err)


def test_column_of_lists_is_no_setting() -> None:
    made_up(Path("s"), [Cell()], n=50)
    rewrite(lambda rows: rows.with_columns(pl.lit([1, 2]).alias("more")))
    results = Results.open(Path("s/predicted"))
    assert "more" not in results.cases[Cell().case_id]


def test_run_of_a_program_is_neither_half(tmp_path: Path) -> None:
    folder = Half("predicted", [Cell()], 50, seed=1, manifest={"half": "emulated"}).write(tmp_path)
    place = folder.rename(tmp_path / "program")
    with pytest.raises(ResultsError, match="simulated Cortex-M3, which is neither half"):
        halves(place)
    with pytest.raises(ResultsDamaged, match="half is emulated, but its folder"):
        halves(place.rename(tmp_path / "measured"))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("cases", 0, "n_measured"), "many"),
        (("cases", 0, "label"), 7),
        (("cases", 0), 7),
        (("cases", 0, "rows", 0, "gate"), []),
        (("cases", 0, "wasserstein"), 3),
        (("warnings",), "all"),
        (("study",), None),
        (("study",), "a\ud800"),
        # No float is as large.
        pytest.param(("cases", 0, "limit"), 10**400, id="limit"),
        pytest.param(("cases", 0, "n_measured"), 10**400, id="n_measured"),
        (("cases", 0, "speed"), SPEED | {"by_round": [], "began": []}),
        (("cases", 0, "speed"), SPEED | {"by_round": [1.0], "began": [0.0]}),
        (("cases", 0, "speed"), SPEED | {"by_round": [1.0] * 3}),
        (("cases", 0, "speed"), SPEED | {"by_round": [1.0, math.inf]}),
    ],
)
def test_comparison_of_another_shape_is_made_again(
    warifu: Run, path: tuple[str | int, ...], value: object
) -> None:
    made_up(Path("s"), [Cell()], n=50)
    assert warifu("compare", "s")[0] in {OK, 1}
    file = Path("s/comparison.json")
    assert store.load(Path("s")) is not None
    whole = json.loads(file.read_text())
    at: Any = whole
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    file.write_text(json.dumps(whole))
    assert store.load(Path("s")) is None
    assert warifu("report", "s")[0] == OK
    assert store.load(Path("s")) is not None


def test_speed_of_two_rounds_is_read(warifu: Run) -> None:
    made_up(Path("s"), [Cell()], n=50)
    assert warifu("compare", "s")[0] in {OK, 1}
    file = Path("s/comparison.json")
    whole = json.loads(file.read_text())
    whole["cases"][0]["speed"] = SPEED
    file.write_text(json.dumps(whole))
    kept = store.load(Path("s"))
    assert kept is not None and kept.cases[0].speed is not None
    assert warifu("report", "s")[0] == OK


@pytest.mark.parametrize("text", ["[" * 100_000, "7", '{"version": 6}'])
def test_text_that_is_no_comparison(text: str) -> None:
    Path("comparison.json").write_text(text)
    assert store.load(Path()) is None


def test_name_that_moves_the_cursor(warifu: Run) -> None:
    for name in ("a\x1b[2Jb", "a\u202eb", "a\nb"):
        made_up(Path(name), [Cell()], n=50)
        Path(name, "predicted", "manifest.json").write_text("{")
        code, _, err = warifu("report", name)
        assert code == USAGE
        assert "manifest is cut off" in one_line(err)
        assert not set(err) & set("\x1b\u202e")


def test_name_that_is_no_utf8(warifu: Run) -> None:
    made_up(Path("s"), [Cell()], n=50)
    Path("s").rename("a\udcffb")
    for verb in ("report", "compare"):
        code, _, err = warifu(verb, "a\udcffb")
        assert code == USAGE
        assert r"a\udcffb/predicted: its name is not UTF-8" in one_line(err)


@pytest.mark.parametrize("form", ["table", "md", "csv", "latex"])
def test_label_that_moves_the_cursor(warifu: Run, form: str) -> None:
    made_up(Path("s"), [Cell()], n=50)
    case = {"case_id": Cell().case_id, "label": "a\x1b[2J\u202eb", "evidence": "assumed"}
    change_manifest(Path("s/predicted"), cases=[case | {"case": {}}])
    for verb in ("report", "compare"):
        code, out, err = warifu(verb, "s", "--format", form)
        assert code in {OK, 1}
        assert not set(out + err) & set("\x1b\u202e")
        assert form == "latex" or r"a\x1b[2J\u202eb" in out


def test_folder_that_cannot_be_written(warifu: Run) -> None:
    made_up(Path("s"), [Cell()], n=50)
    Path("file").write_text("")
    code, _, err = warifu("report", "s", "--out", "file/page.html")
    assert code == ENVIRONMENT
    assert "file" in one_line(err)


def places(value: object, so_far: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a value of JSON; of a list the first two."""
    yield so_far
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value[:2]) if isinstance(value, list) else inner
    for key, one in inner:
        yield from places(one, (*so_far, key))


def rich(folder: Path) -> dict[str, dict[str, Any]]:
    """Both halves of a study with something under every key; their manifests."""
    about = {"link": {"profile": "lte-m", "rtt": 60_000_000, "jitter": [0, 5_000_000]}}
    about |= {"stack": {"protocol": "https", "tls": {}, "tcp": {"device": "linux-6.18"}}}
    about |= {"key_store": {"profile": "iot-safe-sakomoto"}}
    cases = [case_used(one.case_id, about, "x", [("link.rtt", "1 ms")]) for one in CELLS]
    way = {"lateness_us": {"p50": 9, "p99": 40.5, "max": 80}, "delivered": 3, "dropped_by_loss": 1}
    window = {"accepted": True, "late_fraction": 0.0005, "a_to_b": way, "b_to_a": way}
    both = {"cases": cases, "figures": TWO_VALUES, "vary": [["link.rtt", ["1 ms", "2 ms"]]]}
    both |= {"machine": {"kernel": "6.18.0", "tcp": {"tcp_sack": "1"}}, "warnings": ["late"]}
    both |= {"study": {"overrides": [["link.rtt", "1 ms"]], "file": "x.toml"}, "trials": 50}
    part: dict[str, Any] = {"first_trial": 0, "trials": 50, "route": {"initcwnd": 10}}
    part |= {"processor_shares": {"others": 0.1, "stolen": 0.0}}
    measured = {"link_reports": {CELLS[0].case_id: [window]}, "skipped": {"a": "b"}}
    measured |= {"cells": {CELLS[0].case_id: {"trials": 50, "parts": [part]}}, "rejections": [{}]}
    Half("predicted", CELLS, 50, seed=1, manifest=both).write(folder)
    Half("measured", CELLS, 50, seed=2, manifest=both | measured).write(folder)
    return {
        half: json.loads((folder / half / "manifest.json").read_text())
        for half in ("predicted", "measured")
    }


@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_value_anywhere_in_a_manifest(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.getbasetemp() / "rich"
    if folder not in KEPT:
        KEPT[folder] = rich(folder), compare_folder(folder)
    manifests, comparison = KEPT[folder]
    half = data.draw(st.sampled_from(["predicted", "measured"]))
    changed = copy.deepcopy(manifests[half])
    *path, last = data.draw(st.sampled_from([one for one in places(changed) if one]))
    at: Any = changed
    for key in path:
        at = at[key]
    at[last] = data.draw(st.sampled_from([None, 3, -1, 1e308, "x", "\x1b[2J", True, [], {}, [[]]]))
    write_manifest(folder / half, changed)
    try:
        tables = report_tables(folder, comparison)
        assert "\x1b" not in render(tables, Format.TABLE)
        with pytest.MonkeyPatch.context() as patch:
            # Pictures take most of the time, and show nothing of a manifest.
            patch.setattr(sections, "cdf", lambda *_: Picture("", "", False))
            page.render(folder, comparison)
    except ResultsError as error:
        assert f"{folder / half}" in str(error)
        assert "\n" not in str(error)
    finally:
        write_manifest(folder / half, manifests[half])


#: The folder of the test above, its manifests and its comparison: made once.
KEPT: dict[Path, tuple[dict[str, dict[str, Any]], Comparison]] = {}


def test_case_without_a_protocol(tmp_path: Path) -> None:
    folder = Half("predicted", [Cell()], 50, seed=1).write(tmp_path)
    (part,) = (folder / "observations").iterdir()
    rows = pl.read_parquet(part)
    for changed in (rows.drop("protocol"), rows.with_columns(protocol=pl.lit(None, pl.String))):
        changed.write_parquet(part)
        with pytest.raises(ResultsDamaged, match=f"case {Cell().case_id} has no protocol"):
            Results.open(folder)


_MOST_KB = 600_000
"""What Python, Polars and Altair take without any rows, twice."""


@pytest.mark.parametrize(
    ("trials", "words"),
    [(50, "has 20,000,000 rows, and its manifest's trials give 112,800"),
     (2**31, "has 20,000,000 rows, and 5,000,000 are the most that is read")],
)  # fmt: skip
def test_rows_without_number_in_a_small_file(tmp_path: Path, trials: int, words: str) -> None:
    """A megabyte of one row again and again took 3.8 GB."""
    Half("predicted", CELLS[:1], 50, 1).write(tmp_path)
    half = tmp_path / "predicted"
    part = next((half / "observations").iterdir())
    row = pl.read_parquet(part).filter(pl.col("metric") == "https.establishment").head(1)
    pl.concat([pl.concat([row] * 2_000)] * 10_000).write_parquet(part, row_group_size=262_144)
    content = part.read_bytes()
    assert len(content) < 1_500_000
    sealed = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    files = {f"observations/{part.name}": sealed}
    change_manifest(half, files=files, trials=trials, predict_trials=trials)
    report = [sys.executable, "-m", "warifu.cli", "report", tmp_path]
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, *report], capture_output=True, text=True, check=True
    )
    assert words in done.stderr
    assert int(done.stdout) < _MOST_KB


@pytest.mark.parametrize(
    ("columns", "rows", "words"),
    [(2_000, 1_000, "has 2,025 columns, and 256 are the most that is read"),
     (150, 2_000, "has 2,000 rows of 175 columns, and 320,000 values are the most that is read")],
)  # fmt: skip
def test_columns_without_number_in_a_small_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int, rows: int, words: str
) -> None:
    """Every column that is none of an observation is a setting, and was read."""
    assert limits.MOST_VALUES == 320_000_000
    monkeypatch.setattr(limits, "MOST_VALUES", 320_000)
    Half("predicted", CELLS[:1], 50, 1).write(tmp_path)
    half = tmp_path / "predicted"
    part = next((half / "observations").iterdir())
    row = pl.read_parquet(part).filter(pl.col("metric") == "https.establishment").head(1)
    more = [pl.lit("x").alias(f"more{number}") for number in range(columns)]
    few = pl.concat([row.with_columns(more)] * 1_000)
    pl.concat([few] * (rows // 1_000)).write_parquet(part, row_group_size=262_144)
    content = part.read_bytes()
    assert len(content) < 1_500_000
    sealed = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    files = {f"observations/{part.name}": sealed}
    change_manifest(half, files=files, trials=2**31, predict_trials=2**31)
    with pytest.raises(ResultsError, match=words):
        Results.open(half)


_PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=False)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def varint(value: int, length: int = 0) -> bytes:
    """A number as Thrift's compact protocol has it, with zeros behind up to a length."""
    value, digits = value * 2, []
    while value or len(digits) < max(1, length):
        digits.append(value & 127)
        value >>= 7
    return bytes(digit | 128 for digit in digits[:-1]) + bytes(digits[-1:])


def said_instead(content: bytes, old: int, new: int) -> bytes:
    """A Parquet file whose footer says another number."""
    length = int.from_bytes(content[-8:-4], "little")
    body, footer = content[: -8 - length], content[-8 - length : -8]
    written = varint(old)
    assert written in footer
    return body + footer.replace(written, varint(new, len(written))) + content[-8:]


def small_files_of_much() -> Iterator[Any]:
    """Rows of one observation to a file that is small and does not say what it holds."""
    # Few: a test's own memory counts for what it starts.
    long = [chr(97 + number) * (16 << 20) for number in range(4)]

    def texts(row: pl.DataFrame, column: str, file: Path) -> bytes:
        rows = [row.with_columns(pl.lit(text).alias(column)) for text in long]
        pl.concat(rows).write_parquet(file, compression="zstd")
        return file.read_bytes()

    def lied(row: pl.DataFrame, file: Path) -> bytes:
        content = texts(row, "metric", file)
        found = [chunk for _, chunk in pages._chunks(io.BytesIO(content)) if chunk.name == "metric"]
        assert found[0].bytes > len(long) * len(long[0])
        return said_instead(content, found[0].bytes, 1_000)

    def rows(row: pl.DataFrame, file: Path) -> bytes:
        many = pl.concat([pl.concat([row] * 1_024)] * 1_024)
        many.write_parquet(file, row_group_size=many.height // 4)
        return said_instead(file.read_bytes(), many.height // 4, 10)

    yield pytest.param(lambda *a: texts(a[0], "metric", a[1]), "in the column metric", id="metric")
    yield pytest.param(lambda *a: texts(a[0], "device", a[1]), "in the column device", id="device")
    yield pytest.param(lied, "in the column metric, and its footer says 1,000 and 4", id="length")
    yield pytest.param(rows, "and its footer says", id="rows")


@pytest.mark.parametrize(("content", "words"), list(small_files_of_much()))
def test_pages_of_a_small_file_that_take_gigabytes(
    tmp_path: Path, content: Callable[[pl.DataFrame, Path], bytes], words: str
) -> None:
    Half("predicted", CELLS[:1], 50, 1).write(tmp_path)
    half = tmp_path / "predicted"
    part = next((half / "observations").iterdir())
    row = pl.read_parquet(part).filter(pl.col("metric") == "https.establishment").head(1)
    small = content(row, part)
    part.write_bytes(small)
    assert len(small) < 1_500_000
    sealed = {"bytes": len(small), "sha256": hashlib.sha256(small).hexdigest()}
    change_manifest(half, files={f"observations/{part.name}": sealed})
    for verb in ("report", "compare"):
        command = [sys.executable, "-m", "warifu.cli", verb, tmp_path]
        done = subprocess.run(
            [sys.executable, "-c", _PEAK, *command], capture_output=True, text=True, check=True
        )
        assert words in done.stderr or verb == "compare", done.stderr
        assert int(done.stdout.splitlines()[-1]) < 300_000


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_damaged_structure_of_a_file_ends_in_a_sentence(data: st.DataObject) -> None:
    file = io.BytesIO()
    pl.DataFrame({"a": ["x", "y"] * 50, "b": list(range(100))}).write_parquet(file)
    content = bytearray(file.getvalue())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        pages.refuse_large(io.BytesIO(bytes(content[: data.draw(st.integers(0, len(content)))])))
    except pages.PagesRefused as refused:
        assert "\n" not in str(refused)


def test_text_that_begins_as_the_one_before_is_not_read() -> None:
    """DELTA_BYTE_ARRAY: a page of some bytes whose texts have any length."""
    file = io.BytesIO()
    pl.DataFrame({"a": ["x"]}).write_parquet(file, compression="uncompressed")
    pages.refuse_large(file)
    about = next(pages._chunks(file))[1]
    file.seek(about.start)
    header = pages._Reader(file.read(about.length))
    first = header.structure(pages._PAGE)
    at = about.start + (header.at + first[3] if first[1] == 2 else 0)
    file.seek(at)
    page = bytearray(file.read())
    # The field `encoding` of the header: type i32, after the number of values, 1.
    found = page.index(bytes([0x15]) + varint(1) + bytes([0x15])) + 3
    page[found] = varint(7)[0]
    file.seek(at)
    file.write(page)
    with pytest.raises(pages.PagesRefused, match="DELTA_BYTE_ARRAY in the column a"):
        pages.refuse_large(file)

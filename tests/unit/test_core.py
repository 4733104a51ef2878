# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The compiled core, as Python sees it: studies, traces, observations, manifests."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from support.paths import ROOT
from support.studies import PROFILES, STUDY, host, rows, study
from warifu import _core


def test_a_study_spans_its_cases_in_order() -> None:
    meter = study()
    assert (meter.name, meter.seed, meter.trials) == ("meter", 7, 50)
    assert meter.vary == [("link.rtt", ["60 ms", "150 ms"]), ("link.loss", ["0 %", "2 %"])]
    metric, statistic, operator, bound, text = meter.require[0]
    assert (metric, statistic, operator, bound) == ("https.establishment", "p99", "<", 5e9)
    assert text == "https.establishment.p99 < 5 s"
    assert [case.label for case in meter.cases][1:3] == [
        "rtt 60 ms, loss 2 %",
        "rtt 150 ms, loss 0 %",
    ]
    assert len({case.id for case in meter.cases}) == 4


def test_a_case_shows_itself_as_json_and_as_columns() -> None:
    case = study().cases[3]
    assert json.loads(case.json)["link"]["rtt"] == 150_000_000
    assert case.columns["rtt_ns"] == 150_000_000
    names = [name for name, _, _, _ in _core.columns()]
    assert names[:2] == ["study", "case_id"]
    assert list(case.columns) == names[2 : names.index("run_id")]


def test_kernels_of_a_case() -> None:
    (case, *_) = study().cases
    ends = [
        ("device.tcp", "linux-6.18", (6, 18, None)),
        ("server.tcp", "linux-6.18", (6, 18, None)),
    ]
    assert case.kernels == ends
    assert _core.kernel_release("6.1.0-40-amd64") == (6, 1, 0)
    assert _core.kernel_release("Darwin") is None


def test_choices_of_tls_that_go_together() -> None:
    for tls in _core.TLS_VERSIONS:
        for certificate in _core.CERTIFICATES:
            for aead in _core.AEADS:
                assert _core.aead(_core.cipher_suite(tls, certificate, aead)) == aead
    assert [way["name"] for way in _core.resumptions("1.2")] == ["ticket"]
    assert {way["name"]: way["has_key_exchange"] for way in _core.resumptions("1.3")} == {
        "psk_dhe_ke": True,
        "psk_ke": False,
        "0-rtt": True,
    }
    with pytest.raises(_core.WarifuError, match=r'^cipher_suite is "TLS_NULL": expected one of'):
        _core.aead("TLS_NULL")


def test_mistake_of_a_profile() -> None:
    text = 'name = "d"\ndescription = "a device"\nscop = "all"\n'
    text += '[[operation]]\nname = "client.sign"\nwarm = "1 ms"\n'
    assert (_core.profile_mistake(("device", "d", text, "d.toml")) or "").startswith("scop is unk")
    good = text.replace("scop", "scope")
    assert _core.profile_mistake(("device", "d", good, "d.toml")) is None


def test_profile_of_unknown_kind_is_not_found_good() -> None:
    with pytest.raises(_core.WarifuError, match=r'^d\.toml: d is of kind "gadget": expected one'):
        _core.profile_mistake(("gadget", "d", "", "d.toml"))


def test_fields_of_a_metric_are_those_of_its_interface() -> None:
    interface = ast.parse((ROOT / "python" / "warifu" / "_core.pyi").read_text())
    (metric,) = (
        one for one in interface.body if isinstance(one, ast.ClassDef) and one.name == "Metric"
    )
    fields = [
        one.target.id
        for one in metric.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    ]
    assert [list(one) for one in _core.metrics()] == [fields] * len(_core.metrics())


def test_flags_take_the_place_of_what_the_text_says() -> None:
    meter = study(("link.rtt", "20 ms"))
    assert [case.columns["rtt_ns"] for case in meter.cases] == [20_000_000] * 2
    question = _core.Study.from_choices(
        [("device", "host"), ("server", "host"), ("link", "lte-m")], [*PROFILES, host()]
    )
    assert question.cases[0].columns["link"] == "lte-m"


def test_a_mistake_is_one_line_that_names_file_key_and_fix() -> None:
    text = STUDY.replace('"2 %"', '"1.2"')
    with pytest.raises(_core.WarifuError) as caught:
        _core.Study.parse(text, "meter.toml", [*PROFILES, host()], [("device", "host")])
    message = str(caught.value)
    assert message.startswith("meter.toml: ")
    assert "link.loss" in message
    assert "\n" not in message
    assert _core.mistakes(text, "meter.toml", PROFILES)[0].startswith("meter.toml: ")
    assert _core.mistakes(STUDY, "meter.toml", [*PROFILES, host()], [("server", "host")]) == []
    with pytest.raises(_core.WarifuError, match=r"x\.toml: .*kind .*expected one of device"):
        _core.Study.parse(STUDY, "meter.toml", [("gadget", "x", "", "x.toml")])


def test_every_input_of_a_case_has_a_source_or_is_assumed() -> None:
    inputs = study().inputs(1)
    assert {"name", "value", "unit", "source", "kind", "evidence"} == set(inputs[0])
    assert any("ClientHello" in figure["name"] for figure in inputs)
    assert all(figure["source"] or figure["kind"] == "assumed" for figure in inputs)
    with pytest.raises(IndexError, match="below 4"):
        study().inputs(4)


def test_a_trace_and_a_request_are_text() -> None:
    meter = study()
    assert "ClientHello" in _core.trace_text(meter, 0)
    assert _core.request_text(meter.cases[0]).startswith("GET / HTTP/1.1\r\n")
    with pytest.raises(IndexError):
        _core.trace_text(meter, 99)


def test_observations_come_back_as_they_went_in(tmp_path: Path) -> None:
    case = study().cases[3]
    path = tmp_path / f"{case.id}.parquet"
    _core.write_observations(path, "meter", case.json, "run-1", "emulated", "assumed", rows())
    frame = pl.read_parquet(path)
    types = {"text": pl.String, "bool": pl.Boolean, "u16": pl.UInt16, "u32": pl.UInt32}
    types |= {"u64": pl.UInt64, "f64": pl.Float64}
    assert dict(frame.schema) == {name: types[kind] for name, kind, _, _ in _core.columns()}
    assert frame["value"].to_list() == [184e6, 184e6 + 1, 184e6 + 2]
    assert frame["seed"].to_list() == [2**64 - 1] * 3
    assert frame["trial"].to_list() == [0, 1, 2]
    assert frame.row(0, named=True)["case_id"] == case.id
    assert frame.select(case.columns.keys()).row(0, named=True) == case.columns
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"metric": ["https.establishmint"] * 3}, "metric"),
        ({"unit": ["ms"] * 3}, 'expected "ns"'),
        ({"stage": ["lunch"] * 3}, "stage"),
        ({"weight": [1.0]}, "different lengths"),
        ({"trial": [-1, 0, 1]}, "trial"),
    ],
)
def test_rows_without_the_schema_are_refused(
    tmp_path: Path, changed: dict[str, list[Any]], message: str
) -> None:
    case = study().cases[0]
    path = tmp_path / "case.parquet"
    with pytest.raises(_core.WarifuError, match=message) as caught:
        _core.write_observations(
            path, "meter", case.json, "run-1", "emulated", "assumed", rows(**changed)
        )
    assert str(caught.value).startswith(f"{path}: ")
    assert not list(tmp_path.iterdir())


def test_a_missing_column_and_a_strange_case_are_refused(tmp_path: Path) -> None:
    case = study().cases[0]
    path = tmp_path / "a.parquet"
    short = rows()
    del short["seed"]

    def write(case_json: str, method: str, evidence: str, rows: dict[str, list[Any]]) -> None:
        _core.write_observations(path, "meter", case_json, "run-1", method, evidence, rows)

    with pytest.raises(_core.WarifuError, match="lack the column seed"):
        write(case.json, "emulated", "assumed", short)
    with pytest.raises(_core.WarifuError, match="case is not a case"):
        write("{}", "emulated", "assumed", rows())
    with pytest.raises(_core.WarifuError, match='method is "guessed": expected one of'):
        write(case.json, "guessed", "assumed", rows())
    with pytest.raises(_core.WarifuError, match='evidence is "hoped": expected one of'):
        write(case.json, "emulated", "hoped", rows())


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    case = study().cases[0]
    path = tmp_path / "missing" / "a.parquet"
    with pytest.raises(_core.WarifuError, match=r"missing/a\.parquet: cannot create"):
        _core.write_observations(path, "meter", case.json, "run-1", "emulated", "assumed", rows())


def test_a_manifest_is_checked_and_keeps_what_it_does_not_know(tmp_path: Path) -> None:
    manifest = {
        "schema_version": _core.SCHEMA_VERSION,
        "half": "measured",
        "run_id": "run-1",
        "study": {"name": "meter", "sha256": "", "text": STUDY},
        "seed": 7,
        "started": "2026-01-01T00:00:00Z",
        "cells": {"b": {"trials": 1}, "a": {"trials": 2, "more": 3}},
    }
    _core.write_manifest(tmp_path, json.dumps(manifest))
    written = json.loads((tmp_path / "manifest.json").read_text())
    assert written["cells"] == manifest["cells"]
    assert written["complete"] is False
    for wrong in ({"schema_version": 99}, {"half": "guessed"}, {"seed": -1}, {"cells": {"b": 1}}):
        with pytest.raises(_core.WarifuError, match=r"manifest\.json: "):
            _core.write_manifest(tmp_path, json.dumps(manifest | wrong))
    assert json.loads((tmp_path / "manifest.json").read_text()) == written

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What is read from a results folder, however it was stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from support.studies import MANIFEST, study
from support.synthetic import Cell, Half, change_manifest
from warifu import _core
from warifu.compare.require import statistic
from warifu.results import Results, halves, labels


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Results]:
    """The same trials as distributions and one by one, some with lost packets."""
    found = []
    for keep in ("distribution", "trials"):
        folder = tmp_path_factory.mktemp(keep) / "predicted"
        _core.predict(study(("predict_trials", "2000")), folder, MANIFEST, keep=keep)
        found.append(Results.open(folder))
    return found[0], found[1]


def test_mean_stages_add_up_to_the_mean(both: tuple[Results, Results]) -> None:
    recovered = 0.0
    for results in both:
        for case_id in results.cases:
            stages = results.stages(case_id)
            mean = results.distribution(case_id, results.whole(case_id)).mean()
            assert sum(stages.values()) == pytest.approx(mean, rel=1e-9)
            recovered = max(recovered, stages.get("loss_recovery", 0.0))
    assert recovered > 0.0


def test_stages_do_not_depend_on_how_they_were_stored(both: tuple[Results, Results]) -> None:
    stored, every = both
    assert list(stored.cases) == list(every.cases)
    for case_id in stored.cases:
        assert every.stages(case_id) == pytest.approx(stored.stages(case_id), rel=1e-9)
        # Which of equally slow trials are among the slowest does not matter.
        slowest = [sum(one.stages(case_id, slowest=True).values()) for one in both]
        assert slowest[1] == pytest.approx(slowest[0], rel=1e-9)


def test_cases_of_an_earlier_question_are_left_out(tmp_path: Path) -> None:
    """A measurement in the folder of another question keeps what that has measured."""
    cells = [Cell(), Cell(rtt_ms=80)]
    path = Half("measured", cells, 50, seed=1).write(tmp_path)
    both = Results.open(path)
    assert set(both.cases) == {cell.case_id for cell in cells}
    asked = cells[1].case_id
    listed = [case for case in both.manifest["cases"] if case["case_id"] == asked]
    change_manifest(path, cases=listed)
    assert list(Results.open(path).cases) == [asked]


def test_probabilities_as_weights(tmp_path: Path) -> None:
    path = Half("predicted", [Cell()], 50, seed=1).write(tmp_path)
    part = next(path.glob("observations/*.parquet"))
    sample = Results.open(path).distribution(Cell().case_id, "https.establishment")
    assert (sample.exact, sample.independent) == (False, 50)
    exact = pl.read_parquet(part).with_columns(weight=pl.lit(1 / 50), exact=pl.lit(value=True))
    exact.write_parquet(part)
    results = Results.open(path)
    distribution = results.distribution(Cell().case_id, "https.establishment")
    assert distribution.exact
    assert distribution.n == pytest.approx(1.0)
    for p in (0.02, 0.5, 0.95, 1.0):
        assert distribution.quantile(p) == sample.quantile(p)
    median, interval = statistic(distribution, "p50", "seed")
    assert interval == (median, median)


def test_a_folder_without_observations_is_no_half(tmp_path: Path) -> None:
    predicted = Half("predicted", [Cell()], 20, seed=1).write(tmp_path)
    measured = Half("measured", [Cell()], 20, seed=2).write(tmp_path)
    assert halves(tmp_path) == (predicted, measured)
    for part in (measured / "observations").iterdir():
        part.unlink()
    change_manifest(measured, complete=False, finished=None)
    assert halves(tmp_path) == (predicted, None)


def test_the_only_case_is_named_by_what_a_reader_would_have_to_guess() -> None:
    case = {"protocol": "https", "tls": "1.3", "session": "full", "loss_mean": 0.0}
    case |= {"authentication": "mutual", "key_store": "software", "device": "gr-peach"}
    assert labels({"x": case}) == {
        "x": "https · TLS 1.3 · full · mutual authentication · key store software · no loss"
    }


def test_the_only_case_of_coap_says_whether_it_is_confirmable() -> None:
    case: dict[str, Any] = {"protocol": "coap", "coap_type": "CON", "rtt_ns": 60_000_000}
    case |= {"tls": None, "session": None, "authentication": None, "key_store": "software"}
    case |= {"loss_mean": 0.0}
    assert labels({"x": case}) == {"x": "coap · CON · RTT 60 ms · no loss"}
    assert labels({"x": case | {"coap_type": "NON"}}) == {"x": "coap · NON · RTT 60 ms · no loss"}


@pytest.mark.parametrize(
    ("middleware", "name"), [("cyclonedds", "Cyclone DDS"), ("fastdds", "Fast DDS")]
)
def test_the_only_case_of_dds_names_its_middleware(middleware: str, name: str) -> None:
    case = {"protocol": "dds", "dds_middleware": middleware, "dds_crypto": "builtin"}
    assert labels({"x": case}) == {"x": f"dds · {name} · builtin plugin"}

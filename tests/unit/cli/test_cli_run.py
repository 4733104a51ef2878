# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu run`: with a lab and without, judged by its requirements; results are the caller's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.commands import DEVICE, FakePredict, Measured, Run, one_line, study_name, unavailable
from support.synthetic import Cell, Half
from warifu.cli import ending, halves
from warifu.cli.errors import ENVIRONMENT, FAILED, OK
from warifu.compare.gates import Verdict


@pytest.mark.parametrize(("bound_ns", "code"), [(5e9, OK), (1e6, FAILED)])
def test_run_without_a_lab_predicts_and_says_so(
    warifu: Run,
    fake: Callable[[FakePredict], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    bound_ns: float,
    code: int,
) -> None:
    fake(FakePredict(bound_ns=bound_ns))
    monkeypatch.setattr(halves, "measure", unavailable)
    got, out, _ = warifu("run", *DEVICE, "--out", "here")
    assert got == code
    said = " ".join(out.split())
    assert "nothing was measured: network namespaces cannot be made: run as root" in said
    assert "next: warifu doctor" in said
    assert ("p99: met" if code == OK else "p99: missed") in said
    assert (tmp_path / "here" / "report.html").is_file()


def test_run_goes_by_its_requirements(
    warifu: Run, fake: Callable[[FakePredict], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A measured half contradicts only if its whole interval does, and for the study's cases."""
    fake(FakePredict())
    stale = Cell(rtt_ms=60_000)
    for folder, measured, code in (
        ("a", Measured(), OK),
        ("b", Measured(scale=100.0), FAILED),
        ("c", Measured(cells=[Cell(), stale]), OK),
    ):
        monkeypatch.setattr(halves, "measure", measured)
        got, out, _ = warifu("run", *DEVICE, "--out", folder)
        assert got == code, out


def test_run_where_no_case_can_be_measured_writes_its_report(
    warifu: Run, fake: Callable[[FakePredict], None], tmp_path: Path
) -> None:
    """With the real lab, which is not asked to do anything, so that root is not needed."""
    fake(FakePredict())
    card = ("--key-store", "iot-safe-sakomoto")
    for _ in range(2):
        code, out, err = warifu("run", *DEVICE, *card, "--out", "here")
        assert code == OK, err
        assert "p99: met" in out
        assert "nothing was measured" in out
        assert not (tmp_path / "here" / "measured").exists()
        assert (tmp_path / "here" / "report.html").is_file()
    assert warifu("measure", *DEVICE, *card, "--out", "alone")[0] == ENVIRONMENT
    assert not (tmp_path / "alone").exists()


def test_old_measurements_do_not_spoil_a_run_without_one(
    warifu: Run, fake: Callable[[FakePredict], None], tmp_path: Path
) -> None:
    fake(FakePredict())
    same = {"study": {"name": study_name()}}
    Half("measured", [Cell(rtt_ms=99)], 50, seed=2, manifest=same).write(tmp_path / "here")
    code, out, err = warifu("run", *DEVICE, "--no-measure", "--out", "here")
    assert code == OK, err
    assert "checked: not measured here" in out
    page = (tmp_path / "here" / "report.html").read_text()
    assert "measured (thin, dashed)" not in page
    assert "was not compared with this prediction" in page


def test_what_other_tools_measured_is_set_aside_by_run_alone(
    warifu: Run,
    fake: Callable[[FakePredict], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    fake(FakePredict())
    lab = Measured()
    monkeypatch.setattr(halves, "measure", lab)
    here, aside = tmp_path / "here", tmp_path / "here" / "measured.before-run-old"
    assert warifu("run", *DEVICE, "--out", "here")[0] == OK
    before = (here / "measured" / "manifest.json").stat().st_ino

    lab.works = False
    code, _, err = warifu("run", *DEVICE, "--out", "here")
    assert code == OK
    assert "here/measured.before-run-old is moved back to here/measured" in err
    assert (here / "measured" / "manifest.json").stat().st_ino == before

    lab.works = True
    code, _, err = warifu("run", *DEVICE, "--out", "here")
    assert code == OK
    assert "kernel 'a', now it is 'b': they are moved to here/measured.before-run-old" in err
    assert (aside / "manifest.json").stat().st_ino == before
    assert (here / "measured" / "manifest.json").is_file()

    code, _, err = warifu("measure", *DEVICE, "--out", "here")
    assert code == ENVIRONMENT
    assert "choose another folder, or move this one away" in one_line(err)


def comparison(*needed: int | None) -> SimpleNamespace:
    """Undecided cases of 200 trials each, one of whose figures needs so many."""
    return SimpleNamespace(
        cases=[
            SimpleNamespace(
                verdict=Verdict.PASS,
                not_judged="",
                n_measured=200,
                rows=[
                    SimpleNamespace(
                        gate="2 %", verdict=None, no_statement="too few trials", trials_needed=one
                    ),
                    SimpleNamespace(
                        gate="2 %", verdict=Verdict.PASS, no_statement="", trials_needed=10**9
                    ),
                ],
            )
            for one in needed
        ]
    )


def test_more_trials_are_offered_where_they_decide_in_an_hour() -> None:
    assert ending._decides(comparison(1_234, 321)) == (1_300, "")
    assert ending._decides(comparison(1_234, 37_000_000, None)) == (1_300, " 1 of 3")
    assert ending._decides(comparison(37_000_000)) is None
    assert ending._decides(comparison(None, None)) is None
    assert ending._decides(comparison(4_000)) == (4_000, "")
    assert ending._decides(comparison(7)) == (7, "")

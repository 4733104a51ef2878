# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Whole measurements: results, resuming, rejections, and what is left after any end."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from support import needs
from support.laboratory import SmallStudy, make_case, study_of
from support.paths import ROOT
from warifu.lab import LabError, LabUnavailable, Settings, cell, link, measure, workplace
from warifu.lab.case import Cell
from warifu.lab.errors import ResultsMixed, RunRejected
from warifu.lab.measure import Progress
from warifu.lab.store import Part
from warifu.results import Results
from warifu.results.packets import parts_with_packets

pytestmark = needs.root

# The function of the same name hides the module.
measure_module = sys.modules["warifu.lab.measure"]
MS = 1_000_000
FAST = Settings(rate_per_second=50.0, late_fraction_max=1.0)
CASES = (make_case(), make_case(link__rtt=20 * MS))


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine that runs the tests may be busy, and the link late again and again."""
    monkeypatch.setattr(measure_module, "MAX_ATTEMPTS", 100)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Part]:
    """The parts that are measured from now on."""
    parts: list[Part] = []
    run = cell.Bench.run

    def counted(self: cell.Bench, case: Cell, part: Part, stop: Any) -> Any:  # noqa: ANN401
        result = run(self, case, part, stop)
        parts.append(part)
        return result

    monkeypatch.setattr(cell.Bench, "run", counted)
    return parts


def test_study_is_measured_to_observations(tmp_path: Path) -> None:
    seen: list[Progress] = []
    summary = measure(
        study_of(*CASES), tmp_path, progress=seen.append, part_trials=4, settings=FAST
    )
    assert summary.complete
    assert summary.measured == [case.case_id for case in CASES]
    assert (seen[-1].cells_done, seen[-1].trials_done, seen[-1].trials) == (2, 12, 12)
    for case in CASES:
        rows = pl.read_parquet(tmp_path / "observations" / f"{case.case_id}.parquet")
        assert rows["case_id"].cast(pl.String).unique().to_list() == [case.case_id]
        assert rows["method"].unique().to_list() == ["emulated"]
        counts = dict(rows.group_by(pl.col("metric").cast(pl.String)).len().iter_rows())
        assert counts == dict.fromkeys(
            (
                "https.establishment",
                "tcp.connect",
                "tls.handshake",
                "https.first_response",
                "https.response_complete",
                "bytes.client_sent",
                "bytes.server_sent",
                "tcp.syn_timeouts",
                "tcp.client_retransmissions",
            ),
            6,
        )
        times = rows.filter(pl.col("metric").cast(pl.String) == "https.establishment")
        assert sorted(times["trial"].to_list()) == list(range(6))
        assert times["value"].min() >= 3 * case.rtt_ns
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["complete"]
    assert manifest["half"] == "measured"
    assert manifest["run_id"] == summary.run_id
    assert manifest["machine"]["tcp"]["tcp_no_metrics_save"] == "1"
    assert set(manifest["link_reports"]) == {case.case_id for case in CASES}
    assert all(report["accepted"] for report in manifest["link_reports"][CASES[0].case_id])
    assert {"nginx", "warifu-link", "openssl of nginx"} <= set(manifest["tools"])
    assert not (tmp_path / "parts").exists()


def test_interrupted_measurement_resumes(tmp_path: Path, ran: list[Part]) -> None:
    study = study_of(*CASES)

    def after_three(progress: Progress) -> None:
        # Of two trials each. An attempt that was rejected is told as well, and makes none.
        if progress.trials_done == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(study, tmp_path, progress=after_three, part_trials=2, settings=FAST)
    before = list(ran)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["complete"] is False
    assert measure(study, tmp_path, part_trials=2, settings=FAST).complete
    measured = [(part.case_id, part.first_trial) for part in ran]
    assert len(measured) == len(set(measured)) == 6, "every part once, over both runs"
    assert len(before) == 3
    again = json.loads((tmp_path / "manifest.json").read_text())
    assert again["run_id"] == manifest["run_id"]
    finished = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    assert measure(study, tmp_path, part_trials=2, settings=FAST).complete
    assert len(ran) == 6
    assert finished == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}


def test_cells_of_another_question_stay_and_are_told(tmp_path: Path, ran: list[Part]) -> None:
    assert measure(study_of(CASES[0]), tmp_path, trials=2, settings=FAST).complete
    seen = list[Progress]()
    other = study_of(CASES[1])
    assert measure(other, tmp_path, trials=2, progress=seen.append, settings=FAST).complete
    said = "".join(one.message for one in seen)
    assert "has 1 measured case of another question as well; they stay" in said
    assert list(Results.open(tmp_path).cases) == [CASES[1].case_id]
    assert measure(study_of(*CASES[:2]), tmp_path, trials=2, settings=FAST).complete
    assert len(ran) == 2
    assert set(Results.open(tmp_path).cases) == {case.case_id for case in CASES[:2]}


def test_fewer_trials_keep_finished_cells(tmp_path: Path, ran: list[Part]) -> None:
    study, seen = study_of(CASES[0]), list[Progress]()
    path = tmp_path / "observations" / f"{CASES[0].case_id}.parquet"
    measure(study, tmp_path, trials=6, settings=FAST)
    before = path.read_bytes()
    assert measure(study, tmp_path, trials=2, progress=seen.append, settings=FAST).complete
    assert len(ran) == 1
    assert path.read_bytes() == before
    said = [progress.message for progress in seen if progress.message]
    assert len(said) == 1
    assert "1 of 1 cases keep the 6 trials that they have, more than the 2 asked for" in said[0]

    assert measure(study, tmp_path, trials=8, progress=seen.append, settings=FAST).complete
    assert "have 6 trials and are measured anew with 8" in "".join(one.message for one in seen)
    file = json.loads((tmp_path / "manifest.json").read_text())["files"]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert file.pop(f"observations/{path.name}") == {
        "bytes": path.stat().st_size,
        "sha256": digest,
    }
    assert set(file) == {f"packets/{one.name}" for one in (tmp_path / "packets").iterdir()}
    assert Results.open(tmp_path).failures(CASES[0].case_id) == 0


def test_scripted_drops_are_in_the_log_of_their_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    impairments, before = link.impairments, 0

    def dropping(of: Any) -> dict[str, Any]:  # noqa: ANN401
        # The SYN; its repetition is the second, then come the ACK and ClientHello, which is lost.
        script = {"drop_script_a_to_b": [before, before + 3], "drop_script_b_to_a": []}
        return impairments(of) | {"loss": {"kind": "none"}} | script

    monkeypatch.setattr(link, "impairments", dropping)
    case = make_case(link__rtt=20 * MS)
    # Far enough apart for the first to have all packets that the script counts.
    slow = Settings(rate_per_second=0.4, late_fraction_max=1.0)
    # A connection that is not measured comes first, with some acknowledgements more or less, which
    # differ from run to run.
    for attempt, before in itertools.product(range(4), range(7, 12)):
        folder = tmp_path / f"{attempt}-{before}"
        assert measure(study_of(case, trials=2), folder, settings=slow).complete
        results = Results.open(folder)
        (part,) = parts_with_packets(folder, results.manifest, case.case_id)
        dropped = part.packets.filter(pl.col("fate") == 2)
        if dropped["seq"].head(1).to_list() == [0]:
            break
    assert part.packets["trial"].unique().sort().to_list() == [0, 1]
    assert dropped.select("trial", "direction", "seq", "payload", "copy", "delay_ns").rows() == [
        (0, 0, 0, 0, 1, None),
        (0, 0, 1, 236, 1, None),
    ]
    # Both were sent again, and then came through in the link's time.
    for trial, direction, seq, payload in dropped.select(
        "trial", "direction", "seq", "payload"
    ).rows():
        again = part.packets.filter(
            trial=trial, direction=direction, seq=seq, payload=payload, copy=2
        )
        assert again["delay_ns"].to_list() == [10 * MS]
    hello = part.messages.filter(trial=0, direction=0, message=0).rows()
    assert hello == [(0, 0, 0, "ClientHello", 236)]
    for metric in ("tcp.syn_timeouts", "tcp.client_retransmissions"):
        rows = results.rows(case.case_id).filter(pl.col("metric").cast(pl.String) == metric)
        assert rows.sort("trial")["value"].to_list() == [1.0, 0.0], metric


def interrupt_after_two_parts(study: SmallStudy, folder: Path) -> None:
    """Measures two parts of two trials, and is then interrupted."""

    def after_two(progress: Progress) -> None:
        if progress.trials_done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(study, folder, progress=after_two, part_trials=2, settings=FAST)


def test_part_without_its_packets_is_measured_again(tmp_path: Path, ran: list[Part]) -> None:
    study = study_of(CASES[0])
    interrupt_after_two_parts(study, tmp_path)
    kept = sorted(tmp_path.glob("parts/*/*.parquet"))
    assert len(kept) == 4, "packets and messages of two parts"
    kept[0].write_bytes(kept[0].read_bytes()[:-1])
    spoilt = ran[0] if kept[0].name.startswith(f"{ran[0].case_id}-{ran[0].first_trial}") else ran[1]
    assert measure(study, tmp_path, part_trials=2, settings=FAST).complete
    assert [part.first_trial for part in ran].count(spoilt.first_trial) == 2
    assert len(ran) == 4
    parts = list(parts_with_packets(tmp_path, Results.open(tmp_path).manifest, CASES[0].case_id))
    assert [part.first_trial for part in parts] == [0, 2, 4]
    names = {f"packets/{path.name}" for path in (tmp_path / "packets").iterdir()}
    # Measured anew in other parts: none of the earlier ones' files is left.
    assert measure(study, tmp_path, trials=7, part_trials=7, settings=FAST).complete
    again = {f"packets/{path.name}" for path in (tmp_path / "packets").iterdir()}
    assert len(names) == 6 and len(again) == 2
    Results.open(tmp_path)


def test_changed_packets_of_a_part_are_refused(tmp_path: Path) -> None:
    study = study_of(CASES[0])
    interrupt_after_two_parts(study, tmp_path)
    changed = next(tmp_path.glob("parts/*/*-0.parquet"))
    content = changed.read_bytes()
    changed.write_bytes(content[:9] + bytes([content[9] ^ 1]) + content[10:])
    said = rf"{changed.name}: was changed after it was written: remove it and run"
    with pytest.raises(LabError, match=said):
        measure(study, tmp_path, part_trials=2, settings=FAST)
    changed.unlink()
    assert measure(study, tmp_path, part_trials=2, settings=FAST).complete


def test_stop_between_parts_leaves_a_readable_folder(tmp_path: Path) -> None:
    count = itertools.count()
    summary = measure(
        study_of(*CASES),
        tmp_path,
        stop=lambda: next(count) > 0,
        settings=FAST,
    )
    assert not summary.complete
    assert json.loads((tmp_path / "manifest.json").read_text())["complete"] is False


def test_rejected_parts_are_repeated_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = cell.Bench.run
    attempts = itertools.count()

    def late_twice(self: cell.Bench, case: Cell, part: Part, stop: Any) -> Any:  # noqa: ANN401
        if next(attempts) < 2:
            raise RunRejected(["0.5 % of packets were late"], {"accepted": False})
        return run(self, case, part, stop)

    monkeypatch.setattr(cell.Bench, "run", late_twice)
    told: list[Progress] = []
    summary = measure(study_of(CASES[0]), tmp_path, settings=FAST, progress=told.append)
    assert summary.complete
    # The first is said, and the others counted.
    (message,) = [one.message for one in told if one.message]
    assert message.startswith("a part was rejected unseen")
    assert told[-1].rejected == summary.rejections
    assert (told[0].seconds_left or 0) > 0 and told[-1].seconds_left == 0
    rejections = json.loads((tmp_path / "manifest.json").read_text())["rejections"]
    assert len(rejections) == summary.rejections >= 2
    assert rejections[0]["reasons"] == "0.5 % of packets were late"
    assert rejections[0]["case_id"] == CASES[0].case_id


def late(*_: object) -> None:
    raise RunRejected(["0.5 % of packets were more than 500 us late"], {"accepted": False})


def test_late_link_in_every_cell_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [make_case(link__rtt=rtt * MS) for rtt in range(1, 9)]
    monkeypatch.setattr(cell.Bench, "run", late)
    monkeypatch.setattr(measure_module, "MAX_ATTEMPTS", 3)
    summary = measure(study_of(*cases), tmp_path, settings=FAST)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert summary.measured == []
    assert set(summary.given_up) == {case.label for case in cases} == set(manifest["skipped"])
    assert summary.given_up[cases[0].label] == (
        "every attempt was rejected (0.5 % of packets were more than 500 us late); the machine is "
        "too busy: stop other work and run the same command again"
    )
    begun = 3 * (len(cases) + measure_module.PATIENCE)
    assert len(manifest["rejections"]) == begun, "all once, and again until patience ends"


def test_what_is_given_up_says_its_own_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "3 packets were longer than the MTU: set it in the configuration, not on the device"

    def rejected(self: cell.Bench, case: Cell, part: Part, stop: Any) -> Any:  # noqa: ANN401
        if case.case_id == CASES[0].case_id:
            late()
        raise RunRejected([long], {"accepted": False})

    monkeypatch.setattr(cell.Bench, "run", rejected)
    monkeypatch.setattr(measure_module, "MAX_ATTEMPTS", 1)
    # The rest, given up unseen with the first, has reasons of its own as well.
    monkeypatch.setattr(measure_module, "PATIENCE", 1)
    summary = measure(study_of(*CASES), tmp_path, settings=FAST)
    assert "the machine is too busy" in summary.given_up[CASES[0].label]
    assert summary.given_up[CASES[1].label] == (
        f"every attempt was rejected ({long}); mend that and run the same command again"
    )


def test_late_link_in_one_cell_keeps_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: list[Part]
) -> None:
    run = cell.Bench.run

    def one_is_late(self: cell.Bench, case: Cell, part: Part, stop: Any) -> Any:  # noqa: ANN401
        return late() if case.case_id == CASES[0].case_id else run(self, case, part, stop)

    with monkeypatch.context() as patch:
        patch.setattr(cell.Bench, "run", one_is_late)
        patch.setattr(measure_module, "MAX_ATTEMPTS", 2)
        summary = measure(study_of(*CASES), tmp_path, settings=FAST)
    assert summary.measured == [CASES[1].case_id]
    assert list(summary.given_up) == [CASES[0].label]
    assert not summary.complete
    again = measure(study_of(*CASES), tmp_path, settings=FAST)
    assert again.complete
    assert again.given_up == {}
    assert json.loads((tmp_path / "manifest.json").read_text())["skipped"] == {}
    assert [part.case_id for part in ran] == [CASES[1].case_id, CASES[0].case_id]


def test_unmeasurable_cases_are_listed(tmp_path: Path) -> None:
    elsewhere = make_case(device__profile="gr-peach")
    summary = measure(study_of(CASES[0], elsewhere), tmp_path, settings=FAST)
    assert summary.measured == [CASES[0].case_id]
    assert "device is gr-peach" in summary.skipped[elsewhere.label]
    assert not summary.complete


def test_results_of_another_machine_are_refused(tmp_path: Path) -> None:
    measure(study_of(CASES[0]), tmp_path, settings=FAST)
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["machine"]["kernel"] = "2.4.0"
    path.write_text(json.dumps(manifest))
    before = path.read_text()
    with pytest.raises(ResultsMixed, match=r"kernel '2\.4\.0'.*choose another folder") as mixed:
        measure(study_of(CASES[0]), tmp_path, trials=8, settings=FAST)
    assert mixed.value.run_id == manifest["run_id"]
    assert path.read_text() == before


def test_failed_cell_keeps_finished_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = cell.Bench.run

    def second_fails(self: cell.Bench, case: Cell, part: Part, stop: Any) -> Any:  # noqa: ANN401
        if case.case_id == CASES[1].case_id:
            raise LabError("nginx ended during the run")
        return run(self, case, part, stop)

    monkeypatch.setattr(cell.Bench, "run", second_fails)
    measure(study_of(CASES[0]), tmp_path, settings=FAST)
    with pytest.raises(LabError, match=r"20000000: nginx ended"):
        measure(study_of(*CASES), tmp_path, settings=FAST)
    assert (tmp_path / "observations" / f"{CASES[0].case_id}.parquet").exists()
    assert not (tmp_path / "observations" / f"{CASES[1].case_id}.parquet").exists()


def test_missing_rights_name_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = subprocess.CompletedProcess(
        [], 1, "", "mkdir /run/netns failed: Operation not permitted"
    )
    monkeypatch.setattr(workplace, "_ip", lambda *_: refused)
    with pytest.raises(LabUnavailable, match=r"cannot create a network namespace.*run as root"):
        measure(study_of(CASES[0]), tmp_path / "measured", settings=FAST)
    assert list(tmp_path.iterdir()) == [], "nothing was begun"


def test_no_folder_without_measurable_cases(tmp_path: Path) -> None:
    card = make_case(key_store__profile="iot-safe-sakomoto")
    summary = measure(study_of(card), tmp_path / "measured", settings=FAST)
    assert summary.measured == []
    assert "names no virtual card" in summary.skipped[card.label]
    assert list(tmp_path.iterdir()) == []


def test_failure_keeps_existing_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure(study_of(CASES[0]), tmp_path, settings=FAST)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    monkeypatch.setattr(workplace.Workplace, "namespace", unavailable)
    with pytest.raises(LabUnavailable):
        measure(study_of(*CASES), tmp_path, settings=FAST)
    assert before
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    assert (tmp_path / "manifest.json").is_file()


def unavailable(*_: object) -> None:
    raise LabUnavailable("cannot create a network namespace: run as root")


def test_full_disk_keeps_existing_results(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "256k") as disk:
        study = study_of(*CASES)
        measure(study_of(CASES[0]), disk, settings=FAST)
        whole = disk / "observations" / f"{CASES[0].case_id}.parquet"
        kept = whole.read_bytes()
        filler = disk / "filler"
        with pytest.raises(OSError, match="No space left"), filler.open("wb", 0) as file:
            while True:
                file.write(b"x" * 4096)
        with pytest.raises(LabError, match=r"(?i)no space left") as error:
            measure(study, disk, settings=FAST)
        assert "\n" not in str(error.value)
        assert whole.read_bytes() == kept
        filler.unlink()
        assert measure(study, disk, settings=FAST).complete


KILLED = """
import sys
sys.path.insert(0, sys.argv[2])
from support.laboratory import make_case, study_of
from pathlib import Path
from warifu.lab import Settings, measure
cases = [make_case(), make_case(link__rtt=20_000_000)]
print("begin", flush=True)
settings = Settings(rate_per_second=50.0, late_fraction_max=1.0)
measure(study_of(*cases, trials=400), Path(sys.argv[1]), settings=settings)
"""


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.smoke),
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGKILL,
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_no_leftovers_after_any_signal(tmp_path: Path, number: signal.Signals, seed: int) -> None:
    child = measuring(tmp_path)
    time.sleep(random.Random(seed).uniform(0.0, 1.5))
    mine = f"warifu-{child.pid}-"
    os.kill(child.pid, number)
    assert child.wait(30) != 0
    assert child.stdout is not None
    child.stdout.close()
    if number == signal.SIGKILL:
        deadline = time.monotonic() + 10
        while left_processes(child.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert left_processes(child.pid) == [], "the kernel ends them with their parent"
        workplace.sweep()
    assert left_processes(child.pid) == []
    assert [path.name for path in workplace.NAMESPACES.glob(f"{mine}*")] == []
    assert list(Path(workplace.tempfile.gettempdir()).glob(f"warifu-lab-{child.pid}-*")) == []


@pytest.mark.parametrize("pause", [0.0, 0.05, 0.5])
def test_no_leftovers_after_a_second_sigterm(tmp_path: Path, pause: float) -> None:
    child = measuring(tmp_path)
    deadline = time.monotonic() + 30
    while not list(workplace.NAMESPACES.glob(f"warifu-{child.pid}-*")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    # To its group, as a service manager and a terminal's hang-up do.
    os.killpg(child.pid, signal.SIGTERM)
    time.sleep(pause)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGTERM)
    assert child.wait(30) != 0
    assert child.stdout is not None
    child.stdout.close()
    assert left_processes(child.pid) == []
    assert list(workplace.NAMESPACES.glob(f"warifu-{child.pid}-*")) == []


def measuring(folder: Path) -> subprocess.Popen[bytes]:
    """A process, first of its own group, that has begun to measure."""
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(folder / "out"), str(ROOT / "tests")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert child.stdout is not None
    child.stdout.readline()
    return child


def left_processes(owner: int) -> list[str]:
    """Command lines that name a folder or namespace of `owner`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if f"warifu-lab-{owner}-" in words or f"warifu-{owner}-" in words:
            found.append(words)
    return found


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of its own that is soon full."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)

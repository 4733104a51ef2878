# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Table 3 of Sakomoto et al. 2025 beside the virtual SIM with that card's timing: without and with
the agent, in a kept session, a new one, and a new process; and a token that the agent keeps.

Writes observations.json, every trial of every call, and table.md, which is made from it alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from agent import cached_token_ns
from numpy.typing import NDArray

from warifu import provenance, tools
from warifu.calibrate import build, environment, paper, statistics, token_bench
from warifu.calibrate.errors import CalibrateError
from warifu.calibrate.token import kind_of
from warifu.calibrate.token_bench import LIFE, Plan, Trials
from warifu.cli import screen
from warifu.cli import token_calibration as tables
from warifu.cli.errors import OK, guarded, when_interrupted
from warifu.lab import card, interruption
from warifu.lab.quiet import OTHERS_MAX, Watch
from warifu.report.table import Column, Format, Table, render

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "studies" / "iot-safe-table3"
OBSERVATIONS = "observations.json"
TIMING = ROOT / "profiles" / "cards" / "iot-safe-sakomoto.toml"
#: The paper's. A table of fewer is not kept.
TRIALS = 100
#: How the card is reached, in the order in which it is timed.
WITHOUT, WITH = "without agent", "with agent"
#: Whole programs, beside the calls: in what row they stand.
SOFTWARE, COMMAND = "openssl here", "warifu-agent token, the process"
SOCKET = "at the agent's socket"

Heard = Callable[[int, int], None]


def main() -> int:
    """Times, writes, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--trials", type=int, default=TRIALS, help="of each row (100)")
    parser.add_argument("--seed", type=int, default=1, help="of the order and of the card (1)")
    parser.add_argument("--out", type=Path, default=KEPT, help="the folder that is written")
    parser.add_argument(
        "--render", action="store_true", help="time nothing: make table.md anew from observations"
    )
    given = parser.parse_args()
    if given.trials < 2:
        parser.error(f"--trials {given.trials}: expected 2 or more")
    if given.trials < TRIALS and given.out.resolve() == KEPT and not given.render:
        parser.error(f"--trials {given.trials}: the kept table has {TRIALS}: name another --out")
    if given.render:
        kept = (given.out / OBSERVATIONS).read_text(encoding="utf-8")
    else:
        build.refuse_development()
        with when_interrupted("interrupted; nothing was written"), interruption.deferred():
            kept = as_json(observe(given.trials, given.seed))
    text = table_of(json.loads(kept))
    write(given.out, {OBSERVATIONS: kept, "table.md": text})
    sys.stdout.write(text)
    return OK


def observe(trials: int, seed: int) -> dict[str, Any]:
    """Runs everything; what is kept of it."""
    commit, dirty = provenance.version()
    about = {
        "run_id": provenance.new_run_id("table3"),
        "started": provenance.now(),
        "commit": commit,
        "dirty": dirty,
        "machine": {**environment.machine(), "cores": os.cpu_count()},
        "tools": {
            name: tools.version(name)
            for name in ("warifu-card-server", "warifu-agent", "warifu-calibrate-bench")
        },
        "card": {"profile": TIMING.stem, "sha256": tools.sha256(TIMING), "seed": seed},
        "trials": trials,
    }
    series: list[dict[str, Any]] = []
    disturbance: list[dict[str, Any]] = []
    kinds: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="warifu-table3-") as name:
        for of in (WITHOUT, WITH):
            # Its path is short: a socket's has 107 bytes at most (unix(7)).
            stand_in = card.StandIn(TIMING, agent=of == WITH)
            with card.Card(Path(name) / str(len(kinds)), stand_in, None, seed) as sim:
                watch = Watch([process.pid for process in sim.processes])
                if sim.agent is not None:
                    series += tokens(sim.agent, trials)
                plan = plan_of(sim, trials, seed)
                found = signatures(sim, of, plan)
                disturbance.append({"of": of, **watch.shares().record()})
            kinds[of] = kind_of(found.token, plan)[0]
            series += series_of(found, of)
    (kind,) = set(kinds.values())
    return {
        **about, "finished": provenance.now(), "kind": kind,
        "disturbance": disturbance, "observations": series,
    }  # fmt: skip


def plan_of(sim: card.Card, trials: int, seed: int) -> Plan:
    """New processes each time. A program gives the agent no PIN: it is logged in."""
    pin = None if sim.agent else card.PIN
    module = tools.find("libwarifu_pkcs11.so")
    return Plan(module, pin=pin, trials=trials, seed=seed, fresh=True)


def signatures(sim: card.Card, of: str, plan: Plan) -> Trials:
    """All modes of `warifu calibrate token` with the card, by turns."""
    with environment_of(sim), screen.progress(f"signatures {of}") as report:
        return token_bench.run(plan, lambda done, total: report(done, total))


def tokens(socket: Path, trials: int) -> Iterator[dict[str, Any]]:
    """JSON Web Tokens that the agent keeps: at its socket, and by the program that asks for one."""
    program = [str(tools.find("warifu-agent")), "token", "--audience", "a"]
    command = [*program, f"--card=agent:{socket}"]
    times_ns = []
    for _ in range(1 + trials):
        interruption.check()
        begin = time.perf_counter_ns()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        times_ns.append(time.perf_counter_ns() - begin)
        if done.returncode != 0:
            raise CalibrateError(f"no token was signed: {done.stderr.strip()}")
    yield one_series("cached token", COMMAND, "process", times_ns[1:])  # the card signed the first
    yield one_series("cached token", SOCKET, "request", cached_token_ns(socket, trials))


@contextmanager
def environment_of(sim: card.Card) -> Iterator[None]:
    """Leads the module to the card, in this process's programs too."""
    before = {name: os.environ.get(name) for name in sim.environment}
    os.environ.update(sim.environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def series_of(trials: Trials, of: str) -> list[dict[str, Any]]:
    """What the bench timed."""
    return [
        one_series(mode, SOFTWARE if mode == "local_sw" else of, call, [int(ns) for ns in times])
        for mode, calls in trials.calls.items()
        for call, times in calls.items()
    ]


def one_series(mode: str, of: str, call: str, times_ns: Sequence[int]) -> dict[str, Any]:
    """One call's times, trial by trial."""
    return {"mode": mode, "of": of, "call": call, "unit": "ns", "values": list(times_ns)}


def table_of(kept: dict[str, Any]) -> str:
    """The Markdown that observations give, and nothing else."""
    calls = grouped(kept["observations"])
    shown = [modes_table(calls), calls_table(calls)]
    return "\n".join([*about(kept), "", render(shown, Format.MD)])


def grouped(
    observations: Sequence[dict[str, Any]],
) -> dict[tuple[str, str], dict[str, NDArray[np.float64]]]:
    """Times of each call by mode and row; what was timed in both halves is one row."""
    found: dict[tuple[str, str], dict[str, NDArray[np.float64]]] = {}
    for one in observations:
        calls = found.setdefault((one["mode"], one["of"]), {})
        before = calls.get(one["call"], np.empty(0))
        calls[one["call"]] = np.concatenate([before, np.asarray(one["values"], dtype=np.float64)])
    return found


def modes_table(calls: dict[tuple[str, str], dict[str, NDArray[np.float64]]]) -> Table:
    """Table 3."""
    table = tables.modes_heads(f"signatures, ms (95 % intervals), beside {paper.SOURCE}")
    for mode in ("local_sw", "sign_only", "total", "fresh", "cached token"):
        for of in (SOFTWARE, WITHOUT, WITH, COMMAND, SOCKET):
            if (mode, of) in calls:
                tables.add_mode(table, mode, statistics.of(whole(calls[mode, of])), of, of)
        if mode in paper.TABLE_3:
            tables.add_paper(table, mode)
    table.notes.append(
        "local_sw: the whole `openssl dgst -sha256 -sign`; sign_only: C_SignInit and C_Sign in a "
        "session that is kept; total: from C_OpenSession on, a new session each time; fresh: a new "
        "process each time, from C_Initialize to the signature, to be held beside the paper's "
        "total without the agent and its sign_only with it."
    )
    table.notes.append("cached token: a JSON Web Token that the agent has kept.")
    return table


def calls_table(calls: dict[tuple[str, str], dict[str, NDArray[np.float64]]]) -> Table:
    """Fig. 2, without and with the agent."""
    table = Table(
        "where the time goes, ms (95 % intervals)",
        [Column("mode", number=False), Column("of", number=False), Column("call", number=False),
         Column("mean"), Column("P50"), Column("share")],
    )  # fmt: skip
    for (mode, of), times in calls.items():
        if of in (WITHOUT, WITH):
            found = {call: statistics.of(values) for call, values in times.items()}
            tables.add_calls(table, mode, found, float(whole(times).mean()), of)
    table.notes += [tables.paper_of_calls(), "process: from the start to the end of a fresh one."]
    return table


def whole(calls: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """What each trial took, ns; of a fresh process, its calls."""
    alone = len(calls) == 1
    parts = [times for call, times in calls.items() if alone or call != LIFE]
    return np.asarray(np.sum(parts, axis=0))


def about(kept: dict[str, Any]) -> list[str]:
    """What stands before the tables."""
    machine, sim, commit = kept["machine"], kept["card"], kept["commit"] or "unknown"
    changed = " with changes" if kept["dirty"] else ""
    run = (
        f"Run `{kept['run_id']}`, {kept['started']} to {kept['finished']}: {machine['cores']} "
        f"cores, {machine['processor']}, Linux {machine['kernel']}, OpenSSL {machine['openssl']}; "
        f"{', '.join(kept['tools'].values())}; commit {commit[:12]}{changed}."
    )
    kind = (
        f"The card is a virtual one as slow as `profiles/cards/{sim['profile']}.toml` says, seed "
        f"{sim['seed']}, so its times are {kept['kind']}: module, agent and processes are real, "
        "the card is not."
    )
    shares = [(one["others"] + one["stolen"], one["of"]) for one in kept["disturbance"]]
    took = ", ".join(f"{share:.0%} {of}" for share, of in shares)
    loud = max(shares)[0] > OTHERS_MAX
    noise = f"Other work took of the processors: {took}" + (
        "; that is too much for times to be kept: run it again on a quiet machine." if loud else "."
    )
    return [
        "<!-- SPDX-License-Identifier: Apache-2.0 OR MIT -->",
        "<!-- Written by `make table3` from observations.json. -->",
        f"# Table 3, {kept['kind']}",
        *("", run, "", kind, "", noise),
    ]


def as_json(observations: dict[str, Any]) -> str:
    """One line for each series, so that versions can be compared."""
    series = observations["observations"]
    head = json.dumps({**observations, "observations": []}, indent=1)
    rows = ",\n  ".join(json.dumps(one) for one in series)
    return head.replace('"observations": []', f'"observations": [\n  {rows}\n ]') + "\n"


def write(folder: Path, files: dict[str, str]) -> None:
    """All of them, or none."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = {folder / f".{name}.{os.getpid()}.partial": name for name in files}
    try:
        for path, name in partial.items():
            path.write_text(files[name], encoding="utf-8")
        for path, name in partial.items():
            path.rename(folder / name)
    finally:
        for path in partial:
            path.unlink(missing_ok=True)
    screen.say(f"wrote {', '.join(str(folder / name) for name in files)}")


if __name__ == "__main__":
    sys.exit(guarded(main))

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""One part of a cell: namespaces, link, nginx and client put up, run, judged and taken down."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from warifu import tools
from warifu.case import Tls
from warifu.lab import interruption, kernel, processes, quiet, workplace
from warifu.lab.card import Card, StandIn
from warifu.lab.case import SOFTWARE, Cell
from warifu.lab.client import SPREAD, Client, Trials
from warifu.lab.errors import LabError, RunRejected
from warifu.lab.link import SERVER_ADDRESS, Link, configuration
from warifu.lab.nginx import Nginx
from warifu.lab.store import Part
from warifu.lab.workplace import Workplace

CALM_RATE = 25.0
"""Connections a second where no packet is lost. A mutual handshake takes about 2 ms of each
side's processor, so a processor is busy for 5 % of the time and a step that finds it busy
(one in twenty) waits for about half a millisecond: some 0.02 ms a step on average."""

LOSSY_RATE = 100.0
"""Connections a second over a lossy link, where trials are many and the gates are milliseconds
wide: a step in five finds its processor busy and waits, some 0.1 ms a step on average."""

LATE_FRACTION_MAX = 0.01
"""A part is rejected if more packets are late by over 0.5 ms: the P99 of the link's lateness is
held to what its precision is judged by. On a virtual machine the hypervisor takes the processors
for some milliseconds every few seconds, which no stricter bound would let pass."""


@dataclass(frozen=True)
class Settings:
    """How the lab runs; not part of a case."""

    rate_per_second: float | None = None
    """Connections a second; None: `CALM_RATE` or `LOSSY_RATE`. Slower over a link with memory,
    where each waits for the one before."""
    port: int = 8443
    others_bound: float | None = None
    """Share of all processors that other programs and the hypervisor may take during a part; beyond
    it the part is rejected unseen, as for a late link. None: it is only put on record."""
    late_fraction_max: float = LATE_FRACTION_MAX
    """Share of late packets beyond which a part is rejected. Tests that judge no time allow all."""
    timeout_seconds: float = 180.0
    """When a connection without a response counts as failed. Linux gives up a SYN after about 70
    (linear timeouts) to 130 s (tcp_syn_retries = 6)."""


@dataclass
class PartResult:
    """A part that the link has accepted."""

    trials: Trials
    record: dict[str, Any]


class Bench:
    """Runs parts; holds what they share: a folder and the certificates."""

    def __init__(self, settings: Settings, stand_ins: Mapping[str, StandIn] | None = None) -> None:
        """Makes the folder. `stand_ins` are run for key stores, by their profiles' names."""
        self._settings = settings
        self._stand_ins = stand_ins or {}
        self._place = Workplace()
        self._pkis: dict[tuple[str, int], Path] = {}
        self._runs = 0

    def __enter__(self) -> Bench:
        """Itself."""
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Removes all of it."""
        self._place.close()

    def run(self, cell: Cell, part: Part, stop: Callable[[], bool]) -> PartResult | None:
        """Measures a part; None if `stop` said so.

        Raises RunRejected if the link was beyond its bound, before anything of the result was
        looked at; LabError if a program failed.
        """
        self._runs += 1
        folder = self._place.folder / f"run{self._runs}"
        folder.mkdir()
        namespaces: list[str] = []
        with contextlib.ExitStack() as up:
            up.callback(lambda: self._take_down(namespaces))
            for end in ("c", "s"):
                namespaces.append(self._place.namespace(f"{end}{self._runs}", kernel.PINNED))
            client_end, server_end = namespaces
            config = configuration(cell, client_end, server_end, part.seed)
            config["late_fraction_max"] = self._settings.late_fraction_max
            link = up.enter_context(Link(config, folder))
            nginx = up.enter_context(self._nginx(cell, folder, server_end))
            card = self._card(cell, part, folder)
            if card is not None:
                up.enter_context(card)
            client = up.enter_context(self._client(cell, part, folder, client_end, card))
            worker = nginx.worker_pid
            before = processes.cpu_ns(worker)
            watch = quiet.Watch([link.pid, worker])
            if not self._wait(client, nginx, link, card, worker, stop):
                return None
            used = processes.cpu_ns(worker) - before
            # Judged before the client's output is opened.
            shares = watch.shares()
            report = link.accepted_report()
            self._judge(shares, report)
            trials = client.trials(part.trials)
            tcp = workplace.sysctls(client_end, [*kernel.PINNED, *kernel.SEEN])
            record = {
                "first_trial": part.first_trial,
                "trials": part.trials,
                "seed": part.seed,
                "rate_per_second": self._rate(cell),
                "alone": cell.has_memory,
                "server_cpu_ns": used,
                "segments_retransmitted": {
                    "client": workplace.retransmitted(client_end),
                    "server": workplace.retransmitted(server_end),
                },
                "route": {
                    "congestion_control": cell.https.tcp.congestion_control,
                    "initcwnd": cell.https.tcp.initcwnd,
                },
                "processors": processors(),
                "processor_shares": shares.record(),
                "pinned_differently": kernel.pinned_differently(tcp),
                "link": report,
                "tcp": tcp,
            }
            return PartResult(trials, record)

    def _take_down(self, namespaces: list[str]) -> None:
        for name in namespaces:
            self._place.remove_namespace(name)

    def _wait(
        self,
        client: Client,
        nginx: Nginx,
        link: Link,
        card: Card | None,
        worker: int,
        stop: Callable[[], bool],
    ) -> bool:
        """Until the client has ended; False if `stop` said so first."""
        while client.wait(0.1) is None:
            interruption.check()
            if stop():
                return False
            nginx.check()
            link.check()
            if card is not None:
                card.check()
            if not processes.is_running(worker):
                raise LabError(f"nginx's worker has ended in the middle of the run{nginx.words()}")
        nginx.check()
        if worker != nginx.worker_pid:
            raise LabError(f"nginx's worker was replaced in the middle of the run{nginx.words()}")
        return True

    def _judge(self, shares: quiet.Shares, report: dict[str, Any]) -> None:
        bound = self._settings.others_bound
        taken = shares.others + shares.stolen
        if bound is not None and taken > bound:
            reason = f"others took {taken:.1%} of the processors, {bound:.1%} are allowed"
            raise RunRejected([reason], report)

    def _nginx(self, cell: Cell, folder: Path, namespace: str) -> Nginx:
        return Nginx(
            folder / "nginx",
            address=SERVER_ADDRESS,
            port=self._settings.port,
            stack=cell.https,
            pki=self.pki(cell.https.tls),
            response_body_bytes=cell.case.pattern.response_body,
            namespace=namespace,
            processor=processors()[1],
        )

    def _card(self, cell: Cell, part: Part, folder: Path) -> Card | None:
        """The virtual SIM of a part whose key is not in memory."""
        key_store = cell.case.key_store.profile
        if key_store == SOFTWARE:
            return None
        key = self.pki(cell.https.tls) / "client.key"
        return Card(folder / "card", self._stand_ins[key_store], key, part.seed)

    def _client(
        self, cell: Cell, part: Part, folder: Path, namespace: str, card: Card | None
    ) -> Client:
        return Client(
            folder,
            stack=cell.https,
            path=cell.case.pattern.path,
            pki=self.pki(cell.https.tls),
            address=SERVER_ADDRESS,
            port=self._settings.port,
            trials=part.trials,
            rate_per_second=self._rate(cell),
            alone=cell.has_memory,
            timeout_seconds=self._settings.timeout_seconds,
            seed=part.seed,
            namespace=namespace,
            processor=processors()[0],
            key_store=None if card is None else card.key_store(cell.case.key_store.session_open),
            environment=None if card is None else card.environment,
        )

    def _rate(self, cell: Cell) -> float:
        """Connections a second; where they come one after the other, one over the pause between."""
        rate = self._settings.rate_per_second or (LOSSY_RATE if cell.is_lossy else CALM_RATE)
        # A pause varies by half of its mean, and its least must let the link settle.
        settled = (1.0 - SPREAD) * 1e9 / max(1, cell.settling_ns)
        return min(rate, settled) if cell.has_memory else rate

    def pki(self, tls: Tls) -> Path:
        """Certificates of the case's type and chain length, made once a run."""
        key = (tls.certificate, tls.chain_length)
        if key not in self._pkis:
            folder = self._place.folder / f"pki-{tls.certificate}-{tls.chain_length}"
            make_pki(folder, *key)
            self._pkis[key] = folder
        return self._pkis[key]


def processors() -> tuple[int | None, int | None]:
    """The processors of client and server, one each where there are two: the two ends are two
    machines, and the scheduler must not make one wait for the other. The link goes where there is
    nothing to do."""
    usable = sorted(os.sched_getaffinity(0))
    return (usable[0], usable[1]) if len(usable) > 1 else (None, None)


def make_pki(folder: Path, certificate: str, chain_length: int) -> None:
    """A root, and chains for both ends, by `warifu-tls pki`."""
    done = subprocess.run(
        [
            tools.find("warifu-tls"), "pki", "--certificate", certificate,
            "--chain-length", str(chain_length), "--out", folder,
        ],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise LabError(f"certificates cannot be made: {done.stderr.strip()}")

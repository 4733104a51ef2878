# SPDX-License-Identifier: Apache-2.0 OR MIT
"""HTTPS: nginx, and the lab's client on OpenSSL."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from warifu import tools
from warifu.case import Tls
from warifu.lab import kernel, processes, workplace
from warifu.lab.card import Card
from warifu.lab.case import MAX_TRIALS_A_PART, SOFTWARE, Cell
from warifu.lab.driver import Setup
from warifu.lab.errors import LabError
from warifu.lab.https.client import COUNTS, TIMES, Client
from warifu.lab.https.nginx import Nginx
from warifu.lab.https.psk import PreSharedKey
from warifu.lab.https.stack import CERTIFICATE_BYTES, https_of, is_mutual
from warifu.lab.link import SERVER_ADDRESS
from warifu.lab.trials import Trials

PORT = 8443

_TOOLS = ("nginx", "openssl", "warifu-tls", "warifu-tls-client")


class HttpsDriver:
    """Its certificates are those that `warifu-tls pki` makes, its TCP is the running kernel's."""

    columns = TIMES | COUNTS
    trials_a_part = MAX_TRIALS_A_PART
    link_is_beside_server = False

    def versions(self, cell: Cell) -> dict[str, str]:
        """Of nginx the OpenSSL that it was built with as well."""
        found = {name: tools.version(name) for name in _TOOLS}
        return {**found, "openssl of nginx": tools.openssl_of_nginx()}

    def why_not_measurable(self, cell: Cell, stand_ins: Collection[str]) -> str | None:
        """Certificates and TCP are the lab's own."""
        tls = https_of(cell).tls
        key_store = cell.case.key_store.profile
        if key_store != SOFTWARE and tls.certificate != "ecdsa_secp256r1":
            return (
                f"stack.certificate is {tls.certificate}: the key of {key_store} is on "
                'P-256; only `certificate = "ecdsa_secp256r1"` can be measured with it'
            )
        return _other_certificates(tls) or _other_kernels(cell)

    def remark(self, cell: Cell) -> str | None:
        """What to know if a TCP profile of the case is of another patch level."""
        return kernel_remark(cell)

    def is_burst(self, cell: Cell) -> bool:
        """No: a window, or one packet."""
        return False

    def routing(self, cell: Cell) -> dict[str, Any]:
        """Congestion control and initial window are the route's."""
        tcp = https_of(cell).tcp
        return {"congestion_control": tcp.congestion_control, "initcwnd": tcp.initcwnd}

    def start(self, up: ExitStack, setup: Setup) -> _Running:
        """nginx, the card of a key that is not in memory, and the client."""
        cell, part = setup.cell, setup.part
        stack = https_of(cell)
        port = PORT if setup.port is None else setup.port
        pki = shared_pki(setup.shared, stack.tls)
        psk = PreSharedKey.for_run(stack.tls)
        nginx = up.enter_context(
            Nginx(
                setup.folder / "nginx",
                address=SERVER_ADDRESS,
                port=port,
                stack=stack,
                pki=pki,
                response_body_bytes=cell.case.pattern.response_body,
                request_body_bytes=cell.case.pattern.request_body,
                psk=psk,
                namespace=setup.server_namespace,
                processor=setup.server_processor,
            )
        )
        key_store, card = cell.case.key_store, None
        if key_store.profile != SOFTWARE:
            stand_in = setup.stand_ins[key_store.profile]
            card = Card(setup.folder / "card", stand_in, pki / "client.key", part.seed)
            up.enter_context(card)
        client = up.enter_context(
            Client(
                setup.folder,
                stack=stack,
                path=cell.case.pattern.path,
                request_body_bytes=cell.case.pattern.request_body,
                psk=psk,
                pki=pki,
                address=SERVER_ADDRESS,
                port=port,
                trials=part.trials,
                rate_per_second=setup.rate_per_second,
                alone=cell.has_memory,
                round_trip_seconds=cell.case.link.rtt / 1e9,
                work_seconds=setup.work_s,
                timeout_seconds=setup.timeout_seconds,
                seed=part.seed,
                namespace=setup.client_namespace,
                processor=setup.client_processor,
                key_store=None if card is None else card.key_store(key_store.session_open),
                environment=None if card is None else card.environment,
            )
        )
        return _Running(setup, nginx, card, client)


class _Running:
    def __init__(self, setup: Setup, nginx: Nginx, card: Card | None, client: Client) -> None:
        self._setup = setup
        self._nginx = nginx
        self._card = card
        self._client = client
        self._worker = nginx.worker_pid

    @property
    def server_pid(self) -> int:
        return self._worker

    @property
    def client_cpu_ns(self) -> int:
        return self._client.cpu_ns

    def wait(self, timeout_seconds: float) -> int | None:
        return self._client.wait(timeout_seconds)

    def check(self) -> None:
        self._nginx.check()
        if self._card is not None:
            self._card.check()
        words = self._nginx.words
        if not processes.is_running(self._worker):
            raise LabError(f"nginx's worker ended during the run{words()}")
        if self._worker != self._nginx.worker_pid:
            raise LabError(f"nginx's worker was replaced during the run{words()}")

    def trials(self) -> Trials:
        return self._client.trials(self._setup.part.trials)

    def record(self) -> dict[str, Any]:
        setup, tcp = self._setup, https_of(self._setup.cell).tcp
        # Connections that come one after the other, or never overlap, have none to keep clear of.
        alone = setup.cell.has_memory or self._card is not None or setup.cell.rtt_ns == 0
        return {
            "kept_clear_ms": None if alone else round(setup.work_s * 1e3, 3),
            "segments_retransmitted": {
                "client": workplace.retransmitted(setup.client_namespace),
                "server": workplace.retransmitted(setup.server_namespace),
            },
            "route": {
                "congestion_control": tcp.congestion_control,
                "initcwnd": tcp.initcwnd,
            },
        }


def shared_pki(folder: Path, tls: Tls) -> Path:
    """Certificates of the case's type and chain length, made once in a folder."""
    pki = folder / f"pki-{tls.certificate}-{tls.chain_length}"
    if not pki.is_dir():
        make_pki(pki, tls.certificate, tls.chain_length)
    return pki


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
        raise LabError(f"cannot create certificates: {done.stderr.strip()}")


def _other_certificates(tls: Tls) -> str | None:
    """Why the lab's own certificates are not the case's; None if they are."""
    if tls.psk is not None:
        return None
    ours = CERTIFICATE_BYTES.get((tls.certificate, tls.chain_length), ())
    chains = {"server_certificate_bytes": tls.server_certificate_bytes}
    if is_mutual(tls):
        chains["client_certificate_bytes"] = tls.client_certificate_bytes
    for key, sizes in chains.items():
        if sizes != ours:
            return (
                f"stack.{key} is {list(sizes)}: the lab makes its own certificates, of "
                f"{list(ours)} B; leave the key out to measure"
            )
    return None


def _other_kernels(cell: Cell) -> str | None:
    """Why the running kernel is not the case's; None if its major and minor version are."""
    running = kernel.running()
    here = running._replace(patch=None)
    for end in cell.tcp:
        if end.kernel is None:
            return (
                f"{end.setting} is {end.profile}, whose profile names no kernel: add "
                f'kernel = "{here}" to it if it is the TCP of that kernel, which runs here'
            )
        if end.kernel.version != running.version:
            return (
                f"{end.setting} is {end.profile}, the TCP of Linux {end.kernel}; this machine runs "
                f"Linux {os.uname().release}, which is another TCP; only a TCP profile of Linux "
                f"{here} can be measured here"
            )
    return None


def kernel_remark(cell: Cell) -> str | None:
    """What to know if a TCP profile of the case is of another patch level; None if none is."""
    running = kernel.running()
    for end in cell.tcp:
        if end.kernel is not None and end.kernel.patch not in {None, running.patch}:
            return (
                f"{end.setting} is {end.profile}, this machine runs Linux {os.uname().release}: "
                "the prediction is for a TCP that may differ from the one that was measured"
            )
    return None

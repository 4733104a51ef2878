# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What CoAP's messages cost: the client's by its own record, the server's by difference.

The lab's client notes when a request is about to be given to the kernel, when the response's
datagram has been read, and when it is decoded. coap-server notes nothing, so its work is what is
left of real exchanges' times when all else that the simulator predicts is taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warifu.calibrate import loopback
from warifu.calibrate.loopback import Loopback
from warifu.calibrate.part import Draft, Found, Item, Plan, Target, fit_rows
from warifu.calibrate.profile import Entry, Law
from warifu.case import Case, CoapStack
from warifu.lab.quiet import Shares

SETTINGS = """\
[stack]
protocol = "coap"
[pattern]
path = "/calibration"
response_body = "32 B"
"""
"""Path and body are of no study that is judged."""

COLUMNS = {
    "coap.exchange": "exchange_ns",
    "request": "request_ns",
    "first_datagram": "first_datagram_ns",
}
"""What is read of the client's record, by name."""

METRIC = "coap.exchange"

CLIENT_REQUEST, CLIENT_RESPONSE = "client.send.CoapRequest", "client.receive.CoapResponse"
SERVER = ("server.receive.CoapRequest", "server.send.CoapResponse")

EXCHANGE: Item = {"request": "GET"}
"""The one thing that is timed, a CON with 32 B; its costs are taken for NON and other sizes too."""

ROUNDS = 3
"""A median is no sum of medians, so that one difference leaves a rest."""

_CLIENT_SOURCE = "the client's own record of loopback runs that are not judged"
_SERVER_SOURCE = "loopback runs that are not judged, less all else that is predicted of them"


class CoapPart:
    """CoAP over UDP. The costs of the system are taken as found."""

    name = "coap"
    operations = (CLIENT_REQUEST, CLIENT_RESPONSE, *SERVER)

    def needed(self, cases: Sequence[Case] | None) -> list[Item]:
        """An exchange, if a case is of CoAP."""
        wanted = cases is None or any(isinstance(case.stack, CoapStack) for case in cases)
        return [EXCHANGE] if wanted else []

    def missing(self, timed: Sequence[Item], needed: Sequence[Item]) -> list[Item]:
        """The exchange, unless it was timed."""
        return [item for item in needed if item not in timed]

    def merged(self, items: Iterable[Item]) -> list[Item]:
        """At most one."""
        return [EXCHANGE] if any(items) else []

    def time(
        self, items: Sequence[Item], plan: Plan, draft: Draft, progress: Callable[[str], None]
    ) -> _Timed:
        """Exchanges with coap-server."""
        study = loopback.study_text(plan.loopback_trials, SETTINGS)
        parsed = draft.study(study)
        runs = loopback.run(parsed, plan.loopback_trials, progress, COLUMNS, plan.rounds)
        return _Timed(runs, study)


@dataclass(frozen=True)
class _Timed:
    runs: Loopback
    study: str

    @property
    def shares(self) -> Sequence[Shares]:
        return self.runs.shares

    @property
    def rejections(self) -> int:
        return self.runs.rejections

    def find(self, draft: Draft, progress: Callable[[str], None]) -> Found:
        progress("finding the costs of CoAP's messages")
        parsed = draft.study(self.study)

        def predict(more: Sequence[Entry]) -> Mapping[Target, float]:
            return draft.having(more).predict(self.study)

        own = entries(self.runs, [case.id for case in parsed.cases], draft.shape, predict)
        rows = fit_rows(parsed, [METRIC], self.runs.medians_ns(), predict(own))
        return Found(draft.having(own).found_from(self.runs.cells), rows)


def entries(
    measured: Loopback,
    cases: Sequence[str],
    shape: Law,
    predict: Callable[[Sequence[Entry]], Mapping[Target, float]],
) -> list[Entry]:
    """The costs of CoAP's messages.

    `cases` are the ids of the study's two cases, in its order. `shape` is the form of the server's
    law, with median 1. `predict` gives the medians of the study with these costs, ns.
    """
    client = client_entries(measured, cases)
    server_ns = 0.0
    for _ in range(ROUNDS):
        predicted = predict([*client, *server_entries(server_ns, shape)])
        medians = measured.medians_ns()
        left = [medians[case, METRIC] - predicted[case, METRIC] for case in cases]
        # In the one exchange of a trial the server has always been idle.
        server_ns = max(0.0, server_ns + float(np.mean(left)))
    return [*client, *server_entries(server_ns, shape)]


def client_entries(measured: Loopback, cases: Sequence[str]) -> list[Entry]:
    """Making a request always follows a pause; processing the response follows the wait for it."""
    times = measured.times_ns
    request = np.concatenate([times[case, "request"] for case in cases])
    warm, cold = (
        Law.of_samples((times[case, METRIC] - times[case, "first_datagram"]).tolist())
        for case in cases
    )
    return [
        Entry(
            CLIENT_REQUEST,
            {},
            Law.of_samples(request.tolist()),
            source=_CLIENT_SOURCE,
            note="from just before the session is made",
        ),
        Entry(CLIENT_RESPONSE, {}, warm, cold, source=_CLIENT_SOURCE),
    ]


def server_entries(total_ns: float, shape: Law) -> list[Entry]:
    """Nothing lies between processing a request and making its response, so that only the sum of
    the two can be told; each gets half of it."""
    return [
        Entry(
            operation,
            {},
            shape.scaled(total_ns / 2.0),
            source=_SERVER_SOURCE,
            note="half of what the server does for an exchange",
            kind="simulated",
        )
        for operation in SERVER
    ]

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What CoAP's messages cost: the client's by its own record, the server's by difference.

The lab's client notes when a request is about to be given to the kernel, when the response's
datagram has been read, and when it is decoded. coap-server notes nothing, so its work is what is
left of real exchanges' times when all else that the simulator predicts is taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from warifu.calibrate.loopback import Loopback
from warifu.calibrate.profile import Entry, Law
from warifu.calibrate.system import Target
from warifu.case import Case, CoapStack

STUDY = """\
name = "calibration"
seed = 1
trials = {trials}
predict_trials = 300
device = "this-host"
server = "this-host"
key_store = "software"
[link]
profile = "loopback"
[stack]
protocol = "coap"
[pattern]
path = "/calibration"
response_body = "32 B"
[vary]
"link.rtt" = ["0 ms", "20 ms"]
"""
"""As for HTTPS: at no delay the client works on the response with warm caches, at 20 ms with cold
ones. Path and body are of no study that is judged."""

COLUMNS = {
    "coap.exchange": "exchange_ns",
    "request": "request_ns",
    "first_datagram": "first_datagram_ns",
}
"""What is read of the client's record, by name."""

METRIC = "coap.exchange"

ROUNDS = 3
"""A median is no sum of medians, so that one difference leaves a rest."""

_CLIENT = "the client's own record of loopback runs that are not judged"
_SERVER = "loopback runs that are not judged, less all else that is predicted of them"


def is_needed(cases: Sequence[str] | None) -> bool:
    """Whether one of these cases (canonical JSON) is of CoAP; None stands for any case."""
    if cases is None:
        return True
    return any(isinstance(Case.from_json(text).stack, CoapStack) for text in cases)


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
            "client.send.CoapRequest",
            {},
            Law.of_samples(request.tolist()),
            source=_CLIENT,
            note="from just before the session is made",
        ),
        Entry("client.receive.CoapResponse", {}, warm, cold, source=_CLIENT),
    ]


def server_entries(total_ns: float, shape: Law) -> list[Entry]:
    """Nothing lies between processing a request and making its response, so that only the sum of
    the two can be told; each gets half of it."""
    return [
        Entry(
            operation,
            {},
            shape.scaled(total_ns / 2.0),
            source=_SERVER,
            note="half of what the server does for an exchange",
            kind="simulated",
        )
        for operation in ("server.receive.CoapRequest", "server.send.CoapResponse")
    ]

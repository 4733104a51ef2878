# SPDX-License-Identifier: Apache-2.0 OR MIT
"""CoAP's costs from exchanges that are made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from support.laboratory import make_case, make_coap_case
from support.paths import ROOT
from warifu import _core, study
from warifu.calibrate import coap, host, system
from warifu.calibrate.bench import Times
from warifu.calibrate.loopback import Loopback
from warifu.calibrate.profile import Entry, Law

QUICK, SLOW = "quick", "slow"
TRANSIT_NS = {QUICK: 100_000.0, SLOW: 20_100_000.0}
"""What the simulator predicts but for CoAP's own costs."""


def made_up(server_ns: float) -> Loopback:
    """Requests take 40 us to make; responses 10 us to process, 30 us with cold caches."""
    times = {}
    for case, response_ns in ((QUICK, 10_000.0), (SLOW, 30_000.0)):
        first = np.full(50, 40_000.0 + TRANSIT_NS[case] + server_ns)
        times[case, "request"] = np.full(50, 40_000.0)
        times[case, "first_datagram"] = first
        times[case, "coap.exchange"] = first + response_ns
    return Loopback(times, 0)


def predict(entries: Sequence[Entry]) -> Mapping[system.Target, float]:
    costs = {entry.operation: entry for entry in entries}
    medians = {}
    for case, transit in TRANSIT_NS.items():
        response = costs["client.receive.CoapResponse"]
        warm_or_cold = response.cold if case == SLOW and response.cold else response.warm
        others = [one.warm for name, one in costs.items() if name != response.operation]
        medians[case, coap.METRIC] = transit + sum(law.median_ns for law in [warm_or_cold, *others])
    return medians


def test_costs_reproduce_their_runs() -> None:
    measured = made_up(server_ns=90_000.0)
    found = coap.entries(measured, [QUICK, SLOW], Law.constant(1.0), predict)
    medians = measured.medians_ns()
    assert predict(found) == {target: medians[target] for target in predict(found)}
    by_name = {entry.operation: entry for entry in found}
    assert len(by_name) == 4
    response = by_name["client.receive.CoapResponse"]
    assert (response.warm.median_ns, response.cold and response.cold.median_ns) == (10_000, 30_000)
    assert by_name["client.send.CoapRequest"].kind == "measured"
    server = by_name["server.send.CoapResponse"]
    # Nothing lies between the server's two operations: each has half.
    assert (server.warm.median_ns, server.kind) == (45_000.0, "simulated")


def test_server_costs_are_not_negative() -> None:
    found = coap.entries(made_up(-50_000.0), [QUICK, SLOW], Law.constant(1.0), predict)
    assert {one.warm.median_ns for one in found if one.operation.startswith("server")} == {0.0}


def test_calibrated_profile_serves_coap() -> None:
    texts = study.profile_texts([ROOT / "profiles"])
    others = [text for text in texts if text[:2] != ("device", "this-host")]
    draft = host.Draft(Times("", ()), others, 10)
    costs = system.Costs.start()
    more = coap.entries(made_up(90_000.0), [QUICK, SLOW], Law.constant(1.0), predict)
    parsed = draft.study(costs, coap.STUDY, more)
    assert [view.label for view in parsed.cases] == ["rtt 0 ms", "rtt 20 ms"]
    assert _core.missing_operations(parsed, 0) == ([], [])
    answer = draft.predict(costs, coap.STUDY, more)
    for view, rtt_ns in zip(parsed.cases, (0, 20_000_000), strict=True):
        # Costs of requests, responses, server and system are well below 1 ms.
        assert rtt_ns + 140_000 < answer[view.id, coap.METRIC] < rtt_ns + 1_000_000


def test_calibration_of_coap_where_it_is_needed() -> None:
    https, one = make_case().canonical, make_coap_case().canonical
    assert coap.is_needed(None)
    assert coap.is_needed([https, one])
    assert not coap.is_needed([https])
    assert host.needed_for([one]) == host.needed_for([])


def test_calibration_cells_are_not_the_studys() -> None:
    text = (ROOT / "studies" / "coap-udp.toml").read_text()
    assert 'path = "/calibration"' in coap.STUDY
    assert "/calibration" not in text

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""CoAP's costs from exchanges that are made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from support.laboratory import make_case, make_coap_case
from support.paths import ROOT
from warifu import _core, study
from warifu.calibrate import coap, loopback, parts
from warifu.calibrate.loopback import Loopback
from warifu.calibrate.part import Draft, Target
from warifu.calibrate.profile import Entry, Law
from warifu.calibrate.system import Costs

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


def predict(entries: Sequence[Entry]) -> Mapping[Target, float]:
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
    text = loopback.study_text(10, coap.SETTINGS)
    draft = Draft(others).having(Costs.start().entries(Law.constant(1.0), "a test"))
    draft = draft.having(coap.entries(made_up(90_000.0), [QUICK, SLOW], draft.shape, predict))
    parsed = draft.study(text)
    assert [view.label for view in parsed.cases] == ["rtt 0 ms", "rtt 20 ms"]
    assert _core.missing_operations(parsed, 0) == ([], [])
    answer = draft.predict(text)
    for view, rtt_ns in zip(parsed.cases, (0, 20_000_000), strict=True):
        # Costs of requests, responses, server and system are well below 1 ms.
        assert rtt_ns + 140_000 < answer[view.id, coap.METRIC] < rtt_ns + 1_000_000


def test_calibration_of_coap_where_it_is_needed() -> None:
    https, one = make_case().canonical, make_coap_case().canonical
    assert parts.needed(None)["coap"] == [coap.EXCHANGE]
    assert parts.needed([https, one])["coap"] == [coap.EXCHANGE]
    assert parts.needed([https])["coap"] == []
    # What the system costs is found by connections of HTTPS in any case.
    assert parts.needed([one])["https"] == parts.needed([])["https"] != []


def test_profile_timed_for_https_alone_lacks_coap() -> None:
    https, one = make_case().canonical, make_coap_case().canonical
    timed = parts.needed([https])
    assert parts.missing(timed, parts.needed([https])) == {}
    assert parts.missing(timed, parts.needed([one])) == {"coap": [coap.EXCHANGE]}
    both = parts.merged(timed, parts.needed([one]))
    assert parts.missing(both, parts.needed([https, one])) == {}


def test_items_of_another_version_count_as_not_timed() -> None:
    wanted = parts.needed([make_coap_case().canonical])
    foreign = {"https": [{"tls": "1.3"}, {}], "coap": [{"request": "FETCH"}], "mqtt": [{}]}
    anything = {name: items for name, items in wanted.items() if items}
    assert parts.missing(foreign, wanted) == anything
    assert parts.merged(foreign, wanted) == wanted


def test_operations_of_the_parts_are_distinct() -> None:
    assert len(parts.operations()) == len(set(parts.operations()))
    assert "server.receive.CoapRequest" in parts.operations()


def test_calibration_cells_are_not_the_studys() -> None:
    text = (ROOT / "studies" / "coap-udp.toml").read_text()
    assert 'path = "/calibration"' in coap.SETTINGS
    assert "/calibration" not in text

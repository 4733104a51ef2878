# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What HTTPS costs, and what the operating system does: the bench times the computing of TLS, and
the system's costs are fitted to loopback runs."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from warifu import _core
from warifu.calibrate import bench, loopback, rest, speed, system, variants
from warifu.calibrate.bench import Times
from warifu.calibrate.loopback import Loopback
from warifu.calibrate.part import Draft, Floats, Found, Item, Plan, Target, fit_rows
from warifu.calibrate.profile import Entry, Law, Speed
from warifu.calibrate.rest import Rest, all_rested
from warifu.calibrate.sittings import Parts
from warifu.calibrate.system import Costs
from warifu.calibrate.variants import Variant
from warifu.case import Case, HttpsStack
from warifu.lab import quiet
from warifu.lab.https.client import TIMES
from warifu.lab.quiet import Shares
from warifu.results import metrics

SETTINGS = """\
[stack]
protocol = "https"
group = "x25519"
certificate = "ecdsa_secp256r1"
"""
"""The curve is another than that of the cells that studies of accuracy judge, `secp256r1`: no cell
of theirs is one that costs were found from."""

VARIED = """\
"stack.tls" = ["1.2", "1.3"]
"stack.session" = ["full", "resumed"]
"stack.authentication" = ["server", "mutual"]
"""

TICKETS = """\
[stack]
protocol = "https"
tls = "1.2"
authentication = "mutual"
group = "x25519"
"""
TICKET_CERTIFICATE = "rsa-2048"
"""Another than that of the cells that studies of accuracy judge: see `is_calibrated_on`."""
TICKETS_VARIED = f"""\
"stack.session" = ["resumed"]
"stack.certificate" = ["{TICKET_CERTIFICATE}"]
"""
"""Runs that say what decoding a client's certificate from a ticket costs in a real process. What
stands here and not in `TICKETS` is in the labels of the fit's rows."""

RESTED = """\
[stack]
protocol = "https"
authentication = "mutual"
group = "x25519"
certificate = "ecdsa_secp256r1"
[pattern]
pause = "600 ms"
"""

RESTED_VARIED = """\
"stack.tls" = ["1.2", "1.3"]
"""

MESSAGES = (
    *("ClientHello", "ServerHello", "EncryptedExtensions", "CertificateRequest", "Certificate"),
    *("CertificateVerify", "Finished", "EndOfEarlyData", "NewSessionTicket", "ServerKeyExchange"),
    *("ServerHelloDone", "ClientKeyExchange", "ChangeCipherSpec", "ApplicationData"),
)
CALLS = ("connect", "wake", "accept", "write", "http_respond", "http_receive", "interface")

UPLOADS = """\
[stack]
protocol = "https"
tls = "1.3"
authentication = "server"
group = "x25519"
certificate = "ecdsa_secp256r1"
"""

UPLOADED = ("100 B", "12 kB")
"""Request bodies that runs are made with: each within a record and TCP's first window."""

_WHOLE = metrics.whole("https")
_TIMES = {metric: TIMES[metric] for metric in (metrics.whole("https"), *metrics.phases("https"))}
"""What the fit knows: a time that ends later says nothing more of so short a response."""
_HTTP_RECEIVE = "server.system.http_receive"
_SOURCE = "loopback runs that are not judged, less the bench's computing"


class HttpsPart:
    """TLS over TCP. It is part of any calibration: its runs show what the system costs."""

    name = "https"

    @property
    def operations(self) -> list[str]:
        """Those of either role."""
        names = []
        for role in ("client", "server"):
            for verb in ("send", "receive"):
                names += [f"{role}.{verb}.{message}" for message in MESSAGES]
            names += [f"{role}.sign", *(f"{role}.system.{call}" for call in CALLS)]
        return names

    def needed(self, cases: Sequence[Case] | None) -> list[Item]:
        """The TLS variants of the cases, and those of the part's own runs."""
        if cases is None:
            return [one.json() for one in variants.everything()]
        own = [
            Variant(tls=tls, session=session, authentication=authentication, group=group)
            for tls, ways in variants.RESUMPTIONS.items()
            # The usual way of the version, as VARIED's "resumed".
            for session, authentication in itertools.product(
                ("full", next(iter(ways))), ("server", "mutual")
            )
            for group in ["x25519" if session == "full" or ways[session] else "secp256r1"]
        ]
        ticket = next(iter(variants.RESUMPTIONS["1.2"]))
        own.append(Variant(tls="1.2", session=ticket, certificate=TICKET_CERTIFICATE))
        # The part's own runs are of both versions: what application data costs is known by these.
        own += [Variant(tls=tls, aead=Variant(tls=tls).first_aead) for tls in variants.RESUMPTIONS]
        layers = [case.stack.tls for case in cases if isinstance(case.stack, HttpsStack)]
        return [one.json() for one in sorted({*own, *variants.needed(layers)})]

    def missing(self, timed: Sequence[Item], needed: Sequence[Item]) -> list[Item]:
        """Variants that give a cost which none of the timed ones gives."""
        return [one.json() for one in variants.missing(_known(timed), _known(needed))]

    def merged(self, items: Iterable[Item]) -> list[Item]:
        """In the order of their choices."""
        return [one.json() for one in sorted(set(_known(items)))]

    def time(
        self, items: Sequence[Item], plan: Plan, draft: Draft, progress: Callable[[str], None]
    ) -> _Timed:
        """The bench, then connections to nginx."""
        watch = quiet.Watch([])
        times = bench.run(_known(items), plan.bench, progress)
        shares_of_bench = watch.shares()
        study = loopback.study_text(plan.loopback_trials, SETTINGS, VARIED)
        tickets = loopback.study_text(plan.loopback_trials, TICKETS, TICKETS_VARIED)
        uploads = _uploads(plan.loopback_trials)
        studies = [draft.study(text) for text in (study, tickets, uploads)]
        runs = loopback.run_all(
            studies, plan.loopback_trials, progress, _TIMES, plan.rounds, is_calibrated_on
        )
        rested = loopback.study_text(plan.rested_trials, RESTED, RESTED_VARIED, ("0 ms",))
        rested_study = draft.study(rested)
        pauses = loopback.run(rested_study, plan.rested_trials, progress, _TIMES, plan.rounds)
        shares = (shares_of_bench, *runs.shares, *pauses.shares)
        return _Timed(times, runs, study, tickets, uploads, rested, pauses, shares)


@dataclass(frozen=True)
class _Timed:
    times: Times
    runs: Loopback
    study: str
    tickets: str
    uploads: str
    rested: str
    pauses: Loopback
    """Connections with long pauses between them."""
    shares: Sequence[Shares]

    @property
    def rejections(self) -> int:
        return self.runs.rejections + self.pauses.rejections

    def find(self, draft: Draft, progress: Callable[[str], None]) -> Found:
        shaped = replace(draft, shape=_shape(self.runs))
        shaped = shaped.found_from([*self.runs.cells, *self.pauses.cells])

        def with_costs(costs: Costs) -> Draft:
            entries = [costs.scaled(entry) for entry in self.times.entries]
            return shaped.having([*entries, *costs.entries(shaped.shape, _SOURCE)])

        def predict(costs: Costs) -> Mapping[Target, float]:
            made = with_costs(costs)
            return {**made.predict(self.study), **made.predict(self.tickets)}

        progress("fitting the system's costs")
        some = with_costs(Costs.start())
        some = some.having([_no_receive()])
        study, tickets = some.study(self.study), some.study(self.tickets)
        uploads, all_medians = some.study(self.uploads), self.runs.medians_ns()
        own = {case.id for case in study.cases}
        fitted = own | {case.id for case in tickets.cases}
        medians = {key: value for key, value in all_medians.items() if key[0] in fitted}
        errors = {key: value for key, value in self.runs.errors_ns().items() if key[0] in fitted}
        found = system.fit(medians, errors, predict)
        made = with_costs(found.costs)
        made = made.having([_http_receive(made, uploads, self.uploads, all_medians)])
        progress("finding what connections have in common")
        common = self._common(made, own)
        made = replace(made, entries=common.entries, speed=common.speed)
        waited, after_wait = self._waited(made, common.speed, own)
        made = replace(made, speed=waited)
        progress("fitting what a rest costs")
        pause = self._rest(made)
        made = replace(made, entries=tuple(all_rested(made.entries, pause)))
        rows = fit_rows(study, _TIMES, medians, made.predict(self.study))
        rows += fit_rows(tickets, _TIMES, medians, made.predict(self.tickets))
        rows += fit_rows(uploads, [_WHOLE], all_medians, made.predict(self.uploads))
        rested = self.pauses.medians_ns()
        rows += fit_rows(made.study(self.rested), _TIMES, rested, made.predict(self.rested))
        details = {
            "system": found.costs.named(),
            "evaluations": found.evaluations,
            "rest": pause.named(),
            "connections": common.connections,
            "spread": common.spread.named(),
            "spread after a wait": after_wait.named(),
            "share of system calls": {case: round(of, 3) for case, of in common.system.items()},
        }
        return Found(made, rows, details)

    def _common(self, draft: Draft, own: Set[str]) -> speed.Fit:
        """What the computing of a connection has in common, from connections without delay, in
        which there is nothing but computing, and from their TCP handshakes, in which there is
        nothing but system calls."""
        whole, calls = self._parts_at(0, own), self._parts_at(0, own, "tcp.connect")
        return speed.fit(draft.entries, whole, calls, self._drawn_at(draft, "0 ms"))

    def _waited(self, draft: Draft, found: Speed, own: Set[str]) -> tuple[Speed, speed.Spread]:
        """The same with what it has in common after a wait."""
        drawn = self._drawn_at(draft, _DELAY)
        return speed.fit_waited(
            draft.entries, found, self._parts_at(_DELAY_NS, own), _DELAY_NS, drawn
        )

    def _parts_at(self, rtt_ns: int, own: Set[str], metric: str = _WHOLE) -> Parts:
        """Times of connections over a delay, by case and part."""
        cases = {cell.case_id for cell in self.runs.cells if cell.rtt_ns == rtt_ns} & own
        return {case: self.runs.parts_ns[case, metric] for case in sorted(cases)}

    def _drawn_at(self, draft: Draft, rtt: str) -> speed.Simulate:
        """Whole connections over a delay, simulated."""
        text = self.study.replace(loopback.PREDICT_TRIALS, _DRAWN_TRIALS)
        text = text.replace(f"[{loopback.listed(loopback.RTTS)}]", f"[{loopback.listed((rtt,))}]")

        def simulate(entries: Sequence[Entry], law: Speed) -> Mapping[str, Floats]:
            return replace(draft, entries=tuple(entries), speed=law).draw(text, _WHOLE)

        return simulate

    def _rest(self, draft: Draft) -> Rest:
        def predict(costs: Rest) -> Mapping[Target, float]:
            entries = tuple(all_rested(draft.entries, costs))
            return replace(draft, entries=entries).predict(self.rested)

        return rest.fit(self.pauses.medians_ns(), self.pauses.errors_ns(), predict)


_DELAY, _DELAY_NS = "20 ms", 20_000_000
"""The delay of `loopback.RTTS`."""

_DRAWN_TRIALS = "predict_trials = 3000\n"
"""Of each case, where the spread of connections is compared and not their median."""


def is_calibrated_on(case: Case) -> bool:
    """Whether a case of the studies above is run. One is not: a ticket of TLS 1.2 makes a handshake
    without a curve, so that with mutual authentication it would be a cell of studies of accuracy,
    whatever its curve. With `TICKET_CERTIFICATE` it is none."""
    stack = case.stack
    if not isinstance(stack, HttpsStack):
        return True
    tls = stack.tls
    mutual_ticket = tls.session == "ticket" and tls.authentication == "mutual"
    return not mutual_ticket or tls.certificate == TICKET_CERTIFICATE


def _uploads(trials: int) -> str:
    """The study of runs with a request body."""
    bodies = ", ".join(f'"{body}"' for body in UPLOADED)
    return loopback.study_text(trials, UPLOADS, f'"pattern.request_body" = [{bodies}]\n')


def _no_receive() -> Entry:
    return Entry(_HTTP_RECEIVE, {}, Law.constant(0.0), source=_SOURCE, kind="simulated")


def _http_receive(
    draft: Draft,
    study: _core.Study,
    text: str,
    medians_ns: Mapping[Target, float],
) -> Entry:
    """What taking a request's body costs the server: what is left of whole exchanges when all else
    is taken away. Without delay the server is warm, with delay it has slept."""
    predicted = draft.having([_no_receive()]).predict(text)
    whole = metrics.whole("https")
    left: dict[tuple[bool, int], float] = {}
    for view in study.cases:
        case = Case.from_json(view.json)
        key = (view.id, whole)
        left[case.link.rtt > 0, case.pattern.request_body] = medians_ns[key] - predicted[key]
    small, large = sorted({body for _, body in left})
    slopes = [(left[cold, large] - left[cold, small]) / (large - small) for cold in (False, True)]
    per_byte = max(0.0, sum(slopes) / 2)
    fixed = [max(0.0, left[cold, small] - per_byte * small) for cold in (False, True)]
    return Entry(
        _HTTP_RECEIVE,
        {},
        draft.shape.scaled(fixed[0]),
        draft.shape.scaled(fixed[1]),
        per_byte,
        _SOURCE,
        kind="simulated",
    )


def _known(items: Iterable[Item]) -> list[Variant]:
    """The variants of items; those that another version wrote in another form are left out."""
    found = []
    for item in items:
        with contextlib.suppress(KeyError, TypeError, _core.WarifuError):
            found.append(Variant.of_json(item))
    return found


def _shape(runs: Loopback) -> Law:
    """The form of the system's laws, with median 1: that of the TCP handshakes at no delay, in
    which there is nothing but system calls and wake-ups. Those of all runs, each divided by its
    median: one cell's may hold what another program did meanwhile."""
    without_delay = {cell.case_id for cell in runs.cells if cell.rtt_ns == 0}
    relative = [
        part / float(np.median(part))
        for (case, metric), parts in runs.parts_ns.items()
        if metric == "tcp.connect" and case in without_delay
        for part in parts
    ]
    law = Law.of_samples(np.concatenate(relative).tolist())
    return law.scaled(1.0 / law.median_ns)

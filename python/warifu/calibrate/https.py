# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What HTTPS costs, and what the operating system does: the bench times the computing of TLS, and
the system's costs are fitted to loopback runs."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from warifu import _core
from warifu.calibrate import bench, loopback, system, variants
from warifu.calibrate.bench import Times
from warifu.calibrate.loopback import Loopback
from warifu.calibrate.part import Draft, Found, Item, Plan, Target, fit_rows
from warifu.calibrate.profile import Law
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
group = "secp256r1"
certificate = "ecdsa_secp256r1"
"""

VARIED = """\
"stack.tls" = ["1.2", "1.3"]
"stack.session" = ["full", "resumed"]
"stack.authentication" = ["server", "mutual"]
"""

MESSAGES = (
    *("ClientHello", "ServerHello", "EncryptedExtensions", "CertificateRequest", "Certificate"),
    *("CertificateVerify", "Finished", "EndOfEarlyData", "NewSessionTicket", "ServerKeyExchange"),
    *("ServerHelloDone", "ClientKeyExchange", "ChangeCipherSpec", "ApplicationData"),
)
CALLS = ("connect", "wake", "accept", "write", "http_respond", "interface")

_TIMES = {metric: TIMES[metric] for metric in (metrics.whole("https"), *metrics.phases("https"))}
"""What the fit knows: a time that ends later says nothing more of so short a response."""
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
            Variant(tls=tls, session=session, authentication=authentication)
            for tls, ways in variants.RESUMPTIONS.items()
            # The usual way of the version, as VARIED's "resumed".
            for session, authentication in itertools.product(
                ("full", next(iter(ways))), ("server", "mutual")
            )
        ]
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
        shares = watch.shares()
        study = loopback.study_text(plan.loopback_trials, SETTINGS, VARIED)
        runs = loopback.run(draft.study(study), plan.loopback_trials, progress, _TIMES)
        return _Timed(times, runs, study, (shares, *runs.shares))


@dataclass(frozen=True)
class _Timed:
    times: Times
    runs: Loopback
    study: str
    shares: Sequence[Shares]

    @property
    def rejections(self) -> int:
        return self.runs.rejections

    def find(self, draft: Draft, progress: Callable[[str], None]) -> Found:
        shaped = replace(draft, shape=_shape(self.runs))

        def with_costs(costs: Costs) -> Draft:
            entries = [costs.scaled(entry) for entry in self.times.entries]
            return shaped.having([*entries, *costs.entries(shaped.shape, _SOURCE)])

        def predict(costs: Costs) -> Mapping[Target, float]:
            return with_costs(costs).predict(self.study)

        progress("fitting the system's costs")
        medians = self.runs.medians_ns()
        found = system.fit(medians, self.runs.errors_ns(), predict)
        made = with_costs(found.costs)
        rows = fit_rows(made.study(self.study), _TIMES, medians, found.predicted_ns)
        details = {"system": found.costs.named(), "evaluations": found.evaluations}
        return Found(made, rows, details)


def _known(items: Iterable[Item]) -> list[Variant]:
    """The variants of items; those that another version wrote in another form are left out."""
    found = []
    for item in items:
        with contextlib.suppress(KeyError, TypeError, _core.WarifuError):
            found.append(Variant.of_json(item))
    return found


def _shape(runs: Loopback) -> Law:
    """The form of the system's laws: that of the TCP handshakes at no delay, in which there is
    nothing but system calls and wake-ups."""
    connects = (values for (_, metric), values in runs.times_ns.items() if metric == "tcp.connect")
    law = Law.of_samples(min(connects, key=lambda values: float(values.min())).tolist())
    return law.scaled(1.0 / law.median_ns)

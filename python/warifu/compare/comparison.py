# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a comparison of two halves found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from warifu.compare import stats
from warifu.compare.conditions import Conditions
from warifu.compare.exact import Bytes
from warifu.compare.gates import RULE, Verdict
from warifu.compare.null_models import Beside
from warifu.compare.rows import Row
from warifu.compare.speed import MachineSpeed

#: The statistics that are compared, and the quantile of each; the mean has none.
STATISTICS: dict[str, float | None] = {"p50": 0.50, "mean": None, "p95": 0.95, "p99": 0.99}
#: In place of the verdict of a gate that has none.
NOT_JUDGED = "not judged"


class CompareError(Exception):
    """Two halves that cannot be compared; its text is one line that names the fix."""


@dataclass(frozen=True)
class CaseComparison:
    """One case in both halves."""

    case_id: str
    label: str
    #: What is judged: the whole time of a connection.
    metric: str
    #: Its parts, each a metric of its own.
    phases: list[str]
    loss: float
    n_predicted: float
    n_measured: float
    failed_predicted: float
    failed_measured: float
    #: Where means were cut because of failed connections, ns; infinite without any.
    limit: float
    evidence_predicted: str
    evidence_measured: str
    rows: list[Row]
    bytes: list[Bytes]
    bytes_gated: bool
    wasserstein: stats.Distance
    kolmogorov: tuple[float, float]
    verdict: Verdict | None
    #: Times that end after the whole time, where both halves have them; no gate judges them.
    later: list[str] = field(default_factory=list)
    #: Why nothing of it is judged.
    not_judged: str = ""
    #: How it was measured.
    conditions: Conditions = field(default_factory=Conditions)
    #: How quick the machine was, where that is known; P50 and the mean are then judged at it.
    speed: MachineSpeed | None = None
    #: Our prediction beside such as need no simulator; none where they are not known.
    null_models: list[Beside] = field(default_factory=list)
    #: Connections that were replayed, and those of them in which a packet has no counterpart.
    replayed: int = 0
    divergent: int = 0
    #: Whether it could have been replayed, and its replay was left out or is missing.
    replay_missing: bool = False
    #: What of the comparison there was nothing to make of, a clause each.
    missing: list[str] = field(default_factory=list)

    @property
    def gates(self) -> dict[str, int]:
        """How many gates passed, failed, are undecided and are not judged."""
        found = dict.fromkeys((*map(str, Verdict), NOT_JUDGED), 0)
        for row in self.rows:
            if row.gate is not None:
                found[str(row.verdict or NOT_JUDGED)] += 1
        for one in self.bytes if self.bytes_gated else []:
            found[str(one.verdict)] += 1
        return found

    @property
    def no_statement(self) -> bool:
        """Whether it has gates, and none of them says anything."""
        return self.verdict is None and any(row.no_statement for row in self.rows)

    def row(self, statistic: str, metric: str | None = None) -> Row | None:
        """The row of a statistic of a metric, or of the one that is judged, if it was compared."""
        wanted = (metric or self.metric, statistic)
        found = (row for row in self.rows if (row.metric, row.statistic) == wanted)
        return next(found, None)


@dataclass(frozen=True)
class Comparison:
    """A study's two halves, case by case."""

    study: str
    predicted_run: str
    measured_run: str
    cases: list[CaseComparison]
    only_predicted: list[str]
    only_measured: list[str]
    verdict: Verdict | None
    rule: str = RULE
    #: The weakest evidence that any prediction here rests on.
    evidence: str = "assumed"
    #: When the later half was finished, RFC 3339; `~` if one is not.
    halves_finished: str = "~"
    #: Whether the measured half names this prediction as the one that was there before it.
    registered: bool = False
    #: The predictor's commit, where known.
    predictor: str | None = None
    #: What the measured half warns of: a verdict on contended trials says little.
    warnings: Sequence[str] = ()
    #: What of the study each half has that was cut short.
    interrupted: Sequence[str] = ()

    def count(self, verdict: Verdict | None) -> int:
        """Cases with this verdict."""
        return sum(case.verdict == verdict for case in self.cases)

    @property
    def gates(self) -> dict[str, int]:
        """How many gates of all cases passed, failed, are undecided and are not judged."""
        each = [case.gates for case in self.cases]
        return {name: sum(one[name] for one in each) for name in (*map(str, Verdict), NOT_JUDGED)}

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How long a measurement will still take."""

from __future__ import annotations

PART_OVERHEAD_S = 3.0
"""What a part takes beside its connections, assumed: namespaces, link, server and client come and
go. Where it is another, the pace shows it."""

PRIOR_S = 60.0
"""So much work, a part or two, is taken as planned beside what was seen, so that the first parts do
not decide alone."""


class Pace:
    """Foresees the end of parts whose lengths are planned.

    What is left takes as much longer than planned as what is done did, with the attempts that were
    rejected. The end that was foreseen stays until a part is rejected or it has passed: without a
    reason, which `rejected` and `overdue` tell, the time left only falls.
    """

    def __init__(self, now: float) -> None:
        """``now`` is a monotonic clock's, s, as everywhere here."""
        self._begun = now
        self._planned_done = 0.0
        self._end: float | None = None
        self._rejected_since = False
        self.rejected = 0
        """Attempts that were rejected, each of which is made again."""
        self.overdue = False
        """Whether an end that was foreseen has passed, since parts took longer than planned."""

    def accepted(self, planned_s: float) -> None:
        """A part of so long a plan is measured."""
        self._planned_done += planned_s

    def reject(self) -> None:
        """An attempt was in vain."""
        self.rejected += 1
        self._rejected_since = True

    def left(self, planned_s: float, now: float) -> float:
        """Seconds until parts of so long a plan together are measured as well."""
        slower = (now - self._begun + PRIOR_S) / (self._planned_done + PRIOR_S)
        end = now + planned_s * slower
        passed = self._end is not None and now >= self._end
        self.overdue |= passed and planned_s > 0
        stands = self._end is not None and not passed and not self._rejected_since
        if self._end is None or end < self._end or not stands:
            self._end = end
        self._rejected_since = False
        return self._end - now

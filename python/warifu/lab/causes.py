# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Why attempts at parts are rejected."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from enum import Enum


class Cause(Enum):
    """What a part is rejected for, by words that its reason has.

    The link gives its reasons as text (crates/lab/link/src/report.rs), and so do manifests.
    """

    LATE = re.compile(r"packets were .*\blate\b")
    DROPPED = re.compile("packets were dropped before the link could read them")
    POOL_FULL = re.compile("packets found no room in the pool")
    REFUSED = re.compile("packets were refused by the receiving device")
    TOO_LONG = re.compile("packets were longer than the MTU")
    SERVER = re.compile("^the server was busy for")
    OTHERS = re.compile("^others took .* of the processors")

    @staticmethod
    def of(reason: str) -> Cause | None:
        """That of one reason, if it is one of these."""
        what, _, _ = reason.partition(": ")
        return next((one for one in Cause if one.value.search(what)), None)

    @property
    def says(self) -> str:
        """The cause without its figures."""
        return _SAYS.get(self, self.value.pattern)

    @property
    def is_busyness(self) -> bool:
        """Whether other work on the machine gives rise to it."""
        return self in {Cause.LATE, Cause.OTHERS}


_SAYS = {
    Cause.LATE: "packets were too late",
    Cause.SERVER: "the server was busy for too much of the time",
    Cause.OTHERS: "other programs took too much of the processors",
}


def counted(reasons: Iterable[str]) -> dict[str, int]:
    """The causes that rejections have in common, the most frequent first. ``reasons`` has a text
    for each, of one reason or several."""
    counts = Counter(cause for text in reasons for cause in set(map(_said, text.split("; "))))
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))


def _said(reason: str) -> str:
    """A reason's cause; of one that is none of these, its own words without figures and hints."""
    cause = Cause.of(reason)
    return cause.says if cause else _FIGURE.sub("", re.split("[:,] ", reason)[0])


_FIGURE = re.compile(r"^[\d.]+ (?:% of )?|[\d.]+ ?% of ")
"""How much of something there was: `0.512 % of`, `3`."""

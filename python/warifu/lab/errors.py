# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What can go wrong in the lab; every text is one line that says what to do."""

from __future__ import annotations

from pathlib import Path

from warifu.lab.causes import Cause


class LabError(Exception):
    """A measurement failed; what was measured before stays."""


class LabUnavailable(LabError):  # noqa: N818 - what happened, not what it is
    """This machine cannot measure as it is set up; the text says how to change that."""


class ResultsMixed(LabError):  # noqa: N818 - what happened, not what it is
    """The folder holds results of another machine or other tools: together they are no result."""

    def __init__(self, folder: Path, difference: str, run_id: str) -> None:
        """Keeps what differs and which run is there, for who moves the folder away."""
        super().__init__(
            f"{folder}: holds results with {difference}: choose another folder, or move this one "
            "away to measure again"
        )
        self.difference = difference
        self.run_id = run_id


class RunRejected(LabError):  # noqa: N818 - what happened, not what it is
    """The emulated link was late or lost packets that it should not, or other programs took too
    much of the processors, so the run was thrown away unseen."""

    def __init__(self, reasons: list[str], report: dict[str, object]) -> None:
        """Keeps the link's own report on the rejected run, and the reasons' causes."""
        super().__init__("; ".join(reasons) or "the link rejected the run without a reason")
        self.report = report
        self.causes = {cause for reason in reasons if (cause := Cause.of(reason)) is not None}

    def advice(self, again: str) -> str:
        """What to do before ``again``; what else is to do, each reason says itself."""
        if any(cause.is_busyness for cause in self.causes):
            return f"the machine is too busy: stop other work and {again}"
        return f"mend that and {again}"

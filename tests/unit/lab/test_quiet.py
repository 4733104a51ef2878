# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a measurement says of other work beside its parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warifu.lab import quiet
from warifu.lab.measure import noise
from warifu.results import parts


def said(*records: dict[str, Any]) -> list[str]:
    found = [{"first_trial": at, "trials": 1} | one for at, one in enumerate(records)]
    return noise(parts.parts_of({"cells": {"c": {"parts": found}}}, "c", Path("measured")))


def test_parts_whose_noise_was_not_recorded_say_nothing() -> None:
    loud = {"processor_shares": {"others": 0.04, "stolen": 0.02}}
    calm = {"processor_shares": {"others": 0.04, "stolen": 0.01}}
    assert said({}, {"processor_shares": None}, calm) == []
    (remark,) = said({}, loud, calm, {"processor_shares": {"others": 0.0, "stolen": 0.3}})
    assert remark.startswith("other work took up to 30% of the processors in 2 of 4 parts, 5% are")


def test_what_others_may_take_is_one_figure() -> None:
    records = [{"first_trial": 0, "trials": 1}]
    (part,) = parts.parts_of({"cells": {"c": {"parts": records}}}, "c", Path("measured"))
    assert part.others_max == quiet.OTHERS_MAX

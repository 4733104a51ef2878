# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The registry of metrics (crates/core/model/src/metric.rs), as results are read by."""

from __future__ import annotations

import functools

import warifu._core as _core

WHOLE_OF_STREAM = "dds.one_way"
"""From the write of a stream's sample to its reader."""
RATE_OF_STREAM = "dds.rate"
"""How many of them were read a second."""


@functools.cache
def whole(protocol: str) -> str:
    """The metric of a protocol that the gates judge: from the first call to the response."""
    return next(
        str(one["name"])
        for one in _core.metrics(protocol)
        if one["is_whole"] and not one["of_scenario"]
    )


@functools.cache
def phases(protocol: str) -> tuple[str, ...]:
    """The parts of that time, in their order; each is a metric of its own."""
    return tuple(str(one["name"]) for one in _core.metrics(protocol) if one["is_phase"])


@functools.cache
def later(protocol: str) -> tuple[str, ...]:
    """The times of a connection that end after its whole time."""
    times = [one for one in _core.metrics(protocol) if one["unit"] == "ns"]
    return tuple(
        str(one["name"])
        for one in times
        if not (one["is_whole"] or one["is_phase"] or one["of_scenario"])
    )


@functools.cache
def all_wholes() -> tuple[str, ...]:
    """The whole times of all protocols."""
    return tuple(
        str(one["name"]) for one in _core.metrics() if one["is_whole"] and not one["of_scenario"]
    )


@functools.cache
def of(protocol: str) -> frozenset[str]:
    """The metrics of a protocol: of a connection, and of a scenario of several."""
    return frozenset(str(one["name"]) for one in _core.metrics(protocol))


@functools.cache
def unit(metric: str) -> str:
    """The unit of a metric's values: ns, B, 1, mJ or mAh."""
    return next(str(one["unit"]) for one in _core.metrics() if one["name"] == metric)


@functools.cache
def is_time(metric: str) -> bool:
    """Whether a metric is a time, which what failed has later than all others."""
    return any(one["name"] == metric and one["unit"] == "ns" for one in _core.metrics())


@functools.cache
def is_of_scenario(metric: str) -> bool:
    """Whether there is one value for a trial's connections together, not one for each."""
    return any(one["name"] == metric and one["of_scenario"] for one in _core.metrics())


@functools.cache
def is_failure(metric: str) -> bool:
    """Whether a metric says what failed: 0 or 1, with rows only where it is 1."""
    return any(one["name"] == metric and one["is_failure"] for one in _core.metrics())


@functools.cache
def failure_of(metric: str) -> str:
    """The metric that says for which connections, or which scenarios, a metric has no value."""
    scenario = is_of_scenario(metric)
    return next(
        str(one["name"])
        for one in _core.metrics()
        if one["is_failure"] and one["of_scenario"] == scenario
    )


@functools.cache
def whole_of_scenario() -> str:
    """The time of all connections of a scenario together."""
    return next(
        str(one["name"]) for one in _core.metrics() if one["is_whole"] and one["of_scenario"]
    )

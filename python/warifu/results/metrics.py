# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The registry of metrics (crates/core/model/src/metric.rs), as results are read by."""

from __future__ import annotations

import functools

import warifu._core as _core


@functools.cache
def whole(protocol: str) -> str:
    """The metric of a protocol that the gates judge: from the first call to the response."""
    return next(str(one["name"]) for one in _core.metrics(protocol) if one["is_whole"])


@functools.cache
def phases(protocol: str) -> tuple[str, ...]:
    """The parts of that time, in their order; each is a metric of its own."""
    times = [one for one in _core.metrics(protocol) if one["from"] is not None]
    return tuple(str(one["name"]) for one in times if not one["is_whole"])


@functools.cache
def all_wholes() -> tuple[str, ...]:
    """The whole times of all protocols."""
    return tuple(str(one["name"]) for one in _core.metrics() if one["is_whole"])


@functools.cache
def of(protocol: str) -> frozenset[str]:
    """The metrics that a connection of a protocol has."""
    return frozenset(str(one["name"]) for one in _core.metrics(protocol))


@functools.cache
def unit(metric: str) -> str:
    """The unit of a metric's values: ns, B, 1, mJ or mAh."""
    return next(str(one["unit"]) for one in _core.metrics() if one["name"] == metric)


@functools.cache
def is_time(metric: str) -> bool:
    """Whether a metric is a time, which a failed connection has later than all others."""
    return any(one["name"] == metric and one["unit"] == "ns" for one in _core.metrics())

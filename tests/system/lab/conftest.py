# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The lab's tests run the real programs, so they need root and Linux namespaces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from warifu.lab import workplace


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No test may leave anything of a lab behind."""
    before = set(workplace.leftovers())
    yield
    assert set(workplace.leftovers()) <= before

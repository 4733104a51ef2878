# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A served card and an agent that holds it, for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import holding


@pytest.fixture
def card(tmp_path: Path) -> Iterator[Path]:
    """The socket of a card with the PIN 1234 for signing."""
    with holding.served(tmp_path) as socket:
        yield socket

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A card of its own for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import sim


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state file of a new card."""
    path = tmp_path / "card.state"
    sim.ask("create", state=path)
    return path

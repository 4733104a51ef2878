# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Every command is run in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.commands import FakePredict
from warifu import _core


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(elsewhere: None) -> None:
    """Commands write where they are."""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakePredict], None]:
    def use(predict: FakePredict) -> None:
        monkeypatch.setattr(_core, "predict", predict)

    return use

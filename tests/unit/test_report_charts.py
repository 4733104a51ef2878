# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Pictures of distributions: their words are text, whatever a case is called."""

from __future__ import annotations

import pytest

from warifu.report import charts


@pytest.mark.parametrize("label", ['"><script>', "\x1b[2J\x00", "\u202e"])
def test_a_label_is_text_alone(label: str) -> None:
    svg = charts.cdf(label, None, None, "key").svg
    assert label not in svg
    assert "\x1b" not in svg and "\x00" not in svg

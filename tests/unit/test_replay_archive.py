# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A replay in small: what is restored is what was archived, to 1 us."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warifu.results import ResultsDamaged
from warifu.results.replay import ReplayOfCase
from warifu.results.replay_archive import name_of, packed, unpacked

CONNECTIONS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 10**13),
        st.one_of(st.none(), st.integers(0, 10**13)),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=40,
)


def replay(rows: list[tuple[int, int, int | None, bool, bool]]) -> ReplayOfCase:
    """Of connections: part, measured and replayed time (ns), and the two flags."""
    part, measured, ours, same, divergent = (list(one) for one in zip(*rows, strict=True))
    return ReplayOfCase(
        np.arange(len(rows)),
        np.array(part, dtype=np.int64),
        np.array([np.inf if one is None else float(one) for one in ours]),
        np.array(measured, dtype=np.float64),
        np.array(same),
        np.array(divergent),
    )


def rows_of(one: ReplayOfCase) -> list[tuple[float, ...]]:
    """Connections in an order of their own, times in us."""
    columns = zip(
        one.part, np.rint(one.measured_ns / 1e3), one.replayed_ns, one.same_sequence,
        one.divergent, strict=True,
    )  # fmt: skip
    return sorted(
        (int(part), float(measured), float(np.rint(ours / 1e3)), bool(same), bool(other))
        for part, measured, ours, same, other in columns
    )


@given(a=CONNECTIONS, b=CONNECTIONS)
def test_what_is_restored_is_what_was_archived(
    tmp_path_factory: pytest.TempPathFactory,
    a: list[tuple[int, int, int | None, bool, bool]],
    b: list[tuple[int, int, int | None, bool, bool]],
) -> None:
    file = tmp_path_factory.mktemp("replay") / "x.replay.parquet"
    cases = {"one": replay(a), "other": replay(b)}
    file.write_bytes(packed(cases))
    found = unpacked(file)
    assert found.keys() == cases.keys()
    for case_id, one in cases.items():
        assert rows_of(found[case_id]) == rows_of(one)


def test_a_file_that_was_cut(tmp_path: Path) -> None:
    file = name_of(tmp_path / "x.parquet")
    assert file.name == "x.replay.parquet"
    content = packed({"one": replay([(0, 1_000, 2_000, True, False)])})
    file.write_bytes(content[:-9])
    with pytest.raises(ResultsDamaged, match="take it from where it was committed"):
        unpacked(file)

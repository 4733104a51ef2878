# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A replay in small: what is restored is what was archived, to 1 us."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warifu.results import ResultsDamaged
from warifu.results.replay import ReplayOfCase
from warifu.results.replay_archive import name_of, packed, unpacked

RUNS = ("predicted-1", "measured-2")
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


def replay(
    rows: list[tuple[int, int, int | None, bool, bool]], others: list[bool] | None = None
) -> ReplayOfCase:
    """Of connections: part, measured and replayed time (ns), and the two flags; and whether bare
    acknowledgements differ."""
    part, measured, ours, same, divergent = (list(one) for one in zip(*rows, strict=True))
    return ReplayOfCase(
        np.arange(len(rows)),
        np.array(part, dtype=np.int64),
        np.array([np.inf if one is None else float(one) for one in ours]),
        np.array(measured, dtype=np.float64),
        np.array(same),
        np.array(divergent),
        None if others is None else np.array(others),
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
    file.write_bytes(packed(cases, RUNS))
    found = unpacked(file, RUNS)
    assert found.keys() == cases.keys()
    for case_id, one in cases.items():
        assert rows_of(found[case_id]) == rows_of(one)


def test_a_file_that_was_cut(tmp_path: Path) -> None:
    file = name_of(tmp_path / "x.parquet")
    assert file.name == "x.replay.parquet"
    content = packed({"one": replay([(0, 1_000, 2_000, True, False)])}, RUNS)
    file.write_bytes(content[:-9])
    with pytest.raises(ResultsDamaged, match="take it from where it was committed"):
        unpacked(file, RUNS)


def test_acknowledgements_that_differ_are_kept_where_they_are_known(tmp_path: Path) -> None:
    file = tmp_path / "x.replay.parquet"
    rows: list[tuple[int, int, int | None, bool, bool]] = [
        (0, 1_000, 2_000, True, False),
        (0, 3_000, None, True, True),
        (1, 5_000, 7_000, True, False),
    ]
    cases = {"known": replay(rows, [True, False, False]), "not": replay(rows)}
    file.write_bytes(packed(cases, RUNS))
    found = unpacked(file, RUNS)
    assert found["not"].other_acknowledgements is None
    of = found["known"]
    assert of.other_acknowledgements is not None
    kept = zip(of.measured_ns.tolist(), of.other_acknowledgements.tolist(), strict=True)
    assert sorted(kept) == [(1_000.0, True), (3_000.0, False), (5_000.0, False)]


def test_an_archive_from_before_acknowledgements_were_kept(tmp_path: Path) -> None:
    file = tmp_path / "x.replay.parquet"
    known = {"one": replay([(0, 1_000, 2_000, True, False)], [True])}
    file.write_bytes(packed(known, RUNS))
    older = pl.read_parquet(file).drop("other_acknowledgements")
    older.write_parquet(file)
    (of,) = unpacked(file, RUNS).values()
    assert of.other_acknowledgements is None
    # Without them the file is as it was.
    file.write_bytes(packed({"one": replay([(0, 1_000, 2_000, True, False)])}, RUNS))
    assert pl.read_parquet(file).equals(older)


def test_an_archive_that_has_acknowledgements_of_some_connections(tmp_path: Path) -> None:
    file = tmp_path / "x.replay.parquet"
    one = replay([(0, 1_000, 2_000, True, False), (0, 3_000, 4_000, True, False)], [True, True])
    file.write_bytes(packed({"one": one}, RUNS))
    first = pl.int_range(pl.len()) == 0
    others = pl.when(first).then(pl.col("other_acknowledgements"))
    pl.read_parquet(file).with_columns(others.alias("other_acknowledgements")).write_parquet(file)
    with pytest.raises(ResultsDamaged, match="lacks values"):
        unpacked(file, RUNS)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Tables in every format, and figures with no more decimals than they deserve."""

from __future__ import annotations

import csv
import html
import io
import json
import math
import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from support.synthetic import Cell, Half, figure_used, study
from warifu.cli import formats, screen
from warifu.compare.join import compare_folder
from warifu.compare.require import judge_all, requirements
from warifu.compare.stats import Interval
from warifu.report import accuracy, figures, summaries
from warifu.report.inputs import inputs_table
from warifu.report.requirements import requirement_table
from warifu.report.table import Column, Format, Table, render
from warifu.report.tables import judge_halves, link_table, open_halves, report_tables
from warifu.results import Results

MS = 1e6


@pytest.fixture
def small() -> Table:
    table = Table("a title", [Column("case", number=False), Column("mean")], notes=["a note"])
    table.add(["TLS 1.3 | full", "184.32"], {"case": "TLS 1.3 | full", "mean_ns": 184.32e6})
    table.add(["5 % & more", "-"], {"case": "5 % & more", "mean_ns": math.nan})
    return table


def test_long_text_goes_on_in_further_lines_of_a_terminal_alone() -> None:
    columns = [Column("claim", number=False, wrap=9), Column("n"), Column("verdict", False, 8)]
    table = Table("a title", columns)
    table.add(["short", "7", "holds"], {"claim": "short"})
    table.add(["twelve_letters and more", "12", "not so: for a reason"], {"claim": "long"})
    assert render([table], Format.TABLE).splitlines()[2:] == [
        "claim      n  verdict",
        "--------  --  -------",
        "short      7  holds",
        "",
        "twelve_   12  not so:",
        "letters       for a",
        "and more      reason",
    ]
    assert "| twelve_letters and more | 12 | not so: for a reason |" in render([table], Format.MD)


def test_plain_text_is_aligned(small: Table) -> None:
    assert render([small], Format.TABLE).splitlines() == [
        "a title",
        "",
        "case              mean",
        "--------------  ------",
        "TLS 1.3 | full  184.32",
        "5 % & more           -",
        "",
        "a note",
    ]


def test_markdown_escapes_bars(small: Table) -> None:
    lines = render([small], Format.MD).splitlines()
    assert lines[3] == "| :--- | ---: |"
    assert lines[4] == "| TLS 1.3 \\| full | 184.32 |"


def shown_by_markdown(tables: list[Table]) -> str:
    """The text of the page that Markdown becomes; a tag that is not Markdown's own is a mistake."""
    page = MarkdownIt("commonmark").enable("table").render(render(tables, Format.MD))
    tags = set(re.findall(r"<(/?\w+)", page))
    own = {"p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code"}
    assert {tag.removeprefix("/") for tag in tags} <= own, page
    return html.unescape(re.sub(r"<[^>]*>", "", page))


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "f<int>(char*, char*)",
        "R&D &lt; &amp;",
        "a|b",
        r"a\|b",
        r"a\<b>\\",
        "operator[](int)",
        "__init__",
        "a*b*c",
        "`<b>",
        "a ``<b>` c",
    ],
)
def test_markdown_shows_the_text_in_titles_heads_cells_and_notes(text: str) -> None:
    table = Table(text, [Column(text), Column("other")], notes=[text])
    table.add([text, "last"], {})
    shown = shown_by_markdown([table]).split("\n")
    assert [line for line in shown if line] == [text, text, "other", text, "last", text]


@pytest.mark.parametrize("code", ["make -C x", "a<b> & c", "a|b", "``a`<b>``"])
def test_markdown_leaves_commands_in_backticks_as_they_are(code: str) -> None:
    code = code if code.startswith("`") else f"`{code}`"
    table = Table("a title", [Column("case")], notes=[f"Run {code} <now>."])
    table.add([f"run {code} <now>"], {})
    text = render([table], Format.MD)
    assert f"Run {code} &lt;now&gt;." in text
    assert text.count(code) + text.count(code.replace("|", "\\|")) >= 2
    inner = code.strip("`")
    assert shown_by_markdown([table]).count(f"un {inner} <now>") == 2


def test_markdown_of_code_with_an_escaped_bar_stays_in_its_cell() -> None:
    table = Table("a title", [Column("case"), Column("n")])
    table.add([r"`\|<script>`", "1"], {})
    text = render([table], Format.MD)
    assert r"| \`\\\|&lt;script&gt;\` | 1 |" in text
    assert r"`\|<script>`" in shown_by_markdown([table])


def test_csv_and_json_hold_every_digit_in_base_units(small: Table) -> None:
    rows = list(csv.DictReader(io.StringIO(render([small], Format.CSV))))
    assert rows[0] == {"case": "TLS 1.3 | full", "mean_ns": "184320000"}
    assert rows[1]["mean_ns"] == ""
    (value,) = json.loads(render([small], Format.JSON))["tables"]
    assert value["rows"][0]["mean_ns"] == 184.32e6
    assert value["rows"][1]["mean_ns"] is None
    assert [one["title"] for one in json.loads(render([small, small], Format.JSON))["tables"]] == [
        "a title",
        "a title",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("=cmd|'/C calc'!A0", "'=cmd|'/C calc'!A0"),
        ('=HYPERLINK("http://x")', '\'=HYPERLINK("http://x")'),
        ("@SUM(1)", "'@SUM(1)"),
        ("+1+2", "'+1+2"),
        ("-1-2", "'-1-2"),
        ("-5\n", "'-5\\n"),
        ("\uff1d1", "'\uff1d1"),
        ("\t=1", r"\t=1"),
        ("\r=1", r"\r=1"),
        ("-5", "-5"),
        ("+1.5e-3", "+1.5e-3"),
        ("a=1", "a=1"),
        ("'=1", "'=1"),
    ],
)
def test_text_of_csv_is_no_formula(text: str, shown: str) -> None:
    table = Table("t", [Column("case", number=False)])
    table.add(["x"], {text: "head", "text": text, "delta_ns": -5.0, "share": -0.5})
    found = list(csv.reader(io.StringIO(render([table], Format.CSV))))
    assert found == [[shown, "text", "delta_ns", "share"], ["head", shown, "-5", "-0.5"]]


def test_latex_escapes_what_tex_would_eat(small: Table) -> None:
    text = render([small], Format.LATEX)
    assert r"5 \% \& more & - \\" in text
    assert r"\begin{tabular}{lr}" in text
    assert text.count(r"\begin") == text.count(r"\end") == 2


@pytest.mark.parametrize("first", ["[1cm] a", "* a", "  [b]"])
def test_first_cell_of_latex_is_no_argument_of_what_stands_before(first: str) -> None:
    table = Table("t", [Column(first, number=False), Column("[n]")])
    for cell in (first, first, "a [b] *", "", "{[}"):
        table.add([cell, "[1]"], {})
    lines = render([table], Format.LATEX).splitlines()
    rows = [line.strip() for line in lines if line.endswith(r"\\")]
    begins = "{}" + first.rstrip()
    assert rows == [
        rf"{begins} & [n] \\",
        rf"{begins} & [1] \\",
        rf"{begins} & [1] \\",
        r"a [b] * & [1] \\",
        r"& [1] \\",
        r"\{[\} & [1] \\",
    ]


def test_latex_escapes_every_letter_that_tex_reads() -> None:
    table = Table("\\{}$&#^_%~", [Column("a", number=False)])
    shown = r"\textbackslash{}\{\}\$\&\#\textasciicircum{}\_\%\textasciitilde{}"
    assert rf"\caption{{{shown}.}}" in render([table], Format.LATEX)


def test_a_caption_of_latex_is_the_title_and_notes_stand_below(small: Table) -> None:
    small.notes = ["a long note of 5 % " * 20]
    text = render([small], Format.LATEX)
    assert r"\caption{a title.}" in text
    assert text.index(r"\end{tabular}") < text.index(r"a long note of 5 \%")


def test_a_row_of_another_width_is_a_mistake(small: Table) -> None:
    with pytest.raises(ValueError, match="3 cells for 2 columns"):
        small.add(["a", "b", "c"], {})


@pytest.mark.parametrize(
    ("half_width", "places"),
    [(0.04, 2), (0.02, 3), (0.36, 1), (0.3, 2), (2.0, 1), (4.0, 0), (30.0, 0), (300.0, -1)],
)
def test_decimals_end_where_the_interval_does(half_width: float, places: int) -> None:
    assert figures.decimals(half_width) == places


def test_figures_for_people() -> None:
    around = Interval(184.30 * MS, 184.35 * MS)
    assert figures.ms_with(184.32 * MS, around) == "184.320 (184.300 to 184.350)"
    assert figures.ms_with(657.3 * MS, Interval(612 * MS, 702 * MS)) == "660 (610 to 700)"
    assert figures.signed_ms_with(0.0, Interval(-1 * MS, 2 * MS)) == "0.0 (-1.0 to +2.0)"
    assert figures.ms_with(343 * MS, Interval(300 * MS, math.inf)) == "340 (300 to ∞)"
    assert figures.ms(math.nan) == "-"
    assert figures.percent(-0.0123, 0.001) == "-1.23 %"
    assert figures.percent(math.nan) == "-"
    assert figures.number(-0.001, 1) == "0.0"


@given(
    st.floats(min_value=1e3, max_value=1e11),
    st.floats(min_value=1e-4, max_value=2.0),
)
def test_rounding_never_hides_more_than_a_sixth_of_the_interval(value: float, share: float) -> None:
    half = value * share
    shown = figures.ms(value, Interval(value - half, value + half))
    # Six decimals of a millisecond are a nanosecond, the unit of the clock.
    assert abs(float(shown) * MS - value) <= max(half / 6, 0.5) * (1 + 1e-9)


@given(
    st.floats(min_value=1e3, max_value=1e11),
    st.floats(min_value=0.0, max_value=1.0),
    st.floats(min_value=1.0, max_value=50.0),
)
def test_printed_estimate_lies_in_its_printed_interval(
    value: float, below: float, above: float
) -> None:
    interval = Interval(value * below, value * above)
    shown = figures.ms_with(value, interval)
    alone = figures.ms(value, interval)
    # The same figure in another table, without its interval, is rounded alike.
    assert shown.split(" ")[0] == alone
    if "(" in shown:
        low, high = map(float, shown.split("(")[1].rstrip(")").split(" to "))
        assert low <= float(alone) <= high


def test_nothing_is_a_naked_mean(tmp_path: Path) -> None:
    half = Results.open(Half("predicted", [Cell()], 2_000, seed=1).write(tmp_path))
    heads = [column.head for column in summaries.half_table(half).columns]
    assert {"n", "P50", "mean (95 % interval)", "P95", "P99", "method", "rests on"} <= set(heads)


def test_a_long_study_is_cut_for_a_terminal_and_says_so(tmp_path: Path) -> None:
    cells = [Cell(rtt_ms=rtt) for rtt in range(1, 9)]
    half = Results.open(Half("predicted", cells, 20, seed=1).write(tmp_path))
    table = summaries.half_table(half, limit=3)
    assert len(table.cells) == 3
    assert any(note.startswith("3 of 8 cases are shown") for note in table.notes)


def test_every_judged_figure_is_there_and_the_worst_comes_first(tmp_path: Path) -> None:
    comparison = compare_folder(study(tmp_path, [Cell(), Cell(loss=0.02)], n=400, scale=1.04))
    table = accuracy.comparison_table(comparison, worst_first=True, judged_only=True)
    verdicts = [row["verdict"] for row in table.records]
    # Without loss two quantities, two spreads and two directions of bytes; with loss four.
    assert len(verdicts) == 2 + 2 + 2 + 4
    order = {"fail": 0, "undecided": 1, "pass": 2, "not judged": 3}
    assert [order[str(one)] for one in verdicts] == sorted(order[str(one)] for one in verdicts)
    assert {"fail", "pass", "not judged"} <= set(verdicts)
    everything = accuracy.comparison_table(comparison)
    # Beside them the quantiles that have no gate; at a jump there are a time and a share.
    jumps = sum(row.statistic.endswith(" share") for case in comparison.cases for row in case.rows)
    assert len(everything.records) == 2 * (4 + 2) + 2 + jumps
    overview = accuracy.overview_table(comparison)
    assert [row[1] for row in overview.cells] == ["fail", "fail"]


def test_requirements_show_the_case_nearest_to_failing(tmp_path: Path) -> None:
    cells = [Cell(rtt_ms=rtt) for rtt in (0, 60, 150)]
    half = Results.open(Half("predicted", cells, 2_000, seed=1).write(tmp_path))
    bound = ("https.establishment", "p50", "<", 300e6, "https.establishment.p50 < 300 ms")
    table = requirement_table(judge_all(half, requirements([bound])))
    assert len(table.records) == 3
    (row,) = table.cells
    assert row[2:5] == ["2 of 3 cases", "fails", "RTT 150 ms"]


def test_inputs_come_once_and_the_weakest_kind_first() -> None:
    one = figure_used("a", "1", "measured", "s", "ms")
    two = figure_used("b", "2", "assumed", "", "ms", ["x"])
    table = inputs_table({"figures": [one, two], "cases": []})
    assert [row[0] for row in table.cells] == ["b", "a"]
    assert table.cells[0][3] == "-"


def test_the_link_reports_its_lateness(tmp_path: Path) -> None:
    cell = Cell()
    way = {"delivered": 990, "dropped_by_loss": 10, "lateness_us": {"p50": 9, "p99": 40, "max": 80}}
    window = {"accepted": True, "late_fraction": 0.0005, "a_to_b": way, "b_to_a": way}
    manifest = {"link_reports": {cell.case_id: [window]}, "rejections": [{}]}
    half = Results.open(Half("measured", [cell], 5, seed=1, manifest=manifest).write(tmp_path))
    table = link_table(half)
    assert table.cells[0][1:] == ["1", "2,000", "1.00 %", "0.050 %", "9", "40", "80", "accepted"]
    # Whatever the cause: not only a late link rejects.
    assert table.notes == ["1 attempt was rejected before any result was seen, and made again."]


def test_a_report_has_its_tables_with_and_without_a_measurement(tmp_path: Path) -> None:
    folder = study(tmp_path, [Cell()], n=100)
    titles = [table.title for table in report_tables(folder, compare_folder(folder))]
    assert len(titles) == 11
    Half("predicted", [Cell()], 100, seed=1).write(tmp_path / "alone")
    assert [table.title for table in report_tables(tmp_path / "alone", None)] == [
        "requirements",
        "made-up: predicted, https.establishment in ms",
        "inputs of the prediction",
    ]


def requirement_row(half: Results, metric: str, statistic: str, bound: float) -> list[str]:
    bounds = requirements([(metric, statistic, "<", bound, f"{metric}.{statistic}")])
    (row,) = requirement_table(judge_all(half, bounds)).cells
    return row


def test_a_share_is_shown_in_percent_and_what_is_undecided_says_why(tmp_path: Path) -> None:
    half = Results.open(Half("predicted", [Cell()], 900, seed=1, failed=100).write(tmp_path))
    assert requirement_row(half, "connection.failed", "mean", 0.01)[6] == "10.0 % (8.2 to 12.0 %)"
    row = requirement_row(half, "bytes.client_sent", "max", 1_000)
    assert row[3] == "undecided (a maximum cannot be proven by trials: require a quantile)"
    assert row[6] == "917 B or more, of the trials that ended; 10 % failed"
    row = requirement_row(half, "packets.link", "p50", 40)
    assert row[3] == "undecided (no connection gave a value of packets.link)"
    assert row[6] == "-"


def test_required_values_have_units_and_say_what_failed_trials_leave_out(tmp_path: Path) -> None:
    half = Results.open(Half("predicted", [Cell()], 810, seed=1, failed=190).write(tmp_path))
    hint = ", of the trials that ended; 19 % failed"
    sent = requirement_row(half, "bytes.client_sent", "mean", 1_000)[6]
    assert re.fullmatch(r"91\d\.\d+ B \(91\d\.\d+ to 91\d\.\d+\)" + hint, sent)
    assert requirement_row(half, "bytes.server_sent", "p50", 1_000)[6] == "1650 B" + hint
    assert requirement_row(half, "tls.handshake", "mean", 1e9)[6].endswith(" ms" + hint)
    # Quantiles of times count a failure as later than all others.
    assert requirement_row(half, "tls.handshake", "p50", 1e9)[6].endswith(" ms")
    assert "ended" not in requirement_row(half, "connection.failed", "mean", 0.5)[6]
    few = Half("predicted", [Cell()], 9_997, seed=1, failed=3).write(tmp_path / "few")
    row = requirement_row(Results.open(few), "tls.handshake", "mean", 1e9)
    assert row[6].endswith("; 0.03 % failed")


def test_only_the_study_s_own_cases_and_bounds_are_judged(tmp_path: Path) -> None:
    """A measured folder may hold what the study asked for before it was edited."""
    old = [["https.establishment", "p50", "<", 1.0, "an older bound"]]
    slow = Cell(rtt_ms=9_000)
    Half("predicted", [Cell()], 2_000, seed=1).write(tmp_path)
    Half("measured", [Cell(), slow], 400, seed=2, manifest={"require": old}).write(tmp_path)
    halves = open_halves(tmp_path, compare_folder(tmp_path))
    judged = judge_halves(*halves)
    assert {one.requirement.text for one in judged} == {"https.establishment.p99 < 5 s"}
    assert [(one.half, one.case_id) for one in judged] == [
        ("predicted", Cell().case_id),
        ("measured", Cell().case_id),
    ]


def test_a_measurement_that_was_not_compared_is_not_reported(tmp_path: Path) -> None:
    folder = study(tmp_path, [Cell()], n=100)
    predicted, measured = open_halves(folder, None)
    assert predicted is not None
    assert measured is None
    assert [table.title for table in report_tables(folder, None)][-1] == "inputs of the prediction"


def test_words_for_programs() -> None:
    table = Table("t", [Column("case", number=False)])
    table.add(["x"], {"nagle": True, "exact": False, "mean_ns": 1.5e6 + 1 / 3, "share": 1 / 3})
    table.add(["y"], {"nagle": None, "exact": True, "mean_ns": math.inf, "share": 2.0})
    rows = list(csv.DictReader(io.StringIO(render([table], Format.CSV))))
    assert rows[0] == {
        "nagle": "true", "exact": "false", "mean_ns": "1500000", "share": "0.3333333333333333"
    }  # fmt: skip
    assert rows[1] == {"nagle": "", "exact": "true", "mean_ns": "", "share": "2"}
    first = json.loads(render([table], Format.JSON))["tables"][0]["rows"][0]
    assert first == {"nagle": True, "exact": False, "mean_ns": 1_500_000, "share": 1 / 3}


def test_overview_for_programs(tmp_path: Path) -> None:
    comparison = compare_folder(study(tmp_path, [Cell(), Cell(loss=0.02)], n=2_000))
    overview = accuracy.overview_table(comparison)
    first, *_ = json.loads(render([overview, overview], Format.JSON))["tables"][0]["rows"]
    (case, _) = comparison.cases
    row = case.row("p95")
    assert row is not None
    assert (first["case_id"], first["label"]) == (case.case_id, case.label)
    assert first["p95_predicted_ns"] == round(row.predicted)
    assert first["p95_relative"] == pytest.approx(row.relative)
    assert (first["n_measured"], first["bytes_verdict"]) == (2_000, "pass")
    assert {type(value) for key, value in first.items() if key.endswith("_ns")} == {int}


def test_requirements_have_their_unit(tmp_path: Path) -> None:
    half = Results.open(Half("predicted", [Cell()], 500, seed=1).write(tmp_path))
    bounds = [
        ("https.establishment", "mean", "<", 5e9, "https.establishment.mean < 5 s"),
        ("bytes.client_sent", "max", "<", 2_000, "bytes.client_sent.max < 2000 B"),
        ("connection.failed", "mean", "<", 0.01, "connection.failed.mean < 1 %"),
    ]
    table = requirement_table(judge_all(half, requirements(bounds)))
    rows = list(csv.DictReader(io.StringIO(render([table], Format.CSV))))
    assert [row["unit"] for row in rows] == ["ns", "B", "1"]
    assert [row["bound"] for row in rows] == ["5000000000", "2000", "0.01"]
    assert [row["metric"] for row in rows] == [metric for metric, *_ in bounds]
    assert all(rows[0][key].isdecimal() for key in ("value", "low", "high"))


def test_settings_that_no_case_has_are_no_columns(tmp_path: Path) -> None:
    folder = Half("predicted", [Cell(), Cell(loss=0.02)], 50, seed=1).write(tmp_path)
    for part in (folder / "observations").iterdir():
        pl.read_parquet(part).with_columns(
            pl.lit(None, pl.String).alias("session"), pl.lit(None, pl.UInt64).alias("rate_up_bps")
        ).write_parquet(part)
    text = render([summaries.half_table(Results.open(folder))], Format.CSV)
    head = text.splitlines()[0].split(",")
    assert "tls" in head and "loss_mean" in head
    assert not {"session", "rate_up_bps"} & set(head)


def _wide(columns: int) -> Table:
    heads = [
        Column("function", number=False),
        *(Column(f"figure {n}, kcycles") for n in range(columns)),
    ]
    table = Table("a title", heads, notes=["a note"])
    for name in ("main", "a_longer_name"):
        table.add([name, *(f"{n}" for n in range(columns))], {"function": name})
    return table


def test_a_table_of_many_numbers_goes_on_below() -> None:
    text = render([_wide(12)], Format.TABLE, 80)
    assert max(map(len, text.splitlines())) <= 80
    # Every figure once, every row's name in each part, title and notes once.
    assert [text.count(f"figure {n}, kcycles") for n in range(12)] == [1] * 12
    assert text.count("a_longer_name") == text.count("function") > 2
    assert text.count("a title") == text.count("a note") == 1
    whole = render([_wide(12)], Format.TABLE)
    assert len(whole.splitlines()) == 8
    assert render([_wide(12)], Format.TABLE, 400) == whole
    # A figure that is wider than all of it stands alone.
    assert "figure 1" in render([_wide(2)], Format.TABLE, 10)


@pytest.mark.parametrize(
    "column", [Column("n"), Column("name", number=False, whole=True)], ids=["number", "name"]
)
def test_one_column_wider_than_the_terminal_stays(column: Column) -> None:
    table = Table("a title", [column])
    table.add(["1" * 90], {})
    assert "1" * 90 in render([table], Format.TABLE, 80)
    assert render([table], Format.TABLE, 80) == render([table], Format.TABLE)


def test_a_long_title_goes_on_in_a_terminal_alone() -> None:
    table = _wide(2)
    table.title = "a title of many words " * 8
    text = render([table], Format.TABLE, 80)
    assert max(map(len, text.splitlines())) <= 80
    assert " ".join(text.split()).startswith(table.title.strip())
    assert table.title in render([table], Format.TABLE)


def test_a_table_fits_the_terminal_that_it_goes_to(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def widest(stream: io.StringIO) -> int:
        screen.show([_wide(12)], formats.Format.TABLE, stream)
        return max(map(len, stream.getvalue().splitlines()))

    monkeypatch.setenv("COLUMNS", "120")
    assert 80 < widest(Terminal()) <= 120
    monkeypatch.setenv("COLUMNS", "20")
    assert widest(Terminal()) <= 80
    # A file has no width.
    assert widest(io.StringIO()) > 120


def test_a_table_that_goes_on_below_tells_its_rows_apart() -> None:
    """By the first columns where they are narrow, else by the row's number where rows are alike."""
    heads = ["session", "authentication", "certificate", "loss"]
    columns = [Column(head, number=False, whole=True) for head in heads]
    table = Table("t", [*columns, *(Column(f"figure {at}") for at in range(5))])
    for at in range(3):
        table.add(["full", "mutual", "ecdsa_secp256r1", f"{at} %", *["123,456"] * 5], {})
    first, second = render([table], Format.TABLE, 80).split("\n\n")[1:3]
    assert first.splitlines()[0].split()[:2] == ["#", "session"]
    assert [line.split()[0] for line in second.splitlines()[2:]] == ["1", "2", "3"]
    assert all(len(line) <= 80 for line in [*first.splitlines(), *second.splitlines()])
    for at, row in enumerate(table.cells):
        row[0] = f"full {at}"
    _, second = render([table], Format.TABLE, 80).split("\n\n")[1:3]
    assert second.splitlines()[2].startswith("full 0 ")


def test_a_name_that_is_too_long_is_broken_at_its_underscores() -> None:
    table = Table("t", [Column("suite", number=False, wrap=24), Column("ms")])
    table.add(["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 or so", "1"], {})
    lines = render([table], Format.TABLE).splitlines()[4:]
    assert [line.split("  ")[0].rstrip() for line in lines] == [
        "TLS_ECDHE_ECDSA_WITH_",
        "AES_128_GCM_SHA256 or so",
    ]

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The report's page in Chromium: its policy lets its own script run and nothing else, its controls
work, and it fits a phone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import needs
from support.browser import Tab, tab
from support.studies import MANIFEST, study
from warifu import _core, ask
from warifu.report.page import write_page

pytestmark = needs.program("chromium")

#: Markup in a name, which must stay text in the page and in what its script makes of it.
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a study of four cases, one of which has a hostile name."""
    folder = tmp_path_factory.mktemp("report")
    meter = study(("predict_trials", "2000"), ("stack.authentication", "mutual"))
    manifest = json.loads(MANIFEST)
    manifest["require"] = [
        ["https.establishment", "p99", "<", 400e6, "https.establishment.p99 < 400 ms"]
    ]
    manifest["cases"] = [
        {
            "case_id": case.id,
            "label": f"{HOSTILE} {rtt}, loss {loss}",
            "choices": [["link.rtt", rtt], ["link.loss", loss]],
            "evidence": "assumed",
            "case": {},
        }
        for case, (rtt, loss) in zip(
            meter.cases,
            [(rtt, loss) for rtt in ("60 ms", "150 ms") for loss in ("0 %", "2 %")],
            strict=True,
        )
    ]
    _core.predict(meter, folder / "predicted", json.dumps(manifest))
    return write_page(folder, None, folder / "report.html")


@pytest.fixture
def wide(page: Path, tmp_path: Path) -> Iterator[Tab]:
    """The page on a desk."""
    with tab(tmp_path) as opened:
        opened.open(page, 1440)
        yield opened


ROWS = "[...document.querySelectorAll('#cases-beside-baseline tbody tr')]"


def column(page: Tab, head: str) -> list[str]:
    """The cells of a column that are shown, from top to bottom."""
    at = (
        "[...document.querySelectorAll('#cases-beside-baseline thead th')]"
        f".findIndex(one => one.textContent.startsWith({json.dumps(head)}))"
    )
    found: list[str] = page.evaluate(
        f"{ROWS}.filter(row => !row.hidden)"
        f".map(row => row.cells[{at}].textContent.replaceAll('\\u00a0', ' '))"
    )
    return found


def click_head(page: Tab, head: str) -> None:
    """Sorts by a column."""
    page.evaluate(
        "[...document.querySelectorAll('#cases-beside-baseline thead button')]"
        f".find(one => one.textContent.startsWith({json.dumps(head)})).click()"
    )


def choose(page: Tab, label: str, text: str) -> None:
    """Takes an option of one of the controls."""
    page.evaluate(
        "(() => { const select = [...document.querySelectorAll('.controls label')]"
        f".find(one => one.textContent.startsWith({json.dumps(label)})).querySelector('select');"
        "const option = [...select.options].find(one => "
        f"one.text.replaceAll('\\u00a0', ' ').includes({json.dumps(text)}));"
        "select.value = option.value; select.dispatchEvent(new Event('change')); })()"
    )


def test_policy_is_kept_and_no_other_script_runs(wide: Tab) -> None:
    assert wide.complaints == []
    assert wide.evaluate("document.querySelectorAll('.controls').length") == 1
    wide.evaluate(
        "(() => { const one = document.createElement('script');"
        "one.textContent = 'window.ran = true'; document.body.append(one); })()"
    )
    assert wide.evaluate("window.ran") is None
    assert any("Content Security Policy" in one for one in wide.complaints)


def test_names_from_results_stay_text(wide: Tab) -> None:
    assert wide.evaluate("document.images.length") == 0
    assert all(HOSTILE in name for name in column(wide, "case"))
    choose(wide, "Baseline", "150 ms")
    assert wide.evaluate("document.images.length") == 0
    assert wide.complaints == []


def test_sorting_by_a_column(wide: Tab) -> None:
    click_head(wide, "P99")
    ascending = [float(one.replace(",", "")) for one in column(wide, "P99")]
    assert ascending == sorted(ascending)
    click_head(wide, "P99")
    assert [float(one) for one in column(wide, "P99")] == ascending[::-1]
    click_head(wide, "case")
    assert [name.split()[3] for name in column(wide, "case")] == ["60", "60", "150", "150"]


def test_filtering_by_a_choice_and_by_a_word(wide: Tab) -> None:
    choose(wide, "loss", "2 %")
    assert len(column(wide, "case")) == 2
    wide.evaluate(
        "(() => { const input = document.querySelector('.controls input');"
        "input.value = '150'; input.dispatchEvent(new Event('input')); })()"
    )
    (only,) = column(wide, "case")
    assert "150 ms, loss 2 %" in only
    assert "1 of 4 cases" in wide.evaluate("document.querySelector('.controls output').textContent")


def test_another_baseline_and_back(wide: Tab) -> None:
    before = column(wide, "P50 vs.")
    assert before[0] == "baseline"
    medians = [float(one) for one in column(wide, "P50 ms")]
    choose(wide, "Baseline", "150 ms, loss 0 %")
    after = column(wide, "P50 vs.")
    assert after[2] == "baseline"
    shown = float(after[0].split()[0].lstrip("~"))
    assert shown == pytest.approx(medians[0] - medians[2], abs=1.0)
    assert after[1].lstrip("~").startswith("-")
    choose(wide, "Baseline", "60 ms, loss 0 %")
    assert column(wide, "P50 vs.") == before


def test_another_baseline_is_held_against_on_each_board(tmp_path: Path) -> None:
    suites = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"]
    asked = ask(
        server="xeon-2-5-ghz-vm",
        link="lte-m",
        stack="https/tls1.3",
        vary={"stack.cipher_suite": suites, "device": ["nrf52840", "xeon-2-5-ghz-vm"]},
        trials=2_000,
        out=tmp_path / "out",
    )
    with tab(tmp_path) as opened:
        opened.open(asked.report(tmp_path / "page.html"), 1440)
        head = "P50 vs."
        before = column(opened, head)
        (first,) = (one for one in before if "baseline" not in one and "+" in one)
        ends = [float(end) for end in re.findall(r"\)\s*\+?(-?\d+) to \+?(-?\d+) by", first)[0]]
        assert ends[0] < 125.0 and ends[1] > 1_000.0
        choose(opened, "Baseline", "SHA384")
        turned = next(one for one in column(opened, head) if "by the board" in one)
        back = re.findall(r"\)\s*\+?(-?\d+) to \+?(-?\d+) by", turned)[0]
        # The same boards the other way round, to what the trials' intervals leave open.
        assert [float(end) for end in back] == pytest.approx([-ends[1], -ends[0]], abs=10.0)
        choose(opened, "Baseline", "SHA256")
        assert column(opened, head) == before
        assert opened.complaints == []


def test_page_fits_a_phone(page: Path, tmp_path: Path) -> None:
    with tab(tmp_path) as phone:
        phone.open(page, 390, 844)
        phone.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        assert phone.evaluate("document.documentElement.scrollWidth") == 390
        # The names of the cases stay where they are while the table moves.
        left = "document.querySelector('.beside tbody th').getBoundingClientRect().left"
        before = phone.evaluate(left)
        phone.evaluate("document.querySelector('.beside').scrollLeft = 120")
        assert phone.evaluate("document.querySelector('.beside').scrollLeft") == 120
        assert phone.evaluate(left) == before
        assert phone.complaints == []


def test_nothing_is_cut_off_on_paper(page: Path, tmp_path: Path) -> None:
    # A4 between its margins; nobody scrolls there.
    with tab(tmp_path) as paper:
        paper.open(page, 717, 1000)
        paper.call("Emulation.setEmulatedMedia", media="print")
        widest = (
            "Math.max(...[...document.querySelectorAll('table, svg, pre')]"
            ".map(one => one.getBoundingClientRect().right))"
        )
        assert paper.evaluate(widest) <= 717
        assert paper.evaluate("document.documentElement.scrollWidth") <= 717
        # Rows stay rows, as on a desk: a phone's lists would be three times as long.
        display = "getComputedStyle(document.querySelector('#cases td')).display"
        assert paper.evaluate(display) == "table-cell"


def test_page_without_script_has_everything(page: Path, tmp_path: Path) -> None:
    with tab(tmp_path) as plain:
        plain.open(page, 1440, scripts=False)
        root = plain.call("DOM.getDocument")["root"]["nodeId"]

        def count(selector: str) -> int:
            found = plain.call("DOM.querySelectorAll", nodeId=root, selector=selector)
            return len(found["nodeIds"])

        assert count("#cases-beside-baseline tbody tr") == 4
        assert count("svg.timeline desc") == 8
        assert count(".controls") == count("button") == 0

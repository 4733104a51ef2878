// SPDX-License-Identifier: Apache-2.0 OR MIT
// Sorting, filtering and another baseline, in the page itself. Everything is readable without. It
// reads numbers and texts from the page's tables, and writes texts alone: no markup, no address.
"use strict";
(() => {
  const make = (tag, text, attributes) => {
    const made = document.createElement(tag);
    if (text) made.textContent = text;
    for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
    return made;
  };

  // ---- sorting ----

  const value = (cell) => {
    if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
    const found = cell.textContent.replace(/,(?=\d{3})/g, "").match(/^[~+\s]*(-?\d+(\.\d+)?)/);
    return cell.classList.contains("number") && found ? Number(found[1]) : NaN;
  };
  const order = (a, b) => {
    const [x, y] = [value(a), value(b)];
    if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
    if (!Number.isNaN(x)) return x - y;
    return a.textContent.localeCompare(b.textContent, "en", { numeric: true });
  };
  const sortable = (table) => {
    const body = table.tBodies[0];
    if (!body || body.rows.length < 2) return;
    for (const head of table.tHead.rows[0].cells) {
      const button = make("button", "", { type: "button", class: "sort" });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const at = head.cellIndex;
        const rows = [...body.rows].sort((a, b) => order(a.cells[at], b.cells[at]));
        body.append(...(up ? rows : rows.reverse()));
      });
    }
  };
  for (const table of document.querySelectorAll("table")) if (table.tHead) sortable(table);

  // ---- the answer's table ----

  const table = document.getElementById("cases-beside-baseline");
  if (!table || table.tBodies[0].rows.length < 2) return;
  const rows = [...table.tBodies[0].rows];
  const controls = make("div", "", { class: "controls" });
  const labelled = (words, control) => {
    const label = make("label", words + " ");
    label.append(control);
    controls.append(label);
    return control;
  };

  // Filters: a text, and of each choice one of its values.
  const wanted = labelled("Filter", make("input", "", { type: "search", placeholder: "any word" }));
  const choices = JSON.parse(table.dataset.choices).map((name, index) => {
    const of = (row) => JSON.parse(row.dataset.settings)[index];
    const values = [...new Set(rows.map(of))];
    if (values.length < 2 || values.length > 12) return null;
    const select = labelled(name, make("select"));
    select.append(make("option", "any", { value: "" }));
    values.forEach((one, at) => select.append(make("option", one, { value: String(at) })));
    return { select, of, values };
  }).filter((one) => one);
  const count = make("output", "", { class: "quiet", "aria-live": "polite" });
  const plain = (text) => text.replaceAll("\u00a0", " ").toLowerCase();
  const filter = () => {
    const words = plain(wanted.value).split(/\s+/).filter((one) => one);
    let shown = 0;
    for (const row of rows) {
      const text = plain(row.textContent);
      const fits = words.every((word) => text.includes(word)) && choices.every(
        ({ select, of, values }) => !select.value || of(row) === values[Number(select.value)]);
      row.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    count.textContent = shown === rows.length ? "" : `${shown} of ${rows.length} cases`;
  };
  wanted.addEventListener("input", filter);
  for (const { select } of choices) select.addEventListener("change", filter);

  // Another baseline. Where it is that of the page, its own intervals come back.
  const first = rows.findIndex((row) => row.classList.contains("baseline"));
  const cells = (row) => [...row.querySelectorAll("[data-delta]")];
  const before = rows.map((row) => cells(row).map((cell) => [[...cell.childNodes], cell.dataset.sort]));
  const places = (half, value) => {
    // Without an interval three digits, as in the page's other figures.
    if (!(half > 0) || !Number.isFinite(half)) {
      return value ? Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value)))) : 0;
    }
    const exponent = Math.floor(Math.log10(half));
    return Math.min(3, Math.max(0, -exponent + (half / 10 ** exponent < 3.5 ? 1 : 0)));
  };
  const signed = (number, digits, useGrouping = false) => {
    const text = number.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping });
    return (number > 0 && /[1-9]/.test(text) ? "+" : "") + (/[1-9]/.test(text) ? text : text.replace("-", ""));
  };
  // The difference of two medians on 95 % of the boards, each against itself, as
  // compare/boards.py has it: of a case that does not depend on the board its own median. With what
  // the number of trials leaves open of it beside the interval of the medians.
  const byBoard = (row, base) => {
    const [one, other] = [row, base].map((of) => of.dataset.boards?.split(" ").map(Number));
    if (!one && !other) return null;
    const middle = (of) => of.dataset.middle?.split(" ").map(Number) ?? [Number(of.dataset.p50) / 1e3, 0];
    const [ours, theirs] = [row, base].map(middle);
    const shift = ours[0] - theirs[0];
    const apart = (one ?? other).map((_, at) => ((one?.[at] ?? 0) - (other?.[at] ?? 0) + shift) * 1e3);
    // Of a board on which both fail nothing is known.
    const sorted = (end) => apart.map((of) => (Number.isNaN(of) ? end : of)).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    const out = Math.floor(apart.length / 40);
    if (!Number.isFinite(shift)) return { ends: [-Infinity, Infinity], open: 0 };
    const ends = [sorted(-Infinity)[out], sorted(Infinity)[apart.length - 1 - out]];
    return { ends, open: (ours[1] + theirs[1]) * 1e3 };
  };
  // The interval of a difference from both intervals: MOVER (Zou and Donner, Statistics in
  // Medicine 27, 2008, 1693), since the trials of two cases are independent.
  const difference = (row, base, name) => {
    const get = (of, end) => Number(of.dataset[name + end]);
    const d = get(row, "") - get(base, "");
    const low = d - Math.hypot(get(row, "") - get(row, "Low"), get(base, "High") - get(base, ""));
    const high = d + Math.hypot(get(row, "High") - get(row, ""), get(base, "") - get(base, "Low"));
    const { ends: boards, open } = (name === "p50" && byBoard(row, base)) || { ends: null, open: 0 };
    const half = (high - low) / 2 + open;
    const least = boards ? Math.min(low, boards[0] - half) : low;
    const most = boards ? Math.max(high, boards[1] + half) : high;
    const sure = least > 0 || most < 0 || (least === 0 && most === 0);
    // All boards together are among them.
    return { d, low, high, sure, boards: boards && [Math.min(d, boards[0]), Math.max(d, boards[1])] };
  };
  const write = (cell, row, base) => {
    const name = cell.dataset.delta;
    const { d, low, high, sure, boards } = difference(row, base, name);
    cell.dataset.sort = String(d);
    if (row === base) cell.textContent = "baseline";
    else if (!Number.isFinite(d)) cell.textContent = "-";
    else {
      const scale = name === "bytes" ? 1 : 1e6;
      const half = Math.max(high - d, d - low) / scale;
      const digits = name === "bytes" ? 0 : Math.min(places(half, d / scale), Number(row.dataset.places));
      const ends = [low, high].map((end) => signed(end / scale, digits)).join(" to ");
      const interval = half > 0 && name !== "bytes" ? ` (${ends})` : "";
      cell.textContent = (sure ? "" : "~") + signed(d / scale, digits, name === "bytes") + interval;
      if (boards && boards[1] > boards[0] && Number.isFinite(boards[1] - boards[0]) && boards[1] - boards[0] >= Math.abs(d) / 10) {
        // Two digits, as elsewhere in the page.
        const band = 0.04 * Math.max(...boards.map(Math.abs)) / scale;
        const exponent = Math.floor(Math.log10(band));
        const of = -exponent + (band / 10 ** exponent < 3.5 ? 1 : 0);
        const rounded = boards.map((end) => Math.round((end / scale) * 10 ** of) / 10 ** of);
        const shown = rounded.map((end) => signed(end, Math.max(0, of))).join(" to ");
        cell.append(make("small", `${shown} by the board`, { class: "boards" }));
      }
    }
  };
  const select = labelled("Baseline", make("select"));
  rows.forEach((row, at) => select.append(make("option", row.cells[0].textContent, { value: String(at) })));
  select.value = String(first);
  const note = make("p", "", { class: "quiet", "aria-live": "polite" });
  select.addEventListener("change", () => {
    const base = rows[Number(select.value)];
    rows.forEach((row, at) => {
      row.classList.toggle("baseline", row === base);
      cells(row).forEach((cell, index) => {
        if (Number(select.value) === first) {
          cell.replaceChildren(...before[at][index][0]);
          cell.dataset.sort = before[at][index][1];
        } else write(cell, row, base);
      });
    });
    note.textContent = Number(select.value) === first ? ""
      : "Intervals beside this baseline are made from those of the two cases; warifu report --baseline makes them from the trials.";
  });
  controls.append(count);
  const region = table.closest(".scroll");
  region.before(controls);
  region.after(note);
})();

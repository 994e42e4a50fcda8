/** All steps: the runs' figures, filters with counts, and a table. Only the visible rows are in the document. */

import { LETTERS, OVERLAP } from "./compare.js";
import { count, counted, cut, h, keepingFocus, money, quoted, replace, words } from "./dom.js";
import { nothing } from "./keys.js";
import { briefFigures, figuresOf } from "./figures.js";
import { TextSearch } from "./search.js";
import { Filters, omit, without } from "./filters.js";
import { summary } from "./summary.js";

/** Rows above the window, and as many below it, that are in the document. */
const BEYOND = 6;
const NARROW = matchMedia("(max-width: 760px)");
const TYPED_MS = 60;
/** Least pixels of each column, and its share of the remaining space. */
const WIDTHS = {
  task: [190, 4], index: [50, 0], website: [84, 1], domain: [84, 1], op: [76, 0], n_actions: [62, 0], agreement: [140, 1], solvers: [72, 0],
  outcome: [150, 1], wide: [244, 1], tight: [44, 0], element: [70, 0], f1: [58, 0], rank: [52, 0], cost: [66, 0],
};
/** The same of the matrix, in a wide window and in a narrow one: it fits eleven runs in 400 pixels. */
const MATRIX = { task: [[170, 4], [84, 4]], index: [[44, 0], [0, 0]], solvers: [[50, 0], [22, 0]], outcome: [[28, 0], [20, 0]] };
/** Pixels above the filters where they stick. */
const TOP = 61;
const GAP = 12, EDGES = 30;
/** Pixels of an outcome's mark with its letter and the space behind it, where a row is a card. */
const MARK = 58;
/** Runs from which on an outcome is its mark alone. */
const MANY = 4;
/** Columns to leave out, in this order, where space is short: they can still be sorted by, and the step shows them. */
const SPARED = ["n_actions", "solvers", "f1", "cost", "element", "domain", "rank", "agreement", "index", "website", "op"];

export class ListView {
  /** `app`: see main.js. */
  constructor(app) {
    this.app = app;
    this.current = -1;
    this.rows = new Int32Array();
    this.nodes = new Map();
    this.spacer = h("div", { class: "window", role: "rowgroup" });
    this.body = h("div", { class: "table", role: "table", "aria-label": "Steps" });
    this.status = h("p", { class: "found", role: "status" });
    this.chips = h("div", { class: "chips" });
    this.texts = new TextSearch(() => (this.element.isConnected ? this.update() : app.step.renewBar()));
    this.within = h(
      "select",
      { "aria-label": "Search in", on: { change: () => this.app.go({ within: this.within.value }) } },
      [["", "in tasks"], ["replies", "in replies"], ["prompts", "in prompts and replies"]].map(([value, name]) => h("option", { value }, name)),
    );
    this.brief = h("span", { class: "briefs" });
    this.more = h("div", { class: "more" });
    this.figures = h("details", { class: "filtered", on: { toggle: () => this.#drawFigures() } }, h("summary", {}, "Figures of these steps ", this.brief), this.more);
    this.empty = h("p", { class: "empty", hidden: true });
    this.search = h("input", {
      type: "text", inputmode: "search", class: "search", placeholder: "Search tasks, websites, ids, replies   ( / )", spellcheck: "false",
      "aria-label": "Search tasks, websites, operations and ids, or replies and prompts", on: { input: () => this.#typed() },
    });
    this.element = h("main", { class: "list-view" });
    this.onscroll = () => this.#draw();
    this.onresize = () => this.#resized();
    NARROW.addEventListener("change", () => {
      this.filters = null;
      if (this.element.isConnected) this.refresh();
    });
  }

  /** Rebuilds everything, for other runs or a new index: with an unfinished run while the person works. */
  refresh() {
    const summaries = () => [...this.element.querySelectorAll("details:not(.filters) > summary")];
    const states = new Map(summaries().map((one) => [one.textContent, one.parentNode.open]));
    keepingFocus(this.element, () => this.#rebuild());
    for (const one of summaries()) one.parentNode.open = states.get(one.textContent) ?? one.parentNode.open;
  }

  #rebuild() {
    const { table, state } = this.app;
    const typing = document.activeElement === this.search;
    const open = this.filters?.open ?? !NARROW.matches;
    this.table = table;
    this.nodes.clear();
    replace(this.spacer);
    this.panel = new Filters(this.app);
    this.filters = h(
      "details",
      { class: "filters", open },
      h("summary", {}, "Filters"),
      this.panel.element,
    );
    replace(
      this.element,
      summary(this.app),
      h(
        "div",
        { class: "columns" },
        this.filters,
        h(
          "section",
          { class: "results", "aria-label": "Steps" },
          h("div", { class: "toolbar" }, this.search, this.within, this.#sorter(), this.#matrixSwitch(), h("button", { type: "button", on: { click: () => this.#csv() } }, "CSV of these steps")),
          h("div", { class: "toolbar" }, this.status, this.chips),
          this.figures,
          this.body,
          this.empty,
        ),
      ),
    );
    if (!typing) this.search.value = state.q;
    this.#lay();
    this.update();
    if (typing) this.search.focus();
  }

  #drawFigures() {
    replace(this.brief, briefFigures(this.table, this.rows));
    if (this.figures.open) replace(this.more, figuresOf(this.table, this.rows, (website) => this.app.href({ filters: { ...this.app.state.filters, website: [website] } })));
  }

  /** Chooses the columns that fit. */
  #lay() {
    this.columns = this.#fitting();
    replace(this.body, this.#head(this.columns), this.spacer);
    this.body.classList.toggle("tight", this.tight);
    this.body.classList.toggle("matrix", this.matrix);
    this.switch?.setAttribute("aria-pressed", this.matrix);
    const widths = this.columns.map((one) => this.#width(one));
    // cells of a matrix give way where there are more runs than fit
    const fixed = (least) => (this.matrix ? `minmax(9px, ${least}px)` : `${least}px`);
    this.body.style.setProperty("--columns", widths.map(([least, share]) => (share ? `minmax(${least}px, ${share}fr)` : fixed(least))).join(" "));
    // marks of many runs share lines
    const lines = this.tight ? Math.ceil((this.table.runs.length * MARK) / ((this.body.clientWidth || innerWidth - 24) - 26)) : this.table.runs.length;
    this.rowHeight = this.matrix ? 30 : NARROW.matches ? 92 + 30 * lines : 52;
    this.body.style.setProperty("--row", `${this.rowHeight}px`);
  }

  #fitting() {
    const room = (this.body.clientWidth || innerWidth - 300) - EDGES;
    const name = (one) => one.name ?? one.id;
    this.matrix = this.app.state.view === "matrix" && this.table.runs.length >= OVERLAP;
    if (this.matrix) {
      this.tight = true;
      const shown = ["task", ...(NARROW.matches ? [] : ["index"]), "solvers", "outcome"];
      return this.table.columns.filter((one) => shown.includes(name(one)));
    }
    const needs = (some) => some.reduce((sum, one) => sum + this.#width(one)[0] + GAP, 0);
    this.tight = this.table.runs.length >= MANY;
    // the longest names of outcomes fit where few other columns are wanted
    this.wide = this.table.runs.length * WIDTHS.wide[0] + 420 < room;
    let columns = this.table.columns.filter((one) => one.name !== "cost" || one.keys().some((usd) => usd > 0));
    for (const spared of SPARED) {
      if (NARROW.matches || needs(columns) <= room) break;
      columns = columns.filter((one) => name(one) !== spared);
    }
    this.tight ||= !NARROW.matches && needs(columns) > room;
    return columns;
  }

  /** Least pixels, and share of the space that is left. */
  #width(column) {
    const name = column.name ?? column.id;
    if (this.matrix) return MATRIX[name][NARROW.matches ? 1 : 0];
    return WIDTHS[name !== "outcome" ? name : this.tight ? "tight" : this.wide ? "wide" : name];
  }

  #resized() {
    const ids = (columns) => columns.map((one) => one.id).join();
    if (this.element.isConnected && ids(this.#fitting()) !== ids(this.columns)) {
      this.#lay();
      this.update();
    } else {
      this.#draw();
    }
  }

  /** Shows the rows that pass the filters. */
  update() {
    const { state } = this.app;
    const began = performance.now();
    // before anything changes, which the browser would have to lay out
    const isPlaced = this.element.isConnected && !NARROW.matches;
    const columns = isPlaced && this.element.querySelector(".columns").getBoundingClientRect().top;
    const top = columns < 0 ? scrollY + columns - TOP : null;
    if (this.matrix !== (state.view === "matrix" && this.table.runs.length >= OVERLAP)) this.#lay();
    const { rows, counts } = this.table.shown(state, this.texts);
    this.rows = rows;
    this.panel.update(state, counts);
    replace(this.status, h("strong", {}, count(rows.length)), ` of ${counted(this.table.n, "step")}`, this.texts.status && h("span", { class: "faint" }, ` · ${this.texts.status}`));
    this.within.value = state.within;
    this.#chipsOf(state);
    this.#drawFigures();
    this.#sorted(state.sort);
    if (document.activeElement !== this.search) this.search.value = state.q;
    this.empty.hidden = rows.length > 0;
    // a search of texts that is not done may still find some
    if (this.texts.status) replace(this.empty);
    else nothing(this.empty, "step", state.q, () => this.app.go(state.q ? { q: "" } : { filters: {}, ranges: {} }));
    this.body.setAttribute("aria-rowcount", rows.length + 1);
    this.body.setAttribute("aria-colcount", this.columns.length);
    this.spacer.style.height = `${rows.length * this.rowHeight}px`;
    replace(this.spacer);
    this.nodes.clear();
    // a list that gets shorter must not pull the filters away from under the pointer
    if (top !== null) scrollTo(0, top);
    // its first rows are in sight then
    this.#draw(isPlaced ? 0 : this.#above());
    performance.measure("seeact:filter", { start: began, end: performance.now() });
  }

  /** Called when the view is put into the document (`key`: the step that was open before) and when it is taken out. */
  shown(key) {
    addEventListener("scroll", this.onscroll, { passive: true });
    addEventListener("resize", this.onresize);
    this.#resized();
    scrollTo(0, this.scrolled ?? 0);
    this.#draw();
    const row = this.table.place.get(key);
    if (row !== undefined && this.rows.includes(row)) this.select(this.rows.indexOf(row));
  }

  hidden() {
    this.scrolled = scrollY;
    removeEventListener("scroll", this.onscroll);
    removeEventListener("resize", this.onresize);
  }

  /** Moves to a place in the list and focuses its link. */
  select(place) {
    if (place < 0 || place >= this.rows.length) return;
    this.current = place;
    const top = this.spacer.getBoundingClientRect().top + place * this.rowHeight;
    const head = 90;
    if (top < head) scrollBy(0, top - head);
    else if (top + this.rowHeight > innerHeight) scrollBy(0, top + this.rowHeight - innerHeight + 8);
    this.#draw();
    this.nodes.get(this.rows[place])?.querySelector("a").focus({ preventScroll: true });
  }

  /** Moves to the next wanted row. */
  next(wanted) {
    const found = this.rows.findIndex((row, place) => place > this.current && wanted(row));
    if (found >= 0) this.select(found);
  }

  keys() {
    return [
      { key: "j", help: "next step, or next run, filter or website where one has the focus", act: () => this.select(Math.min(this.current + 1, this.rows.length - 1)) },
      { key: "k", help: "step before", act: () => this.select(Math.max(this.current - 1, 0)) },
      { key: "Enter", help: "open the step", act: () => document.activeElement?.click?.() },
      { key: "f", help: "next step that some run gets wrong", act: () => this.next((row) => this.table.failed(row)) },
      { key: "d", help: "next step on which runs disagree", act: () => this.next((row) => this.table.disagrees(row)) },
      { key: "/", help: "search", act: () => (this.search.focus(), this.search.select()) },
    ];
  }

  #typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.app.go({ q: this.search.value.trim() }, { replace: true }), TYPED_MS);
  }

  /** Shows the steps as a matrix with a column for each run, or as a list. */
  #matrixSwitch() {
    if (this.table.runs.length < OVERLAP) return null;
    const act = () => this.app.go({ view: this.matrix ? "" : "matrix" });
    this.switch = h("button", { type: "button", class: "matrix-switch", title: "Steps by runs, a mark for each", on: { click: act } }, "Matrix");
    return this.switch;
  }

  #head(columns) {
    const title = (one) => (this.matrix && one.name === "outcome" ? `${LETTERS[one.run]}: ${this.app.index.runs[this.table.runs[one.run]].name}` : one.title);
    const brief = (one) => (this.tight && one.name === "outcome" ? LETTERS[one.run] : this.matrix && one.id === "solvers" ? "k" : one.title);
    const heads = columns.map((one) =>
      h(
        "div",
        { class: `cell ${one.name ?? one.id}`, role: "columnheader", "aria-sort": "none", "data-column": one.id },
        h("button", { type: "button", class: "sort", title: title(one), on: { click: () => this.#sort(one.id) } }, brief(one), h("span", { class: "arrow", "aria-hidden": "true" })),
      ),
    );
    return h("div", { role: "rowgroup", class: "head-group" }, h("div", { class: "row head", role: "row", "aria-rowindex": 1 }, heads));
  }

  #sort(id) {
    const { sort } = this.app.state;
    this.app.go({ sort: sort === id ? `-${id}` : sort === `-${id}` ? "" : id });
  }

  #sorted(sort) {
    for (const cell of this.body.querySelectorAll("[role=columnheader]")) {
      const own = cell.dataset.column === sort.replace(/^-/, "");
      cell.setAttribute("aria-sort", !own ? "none" : sort.startsWith("-") ? "descending" : "ascending");
    }
    this.sorter.value = sort;
  }

  #sorter() {
    const usual = this.table.runs.length > 1 ? "disagreements first" : "order of the data set";
    const options = this.table.columns.flatMap((one) => [
      h("option", { value: one.id }, one.title),
      h("option", { value: `-${one.id}` }, `${one.title}, reversed`),
    ]);
    this.sorter = h(
      "select",
      { "aria-label": "Sort by", on: { change: () => this.app.go({ sort: this.sorter.value }) } },
      h("option", { value: "" }, usual),
      options,
    );
    return h("label", { class: "sorter" }, "Sort ", this.sorter);
  }

  #chipsOf(state) {
    const chips = this.table.facets.flatMap((facet) =>
      (state.filters[facet.id] ?? []).map((value) =>
        chip(`${facet.title}: ${cut(facet.label(value), 40)}`, () => this.app.go({ filters: without(state.filters, facet.id, value) })),
      ),
    );
    for (const [id, [least, most]] of Object.entries(state.ranges)) {
      const said = [least !== null && `from ${least}`, most !== null && `to ${most}`].filter(Boolean).join(" ");
      chips.push(chip(`${id} ${said}`, () => this.app.go({ ranges: omit(state.ranges, id) })));
    }
    const all = () => this.app.go({ filters: {}, ranges: {}, q: "" });
    replace(this.chips, chips, chips.length + (state.q ? 1 : 0) > 1 && h("button", { type: "button", class: "quiet", on: { click: all } }, "Clear all"));
  }

  /** Pixels of the list above the window. Before it is in the document its top is shown, so that the browser lays it out once, with its
   * rows. */
  #above() {
    return this.element.isConnected ? Math.max(0, -this.spacer.getBoundingClientRect().top) : 0;
  }

  #draw(above = this.#above()) {
    const many = Math.ceil(innerHeight / this.rowHeight) + 2 * BEYOND;
    const start = Math.max(0, Math.min(Math.floor(above / this.rowHeight) - BEYOND, this.rows.length - many));
    const places = new Map();
    for (let place = start; place < Math.min(start + many, this.rows.length); place++) places.set(this.rows[place], place);
    for (const [row, node] of this.nodes) {
      if (!places.has(row)) {
        node.remove();
        this.nodes.delete(row);
      }
    }
    let before = null;
    for (const [row, place] of places) {
      let node = this.nodes.get(row);
      if (!node) {
        node = this.#row(row, place);
        this.nodes.set(row, node);
        // in order, so that Tab and screen readers go down the list
        if (before) before.after(node);
        else this.spacer.prepend(node);
      }
      before = node;
    }
  }

  #row(row, place) {
    const { table } = this;
    const cells = this.columns.map((column) =>
      h("div", { class: `cell ${column.name ?? column.id}`, role: "cell", "data-column": column.id }, this.#cell(column, row)),
    );
    const node = h("div", { class: "row", role: "row", "aria-rowindex": place + 2 }, cells);
    node.style.top = `${place * this.rowHeight}px`;
    node.dataset.key = table.index.keys[row];
    node.addEventListener("focusin", () => {
      this.current = place;
    });
    return node;
  }

  #cell(column, row) {
    const { table } = this;
    const { index } = table;
    if (this.matrix && column.run !== undefined) return this.#mark(column, row);
    if (column.run !== undefined) return runCell(table, column, row);
    switch (column.id) {
      case "task":
        return h("a", { href: this.app.href({ step: index.keys[row] }), title: cut(table.name(row), 1000) }, h("bdi", {}, cut(table.name(row), 160)));
      case "index":
        return stepOf(index.numbers.n_before[row], index.numbers.n_actions[row]);
      case "solvers":
        return `${column.keys()[row]}`;
      case "n_actions":
        return String(index.numbers.n_actions[row] || "–");
      case "agreement":
        return h("span", { class: table.disagrees(row) ? "differs" : "faint" }, table.facets[0].label(table.facets[0].values[table.facets[0].row[row]]));
      default:
        return quoted(table.coded(column.id, row) || "–", 60);
    }
  }

  /** A cell of the matrix, which leads to the step too. */
  #mark(column, row) {
    const { table } = this;
    const outcome = table.cell(column.run, "outcome", row);
    const kind = outcome === "success" ? "good" : outcome === null || outcome === "left_out" ? "none" : "bad";
    const said = `${LETTERS[column.run]}: ${outcome === null ? "not there" : words(outcome)}`;
    const href = this.app.href({ step: table.index.keys[row] });
    return h("a", { class: `square ${kind}`, href, tabindex: -1, title: said, "aria-label": said }, { good: "✓", bad: "✗", none: "·" }[kind]);
  }

  #csv() {
    const blob = new Blob([csv(this.table, this.rows)], { type: "text/csv;charset=utf-8" });
    const address = URL.createObjectURL(blob);
    const anchor = h("a", { href: address, download: "steps.csv" });
    document.body.append(anchor);
    anchor.click();
    anchor.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }
}

const stepOf = (before, actions) => (actions ? `${before + 1}/${actions}` : before ? `${before + 1}` : "–");

function runCell(table, column, row) {
  const value = table.cell(column.run, column.name, row);
  const letter = table.runs.length > 1 ? LETTERS[column.run] : null;
  switch (column.name) {
    case "outcome":
      return [outcomeChip(value, table.index.outcomes, letter), byPerson(table.cell(column.run, "person_cause", row), table.index.outcomes)];
    case "element":
      return value === null ? "–" : h("span", { class: value ? "yes" : "no" }, value ? "✓ right" : "✗ wrong");
    case "f1":
      return value === null ? "–" : value.toFixed(2);
    case "cost":
      return money(value);
    default:
      return value === null ? "–" : String(value);
  }
}

/** An outcome with a mark, so that colour is not the only difference. */
export function outcomeChip(name, meanings, letter = null) {
  if (name === null) return h("span", { class: "chip none" }, letter && h("span", { class: "letter" }, letter), "not there");
  const kind = name === "success" ? "good" : name === "left_out" ? "none" : "bad";
  const mark = { good: "✓", bad: "✗", none: "·" }[kind];
  return h(
    "span",
    { class: `chip ${kind}`, title: meanings?.[name] ?? null },
    letter && h("span", { class: "letter" }, letter),
    h("span", { class: "mark", "aria-hidden": "true" }, mark),
    h("span", { class: "name" }, words(name)),
  );
}

/** A person's cause, which stands beside the computed outcome. */
export const byPerson = (name, meanings) => name && h("span", { class: "by-person", title: meanings?.[name] ?? null }, `by a person: ${words(name)}`);

const chip = (text, remove) =>
  h("button", { type: "button", class: "filter-chip", "aria-label": `Remove the filter ${text}`, on: { click: remove } }, text, h("span", { "aria-hidden": "true" }, " ×"));

// --- CSV ---

/** The rows shown, in their order. Cells that a spreadsheet would run get an apostrophe. */
export function csv(table, rows) {
  const { index } = table;
  const perRun = ["outcome", "person_cause", "failure", "element", "f1", "success", "rank", "cost"];
  const names = table.runs.map((run) => index.runs[run].name);
  const head = ["annotation_id", "action_uid", "task", "website", "domain", "op", "n_actions", "n_before", "n_candidates"];
  for (const name of names) head.push(...perRun.map((field) => (names.length > 1 ? `${name} ${field}` : field)));
  const lines = [head];
  for (const row of rows) {
    const own = [index.tasks.annotation_ids[index.tasks.row[row]], index.action_uids[row], table.task(row)];
    own.push(...["website", "domain", "op"].map((name) => table.coded(name, row)));
    own.push(...["n_actions", "n_before", "n_candidates"].map((name) => index.numbers[name][row]));
    names.forEach((_, run) => own.push(...perRun.map((field) => table.cell(run, field, row) ?? "")));
    lines.push(own);
  }
  return lines.map((line) => line.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

function csvCell(value) {
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

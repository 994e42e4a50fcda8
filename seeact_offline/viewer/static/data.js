/** The server's files: `index.json` as columns to sort and filter by, and one file a step. */

import { LETTERS, OVERLAP, agreementFacet, aloneFacet, rightness, solvers, solversFacet } from "./compare.js";
import { words } from "./dom.js";

const KEPT = 60;
const steps = new Map();

/** Raises an Error whose message can be shown. */
export async function fetchJson(name) {
  let answer;
  try {
    answer = await fetch(name);
  } catch {
    throw new Error(`${name} cannot be loaded: the server does not answer. Is it still running?`);
  }
  if (!answer.ok) throw new Error(`${name} cannot be loaded: the server answered ${answer.status}`);
  return answer.json();
}

/** The index, with ranks from 1 as people count; files count from 0. */
export async function loadIndex() {
  const index = await fetchJson("index.json");
  for (const cells of index.cells ?? []) cells.rank = cells.rank.map(fromOne);
  return index;
}

const fromOne = (rank) => (rank === null || rank === undefined ? null : rank + 1);

async function fetchStep(key) {
  const step = await fetchJson(`step/${key}.json`);
  for (const one of [...step.elements, ...step.runs.filter(Boolean)]) one.rank = fromOne(one.rank);
  return step;
}

/** A step's file, from memory where it was asked for before. */
export function loadStep(key) {
  const known = steps.get(key) ?? fetchStep(key);
  steps.delete(key);
  steps.set(key, known);
  known.catch(() => steps.delete(key));
  if (steps.size > KEPT) steps.delete(steps.keys().next().value);
  return known;
}

/** Loads a step that may be wanted next, once the browser has nothing else to do. */
export const loadAhead = (key) => (window.requestIdleCallback ?? setTimeout)(() => loadStep(key).catch(() => {}));

/** Loads every step anew from now on. */
export const forgetSteps = () => steps.clear();

const RANKS = [1, 3, 5, 10, 20, 50];
const DIFFICULTY = [4, 9, 18];
export const collator = new Intl.Collator("en", { numeric: true });

/** The steps of the index as rows 0 to n - 1, for some of its runs. */
export class Table {
  /** `runs`: places in `index.runs`; the first is A. */
  constructor(index, runs) {
    this.index = index;
    this.runs = runs;
    this.n = index.n;
    this.right = runs.map((place) => rightness(index.cells[place], index.n));
    this.place = new Map(index.keys.map((key, row) => [key, row]));
    this.facets = this.#facets();
    this.columns = this.#columns();
    this.texts = index.tasks.texts.map((text, task) => `${text}\n${index.tasks.annotation_ids[task]}`.toLowerCase());
    this.uids = index.action_uids.map((uid) => uid.toLowerCase());
    this.orders = new Map();
  }

  task(row) {
    return this.index.tasks.texts[this.index.tasks.row[row]];
  }

  /** Name of a step's task: its words, else its id. */
  name(row) {
    return this.task(row) || taskName(this.index.tasks.annotation_ids[this.index.tasks.row[row]]);
  }

  coded(name, row) {
    const { values, row: places } = this.index.coded[name];
    return places[row] < 0 ? "" : values[places[row]];
  }

  cell(run, name, row) {
    const held = this.index.cells[this.runs[run]][name];
    if (!held || Array.isArray(held)) return held?.[row] ?? null;
    return held.row[row] < 0 ? null : held.values[held.row[row]];
  }

  /** Whether some run is wrong here. */
  failed(row) {
    return this.right.some((one) => one[row] === 0);
  }

  /** Whether one run is right here and another wrong. */
  disagrees(row) {
    return this.right.some((one) => one[row] === 0) && this.right.some((one) => one[row] === 1);
  }

  /** The rows that pass, in order, and the steps of each value of each facet under all other filters. `search`: of texts that the
   * index lacks (a TextSearch). */
  shown(state, search = null) {
    const tests = this.#tests(state);
    const inTexts = search?.tests(this, state, () => this.shown({ ...state, q: "" }).rows);
    if (inTexts) tests.push({ passes: inTexts });
    const failing = new Uint8Array(this.n);
    const last = new Int16Array(this.n).fill(-1);
    tests.forEach(({ passes }, number) => {
      for (let row = 0; row < this.n; row++) {
        if (!passes[row]) {
          failing[row]++;
          last[row] = number;
        }
      }
    });
    const counts = new Map(this.facets.map((facet) => [facet.id, this.#count(facet, tests, failing, last)]));
    return { rows: this.order(state.sort).filter((row) => failing[row] === 0), counts };
  }

  #count(facet, tests, failing, last) {
    const own = tests.findIndex((test) => test.facet === facet.id);
    const found = new Uint32Array(facet.values.length);
    for (let row = 0; row < this.n; row++) {
      if (failing[row] === 0 || (own >= 0 && failing[row] === 1 && last[row] === own)) found[facet.row[row]]++;
    }
    return found;
  }

  #tests(state) {
    const tests = [];
    for (const facet of this.facets) {
      const chosen = state.filters[facet.id];
      if (!chosen?.length) continue;
      const allowed = facet.values.map((value) => chosen.includes(value));
      tests.push({ facet: facet.id, passes: this.#each((row) => allowed[facet.row[row]]) });
    }
    for (const [id, [least, most]] of Object.entries(state.ranges)) {
      const keys = this.columns.find((column) => column.id === id)?.keys();
      if (keys) tests.push({ passes: this.#each((row) => keys[row] >= (least ?? -Infinity) && keys[row] <= (most ?? Infinity)) });
    }
    for (const term of state.within ? [] : state.q.toLowerCase().split(/\s+/).filter(Boolean)) tests.push({ passes: this.#having(term) });
    return tests;
  }

  #having(term) {
    const { tasks, coded } = this.index;
    const inTask = this.texts.map((text) => text.includes(term));
    const inCode = Object.values(coded).map(({ values, row }) => ({ row, has: values.map((v) => v.toLowerCase().includes(term)) }));
    return this.#each((row) => inTask[tasks.row[row]] || inCode.some(({ row: places, has }) => has[places[row]]) || this.uids[row].includes(term));
  }

  /** A test of all rows, as 0 and 1. */
  #each(passes) {
    const rows = new Uint8Array(this.n);
    for (let row = 0; row < this.n; row++) rows[row] = passes(row);
    return rows;
  }

  /** All rows, sorted. "" is the default order: disagreements first, or that of the data set. Steps without a value come last. */
  order(sort) {
    const asked = sort || (this.runs.length > 1 ? "agreement" : "");
    if (this.orders.has(asked)) return this.orders.get(asked);
    const rows = Int32Array.from({ length: this.n }, (_, row) => row);
    const keys = this.columns.find((column) => column.id === asked.replace(/^-/, ""))?.keys();
    if (keys) {
      const sign = asked.startsWith("-") ? -1 : 1;
      const known = rows.filter((row) => !Number.isNaN(keys[row])).sort((a, b) => sign * (keys[a] - keys[b]) || a - b);
      rows.set(known);
      rows.set(Int32Array.from(keys.keys()).filter((row) => Number.isNaN(keys[row])), known.length);
    }
    this.orders.set(asked, rows);
    return rows;
  }

  #facets() {
    const { index, runs, n } = this;
    const whose = (place) => (runs.length > 1 ? `, ${LETTERS[place]}` : "");
    const of = (name, place) => (place === 0 ? name : `${name}.${LETTERS[place]}`);
    const ofRuns = (make) => runs.map((run, place) => ((one) => one && { ...one, run: place })(make(index.cells[run], place)));
    return [
      ...(runs.length > 1 ? [agreementFacet(this.right, n)] : []),
      ...(runs.length >= OVERLAP ? [solversFacet(this.right, n), aloneFacet(this.right, n, runs.map((run) => index.runs[run].name))] : []),
      ...ofRuns((cells, place) => facet(of("outcome", place), `Outcome${whose(place)}`, cells.outcome, "not in this run", index.outcomes)),
      ...ofRuns((cells, place) => cells.person_cause && facet(of("person", place), `Cause by a person${whose(place)}`, cells.person_cause, "none given", index.outcomes)).filter(Boolean),
      ...ofRuns((cells, place) => facet(of("failure", place), `Failure${whose(place)}`, cells.failure, "none", index.failures)),
      facet("op", "Operation", index.coded.op, "not known"),
      banded("difficulty", "Actions in the task", index.numbers.n_actions, 1, DIFFICULTY, "not known"),
      ...ofRuns((cells, place) => banded(of("rank", place), `Rank of the target${whose(place)}`, cells.rank, 1, RANKS, "not ranked")),
      facet("domain", "Domain", index.coded.domain, "not known"),
      facet("website", "Website", index.coded.website, "not known"),
    ];
  }

  #columns() {
    const { index, runs } = this;
    const { tasks, numbers } = index;
    const many = runs.length > 1;
    const column = (id, title, make, more = {}) => ({ id, title, keys: once(make), ...more });
    const ofText = (held) => () => places(held.values, held.row);
    const byTask = () => places(tasks.texts, tasks.row).map((place, row) => place * 4096 + Math.min(4095, numbers.n_before[row]));
    const columns = [
      column("task", "Task", byTask),
      column("index", "Step", () => Float64Array.from(numbers.n_before)),
      column("website", "Website", ofText(index.coded.website)),
      column("domain", "Domain", ofText(index.coded.domain)),
      column("op", "Operation", ofText(index.coded.op)),
      column("n_actions", "Actions", () => positive(numbers.n_actions)),
    ];
    if (many) columns.push(column("agreement", "Agreement", () => Float64Array.from(this.facets[0].row)));
    if (runs.length >= OVERLAP) columns.push(column("solvers", "Solved by", () => Float64Array.from(solvers(this.right, this.n))));
    runs.forEach((run, place) => {
      const cells = index.cells[run];
      const of = (name) => (place === 0 ? name : `${name}.${LETTERS[place]}`);
      const named = (title) => (many ? `${LETTERS[place]}: ${title.toLowerCase()}` : title);
      columns.push(
        column(of("outcome"), named("Outcome"), ofText(cells.outcome), { run: place, name: "outcome" }),
        column(of("element"), named("Element"), () => numeric(cells.element), { run: place, name: "element" }),
        column(of("f1"), named("Op. F1"), () => numeric(cells.f1), { run: place, name: "f1" }),
        column(of("rank"), named("Rank"), () => numeric(cells.rank), { run: place, name: "rank" }),
        column(of("cost"), named("Cost"), () => numeric(cells.cost), { run: place, name: "cost" }),
      );
    });
    return columns;
  }
}

/** Name of a task without known words. */
export const taskName = (annotation_id) => `Task ${annotation_id}, words not known`;

function once(make) {
  let made;
  return () => (made ??= make());
}

const numeric = (values) => Float64Array.from(values, (x) => (x === null ? NaN : x));
const positive = (values) => Float64Array.from(values, (x) => x || NaN);

/** Place of each row's value in alphabetical order, NaN for none. */
function places(values, row) {
  const order = values.map((_, i) => i).sort((a, b) => collator.compare(values[a], values[b]));
  const rank = new Float64Array(values.length);
  order.forEach((value, place) => (rank[value] = place));
  return Float64Array.from(row, (value) => (value < 0 ? NaN : rank[value]));
}

/** Sorts rows into values. `row`: each row's place in `values`; the last value, "", stands for none. */
function facet(id, title, held, none, meanings = {}) {
  const listed = Object.keys(meanings).filter((value) => held.values.includes(value));
  const others = held.values.filter((value) => value !== "" && !listed.includes(value)).sort(collator.compare);
  const values = [...listed, ...others, ""];
  const place = held.values.map((value) => values.indexOf(value));
  const row = Int32Array.from(held.row, (value) => (value < 0 ? values.length - 1 : place[value]));
  return { id, title, values, row, label: (value) => (value === "" ? none : words(value)), meanings };
}

/** Bands of whole numbers, each from the end of the one before to its own, as in scoring/paired.py. */
function banded(id, title, numbers, first, ends, none) {
  const span = (low, high) => (low === high ? `${low}` : `${low}–${high}`);
  const values = [...ends.map((end, i) => span(i ? ends[i - 1] + 1 : first, end)), `above ${ends.at(-1)}`, ""];
  const row = Int32Array.from(numbers, (x) => {
    if (x === null || x < first) return values.length - 1;
    const place = ends.findIndex((end) => x <= end);
    return place < 0 ? ends.length : place;
  });
  return { id, title, values, row, label: (value) => value || none, meanings: {} };
}

/** Runs compared: which is right where, and the paired differences. */

import { count, h, percent, scroller, words } from "./dom.js";

export const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/** Filters of who is right that are listed: eleven runs part in hundreds of ways. */
const PATTERNS = 40;
const RIGHT = 1, WRONG = 0, UNKNOWN = 2;
const VERDICTS = ["wrong", "right", "not there"];

/** For each row 1 where the run is right, 0 where it is wrong, 2 where it has no such step or its protocol leaves it out. */
export function rightness(cells, n) {
  const verdict = cells.outcome.values.map((name) => (name === "success" ? RIGHT : name === "left_out" ? UNKNOWN : WRONG));
  const right = new Uint8Array(n).fill(UNKNOWN);
  cells.outcome.row.forEach((value, row) => (right[row] = value < 0 ? UNKNOWN : verdict[value]));
  return right;
}

/** Which runs are right and which are wrong, such as "A right, B wrong"; the values in which runs disagree come first. */
export function agreementFacet(right, n) {
  const codes = Array.from({ length: n }, (_, row) => right.map((one) => one[row]).join(""));
  const differs = (code) => code.includes(RIGHT) && code.includes(WRONG);
  const values = [...new Set(codes)].sort((a, b) => differs(b) - differs(a) || (a < b ? 1 : -1));
  const place = new Map(values.map((code, i) => [code, i]));
  const said = (code) => [...code].map((verdict, run) => `${LETTERS[run]} ${VERDICTS[verdict]}`).join(", ");
  // of many runs, who is right says who is wrong
  const short = (code) => ["right", "not there"].map((verdict) => [[...code].flatMap((one, run) => (VERDICTS[one] === verdict ? [LETTERS[run]] : [])).join(" "), verdict]).filter(([who]) => who).map((one) => one.join(" ")).join(", ");
  const all = { [`${RIGHT}`.repeat(right.length)]: "all right", [`${WRONG}`.repeat(right.length)]: "all wrong" };
  return {
    id: "agreement",
    title: "Agreement",
    values,
    row: Int32Array.from(codes, (code) => place.get(code)),
    label: (code) => all[code] ?? ((right.length > 3 && short(code)) || said(code)),
    meanings: {},
    differing: values.filter(differs),
    most: PATTERNS,
  };
}

/** Runs from which on it is counted how many solve a step, as in scoring/overlap.py. */
export const OVERLAP = 3;

/** For each row the number of runs that are right. */
export const solvers = (right, n) => Uint8Array.from({ length: n }, (_, row) => right.reduce((sum, one) => sum + (one[row] === RIGHT), 0));

/** How many runs solve a step, all of them first. */
export function solversFacet(right, n) {
  const many = right.length;
  return {
    id: "solvers",
    title: "Solved by",
    values: Array.from({ length: many + 1 }, (_, place) => `${many - place}`),
    row: Int32Array.from(solvers(right, n), (number) => many - number),
    label: (value) => (value === "0" ? "no run" : `${value} of ${many}`),
    meanings: {},
  };
}

/** The run that alone solves a step. `names`: of the runs. */
export function aloneFacet(right, n, names) {
  const values = [...right.map((_, run) => LETTERS[run]), ""];
  const number = solvers(right, n);
  return {
    id: "alone",
    title: "Solved by one run alone",
    values,
    row: Int32Array.from({ length: n }, (_, row) => (number[row] === 1 ? right.findIndex((one) => one[row] === RIGHT) : right.length)),
    label: (value) => (value === "" ? "none, or several" : `${value}: ${names[LETTERS.indexOf(value)]}`),
    meanings: {},
  };
}

/** The paired differences, each other run minus the first, or the reason why there are none. */
export function pairedDifferences(index, shown) {
  const { comparison } = index;
  if (!comparison || shown.length < 2) return null;
  const letter = (run) => LETTERS[shown.indexOf(run)];
  const pairs = comparison.pairs.filter(({ a, b }) => shown.includes(a) && shown.includes(b));
  const rows = pairs.flatMap(({ a, b, metrics }) =>
    byStepFirst(metrics).map(([name, gap]) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, `${letter(b)} − ${letter(a)}, ${words(name)}`),
        h("td", { class: "number" }, signed(gap.difference)),
        h("td", { class: "number" }, gap.ci95 ? `${signed(gap.ci95[0])} to ${signed(gap.ci95[1])}` : "–, fewer than 6 tasks"),
        h("td", { class: "number" }, gap.p === null || gap.p === undefined ? "–" : gap.p < 0.001 ? "< 0.001" : gap.p.toFixed(3)),
        h("td", { class: "number" }, count(gap.n_steps)),
        h("td", { class: "number" }, count(gap.n_tasks)),
      ),
    ),
  );
  const heads = ["Paired difference", "Points", "95 % interval", "p", "Steps", "Tasks"];
  return h(
    "details",
    { class: "pairs", open: shown.length === 2 && innerWidth > 760 },
    h("summary", {}, "Paired differences"),
    rows.length > 0 &&
      scroller(
        "Paired differences",
        h("table", { class: "figures" }, h("thead", {}, h("tr", {}, heads.map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, rows)),
      ),
    comparison.problem && h("p", { class: "problem" }, comparison.problem),
  );
}

const byStepFirst = (metrics) => Object.entries(metrics).sort(([a], [b]) => (b === "step_success_rate") - (a === "step_success_rate"));

export function signed(x) {
  if (x === null || x === undefined) return "–";
  const size = percent(Math.abs(x));
  return `${x < 0 && Number(size) > 0 ? "−" : "+"}${size}`;
}

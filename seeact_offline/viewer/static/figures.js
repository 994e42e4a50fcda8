/** Figures of the steps that pass the filters, with intervals by tasks as scoring/inference.py makes them. */

import { LETTERS } from "./compare.js";
import { count, cut, h, named, percent, scroller } from "./dom.js";

const SAME = 1e-12;
const WANTED = 0.975;
/** Assumed correlation of two steps of a task where every step has the same value, which shows none. */
const ALIKE = 0.3;
/** Websites listed. */
const WEBSITES = 30;

/** The mean of values from 0 to 1 with its 95 % interval. `tasks`: of each task, the values of its steps; `average`: "macro", the
 * mean over tasks, or "micro", the mean over steps. `ci95`: null for fewer than two tasks, which do not show how tasks vary. */
export function estimateOf(tasks, average) {
  const all = tasks.flat();
  const figures = { average, nSteps: all.length, nTasks: tasks.length };
  if (!all.length) return { ...figures, value: null, ci95: null };
  const isMacro = average === "macro";
  const value = isMacro ? mean(tasks.map(mean)) : mean(all);
  if (tasks.length < 2) return { ...figures, value, ci95: null };
  // one value a task, whose spread is the figure's (Woodruff, JASA 66, 1971)
  const byTask = isMacro ? tasks.map(mean) : tasks.map((one) => value + (tasks.length * (sum(one) - value * one.length)) / all.length);
  const gaps = tasks.map((one) => one.map((x) => (x - value) ** 2));
  return { ...figures, value, ci95: interval(value, byTask, isMacro ? mean(gaps.map(mean)) : mean(gaps.flat()), tasks, all) };
}

function interval(value, byTask, spread, tasks, all) {
  const [n, nTasks] = [all.length, tasks.length];
  if (value < SAME || value > 1 - SAME) return clopperPearson(Math.round(value), n / (1 + (n / nTasks - 1) * ALIKE));
  const middle = mean(byTask);
  const se = Math.sqrt(sum(byTask.map((x) => (x - middle) ** 2)) / (nTasks - 1) / nTasks);
  // Korn and Graubard, Survey Methodology 24 (1998), 193-201, on as many trials as have the figure's variance
  const effective = se < SAME ? nTasks : Math.min(spread / se ** 2, n);
  const trials = effective * (spread > SAME ? (value * (1 - value)) / spread : 1);
  const df = degreesOfFreedom(byTask);
  return clopperPearson(value, trials * (tQuantile(Math.max(n - 1, df)) / tQuantile(df)) ** 2);
}

/** Satterthwaite's, of the variance of one value a task (Biometrics Bulletin 2, 1946, 110-114). */
function degreesOfFreedom(byTask) {
  const [middle, n] = [mean(byTask), byTask.length];
  const squared = byTask.map((x) => (x - middle) ** 2);
  const variance = mean(squared);
  const kurtosis = variance > SAME ** 2 ? mean(squared.map((x) => x * x)) / variance ** 2 : 1;
  return Math.min(Math.max((2 * n) / (kurtosis - 1 + 2 / (n - 1)), 1), n - 1);
}

function clopperPearson(share, n) {
  const hits = share * n;
  return [hits > SAME ? betaQuantile(1 - WANTED, hits, n - hits + 1) : 0, n - hits > SAME ? betaQuantile(WANTED, hits + 1, n - hits) : 1];
}

/** The two-sided 95 % point of Student's t. */
function tQuantile(df) {
  const rest = betaQuantile(2 * (1 - WANTED), df / 2, 0.5);
  return Math.sqrt((df * (1 - rest)) / rest);
}

function betaQuantile(p, a, b) {
  let [low, high] = [0, 1];
  for (let i = 0; i < 200; i++) {
    const middle = (low + high) / 2;
    if (middle === low || middle === high) break;
    [low, high] = betaCdf(middle, a, b) < p ? [middle, high] : [low, middle];
  }
  return (low + high) / 2;
}

/** The regularised incomplete beta function (NIST, DLMF 8.17.22), by Lentz's method. */
function betaCdf(x, a, b) {
  if (x <= 0 || x >= 1) return Number(x >= 1);
  if (x > (a + 1) / (a + b + 2)) return 1 - betaCdf(1 - x, b, a);
  const front = logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x);
  const safe = (y) => (Math.abs(y) > 1e-300 ? y : 1e-300);
  let [c, d] = [1, 1 / safe(1 - ((a + b) * x) / (a + 1))];
  let value = d;
  for (let m = 1; m < 10_000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    for (const term of [even, odd]) {
      [d, c] = [1 / safe(1 + term * d), safe(1 + term / c)];
      value *= c * d;
    }
    if (Math.abs(c * d - 1) < 1e-15) break;
  }
  return (Math.exp(front) * value) / a;
}

/** Stirling's series (DLMF 5.11.1), from where its error is below a float's. */
function logGamma(x) {
  let shift = 0;
  for (; x < 12; x++) shift -= Math.log(x);
  const y = 1 / (x * x);
  const series = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * (1 / 1188 - (y * 691) / 360360))))) / x;
  return shift + (x - 0.5) * Math.log(x) - x + Math.log(2 * Math.PI) / 2 + series;
}

const sum = (values) => values.reduce((total, x) => total + x, 0);
const mean = (values) => sum(values) / values.length;

// --- of a table's rows ---

const METRICS = [["success", "Step SR", "step_success_rate"], ["element", "Element Accuracy", "element_accuracy"], ["f1", "Operation F1", "operation_f1"]];

/** A metric of one run over some rows, null where no step has it. Steps that its protocol leaves out do not count. */
function over(table, run, name, metric, rows) {
  const tasks = new Map();
  let known = false;
  for (const row of rows) {
    const outcome = table.cell(run, "outcome", row);
    if (outcome === null || outcome === "left_out") continue;
    const value = table.cell(run, name, row);
    known ||= value !== null;
    const task = table.index.tasks.row[row];
    if (!tasks.has(task)) tasks.set(task, []);
    tasks.get(task).push(value ?? 0);
  }
  const average = table.index.runs[table.runs[run]].headlines[metric]?.average ?? "macro";
  return known ? estimateOf([...tasks.values()], average) : null;
}

/** A table of the runs' figures over these rows, and of Step SR by website. `href`: of the steps of a website. */
export function figuresOf(table, rows, href) {
  const runs = table.runs.map((_, run) => run);
  const lettered = (run) => [runs.length > 1 && h("span", { class: "letter" }, LETTERS[run]), named(table.index.runs[table.runs[run]].name)];
  const byWebsite = new Map();
  for (const row of rows) {
    const website = table.coded("website", row);
    if (!byWebsite.has(website)) byWebsite.set(website, []);
    byWebsite.get(website).push(row);
  }
  byWebsite.delete("");
  const websites = [...byWebsite].sort((a, b) => b[1].length - a[1].length || (a[0] < b[0] ? -1 : 1));
  const element = runs.some((run) => over(table, run, "success", "step_success_rate", rows));
  const [name, title, metric] = element ? METRICS[0] : METRICS[2];
  return [
    figureTable(["Run", ...METRICS.map(([, one]) => one)], runs.map((run) => [lettered(run), ...METRICS.map(([one, , full]) => shown(over(table, run, one, full, rows)))])),
    websites.length > 1 &&
      figureTable(
        [`${title} by website`, ...runs.map((run) => (runs.length > 1 ? h("span", { class: "letter" }, LETTERS[run]) : ""))],
        websites.slice(0, WEBSITES).map(([website, some]) => [[h("a", { href: href(website) }, h("bdi", {}, cut(website, 60))), h("span", { class: "faint" }, ` ${count(some.length)}`)], ...runs.map((run) => shown(over(table, run, name, metric, some)))]),
      ),
    websites.length > WEBSITES && h("p", { class: "faint" }, `The ${WEBSITES} websites with the most steps, of ${count(websites.length)}.`),
    h("p", { class: "faint" }, "Of the steps listed below, as averages of the kind that each run's protocol quotes, with 95 % intervals by tasks. Steps that a filter chose for their outcome say nothing about other steps."),
  ];
}

/** The first figure that matters, for a line of text. */
export function briefFigures(table, rows) {
  return table.runs.map((_, run) => {
    const found = over(table, run, "success", "step_success_rate", rows) ?? over(table, run, "f1", "operation_f1", rows);
    return h("span", { class: "brief" }, table.runs.length > 1 && h("span", { class: "letter" }, LETTERS[run]), shown(found));
  });
}

function shown(figure) {
  if (!figure || figure.value === null) return h("span", { class: "faint" }, "–");
  const ends = figure.ci95 && ` ${percent(figure.ci95[0])} to ${percent(figure.ci95[1])}`;
  return [h("strong", {}, `${percent(figure.value)} %`), h("span", { class: "interval" }, ends ?? " one task")];
}

const figureTable = (heads, rows) =>
  scroller(
    "Figures of these steps",
    h(
      "table",
      { class: "figures" },
      h("thead", {}, h("tr", {}, heads.map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, rows.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row" }, first), rest.map((one) => h("td", {}, one))))),
    ),
  );

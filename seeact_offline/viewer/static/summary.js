/** Figures, settings and charts of whole runs, above the list. */

import { charts } from "./charts.js";
import { LETTERS, pairedDifferences, signed } from "./compare.js";
import { fetchJson } from "./data.js";
import { cut, h, money, named, percent, quoted, scroller, shortName, words } from "./dom.js";
import { progress } from "./live.js";

const METRICS = [
  ["step_success_rate", "Step SR"],
  ["element_accuracy", "Element Accuracy"],
  ["operation_f1", "Operation F1"],
];
/** Runs from which on each takes one line. */
const MANY = 4;

export function summary(app) {
  const { index, table } = app;
  const [first, ...others] = METRICS.map(([, title]) => title);
  const heads = ["Run", first, index.runs.length > 1 && "Change", ...others, "Offline 0", "Cost", "Files", "Settings"].filter(Boolean);
  return h(
    "section",
    { class: "summary", "aria-label": "Figures" },
    index.is_sample && h("p", { class: "notice" }, h("strong", {}, "Bundled sample. "), "A small made-up data set to try things on: these figures are not the paper's."),
    h("h1", { class: "unseen" }, "Steps of ", index.runs.map((run) => shortName(run.name, 80)).join(", ")),
    scroller(
      "Figures of the runs",
      h(
        "table",
        { class: `figures runs${index.runs.length >= MANY ? " many" : ""}` },
        h("thead", {}, h("tr", {}, heads.map((title) => h("th", { scope: "col" }, title)))),
        h("tbody", {}, index.runs.map((run, place) => runRow(app, run, place))),
      ),
    ),
    index.runs.map((run) => [progress(run), (run.problems ?? []).map((text) => h("p", { class: "problem" }, index.runs.length > 1 && `${run.name}: `, text))]),
    h("div", { class: "about" }, pairedDifferences(index, table.runs), charts(index, table.runs), settings(index, table.runs)),
    h("p", { class: "faint" }, "Per cent: the average that the protocol quotes, macro (mean over tasks) or micro (mean over steps), with its 95 % interval by tasks."),
  );
}

function runRow(app, run, place) {
  const { table, index } = app;
  const shown = table.runs.indexOf(place);
  const facts = [run.model, run.grounding, run.split, run.protocol && `protocol ${run.protocol}`, run.ranker && `ranker ${run.ranker}`, run.replies].filter(Boolean);
  const results = run.results ?? {};
  const box = index.runs.length > 1 && h("input", { type: "checkbox", checked: shown >= 0, "aria-label": `Show ${run.name}`, on: { change: () => choose(app, place) } });
  const leader = index.runs.length > 1 && shown > 0 && h("button", { type: "button", class: "quiet", title: `Make ${run.name} the first run`, on: { click: () => lead(app, place) } }, "make A");
  const check = run.results && badge(index, place);
  const name = index.runs.length > 1 ? h("a", { href: app.href({ runs: [run.name] }), title: cut(run.name, 300) }, named(run.name, 80)) : named(run.name, 80);
  const [first, ...others] = METRICS.map(([id]) => h("td", {}, estimate(run.headlines[id])));
  const letter = index.runs.length > 1 && shown >= 0 && h("span", { class: "letter" }, LETTERS[shown]);
  return h(
    "tr",
    { class: shown >= 0 ? null : "unshown", "data-key": run.name },
    h("th", { scope: "row" }, h("div", { class: "run-name" }, box, letter, h("strong", {}, name))),
    first,
    index.runs.length > 1 && h("td", {}, change(index, place)),
    others,
    h("td", {}, percent(results.task_success_rate?.offline0), results.task_success_rate && " %"),
    h("td", {}, money(results.usage?.cost_usd), results.usage?.cost_usd !== undefined && results.usage?.cost_usd !== null && " USD"),
    h("td", {}, check),
    h("td", { class: "facts" }, leader, " ", quoted(facts.join(" · "), 400)),
  );
}

/** Points of Step SR against the baseline, which is the first run of the index: the paired difference that `compare` prints. */
function change(index, place) {
  const pairs = index.comparison?.pairs ?? [];
  if (place === (pairs[0]?.a ?? 0)) return h("span", { class: "faint" }, "baseline");
  const gap = pairs.find(({ b }) => b === place)?.metrics.step_success_rate;
  if (!gap) return h("span", { class: "faint" }, "–");
  const range = gap.ci95 && `${signed(gap.ci95[0])} to ${signed(gap.ci95[1])}`;
  return h("span", { class: "change", title: `Points against ${index.runs[pairs[0].a].name}, paired by step` }, h("strong", {}, signed(gap.difference)), range && h("span", { class: "interval" }, " ", range));
}

/** The checks of an index's runs, fetched once. */
const checks = new WeakMap();

/** Says whether the run's files agree, once that is known; opened, what does not, or could not be proved. */
function badge(index, place) {
  const shown = h("span", { class: "check" });
  if (!checks.has(index)) checks.set(index, fetchJson("checks.json"));
  const fill = ({ runs }) => {
    const found = runs[place];
    if (!found) return;
    const why = [...found.differences, ...found.not_proved.map((text) => `Not proved: ${text}`)];
    const kind = { verified: "good", "not verified": "bad" }[found.status] ?? "part";
    shown.replaceWith(
      why.length
        ? h("details", { class: `check ${kind}` }, h("summary", {}, found.status), h("ul", {}, why.map((text) => h("li", {}, cut(text, 400)))))
        : h("span", { class: `check ${kind}` }, found.status),
    );
  };
  // a server or a bundle without checks shows none
  checks.get(index).then(fill, () => {});
  return shown;
}

function estimate(figure) {
  if (!figure) return h("span", { class: "faint" }, "–");
  const [low, high] = figure.ci95 ?? [null, null];
  const value = h("strong", {}, `${percent(figure.value)} %`);
  const average = h("span", { class: "interval average" }, figure.average);
  if (low === null) return h("div", { class: "estimate" }, value, average);
  const x = (share) => 1 + 98 * Math.max(0, Math.min(1, share));
  return h(
    "div",
    { class: "estimate" },
    value,
    h("span", { class: "interval" }, `${percent(low)} to ${percent(high)}`),
    h(
      "svg",
      { class: "whisker", viewBox: "0 0 100 8", "aria-hidden": "true" },
      h("line", { class: "axis", x1: 0, y1: 4, x2: 100, y2: 4 }),
      h("line", { class: "range", x1: x(low), y1: 4, x2: x(high), y2: 4 }),
      h("circle", { cx: x(figure.value), cy: 4, r: 2.6 }),
    ),
    average,
  );
}

/** Shows a run, or takes it away; the last one stays. */
function choose(app, place) {
  const { table } = app;
  const runs = table.runs.includes(place) ? table.runs.filter((one) => one !== place) : [...table.runs, place];
  app.choose(runs.length ? runs : table.runs);
}

const lead = (app, place) => app.choose([place, ...app.table.runs.filter((one) => one !== place)]);

/** The runs' settings side by side, those that differ first. */
function settings(index, shown) {
  const held = shown.map((place) => index.runs[place].settings ?? {});
  const text = (value) => (value === undefined || value === null ? "–" : typeof value === "string" ? value : JSON.stringify(value));
  const names = [...new Set(held.flatMap((one) => Object.keys(one)))];
  const differs = (name) => new Set(held.map((one) => text(one[name]))).size > 1;
  const ordered = [...names.filter(differs), ...names.filter((name) => !differs(name))];
  if (!names.length) return null;
  return h(
    "details",
    { class: "settings" },
    h("summary", {}, shown.length > 1 ? `Settings side by side, ${names.filter(differs).length} differ` : "Settings"),
    scroller(
      "Settings",
      h(
        "table",
        { class: "figures" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Setting"), shown.map((place, i) => h("th", { scope: "col" }, shown.length > 1 && h("span", { class: "letter" }, LETTERS[i]), named(index.runs[place].name))))),
        h("tbody", {}, ordered.map((name) => h("tr", { class: shown.length > 1 && differs(name) ? "differs-here" : null }, h("th", { scope: "row" }, words(name)), held.map((one) => h("td", {}, quoted(text(one[name]), 120)))))),
      ),
    ),
  );
}

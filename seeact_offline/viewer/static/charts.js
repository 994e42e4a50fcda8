/** Charts of finished runs, from their results: where steps are lost, how far the ranker lets them come, and its recall. */

import { LETTERS } from "./compare.js";
import { h, percent, replace, words } from "./dom.js";

const LINE = 22, WIDTH = 560, GAP = 8;
const FONT = 12;

/** Pixels of the widest of these texts, as the charts draw them. */
function widest(texts) {
  const pen = new OffscreenCanvas(1, 1).getContext("2d");
  pen.font = `${FONT}px ${getComputedStyle(document.body).fontFamily}`;
  return Math.ceil(Math.max(0, ...texts.map((text) => pen.measureText(text).width)));
}

/** Pixels of a chart: a narrow window gets narrow charts, whose letters stay as large. */
const room = () => Math.max(280, Math.min(WIDTH, innerWidth - 64));

export function charts(index, shown) {
  const runs = shown.map((place, i) => ({ ...index.runs[place], letter: shown.length > 1 ? LETTERS[i] : "", place: i })).filter((run) => run.results);
  const drawn = h("div", { class: "chart-row" });
  // drawn once they are wanted: to measure their names, the browser has to lay out the page
  const draw = () => drawn.childElementCount || replace(drawn, runs.map(waterfall), recall(runs));
  const hasChart = runs.some((run) => lossesOf(run).length || pointsOf(run).length > 1);
  return hasChart && h("details", { class: "charts", on: { toggle: draw } }, h("summary", {}, "Charts: losses, ceiling, recall"), drawn);
}

const kindOf = (run) => run.headlines.step_success_rate?.average ?? run.headlines.operation_f1?.average ?? "macro";

/** Each cause with its losses, and the points of the recall curve. */
const lossesOf = (run) => Object.entries(run.results.waterfall ?? {}).filter(([, loss]) => typeof loss?.[kindOf(run)] === "number");
const pointsOf = ({ results }) => Object.entries(results.recall_at_k ?? {}).map(([k, share]) => [Number(k), share]).filter(([k, share]) => k > 0 && typeof share === "number").sort((a, b) => a[0] - b[0]);

/** Bars from all steps to those that succeed, with the ceiling, what a perfect model would reach, as a line. */
function waterfall(run) {
  const { results, letter, name } = run;
  const kind = kindOf(run);
  const losses = lossesOf(run);
  if (!losses.length) return null;
  let left = 1;
  const bars = losses.map(([cause, loss]) => ({ name: `${words(cause)} (${loss.steps})`, from: (left -= loss[kind]), size: loss[kind], class: "loss", said: `−${percent(loss[kind])}` }));
  const rest = run.headlines.step_success_rate?.value ?? left;
  bars.push({ name: "success", from: 0, size: rest, class: "rest", said: percent(rest) });
  const width = room();
  const labels = widest(bars.map((bar) => bar.name)) + GAP;
  // where names would leave no room for bars, each stands above its bar
  const isStacked = labels > width / 2;
  const [start, line] = isStacked ? [0, 2 * LINE - 4] : [labels, LINE];
  const height = line * bars.length + 8;
  const x = (share) => start + (width - start - widest(bars.map((bar) => bar.said)) - GAP) * Math.max(0, Math.min(1, share));
  const ceiling = results.ceiling?.[kind];
  return figure(
    `${letter ? `${letter}, ` : ""}${name}: where steps are lost, ${kind} average in %`,
    [width, height + (typeof ceiling === "number" ? 18 : 0)],
    typeof ceiling === "number" && [
      h("line", { x1: x(ceiling), y1: 0, x2: x(ceiling), y2: height, class: "ceiling" }),
      h("text", { x: x(ceiling) + (ceiling > 0.5 ? -4 : 4), y: height + 12, class: ceiling > 0.5 ? "end" : null }, `ceiling ${percent(ceiling)}`),
    ],
    bars.map((bar, i) => {
      const y = line * i + 4 + (line - LINE);
      return [
        isStacked ? h("text", { x: 0, y: y - 4 }, bar.name) : h("text", { x: start - GAP, y: y + 13, class: "end" }, bar.name),
        h("rect", { x: x(bar.from), y, width: Math.max(1, x(bar.from + bar.size) - x(bar.from)), height: LINE - 6, class: bar.class }),
        h("text", { x: x(bar.from + bar.size) + 6, y: y + 13 }, bar.said),
      ];
    }),
  );
}

/** Share of the steps whose right element is among the first k, of each run; the same curve once. */
function recall(runs) {
  const curves = new Map();
  for (const run of runs) {
    const points = pointsOf(run);
    const like = JSON.stringify(points);
    if (points.length > 1) curves.set(like, { points, letters: [...(curves.get(like)?.letters ?? []), run.letter] });
  }
  if (!curves.size) return null;
  const [height, bottom, left, width] = [200, 170, 46, room()];
  const said = ({ points, letters }) => `${letters.join(" ").trim()} ${percent(points.at(-1)[1])} %`.trim();
  const right = widest([...curves.values()].map(said)) + 2 * GAP;
  const most = Math.max(...[...curves.values()].map(({ points }) => points.at(-1)[0]), 2);
  const x = (k) => left + ((width - left - right) * Math.log(k)) / Math.log(most);
  const y = (share) => bottom - (bottom - 12) * share;
  const ticks = [...new Set([...curves.values()].flatMap(({ points }) => points.map(([k]) => k)))];
  // names of curves that end close to each other do not lie on each other
  const ends = [...curves.values()].map((curve) => ({ ...curve, at: y(curve.points.at(-1)[1]) })).sort((a, b) => a.at - b.at);
  ends.forEach((one, i) => (one.at = i ? Math.max(one.at, ends[i - 1].at + 15) : one.at));
  return figure(
    "Recall of the ranker: steps whose right element is among the first k",
    [width, Math.max(height, (ends.at(-1)?.at ?? 0) + 10)],
    [0, 0.5, 1].map((share) => [h("line", { x1: left, y1: y(share), x2: x(most), y2: y(share), class: "grid" }), h("text", { x: left - 6, y: y(share) + 4, class: "end" }, `${100 * share} %`)]),
    ticks.map((k) => h("text", { x: x(k), y: bottom + 18, class: "middle" }, k)),
    ends.map(({ at, ...curve }) => [
      h("path", { d: curve.points.map(([k, share], i) => `${i ? "L" : "M"}${x(k).toFixed(1)} ${y(share).toFixed(1)}`).join(""), class: "curve" }),
      curve.points.map(([k, share]) => h("circle", { cx: x(k), cy: y(share), r: 3 })),
      h("text", { x: x(curve.points.at(-1)[0]) + GAP, y: at + 4 }, said(curve)),
    ]),
  );
}

const figure = (title, [width, height], ...drawn) =>
  h("figure", {}, h("figcaption", {}, title), h("svg", { class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title }, drawn));

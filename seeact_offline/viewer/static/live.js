/** Progress of unfinished runs, loaded again and again. */

import { count, counted, h, money, percent, words } from "./dom.js";

const EVERY_MS = 3000;

export const unfinished = (index) => index.mode === "runs" && index.runs.some((run) => !run.finished);

/** Calls `update(index)` whenever the index is new, until all runs are finished. `load` loads the index. */
export function follow(index, load, update, every = EVERY_MS) {
  if (!unfinished(index)) return;
  let last = JSON.stringify(index);
  const again = async () => {
    let found = null;
    // a page in the background asks for nothing; a server that is away may come back
    if (!document.hidden) found = await load().catch(() => null);
    const text = found && JSON.stringify(found);
    if (found && text !== last) {
      last = text;
      update(found);
    }
    if (!found || unfinished(found)) setTimeout(again, every);
  };
  setTimeout(again, every);
}

/** Progress of a run, with its figures so far. */
export function progress(run) {
  const { progress: held } = run;
  if (run.finished || !held) return null;
  const figures = [
    ["Element Accuracy", held.element_accuracy],
    ["Operation F1", held.operation_f1],
    ["Step SR", held.step_success],
  ].filter(([, x]) => x !== null && x !== undefined);
  const failures = Object.entries(held.failures ?? {});
  return h(
    "div",
    { class: "progress", role: "group", "aria-label": "Progress" },
    h(
      "p",
      {},
      h("strong", {}, "Running: "),
      `${held.of === null ? counted(held.done, "step") : `${count(held.done)} of ${counted(held.of, "step")}`} done, ${count(held.failed)} failed to run`,
      held.cost_usd !== null && `, ${money(held.cost_usd)} USD`,
    ),
    held.of !== null && h("div", { class: "bar", "aria-hidden": "true" }, bar(held.done / Math.max(held.of, 1))),
    figures.length > 0 && h("p", {}, "So far: ", figures.map(([name, x]) => `${name} ${percent(x)} %`).join(", "), "."),
    failures.length > 0 && h("p", {}, "Failures: ", failures.map(([name, n]) => `${words(name)} ${count(n)}`).join(", "), "."),
  );
}

function bar(share) {
  const filled = h("div", { class: "filled" });
  filled.style.width = `${100 * Math.min(1, share)}%`;
  return filled;
}

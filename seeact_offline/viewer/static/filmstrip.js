/** A task as a strip of its steps, with pictures when asked for. */

import { LETTERS } from "./compare.js";
import { loadStep } from "./data.js";
import { h, replace, words } from "./dom.js";

/** Pixels of a picture in the strip. */
const WIDTH = 224, HEIGHT = 150;

export class Filmstrip {
  constructor(app) {
    this.app = app;
    this.pictures = false;
    this.element = h("nav", { class: "film", "aria-label": "Steps of this task" });
  }

  /** Shows the task of this step, where it has others. */
  show(key) {
    const { table } = this.app;
    const { index } = table;
    const row = table.place.get(key);
    const task = index.tasks.row[row];
    const rows = row === undefined ? [] : index.keys.map((_, each) => each).filter((each) => index.tasks.row[each] === task);
    rows.sort((a, b) => index.numbers.n_before[a] - index.numbers.n_before[b]);
    this.element.hidden = rows.length < 2;
    const box = h("input", { type: "checkbox", checked: this.pictures, on: { change: () => ((this.pictures = box.checked), this.show(key)) } });
    const frames = rows.map((each) => this.#frame(each, key));
    replace(this.element, h("label", { class: "film-label" }, "This task ", box, "pictures"), h("ol", { class: this.pictures ? "with-pictures" : null }, frames.map((one) => one.item)));
    const own = frames.find((one) => one.key === key)?.item;
    if (own) own.parentNode.scrollLeft = own.offsetLeft - own.parentNode.clientWidth / 2;
    if (this.pictures) this.#draw(frames);
  }

  #frame(row, key) {
    const { table, app } = this;
    const own = table.index.keys[row];
    const verdicts = table.runs.map((_, run) => {
      const outcome = table.cell(run, "outcome", row);
      const mark = outcome === "success" ? "✓" : outcome === null || outcome === "left_out" ? "·" : "✗";
      return h("span", { class: mark === "✓" ? "yes" : mark === "✗" ? "no" : "faint", title: `${table.runs.length > 1 ? `${LETTERS[run]}: ` : ""}${outcome === null ? "not there" : words(outcome)}` }, table.runs.length > 1 && LETTERS[run], mark);
    });
    const place = h("div", { class: "thumb" });
    const link = h("a", { href: app.href({ step: own }), "aria-current": own === key ? "step" : null }, this.pictures && place, h("span", {}, h("strong", {}, table.index.numbers.n_before[row] + 1), ` ${table.coded("op", row)}`), h("span", { class: "verdicts" }, verdicts));
    return { key: own, place, item: h("li", {}, link) };
  }

  get table() {
    return this.app.table;
  }

  /** One after the other, so that the step itself is shown first; until another strip is shown. */
  async #draw(frames) {
    this.drawing = frames;
    for (const { key, place } of frames) {
      const step = await loadStep(key).catch(() => null);
      if (this.drawing !== frames) return;
      replace(place, step?.picture ? thumb(step) : h("span", { class: "faint" }, "no picture"));
    }
  }
}

function thumb(step) {
  const { width, height, parts } = step.picture;
  const boxes = new Map(step.elements.filter((one) => one.box).map((one) => [one.id, one.box]));
  const marked = (ids, kind) => [...new Set(ids)].filter((id) => boxes.has(id)).map((id) => ({ box: boxes.get(id), kind }));
  const drawn = [...marked(step.truth.positives, "target"), ...marked(step.runs.map((run) => run?.predicted.element_id), "choice")];
  const scale = WIDTH / width;
  const [, y, , tall] = drawn[0]?.box ?? [0, 0, 0, 0];
  const top = Math.max(0, Math.min((y + tall / 2) * scale - HEIGHT / 2, height * scale - HEIGHT));
  const inSight = parts.filter((part) => (part.top + part.height) * scale > top && part.top * scale < top + HEIGHT);
  const stage = h(
    "div",
    { class: "stage" },
    inSight.map((part) => {
      const image = h("img", { src: part.src, alt: "", loading: "lazy", decoding: "async" });
      image.style.top = `${(100 * part.top) / height}%`;
      image.style.height = `${(100 * part.height) / height}%`;
      return image;
    }),
    h("svg", { class: "boxes", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, drawn.map(({ box: [left, up, w, deep], kind }) => h("g", { class: `box ${kind}` }, h("rect", { x: left, y: up, width: Math.max(w, 1), height: Math.max(deep, 1), class: "line" })))),
  );
  stage.style.width = `${WIDTH}px`;
  stage.style.height = `${height * scale}px`;
  stage.style.top = `${-top}px`;
  return stage;
}

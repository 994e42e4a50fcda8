/** The filters beside the list. A filter stays where it is, whatever the others leave of its steps. */

import { LETTERS } from "./compare.js";
import { count, cut, h, named } from "./dom.js";

export function omit(held, name) {
  const { [name]: _, ...rest } = held;
  return rest;
}

export function without(filters, id, value) {
  const left = filters[id].filter((one) => one !== value);
  return left.length ? { ...filters, [id]: left } : omit(filters, id);
}

export class Filters {
  constructor(app) {
    this.app = app;
    this.options = new Map();
    const { facets, columns, runs } = app.table;
    const costs = columns.filter((one) => one.name === "cost");
    this.ranges = costs.map((column) => new Range(app, column));
    this.folds = new Map();
    // those of a third run and others wait behind its name
    const isFolded = (one) => runs.length > 2 && one.run > 0;
    const own = (place) => [...facets.filter((one) => one.run === place).map((one) => this.#facet(one)), ...this.ranges.filter((one) => one.column.run === place).map((one) => one.element)];
    const folds = runs.map((run, place) => isFolded({ run: place }) && this.#fold(app.index.runs[run].name, place, own(place)));
    this.element = h("div", { class: "facets" }, facets.filter((one) => !isFolded(one)).map((one) => this.#facet(one)), this.ranges.filter((one) => !isFolded(one.column)).map((one) => one.element), folds);
  }

  update(state, counts) {
    for (const facet of this.app.table.facets) {
      const chosen = state.filters[facet.id] ?? [];
      const found = counts.get(facet.id);
      this.options.get(facet.id).forEach(({ value, place, line, box, number }) => {
        const shown = count(found[place]);
        box.checked = chosen.includes(value);
        // the browser lays out anew what is written, also where it is the same
        if (number.data !== shown) number.data = shown;
        line.classList.toggle("off", !box.checked && !found[place]);
      });
      if (chosen.length) this.#open(facet.id);
    }
    for (const range of this.ranges) range.update(state);
  }

  #fold(name, place, filters) {
    const fold = h("details", { class: "fold" }, h("summary", {}, h("span", { class: "letter" }, LETTERS[place]), named(name)), h("div", { class: "facets" }, filters));
    this.folds.set(place, fold);
    return fold;
  }

  #open(id) {
    const fold = this.folds.get(this.app.table.facets.find((one) => one.id === id).run);
    if (fold) fold.open = true;
  }

  #facet(facet) {
    const all = new Uint32Array(facet.values.length);
    for (const place of facet.row) all[place]++;
    // by all steps, so that no other filter moves one
    const known = facet.values.map((value, place) => ({ value, place })).filter(({ place }) => all[place] > 0);
    const left = Math.max(0, known.length - (facet.most ?? Infinity));
    const least = left ? known.map(({ place }) => all[place]).sort((a, b) => b - a)[facet.most - 1] : 0;
    // the most frequent ones, in their usual order
    const listed = known.filter(({ place }) => all[place] >= least).slice(0, left ? facet.most : known.length);
    const options = listed.map(({ value, place }) => this.#option(facet, value, place));
    this.options.set(facet.id, options);
    const differing = facet.differing?.length > 1 && h("button", { type: "button", class: "quiet", on: { click: () => this.#choose(facet.id, facet.differing) } }, "all disagreements");
    const block = h(
      "fieldset",
      { class: "facet", "data-facet": facet.id },
      h("legend", {}, facet.title),
      h("div", { class: "options" }, options.map((one) => one.line)),
      left > 0 && h("p", { class: "faint" }, `${count(left)} more, of fewer steps`),
      differing,
    );
    // a filter with a single value is of no use
    block.hidden = options.length < 2;
    return block;
  }

  #option(facet, value, place) {
    const number = document.createTextNode("");
    const box = h("input", { type: "checkbox", name: facet.id, on: { change: () => this.#toggle(facet.id, value, box.checked) } });
    box.value = value;
    const label = facet.label(value);
    const line = h(
      "label",
      { class: "option", title: facet.meanings[value] ?? cut(label, 300) },
      box,
      h("span", { class: "name" }, h("bdi", {}, cut(label, 60))),
      h("span", { class: "count" }, number),
    );
    return { value, place, line, box, number };
  }

  #toggle(id, value, on) {
    const { filters } = this.app.state;
    this.app.go({ filters: on ? { ...filters, [id]: [...(filters[id] ?? []), value] } : without(filters, id, value) });
  }

  #choose(id, values) {
    this.app.go({ filters: { ...this.app.state.filters, [id]: values } });
  }
}

class Range {
  constructor(app, column) {
    this.app = app;
    this.column = column;
    const field = (name) =>
      h("input", { type: "number", min: 0, step: "any", placeholder: name, "aria-label": `${column.title}, ${name}`, on: { change: () => this.#changed() } });
    this.least = field("least");
    this.most = field("most");
    this.element = h("fieldset", { class: "facet range" }, h("legend", {}, column.title), h("div", { class: "ends" }, this.least, h("span", {}, "to"), this.most));
  }

  update(state) {
    const [least, most] = state.ranges[this.column.id] ?? [null, null];
    this.least.value = least ?? "";
    this.most.value = most ?? "";
    const keys = this.column.keys();
    this.element.hidden = !keys.some((x) => x > 0);
  }

  #changed() {
    const [least, most] = [this.least, this.most].map((one) => (one.value === "" ? null : Number(one.value)));
    const rest = omit(this.app.state.ranges, this.column.id);
    this.app.go({ ranges: least === null && most === null ? rest : { ...rest, [this.column.id]: [least, most] } });
  }
}

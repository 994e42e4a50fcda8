/** All elements of a step's page as a table: the first, and more when asked for. */

import { brief } from "./conversation.js";
import { count, cut, h, quoted, replace, scroller, unknown } from "./dom.js";

const ROWS = 60, MORE_ROWS = 500;

/** `picked`, `offered`: ids; `look(id)` shows an element on the page, `hover(id)` outlines it. */
export function elementTable(elements, { picked, offered, look, hover }) {
  const body = h("tbody");
  let place = 0;
  const more = h("button", { type: "button", class: "quiet", on: { click: () => add(MORE_ROWS) } });
  const add = (n) => {
    const next = elements.slice(place, place + n);
    place += next.length;
    body.append(...next.map((one) => elementRow(one, { isPicked: picked.has(one.id), isOffered: offered.has(one.id), look, hover })));
    more.hidden = place >= elements.length;
    replace(more, `Show more: ${count(elements.length - place)} left`);
  };
  add(ROWS);
  const heads = ["Element", "Rank", "Score", "Description, and place in the page"];
  return h(
    "details",
    { class: "card elements", open: true },
    h("summary", {}, h("h2", {}, `Elements (${count(elements.length)})`)),
    scroller("Elements", h("table", { class: "figures" }, h("thead", {}, h("tr", {}, heads.map((title) => h("th", { scope: "col" }, title)))), body)),
    more,
  );
}

function elementRow(one, { isPicked, isOffered, look, hover }) {
  const marks = [one.positive && h("span", { class: "tag target" }, "target"), isPicked && h("span", { class: "tag choice" }, "choice"), !isOffered && h("span", { class: "tag" }, "not offered")];
  return h(
    "tr",
    { "data-id": one.id, on: { mouseenter: () => hover(one.id), mouseleave: () => hover(null) } },
    h("th", { scope: "row" }, h("button", { type: "button", class: "element", title: "Show it on the page", on: { click: () => look(one.id) } }, `#${cut(one.id, 30)}`), " ", marks),
    h("td", { class: "number" }, one.rank ?? "–"),
    h("td", { class: "number" }, one.score === null || one.score === undefined ? "–" : one.score.toFixed(3)),
    h("td", { class: "text" }, one.text || one.path ? brief(one.text) : unknown(), h("div", { class: "path" }, quoted(one.path ?? "", 400))),
  );
}

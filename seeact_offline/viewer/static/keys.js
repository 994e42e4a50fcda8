/** The keyboard: one table of keys a view, and a help dialog that lists them. */

import { h, replace } from "./dom.js";

const ABOUT = [
  h("p", { class: "faint" }, "On the picture: drag or scroll to move, + and − or Ctrl and the wheel to zoom, 0 to fit."),
  h("p", { class: "faint" }, "The address of this page holds the runs, filters, order and step: copy it to share what you see."),
];
/** Lists whose items the keys go through while one of them has the focus. */
const LISTS = "tbody, .options";
const TYPING = "input:not([type=checkbox], [type=radio]), textarea, select";
let view = { keys: [], busy: () => false };

/** Replaces the keys before. `keys`: `{key, name, help, act, once, within}`; `name` is shown for the key, `once` ignores repeats, and
 * the key also acts while the person types in the field `within`. `busy`: no key acts while it returns true. `about`: more help. */
export function bind(keys, { busy = () => false, title = "Keys", before = [], about = ABOUT } = {}) {
  view = { keys, busy, title, before, about };
}

/** Focuses another item of a list of links or boxes: of the one that has the focus, else of `list`. */
export function move(by, list = null) {
  const held = document.activeElement?.closest(LISTS) ?? list;
  const rows = [...(held?.querySelectorAll("tr, label") ?? [])].map((row) => row.querySelector("th a") ?? row.querySelector("input")).filter(Boolean);
  const at = rows.findIndex((item) => item.closest("tr, label").contains(document.activeElement));
  rows[at < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, at + by))]?.focus();
}

/** Says that a list is empty, and offers to clear the search, else the filters, that emptied it. */
export const nothing = (place, item, q, clear) =>
  replace(place, q ? [`No ${item} holds “`, h("bdi", {}, q), "”. "] : `No ${item} passes these filters. `, h("button", { type: "button", on: { click: clear } }, q ? "Clear the search" : "Clear the filters"));

/** Listens before the picture, in which 0 has another meaning. */
export function listen() {
  document.addEventListener("keydown", press, { capture: true });
}

function press(event) {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const isListed = ["j", "k", "Enter"].includes(key) && target.matches?.(`:is(${LISTS}) :is(a, input[type=checkbox])`);
  const item = { act: () => (key === "Enter" ? target.click() : move(key === "j" ? 1 : -1)) };
  const found = isListed ? item : view.keys.find((one) => one.key === key);
  if (target.matches?.(TYPING) && !(found?.within && target.matches(found.within))) {
    if (key === "Escape") target.blur();
    return;
  }
  // Enter presses what has the focus
  if (!found || (event.repeat && found.once) || (key === "Enter" && target.matches?.("button, summary, a"))) return;
  event.preventDefault();
  event.stopPropagation();
  if (!view.busy()) found.act();
}

/** Opens the help. It closes by Escape, its button, or a click beside it. */
export function help() {
  const close = () => dialog.close();
  const listed = view.keys.filter((one) => one.help);
  const dialog = h(
    "dialog",
    { class: "help", "aria-label": view.title, on: { close: () => dialog.remove(), click: (event) => event.target === dialog && close() } },
    h(
      "div",
      {},
      view.before,
      h("h2", {}, "Keys"),
      h("dl", { class: "keys" }, listed.map((one) => [h("dt", {}, h("kbd", {}, one.name ?? one.key)), h("dd", {}, one.help)])),
      view.about,
      h("button", { type: "button", on: { click: close } }, "Close"),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
  // the button below has the focus, and would be scrolled to
  dialog.scrollTop = 0;
}

/** The keyboard: one table of keys a view, and a help dialog that lists them. */

import { h } from "./dom.js";

let bound = [];

/** Takes the place of the keys before. `keys`: `{key, name, help, act}`; `name` is shown for the key where it is given. */
export function bind(keys) {
  bound = keys;
}

const typing = (node) => node.closest?.("input:not([type=checkbox]), textarea, select") !== null && node.closest !== undefined;

export function listen() {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (typing(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const found = bound.find(({ key }) => key === event.key);
    if (!found) return;
    event.preventDefault();
    found.act();
  });
}

/** Opens the help. It closes by Escape, its button, or a click beside it. */
export function help() {
  const close = () => dialog.close();
  const dialog = h(
    "dialog",
    { class: "help", "aria-label": "Keys", on: { close: () => dialog.remove(), click: (event) => event.target === dialog && close() } },
    h(
      "div",
      {},
      h("h2", {}, "Keys"),
      h("dl", { class: "keys" }, bound.filter((one) => one.help).map((one) => [h("dt", {}, h("kbd", {}, one.name ?? one.key)), h("dd", {}, one.help)])),
      h("p", { class: "faint" }, "On the picture: drag or scroll to move, + and − or Ctrl and the wheel to zoom, 0 to fit."),
      h("p", { class: "faint" }, "The address of this page holds the runs, filters, order and step: copy it to share what you see."),
      h("button", { type: "button", on: { click: close } }, "Close"),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
  // the button below has the focus, and would be scrolled to
  dialog.scrollTop = 0;
}

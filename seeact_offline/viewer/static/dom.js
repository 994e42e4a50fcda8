/** The only place that makes nodes. Text stays text; tags, attributes and addresses are on a list of allowed ones.
 *
 * Page HTML, task texts and model replies are untrusted. They reach the document as text nodes and as values of the attributes
 * below, and characters that hide or reorder text are spelt out.
 */

const HTML_TAGS = new Set(
  ("a bdi br button code dd del details dialog div dl dt em fieldset figcaption figure footer form h1 h2 h3 h4 header img input ins kbd " +
    "label legend li main nav ol optgroup option output p pre progress section select small span strong summary table tbody " +
    "td textarea th thead tr ul").split(" "),
);
const SVG_TAGS = new Set("svg g rect line path circle text".split(" "));
const SVG = "http://www.w3.org/2000/svg";
const ATTRIBUTES = new Set(
  ("alt class colspan cx cy d decoding download for height id inputmode lang loading max maxlength min name placeholder r role " +
    "rowspan scope spellcheck step tabindex title type viewBox width x x1 x2 y y1 y2").split(" "),
);
const PROPERTIES = new Set("checked disabled hidden indeterminate open selected value".split(" "));
const ADDRESSES = { href: /^(#|blob:)/, src: /^img\/[\w.-]+$/ };

/** Controls, marks of direction, and characters without any width that carry hidden text. */
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{d800}-\u{dfff}\u{e0000}-\u{e01ef}]/gu;

/** Text with its unseen characters spelt out, such as ⟨U+202E⟩. */
export function plain(text) {
  return String(text)
    .replaceAll("\r\n", "\n")
    .replace(UNSEEN, (one) => `⟨U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** The first characters of a text, with an ellipsis where some are left out; no pair of surrogates is cut. */
export function cut(text, most = 200) {
  return text.length <= most ? text : `${whole(text, 0, most)}…`;
}

/** A name without its middle where it is long: runs of one experiment differ in the end. */
export function shortName(name, most = 40) {
  const end = Math.ceil(most * 0.6);
  return name.length <= most ? name : `${whole(name, 0, most - end)}…${[...name].slice(-end).join("")}`;
}

/** The name of a run, an agent or a folder, whole in its title. */
export const named = (name, most = 40) => h("bdi", { title: name.length > most ? cut(name, 1000) : null }, shortName(name, most));

function whole(text, start, end) {
  const code = text.charCodeAt(end - 1);
  // half of a pair at the very end has no other half to wait for
  return text.slice(start, end < text.length && code >= 0xd800 && code < 0xdc00 ? end - 1 : end);
}

/** A node. `attributes.on`: listeners by event. Children: nodes, texts, numbers, lists of them; null and false are left out. */
export function h(tag, attributes, ...children) {
  const node = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(known(tag));
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined && value !== false) set(node, name, value);
  }
  fill(node, children);
  return node;
}

function known(tag) {
  if (!HTML_TAGS.has(tag)) throw new Error(`no such tag here: ${tag}`);
  return tag;
}

function set(node, name, value) {
  if (name === "on") {
    for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
  } else if (PROPERTIES.has(name)) {
    node[name] = value;
  } else if (name in ADDRESSES) {
    if (!ADDRESSES[name].test(value)) throw new Error(`no such address here: ${name}="${value}"`);
    node.setAttribute(name, value);
  } else if (ATTRIBUTES.has(name) || /^(aria|data)-[a-z-]+$/.test(name)) {
    node.setAttribute(name, plain(value));
  } else {
    throw new Error(`no such attribute here: ${name}`);
  }
}

function fill(node, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) fill(node, child);
    else node.append(child instanceof Node ? child : plain(child));
  }
}

/** Replaces a node's children. */
export function replace(node, ...children) {
  node.replaceChildren();
  fill(node, children);
  return node;
}

/** Loads a style sheet that lies beside the page. */
export function sheet(name) {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = name;
  document.head.append(link);
}

/** A button that copies a text as it is, unseen characters included. */
export function copier(name, text) {
  const status = h("span", { role: "status" });
  const copy = async () => {
    const said = await copied(text).catch(() => false);
    replace(status, said ? " Copied" : " Not copied: the browser does not let this page");
    setTimeout(() => replace(status), 2500);
  };
  return h("span", { class: "copier" }, h("button", { type: "button", class: "quiet", on: { click: copy } }, name), status);
}

async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true);
  // under an address other than this machine's, browsers have no clipboard
  const field = h("textarea", { "aria-hidden": "true" });
  field.value = text;
  document.body.append(field);
  field.select();
  const said = document.execCommand("copy");
  field.remove();
  return said;
}

const SLICE = 50_000;

/** A text of any length with its lines: the start, and the rest on demand, in slices that a browser can lay out at once. */
export function long(text, { first = 1200, label = "text" } = {}) {
  const held = String(text);
  const start = held.length <= first * 1.25 ? held.length : first;
  const begun = whole(held, 0, start);
  const shown = h("pre", { class: "long", tabindex: 0, role: "group", "aria-label": label }, h("span", {}, begun));
  if (begun.length === held.length) return shown;
  let place = begun.length;
  const left = () => `${count(held.length - place)} of ${count(held.length)} characters left`;
  const button = h("button", { class: "quiet", type: "button" }, `Show all: ${left()}`);
  button.addEventListener("click", () => {
    const slice = whole(held, place, Math.min(held.length, place + SLICE));
    place += slice.length;
    shown.append(h("span", {}, slice));
    if (place >= held.length) button.remove();
    else replace(button, `Show more: ${left()}`);
  });
  return h("div", { class: "long-text" }, shown, button);
}

/** A box in which something wide scrolls by itself, by the keyboard too. */
export const scroller = (label, ...children) => h("div", { class: "wide", tabindex: 0, role: "group", "aria-label": label }, children);

/** Untrusted text inside a sentence, with its own direction. */
export const quoted = (text, most = 300) => h("bdi", { title: text.length > most ? cut(text, 1000) : null }, cut(text, most));

export const unknown = (what = "") => h("span", { class: "faint" }, what ? `${what} not known` : "not known");
/** Names that say less than they should. */
const SAID = {
  no_positive: "no right element on the page", ranker_miss: "not offered by the ranker",
  element_accuracy: "Element Accuracy", operation_f1: "Operation F1", step_success_rate: "Step SR",
};
export const words = (name) => SAID[name] ?? String(name).replaceAll("_", " ");

/** Runs `act`, which may make nodes anew, and gives the focus back to the node like the one that had it. */
export function keepingFocus(root, act) {
  const held = root.contains(document.activeElement) ? document.activeElement : null;
  const like = (one) => [one.tagName, one.name, one.type === "checkbox" && one.value, one.getAttribute("aria-label") ?? one.textContent, one.closest("[data-key]")?.dataset.key].join("\n");
  const wanted = held && like(held);
  act();
  if (held && !held.isConnected) [...root.querySelectorAll(held.tagName)].find((one) => like(one) === wanted)?.focus({ preventScroll: true });
}

/** Rounds as the report does: fractions that differ in a float's last digits read alike, and an exact half goes to the even digit, which `toFixed` would round up. */
export function percent(x) {
  if (x === null || x === undefined) return "–";
  const share = Number((100 * x).toFixed(9)) + 0;
  return (Math.abs(share) % 1 === 0.25 ? share - Math.sign(share) * 0.01 : share).toFixed(1);
}
const grouped = new Intl.NumberFormat("en");
export const count = (n) => grouped.format(n);
/** "1 step", "1,234 steps". */
export const counted = (n, one, many = `${one}s`) => `${count(n)} ${Number(n) === 1 ? one : many}`;
export const money = (usd) => (usd === null || usd === undefined ? "–" : usd === 0 ? "0" : usd < 0.01 ? usd.toFixed(5) : usd.toFixed(4));
export const seconds = (s) => (s === null || s === undefined ? "–" : s < 10 ? `${s.toFixed(2)} s` : `${s.toFixed(0)} s`);

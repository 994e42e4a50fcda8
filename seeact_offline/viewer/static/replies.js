/** The difference between two replies of a step, word by word. */

import { cut, h, replace } from "./dom.js";

/** Words of each reply beyond which they are not compared one by one. */
const MOST = 3000;
/** Characters that are shown. */
const LONGEST = 60_000;

/** Pieces `{kind, text}` that lead from one text to the other: "same", "del" or "ins". */
export function difference(before, after) {
  // each word with the space before it, which is no match by itself
  const [a, b] = [before, after].map((text) => text.match(/\s*(?:[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_])|\s+$/gu) ?? []);
  let start = 0;
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const [middleA, middleB] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  const isLong = middleA.length > MOST || middleB.length > MOST;
  const middle = isLong ? [["del", middleA.join("")], ["ins", middleB.join("")]] : aligned(middleA, middleB);
  const pieces = [];
  for (const [kind, text] of [["same", a.slice(0, start).join("")], ...middle, ["same", a.slice(a.length - end).join("")]]) {
    if (pieces.at(-1)?.kind === kind) pieces.at(-1).text += text;
    else if (text) pieces.push({ kind, text });
  }
  return pieces;
}

/** The longest common subsequence of words, and what stands between. */
function aligned(a, b) {
  const wide = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i * wide + j] = a[i] === b[j] ? longest[(i + 1) * wide + j + 1] + 1 : Math.max(longest[(i + 1) * wide + j], longest[i * wide + j + 1]);
    }
  }
  const found = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) found.push(["same", a[i++]]), j++;
    else if (i < a.length && (j === b.length || longest[(i + 1) * wide + j] >= longest[i * wide + j + 1])) found.push(["del", a[i++]]);
    else found.push(["ins", b[j++]]);
  }
  return found;
}

/** Two replies to choose, and their difference. `replies`: `{name, text, run}` of all runs; null for fewer than two. */
export function replyDifference(replies) {
  if (replies.length < 2) return null;
  const list = (name, chosen) => {
    const select = h("select", { "aria-label": name, on: { change: () => draw() } }, replies.map((one, place) => h("option", { value: place }, cut(one.name, 80))));
    select.value = chosen;
    return select;
  };
  const last = (run) => replies.findLastIndex((one) => one.run === run);
  const runs = [...new Set(replies.map((one) => one.run))];
  const [left, right] = runs.length > 1 ? [last(runs[0]), last(runs[1])] : [replies.length - 2, replies.length - 1];
  const [a, b] = [list("From the reply", left), list("to the reply", right)];
  const shown = h("div");
  const draw = () => {
    const pieces = difference(replies[a.value].text, replies[b.value].text);
    let left = LONGEST;
    for (const one of pieces) {
      one.text = cut(one.text, left);
      left = Math.max(0, left - one.text.length);
    }
    const isSame = pieces.every((one) => one.kind === "same");
    replace(shown, isSame && h("p", { class: "faint" }, "The two are the same."), h("pre", { class: "long", tabindex: 0, role: "group", "aria-label": "Difference of the replies" }, pieces.filter((one) => one.text.length > 1 || left > 0).map(({ kind, text }) => (kind === "same" ? h("bdi", {}, text) : h(kind, {}, h("bdi", {}, text))))));
  };
  return h(
    "details",
    { class: "card difference", on: { toggle: (event) => event.target.open && draw() } },
    h("summary", {}, h("h2", {}, "Difference of two replies")),
    h("div", { class: "toolbar" }, a, "→", b),
    h("p", { class: "faint" }, h("del", {}, "only in the first"), " ", h("ins", {}, "only in the second")),
    shown,
  );
}

/** Texts of a step: elements, operations, questions, replies and what they took. */

import { copier, counted, count, cut, h, long, money, quoted, seconds, unknown, words } from "./dom.js";

/** An element by its words, else its tag. */
export const described = ({ text, tag }, most) => (text || tag ? quoted(text || `<${tag}>`, most) : h("span", { class: "faint" }, "not described"));

/** The start of a text, and the rest on demand. */
export const brief = (text, most = 300) => (text.length <= most ? h("bdi", {}, text) : long(text, { first: most }));

/** Messages that stand before the question: examples, or what an agent has seen and said. */
export function examples(groups, title) {
  const held = groups.find((one) => one.examples?.length)?.examples ?? [];
  const turns = held.map((one) => [h("h4", {}, cut(one.role, 40)), one.image && sent(one.image, `Picture of an earlier message`), long(one.text, { label: `Example, ${cut(one.role, 40)}`, first: 600 })]);
  return turns.length > 0 && h("details", { class: "before" }, h("summary", {}, title), h("div", { class: "turn" }, turns));
}

export const operation = (op, value) => h("span", { class: "operation" }, h("strong", {}, cut(op, 40)), value ? [" ", h("bdi", { class: "value" }, brief(value))] : value === null && op !== "CLICK" && [" ", unknown("value")]);

const placeName = ({ final, window, group }) => (final ? "final round" : window ? `turn ${group + 1}, pixels ${count(window[1])} to ${count(window[3])}` : `group ${group + 1}`);
export const groupName = (group, letter) => `${letter ? `${letter}, ` : ""}${placeName(group)}`.replace(/^./, (first) => first.toUpperCase());

/** The label of an element in this group. */
export function labelOf(group, id) {
  const place = group.offered.indexOf(id);
  return cut((place >= 0 && group.labels?.[place]) || `#${id}`, 40);
}

export function turnOf(group, turn) {
  const prompt = group.prompts?.[turn];
  const image = group.images?.[turn];
  const call = group.calls?.[turn];
  const reply = group.replies[turn];
  return h(
    "section",
    { class: group.window ? "turn windowed" : "turn" },
    !group.window && h("h3", {}, `Turn ${turn + 1}`),
    image && sent(image, `Picture sent in turn ${turn + 1}`),
    h("h4", {}, "Asked", prompt && copier("Copy prompt", prompt)),
    prompt === undefined || prompt === null ? h("p", { class: "faint" }, "This text cannot be shown.") : long(prompt, { label: `Asked in turn ${turn + 1}`, first: 600 }),
    h("h4", {}, "Replied", call && h("span", { class: "faint" }, ` ${callOf(call)}`)),
    reply === undefined || reply === null ? h("p", { class: "faint" }, "No reply.") : long(reply, { label: `Reply of turn ${turn + 1}` }),
  );
}

function callOf(call) {
  const parts = [
    call.seconds !== null && call.seconds !== undefined && seconds(call.seconds),
    call.attempts && counted(call.attempts, "attempt"),
    call.request_id && cut(call.request_id, 60),
  ];
  return parts.filter(Boolean).join(" · ");
}

/** The picture as it was sent: small, or in its own pixels. */
function sent(src, alt) {
  const image = h("img", { src, alt, loading: "lazy", decoding: "async" });
  const button = h("button", { type: "button", class: "sent", "aria-expanded": "false", title: "The picture as sent: click for its own size", on: { click: () => grow() } }, image);
  const grow = () => button.setAttribute("aria-expanded", String(button.classList.toggle("full")));
  return button;
}

export function notes(held) {
  const names = Object.entries(held ?? {});
  return names.length > 0 && [h("dt", {}, "Notes"), h("dd", {}, names.map(([name, n]) => `${words(name)}${n > 1 ? ` (${n})` : ""}`).join(", "))];
}

export function usage(held) {
  if (!held) return null;
  const parts = [
    held.calls > 0 && counted(held.calls, "call"),
    held.prompt_tokens > 0 && `${counted(held.prompt_tokens, "token")} in`,
    held.completion_tokens > 0 && `${counted(held.completion_tokens, "token")} out`,
    held.image_tokens > 0 && `${count(held.image_tokens)} of them for pictures`,
    held.cost_usd !== undefined && held.cost_usd !== null && `${money(held.cost_usd)} USD`,
  ];
  return [h("dt", {}, "Usage"), h("dd", {}, parts.filter(Boolean).join(", "))];
}

/** The command that prints a step as a run asks about it, from the run's settings; null where they are not known. */
export function showCommand(settings, step) {
  if (!settings?.dataset || !settings.split) return null;
  const shell = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
  const named = ["dataset", "split", "grounding", "ranker", "top_k"].filter((name) => ["string", "number"].includes(typeof settings[name]));
  const options = named.flatMap((name) => [`--${name.replace("_", "-")}`, shell(String(settings[name]))]);
  return ["seeact-offline show", ...options, "--step", shell(`${step.annotation_id}_${step.action_uid}`)].join(" ");
}

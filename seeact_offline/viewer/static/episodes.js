/** Trajectories: the list of tasks that were carried out, and each task as a strip of its pages with what was done on them. */

import { fetchJson } from "./data.js";
import { h, long, money, plain, quoted, replace, words } from "./dom.js";
import { bind, help } from "./keys.js";

const MARKS = new Map([[true, "✓"], [false, "✗"], [null, "–"]]);
const FILTERS = { end: "End", verdict: "Verdict", website: "Website", folder: "Folder" };

/** Called by main.js. The address holds the filters, `#/?end=limit`, or the task, `#/episode/KEY?…`. */
export function showEpisodes(index, place) {
  const view = new Episodes(index, place);
  addEventListener("hashchange", () => view.show());
  view.show();
}

const verdictText = ({ by, success }) => `${by}: ${success === null ? "no verdict" : success ? "success" : "no success"}`;

class Episodes {
  constructor(index, place) {
    this.index = index;
    this.place = place;
  }

  /** Values of each filter of an episode. */
  values(episode) {
    return {
      end: [episode.end].filter(Boolean),
      verdict: episode.verdicts.length ? episode.verdicts.map(verdictText) : ["no verdict"],
      website: [episode.website].filter(Boolean),
      folder: [this.index.folders[episode.folder]],
    };
  }

  async show() {
    const [, path, query] = /^#?\/?([^?]*)\??(.*)$/s.exec(location.hash);
    this.asked = new URLSearchParams(query);
    const key = /^episode\/([0-9a-f]{16})$/.exec(path)?.[1] ?? null;
    this.key = key;
    if (key === null) {
      document.title = `${plain(this.index.title)} – seeact-offline`;
      this.#list();
      return;
    }
    try {
      const episode = await fetchJson(`episode/${key}.json`);
      if (this.key === key) this.#episode(episode);
    } catch (error) {
      if (this.key === key) replace(this.place, h("main", { class: "wrong", role: "alert" }, h("h1", {}, "This cannot be shown"), h("p", {}, error.message)));
    }
  }

  rows() {
    const { asked } = this;
    const q = (asked.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    return this.index.episodes.filter((one) => {
      const values = this.values(one);
      const text = `${one.task}\n${one.website}\n${one.id}`.toLowerCase();
      return Object.keys(FILTERS).every((name) => !asked.has(name) || values[name].includes(asked.get(name))) && q.every((term) => text.includes(term));
    });
  }

  href(key = null) {
    const query = this.asked.toString();
    return `#/${key ? `episode/${key}` : ""}${query ? `?${query}` : ""}`;
  }

  #set(name, value) {
    if (value) this.asked.set(name, value);
    else this.asked.delete(name);
    history.replaceState(null, "", this.href());
    this.#rows();
  }

  // --- the list ---

  #list() {
    const { asked } = this;
    const held = Object.keys(FILTERS).map((name) => [name, [...new Set(this.index.episodes.flatMap((one) => this.values(one)[name]))].sort()]);
    const fields = held
      .filter(([, values]) => values.length > 1)
      .map(([name, values]) => {
        const select = h("select", { name, on: { change: () => this.#set(name, select.value) } }, h("option", { value: "" }, "all"), values.map((value) => h("option", { value }, words(value))));
        select.value = values.includes(asked.get(name)) ? asked.get(name) : "";
        return h("label", {}, FILTERS[name], select);
      });
    const search = h("input", { type: "text", name: "q", placeholder: "Task, website or id", "aria-label": "Search", spellcheck: "false", on: { input: () => this.#set("q", search.value) } });
    search.value = asked.get("q") ?? "";
    this.body = h("div", {});
    replace(this.place, h("main", { class: "episodes" }, h("div", { class: "asked" }, fields, search), this.body));
    this.#rows();
    bind([{ key: "?", help: "this help", act: help }, { key: "/", help: "search", act: () => search.focus() }], { about: [] });
  }

  #rows() {
    const shown = this.rows();
    const n = this.index.episodes.length;
    const success = shown.filter((one) => one.verdicts[0]?.success).length;
    const has = { end: shown.some((one) => one.end), cost: shown.some((one) => one.cost_usd !== null) };
    const many = this.index.folders.length > 1;
    const row = (one) =>
      h(
        "tr",
        { "data-key": one.key },
        h("td", { class: "task" }, h("a", { href: this.href(one.key) }, quoted(one.task || one.id, 240))),
        h("td", {}, verdicts(one)),
        has.end && h("td", {}, words(one.end)),
        h("td", { class: "number" }, one.steps),
        has.cost && h("td", { class: "number" }, money(one.cost_usd)),
        h("td", {}, quoted(one.website, 60)),
        many && h("td", {}, quoted(this.index.folders[one.folder], 60)),
      );
    const titles = ["Task", "Verdict", has.end && "End", "Steps", has.cost && "Cost, USD", "Website", many && "Folder"].filter(Boolean);
    replace(
      this.body,
      h("p", { class: "faint", role: "status" }, `${shown.length} of ${n} tasks; the first verdict is success in ${success}`),
      h("div", { class: "wide" }, h("table", { class: "figures" }, h("thead", {}, h("tr", {}, titles.map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, shown.map(row)))),
    );
  }

  // --- one task ---

  #episode(episode) {
    const keys = this.rows().map((one) => one.key);
    const at = keys.indexOf(episode.key);
    const by = (step) => keys[at + step] && at >= 0 ? this.href(keys[at + step]) : null;
    const move = (step) => by(step) && (location.hash = by(step));
    const link = (step, text) => (by(step) ? h("a", { class: "button", href: by(step) }, text) : h("span", { class: "button off" }, text));
    const facts = [
      episode.end && `End: ${words(episode.end)}`,
      episode.reached && !episode.verdicts[0]?.success && "Ever reached: yes",
      episode.helped > 0 && `Recorded acts in place of its own: ${episode.helped}`,
      episode.calls > 0 && `Calls: ${episode.calls}`,
      episode.cost_usd !== null && `Cost: ${money(episode.cost_usd)} USD`,
    ];
    document.title = `${plain(episode.task || episode.id)} – seeact-offline`;
    replace(
      this.place,
      h(
        "main",
        { class: "episodes" },
        h("nav", { class: "asked", "aria-label": "Tasks" }, h("a", { class: "button", href: this.href() }, "All tasks"), link(-1, "Previous"), link(1, "Next"), at >= 0 && h("span", { class: "faint" }, `${at + 1} of ${keys.length}`)),
        h("h1", {}, quoted(episode.task || episode.id, 2000)),
        h("p", { class: "facts" }, [episode.website, episode.agent].filter(Boolean).map((text) => [quoted(text, 120), " · "]), h("bdi", {}, episode.id)),
        h("p", { class: "outcome" }, verdicts(episode, true), facts.filter(Boolean).map((text) => h("span", {}, text))),
        episode.detail && h("p", { class: "problem" }, quoted(episode.detail, 1000)),
        episode.problems.map((text) => h("p", { class: "problem" }, quoted(text, 1000))),
        episode.answer !== null && h("section", { class: "answer", "aria-label": "Answer" }, h("h2", {}, "Answer"), long(episode.answer, { label: "answer" })),
        h("ol", { class: "frames" }, episode.frames.map((frame, place) => card(frame, place))),
      ),
    );
    scrollTo(0, 0);
    bind([
      { key: "j", help: "next task", act: () => move(1) },
      { key: "k", help: "previous task", act: () => move(-1) },
      { key: "Escape", help: "all tasks", act: () => (location.hash = this.href()) },
      { key: "?", help: "this help", act: help },
    ], { about: [] });
  }
}

/** `whole`: with the reasons. */
function verdicts(episode, whole = false) {
  if (!episode.verdicts.length) return h("span", { class: "faint" }, "no verdict");
  return episode.verdicts.map((one) => {
    const mark = h("span", { class: one.success === null ? "faint" : one.success ? "yes" : "no" }, MARKS.get(one.success), " ", h("bdi", {}, verdictText(one)));
    return h("span", { class: "verdict", title: one.detail || null }, mark, whole && one.detail && one.detail !== episode.end && [" ", quoted(one.detail, 300)]);
  });
}

// --- a page and what was done on it ---

function card(frame, place) {
  // a reply without an action has its failure's name in brackets; "(help)" is a recorded act in place of the agent's own
  const failed = /^\((?!help\))|not carried out: /.test(frame.action);
  const title = frame.action ? quoted(frame.action, 500) : h("span", { class: "faint" }, "the last page");
  const item = h(
    "li",
    { class: "frame" },
    h("h2", { class: failed ? "no" : null }, h("span", { class: "letter" }, place + 1), title),
    frame.address && h("p", { class: "faint" }, quoted(frame.address, 200)),
    frame.picture ? picture(frame, () => item.classList.toggle("enlarged")) : h("p", { class: "faint" }, frame.problem ? `no picture: ${frame.problem}` : "no picture"),
    frame.thought && h("details", { open: true }, h("summary", {}, "Thought"), long(frame.thought, { first: 400, label: "thought" })),
    frame.reply && h("details", {}, h("summary", {}, "Reply"), long(frame.reply, { label: "reply" })),
  );
  return item;
}

function picture({ picture: { width, height, parts }, place, action }, enlarge) {
  const images = parts.map((part) => {
    const image = h("img", { src: part.src, alt: "", loading: "lazy", decoding: "async" });
    image.style.top = `${(100 * part.top) / height}%`;
    image.style.height = `${(100 * part.height) / height}%`;
    return image;
  });
  const stage = h("div", { class: "stage" }, images, place && drawn(place, width, height));
  stage.style.aspectRatio = `${width} / ${height}`;
  const sight = h("button", { type: "button", class: "sight", "aria-label": `Page of ${action || "the end"}: larger or smaller`, on: { click: enlarge } }, stage);
  // a page that is longer than its frame is shown where it was acted on
  if (place) requestAnimationFrame(() => (sight.scrollTop = ((place[1] + place[3] / 2) / height) * stage.clientHeight - sight.clientHeight / 2));
  return sight;
}

/** The box that was acted on, or a cross in a ring at its point. */
function drawn([left, top, wide, tall], width, height) {
  const shapes =
    wide || tall
      ? ["halo", "line"].map((kind) => h("rect", { class: kind, x: left, y: top, width: Math.max(wide, 1), height: Math.max(tall, 1) }))
      : ["halo", "line"].map((kind) => [h("circle", { class: kind, cx: left, cy: top, r: width / 60 }), h("circle", { class: kind, cx: left, cy: top, r: width / 400 })]);
  return h("svg", { class: "boxes", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, h("g", { class: "acted" }, shapes));
}

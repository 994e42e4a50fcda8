/** Trajectories: the list of tasks that were carried out, and each task as a strip of its pages with what was done on them. */

import { collator, fetchJson } from "./data.js";
import { counted, cut, h, long, money, named, percent, plain, quoted, replace, scroller, shortName, words } from "./dom.js";
import { bind, help, move, nothing } from "./keys.js";
import { save } from "./notes.js";

const MARKS = new Map([[true, "✓"], [false, "✗"], [null, "–"]]);
const FILTERS = { agreement: "Agreement", end: "End", verdict: "Verdict", website: "Website", agent: "Agent", folder: "Folder" };

/** Called by main.js. The address holds the filters, `#/?end=limit`, or the task, `#/episode/KEY?…`. */
export function showEpisodes(index, place) {
  const view = new Episodes(index, place);
  addEventListener("hashchange", () => view.show());
  view.show();
}

const said = (success) => (success === null ? "no verdict" : success ? "success" : "no success");
const verdictText = ({ by, success }) => `${by}: ${said(success)}`;

const values = (verdicts) => new Set(verdicts.map((one) => one.success).filter((success) => success !== null));

/** The ways in which judges and labels of a task part: none where all say the same. */
function partings({ verdicts }) {
  const [labels, judges] = [verdicts.filter((one) => one.label), verdicts.filter((one) => !one.label)].map(values);
  return [
    judges.size > 1 && "judges disagree",
    labels.size > 1 && "labels disagree",
    labels.size === 1 && [...judges].some((success) => !labels.has(success)) && "differs from the label",
  ].filter(Boolean);
}

class Episodes {
  constructor(index, place) {
    this.index = index;
    this.place = place;
    this.#read();
  }

  /** What the verdicts of all tasks lead to. */
  #read() {
    const { index } = this;
    this.parted = new Map(index.episodes.map((one) => [one.key, partings(one)]));
    // where judges and labels part comes first
    this.episodes = [...index.episodes].sort((a, b) => Math.sign(this.parted.get(b.key).length) - Math.sign(this.parted.get(a.key).length));
    const verdicts = index.episodes.flatMap((one) => one.verdicts);
    this.judges = [...new Set([...verdicts.filter((one) => one.label), ...verdicts].map((one) => one.by))];
    this.labels = new Set(verdicts.filter((one) => one.label).map((one) => one.by));
  }

  /** Values of each filter of an episode. */
  values(episode) {
    const parted = this.parted.get(episode.key);
    return {
      agreement: parted.length ? parted : [values(episode.verdicts).size && episode.verdicts.length > 1 ? "all agree" : "one verdict or none"],
      agent: [episode.agent].filter(Boolean),
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
      this.place.setAttribute("aria-busy", "false");
      document.title = `${plain(this.index.title)} – seeact-offline`;
      this.#list();
      return;
    }
    this.place.setAttribute("aria-busy", "true");
    try {
      const episode = await fetchJson(`episode/${key}.json`);
      if (this.key === key) this.#episode(episode);
    } catch (error) {
      if (this.key === key) replace(this.place, h("main", { class: "wrong", role: "alert" }, h("h1", {}, "This cannot be shown"), h("p", {}, error.message)));
    } finally {
      if (this.key === key) this.place.setAttribute("aria-busy", "false");
    }
  }

  rows() {
    const { asked } = this;
    const q = (asked.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    return this.episodes.filter((one) => {
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

  /** Clears the search, else the filters. */
  #clear() {
    for (const name of this.asked.get("q") ? ["q"] : Object.keys(FILTERS)) this.asked.delete(name);
    history.replaceState(null, "", this.href());
    this.#list();
  }

  // --- the list ---

  #list() {
    const { asked } = this;
    const held = Object.keys(FILTERS).map((name) => [name, [...new Set(this.index.episodes.flatMap((one) => this.values(one)[name]))].sort(collator.compare)]);
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
    replace(this.place, h(
        "main",
        { class: "episodes" },
        h("h1", { class: "unseen" }, "Tasks of ", this.index.folders.map((name) => shortName(name, 80)).join(", ")),
        (this.index.problems ?? []).map((text) => h("p", { class: "problem" }, text)),
        this.index.runs.filter(Boolean).map(live),
        h("div", { class: "asked" }, fields, search),
        this.body,
      ));
    this.#rows();
    const step = (by) => move(by, this.body.querySelector(".tasks"));
    bind([
      { key: "j", help: "next task", act: () => step(1) },
      { key: "k", help: "task before", act: () => step(-1) },
      { key: "Enter", help: "open the task", act: () => step(0) },
      { key: "/", help: "search", act: () => (search.focus(), search.select()) },
      { key: "?", help: "this help", act: help },
    ], { about: [] });
  }

  #rows() {
    const shown = this.rows();
    const n = this.index.episodes.length;
    const has = { end: shown.some((one) => one.end), cost: shown.some((one) => one.cost_usd !== null) };
    const many = Object.fromEntries(["folder", "agent"].map((name) => [name, new Set(this.index.episodes.map((one) => one[name])).size > 1]));
    const row = (one) =>
      h(
        "tr",
        { "data-key": one.key },
        h("th", { scope: "row", class: "task" }, h("a", { href: this.href(one.key) }, quoted(one.task || one.id, 240)), one.constructed && one.constructed !== "none" && [" ", h("span", { class: "tag" }, words(one.constructed))]),
        this.judges.map((by) => h("td", { class: "number" }, marks(one.verdicts.filter((verdict) => verdict.by === by)))),
        has.end && h("td", {}, words(one.end)),
        h("td", { class: "number" }, one.steps),
        has.cost && h("td", { class: "number" }, money(one.cost_usd)),
        h("td", {}, quoted(one.website, 60)),
        many.agent && h("td", {}, named(one.agent, 60)),
        many.folder && h("td", {}, named(this.index.folders[one.folder], 60)),
      );
    const judges = this.judges.map((by) => [this.labels.has(by) && h("span", { class: "tag" }, "label"), " ", quoted(by, 60)]);
    const titles = ["Task", ...judges, has.end && "End", "Steps", has.cost && "Cost, USD", "Website", many.agent && "Agent", many.folder && "Folder"].filter(Boolean);
    replace(
      this.body,
      this.judges.length > 0 && this.#judges(shown),
      h("p", { class: "faint", role: "status" }, `${shown.length} of ${counted(n, "task")}`),
      scroller("Tasks", h("table", { class: "figures" }, h("thead", {}, h("tr", {}, titles.map((title) => h("th", { scope: "col" }, title)))), h("tbody", { class: "tasks" }, shown.map(row)))),
      !shown.length && nothing(h("p", { class: "empty" }), "task", this.asked.get("q"), () => this.#clear()),
    );
  }

  /** Counts of each judge's verdicts on these tasks, and how many equal the label. */
  #judges(shown) {
    const rows = this.judges.map((by) => {
      const own = shown.flatMap((one) => one.verdicts.filter((verdict) => verdict.by === by).map((verdict) => ({ success: verdict.success, labels: values(one.verdicts.filter((other) => other.label)) })));
      const compared = this.labels.has(by) ? [] : own.filter(({ success, labels }) => success !== null && labels.size === 1);
      const equal = compared.filter(({ success, labels }) => labels.has(success)).length;
      const counts = [true, false, null].map((wanted) => own.filter(({ success }) => success === wanted).length);
      return h(
        "tr",
        {},
        h("th", { scope: "row" }, this.labels.has(by) && h("span", { class: "tag" }, "label"), " ", quoted(by, 80)),
        counts.map((n) => h("td", { class: "number" }, n)),
        this.labels.size > 0 && h("td", { class: "number" }, compared.length ? [h("strong", {}, `${percent(equal / compared.length)} %`), h("span", { class: "interval" }, ` ${equal} of ${compared.length}`)] : "–"),
      );
    });
    const titles = ["Verdicts", "Success", "No success", "No verdict", this.labels.size > 0 && "As the label"].filter(Boolean);
    return scroller("Verdicts by judge", h("table", { class: "figures judges" }, h("thead", {}, h("tr", {}, titles.map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, rows)));
  }

  // --- one task ---

  /** The form of a person's verdict, which the server keeps beside the run. */
  #judge(episode) {
    const own = episode.verdicts.find((one) => one.origin === "person" && one.by === episode.annotator);
    const note = h("input", { type: "text", maxlength: "2000", placeholder: "Reason (may stay empty)", "aria-label": "Reason", value: own?.detail ?? "" });
    const status = h("span", { role: "status", class: "faint" });
    const judge = async (success) => {
      try {
        const { verdicts } = await save(`verdict/${episode.key}`, { success, note: success === null ? "" : note.value });
        Object.assign(this.index.episodes.find((one) => one.key === episode.key), { verdicts });
        this.#read();
        this.#episode({ ...episode, verdicts: [...verdicts.filter((one) => one.origin === "person"), ...episode.verdicts.filter((one) => one.origin !== "person")] });
        this.place.querySelector(".judge [role=status]").textContent = "Saved.";
      } catch (error) {
        status.textContent = error.message;
      }
    };
    const button = (text, success) => h("button", { type: "button", "aria-pressed": String(own !== undefined && own.success === success), on: { click: () => judge(success) } }, text);
    return h("p", { class: "judge asked" }, h("span", {}, "Was it done? Verdict of ", quoted(episode.annotator, 120)), button("Success", true), button("No success", false), own && button("Remove", null), note, status);
  }

  #episode(episode) {
    const keys = this.rows().map((one) => one.key);
    const at = keys.indexOf(episode.key);
    const by = (step) => keys[at + step] && at >= 0 ? this.href(keys[at + step]) : null;
    const move = (step) => by(step) && (location.hash = by(step));
    const link = (step, text) => (by(step) ? h("a", { class: "button", href: by(step) }, text) : h("span", { class: "button off", "aria-hidden": "true" }, text));
    const facts = [
      episode.end && `End: ${words(episode.end)}`,
      episode.reached && !episode.verdicts[0]?.success && "Ever reached: yes",
      episode.helped > 0 && `Recorded acts in place of its own: ${episode.helped}`,
      episode.calls > 0 && counted(episode.calls, "call"),
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
        facts.some(Boolean) && h("p", { class: "outcome" }, facts.filter(Boolean).map((text) => h("span", {}, text))),
        episode.detail && h("p", { class: "problem" }, quoted(episode.detail, 1000)),
        episode.problems.map((text) => h("p", { class: "problem" }, quoted(text, 1000))),
        episode.answer !== null && h("section", { class: "answer", "aria-label": "Answer" }, h("h2", {}, "Answer"), long(episode.answer, { label: "answer" })),
        h("section", { class: "verdicts", "aria-label": "Verdicts" }, h("h2", {}, "Verdicts"), episode.verdicts.length ? h("ul", {}, episode.verdicts.map((one) => verdict(one, episode.end))) : h("p", { class: "faint" }, "no verdict"), episode.annotator !== null && this.#judge(episode)),
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

/** The success rate of a run of `browse`, with who acted where. */
function live({ name, success, n, ci95, agent, model, split }) {
  const facts = [agent, model, split].filter(Boolean);
  return h(
    "p",
    { class: "card live" },
    h("strong", {}, success === null ? "No verdicts yet" : `${percent(success)} % success`),
    ci95 && h("span", { class: "interval" }, ` ${percent(ci95[0])} to ${percent(ci95[1])}, ${counted(n, "task")}`),
    " · ", facts.map((text) => [quoted(text, 120), " · "]), named(name, 60),
  );
}

const toned = (success) => (success === null ? "faint" : success ? "yes" : "no");

/** The verdicts of one judge on one task: in words, or as marks where it was asked again. */
function marks(verdicts) {
  if (!verdicts.length) return h("span", { class: "faint" }, "·");
  return verdicts.map(({ success, detail, outcome }) => {
    const text = verdicts.length > 1 ? null : outcome ? words(outcome) : said(success);
    return h("span", { class: toned(success), title: detail || words(outcome ?? "") || null }, MARKS.get(success), " ", text ?? h("span", { class: "unseen" }, said(success)));
  });
}

/** A verdict with its reason and the judge's reply. */
function verdict(one, end) {
  const facts = [
    one.model,
    one.k && `k ${one.k}`,
    one.repeat > 1 && `repeat ${one.repeat}`,
    one.n_pictures > 0 && counted(one.n_pictures, "picture"),
    one.calls > 0 && counted(one.calls, "call"),
    one.prompt_tokens > 0 && `${counted(one.prompt_tokens, "token")} in`,
    one.completion_tokens > 0 && `${counted(one.completion_tokens, "token")} out`,
    one.cost_usd !== null && one.cost_usd !== undefined && `${money(one.cost_usd)} USD`,
  ].filter(Boolean);
  return h(
    "li",
    { class: "card" },
    h("p", {}, h("span", { class: toned(one.success) }, MARKS.get(one.success), " ", h("bdi", {}, verdictText(one))), one.label && [" ", h("span", { class: "tag" }, "label")], one.outcome && ` (${words(one.outcome)})`),
    one.detail && one.detail !== end && h("p", {}, quoted(one.detail, 300)),
    facts.length > 0 && h("p", { class: "faint" }, quoted(facts.join(" · "), 300)),
    one.reply && h("details", { open: true }, h("summary", {}, "Reply"), long(one.reply, { first: 600, label: `Reply of ${cut(one.by, 60)}` })),
  );
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

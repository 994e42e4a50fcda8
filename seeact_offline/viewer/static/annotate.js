/** Grounding by a person, one step at a time: which element a turn-1 text means, and how that element is operated. */

import { fetchJson } from "./data.js";
import { counted, h, long, percent, quoted, replace } from "./dom.js";
import { bind, help } from "./keys.js";
import { save } from "./notes.js";
import { PageView } from "./picture.js";
import { protocol } from "./protocol.js";

const OPERATIONS = [
  { op: "CLICK", key: "c", name: "Click" },
  { op: "TYPE", key: "t", name: "Type" },
  { op: "SELECT", key: "l", name: "Select" },
  { op: "", key: "o", name: "Not said" },
];
const LISTED = 60;
/** Seconds without a key or a movement after which nobody is taken to be at work. */
const AWAY = 60;
const NONE = Symbol("no element of the page");

/** Called by main.js. */
export async function annotate(index, place) {
  const page = new Annotator(index);
  replace(place, page.element);
  const asked = /^#\/annotate\/([0-9a-f]{16})$/.exec(location.hash)?.[1];
  if (index.keys.includes(asked)) await page.open(asked);
  else await page.next();
}

/** Time spent on a step: not while the page is hidden, and not after a minute without any movement. */
class Stopwatch {
  constructor() {
    this.restart();
    for (const event of ["pointermove", "pointerdown", "keydown", "wheel"]) {
      document.addEventListener(event, () => this.#tick(), { capture: true, passive: true });
    }
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#tick() : (this.seen = performance.now())));
  }

  restart() {
    this.spent = 0;
    this.seen = performance.now();
  }

  get seconds() {
    return this.spent + (document.hidden ? 0 : this.#since());
  }

  #since() {
    return Math.min((performance.now() - this.seen) / 1000, AWAY);
  }

  #tick() {
    this.spent += this.#since();
    this.seen = performance.now();
  }
}

class Annotator {
  constructor(index) {
    this.index = index;
    this.done = new Map(Object.entries(index.done));
    this.seconds = new Map(Object.entries(index.seconds));
    this.stopwatch = new Stopwatch();
    // from a key that saves or moves until the step that follows is shown; no other key is taken meanwhile
    this.busy = false;
    this.boxes = false;
    this.status = h("p", { class: "status", role: "status" });
    this.time = h("span", { class: "time" });
    this.progress = h("div", { class: "progress" });
    this.pageSide = h("div", { class: "page-side" });
    this.stepSide = h("div", { class: "step-side" });
    const panel = [this.progress, this.stepSide, this.status, index.second && this.#agreement()];
    this.element = h("main", { class: "annotate" }, this.pageSide, h("section", { class: "panel", "aria-label": "Meaning of the text" }, panel));
    bind(this.#keys(), { busy: () => this.busy, title: "How to judge, and keys", before: protocol(), about: [] });
    setInterval(() => this.#showTime(), 1000);
  }

  // --- from step to step ---

  /** Opens the first step after this one that nobody judged; then those that were skipped; else shows the end. */
  async next() {
    const { keys } = this.index;
    const after = [...keys.slice(keys.indexOf(this.key) + 1), ...keys.slice(0, keys.indexOf(this.key) + 1)];
    const open = after.find((key) => !this.done.has(key)) ?? after.find((key) => this.done.get(key) === "skipped" && key !== this.key);
    if (open) await this.open(open);
    else this.#end();
  }

  async move(by) {
    const { keys } = this.index;
    const place = keys.indexOf(this.key) + by;
    if (place >= 0 && place < keys.length) await this.open(keys[place]);
  }

  async open(key) {
    this.key = key;
    this.step = null;
    this.busy = true;
    history.replaceState(null, "", `#/annotate/${key}`);
    let step;
    try {
      step = await fetchJson(`annotate/${key}.json`);
    } catch (error) {
      if (this.key === key) this.#failed(error.message);
      return;
    }
    // another step was asked for meanwhile
    if (this.key !== key) return;
    this.busy = false;
    this.step = step;
    this.elements = new Map(step.elements.map((one) => [one.id, one]));
    this.nest = [];
    const { answer } = step;
    this.chosen = answer ? (answer.element_id ?? NONE) : null;
    this.op = answer ? answer.op : step.plan.op || null;
    this.value = answer ? answer.value : step.plan.value;
    this.stopwatch.restart();
    this.#showPage();
    this.#showStep();
    this.#showProgress();
    this.#paint();
    if (typeof this.chosen === "string") this.view.focus(this.chosen);
    document.title = `${this.index.keys.indexOf(key) + 1} of ${this.index.n} – ${this.index.title}`;
  }

  /** A step that cannot be loaded: nothing is left of the one before, whose answer could be taken for its own. */
  #failed(why) {
    this.busy = false;
    replace(this.pageSide);
    replace(this.stepSide, h("h1", {}, "This step cannot be shown"));
    this.#showProgress();
    this.#say(why, true);
  }

  #end() {
    this.key = null;
    this.step = null;
    const { out, run, keys } = this.index;
    const skipped = keys.filter((key) => this.done.get(key) === "skipped");
    replace(this.pageSide);
    replace(
      this.stepSide,
      h("h1", {}, skipped.length ? "All steps but those skipped are judged" : "All steps are judged"),
      h("ol", {}, skipped.map((key) => this.#link(key))),
      h("p", {}, "The answers are in ", h("code", {}, out), ". They are scored by"),
      h("pre", { class: "command" }, `seeact-offline eval --grounding oracle --oracle-file ${out} --replay-turn1 ${run} --out DIR`),
      h("p", { class: "faint" }, "with the data set and split of that run. u takes the last answer back, k goes to the last step."),
    );
    this.#showProgress();
  }

  // --- choosing ---

  /** `id`: an element, or NONE. `nest`: the elements that lie on each other there. */
  choose(id, nest = this.nest) {
    if (!this.step) return;
    this.chosen = id;
    this.nest = nest;
    this.#paint();
    this.#showChoice();
  }

  /** The next candidate: of those that lie on each other where the page was clicked, else of the whole page, seen or not. */
  walk(by) {
    if (!this.step) return;
    const among = this.nest.length > 1 ? this.nest : [...this.elements.keys()];
    const place = among.indexOf(this.chosen);
    const next = among[place < 0 ? (by > 0 ? 0 : among.length - 1) : (place + by + among.length) % among.length];
    if (next === undefined) return;
    this.choose(next);
    if (among !== this.nest) this.view.focus(next);
  }

  /** `typing`: after its key, the value is typed. */
  #chooseOperation(op, typing) {
    if (!this.step) return;
    this.op = op;
    this.#showOperation();
    if (typing && takesValue(op)) this.valueField.focus();
  }

  // --- saving ---

  async save() {
    if (!this.step) return;
    const isNone = this.chosen === NONE;
    if (this.chosen === null) return this.#say("Click the element that the text means, or press 0 for none.", true);
    if (this.op === null && !isNone) return this.#say("Say which operation the text names: c, t, l, or o where it names none.", true);
    const answer = { element_id: isNone ? null : this.chosen, op: this.op ?? "", value: this.valueField.value, skip: false };
    await this.#send({ ...answer, seconds: this.stopwatch.seconds }, "Saved.");
  }

  async skip() {
    if (this.step) await this.#send({ skip: true }, "Skipped; it comes again at the end.");
  }

  async undo() {
    const saved = await this.#post("annotate/undo", {});
    if (!saved) return;
    if (saved.undone === null) return this.#say("There is nothing to take back.");
    this.seconds.delete(saved.undone);
    await this.open(saved.undone);
    this.#say("Taken back.");
  }

  /** Saves a note on the step and the text that are shown. */
  async #send(body, done) {
    const { key, turn1_sha256 } = this.step;
    const saved = await this.#post(`annotate/${key}`, { ...body, turn1_sha256 });
    if (!saved) return;
    if (saved.saved) this.seconds.set(key, body.seconds);
    else this.seconds.delete(key);
    this.#say(done);
    await this.next();
  }

  /** The server's answer; null where nothing was saved, which is then said. */
  async #post(name, body) {
    if (this.busy) return null;
    this.busy = true;
    this.#say("Saving …");
    try {
      const saved = await save(name, body);
      for (const [key, state] of Object.entries(saved.done)) {
        if (state === null) this.done.delete(key);
        else this.done.set(key, state);
      }
      return saved;
    } catch (error) {
      this.#say(error.message, true);
      return null;
    } finally {
      this.busy = false;
    }
  }

  #say(text, bad = false) {
    this.status.classList.toggle("bad", bad);
    replace(this.status, text);
  }

  // --- the page ---

  #showPage() {
    const { step } = this;
    const hovered = h("p", { class: "hovered" });
    const describe = (id) => replace(hovered, this.elements.has(id) ? named(this.elements.get(id)) : "Point at the page; click the element that the text means.");
    this.view = new PageView({ picture: step.picture, elements: step.elements, label: "The page" });
    this.view.onpick = (id, ids) => this.choose(id, ids);
    this.view.onhover = describe;
    describe(null);
    replace(this.pageSide, this.view.element, hovered);
  }

  #paint() {
    const kinds = new Map(this.boxes ? [...this.elements.keys()].map((id) => [id, "other"]) : []);
    const labels = new Map();
    const { other } = this.step;
    if (other?.element_id) {
      kinds.set(other.element_id, "offered");
      labels.set(other.element_id, other.annotator || "second");
    }
    if (typeof this.chosen === "string") {
      kinds.set(this.chosen, "choice");
      labels.set(this.chosen, "yours");
    }
    this.view.paint(kinds, { labels });
  }

  // --- the step ---

  #showStep() {
    const { step } = this;
    this.valueField = null;
    this.choicePlace = h("div", { class: "pick" });
    this.operationPlace = h("fieldset", { class: "operation" });
    const history = h("ol", {}, step.history.map((one) => h("li", {}, quoted(one))));
    replace(
      this.stepSide,
      h("p", { class: "site faint" }, [step.website, step.domain].filter(Boolean).join(" · ")),
      h("h1", { class: "task" }, quoted(step.task)),
      step.history.length > 0 && h("details", { class: "history" }, h("summary", {}, `${counted(step.history.length, "action")} before`), history),
      h("h2", {}, "The text to judge"),
      long(step.turn1, { first: 6000, label: "The text to judge" }),
      step.problems.map((problem) => h("p", { class: "problem" }, problem)),
      h("h2", {}, "It means"),
      this.choicePlace,
      this.#search(),
      this.operationPlace,
      step.other && this.#other(),
      h(
        "div",
        { class: "actions" },
        action("Save", "Enter", () => this.save(), "primary"),
        action("None of the page", "0", () => this.choose(NONE)),
        action("Skip", "s", () => this.skip()),
        action("Undo", "u", () => this.undo()),
        action("Help", "?", help),
      ),
    );
    this.#showChoice();
    this.#showOperation();
  }

  #showChoice() {
    const { chosen, nest } = this;
    const one = this.elements.get(chosen);
    const option = (id) => h("label", {}, h("input", { type: "radio", name: "nest", checked: id === chosen, on: { change: () => this.choose(id) } }), " ", named(this.elements.get(id)));
    redrawn(
      this.choicePlace,
      chosen === null && h("p", { class: "faint" }, "nothing chosen yet"),
      chosen === NONE && h("p", {}, h("strong", {}, "no element of the page")),
      one && h("p", {}, named(one)),
      one && !one.box && h("p", { class: "faint" }, "It has no place in the picture."),
      nest.length > 1 && nest.includes(chosen) && h("fieldset", { class: "nest" }, h("legend", {}, "Under the click, innermost first (n, p)"), nest.map(option)),
    );
  }

  #showOperation() {
    const value = this.valueField?.value ?? this.value ?? "";
    this.valueField = h("input", { type: "text", id: "value", maxlength: 10000, value, spellcheck: "false", disabled: !takesValue(this.op) });
    const option = ({ op, key, name }) =>
      h("label", {}, h("input", { type: "radio", name: "op", checked: this.op === op, on: { change: () => this.#chooseOperation(op) } }), ` ${name} `, h("kbd", {}, key));
    redrawn(
      this.operationPlace,
      h("legend", {}, this.step.plan.op ? "Operation, as read from the text" : "Operation that the text names"),
      OPERATIONS.map(option),
      h("label", { for: "value" }, "Value"),
      this.valueField,
    );
  }

  /** A search for elements by their words. */
  #search() {
    const found = h("ul", { class: "found", "aria-label": "Elements found" });
    const choose = (id) => (this.choose(id, []), this.view.focus(id));
    const item = (one) =>
      h("li", {}, h("button", { type: "button", class: "quiet", on: { click: () => choose(one.id), focus: () => this.view.hover(one.id), blur: () => this.view.hover(null) } }, named(one)));
    const search = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = (one) => words.every((word) => `${one.text} ${one.path}`.toLowerCase().includes(word));
      const hits = words.length ? [...this.elements.values()].filter(fits) : [];
      replace(found, hits.slice(0, LISTED).map(item), hits.length > LISTED && h("li", { class: "faint" }, `and ${hits.length - LISTED} more`));
    };
    const field = h("input", { type: "search", id: "find", placeholder: "words, tag or place", spellcheck: "false", on: { input: search } });
    const summary = h("summary", {}, "Find an element by its words, also one that the picture does not show");
    return h("details", { class: "find" }, summary, h("label", { for: "find" }, "Find"), field, found);
  }

  /** The second annotator's answer, where this one has answered otherwise. */
  #other() {
    const { other } = this.step;
    const one = this.elements.get(other.element_id);
    const element = one ? named(one) : other.element_id ? quoted(other.element_id) : "no element of the page";
    return h(
      "div",
      { class: "other" },
      h("h2", {}, other.annotator ? quoted(other.annotator) : "The second annotator", " says"),
      h("p", {}, element, ` · ${other.op || "no operation"} `, quoted(other.value)),
      one?.box && h("button", { type: "button", class: "quiet", on: { click: () => this.view.focus(one.id) } }, "Show it on the page"),
    );
  }

  // --- progress ---

  get judged() {
    return [...this.done.values()].filter((state) => state !== "skipped").length;
  }

  #showProgress() {
    const { n, annotator, keys } = this.index;
    const skipped = this.done.size - this.judged;
    const step = this.key && ` · step ${keys.indexOf(this.key) + 1}: ${this.done.get(this.key) ?? "open"}`;
    replace(
      this.progress,
      h("progress", { max: n, value: this.judged, "aria-label": "Steps judged" }),
      h("p", {}, `${this.judged} of ${n} judged`, skipped > 0 && `, ${skipped} skipped`, annotator && [" by ", quoted(annotator)], step),
      h("p", { class: "faint" }, this.time),
    );
    this.#showTime();
  }

  #showTime() {
    const known = [...this.seconds.values()].sort((a, b) => a - b);
    const middle = known[Math.floor(known.length / 2)];
    const left = this.index.n - this.judged;
    const parts = [this.step && `this step ${clock(this.stopwatch.seconds)}`];
    if (known.length) parts.push(`usually ${clock(middle)}`, left > 0 && `about ${clock(middle * left)} left`);
    replace(this.time, parts.filter(Boolean).join(" · "));
  }

  // --- agreement ---

  #agreement() {
    const shown = h("div", {});
    const load = () => fetchJson("agreement.json").then((found) => replace(shown, this.#figures(found)), (error) => replace(shown, error.message));
    const details = h("details", { class: "agreement", on: { toggle: () => details.open && load() } }, h("summary", {}, "Agreement with the second file"), shown);
    return details;
  }

  #figures(found) {
    if (!found.n_both) return h("p", {}, "No step has been judged by both yet.");
    const rows = { element: "Element", found: "Whether there is one", operation: "Operation" };
    const heads = ["", "agree, %", "kappa", "95 % interval"].map((one) => h("th", { scope: "col" }, one));
    const row = ([name, title]) => h("tr", {}, h("th", { scope: "row" }, title), figures(found[name]).map((one) => h("td", {}, one)));
    return [
      h("p", {}, `${found.n_both} steps of ${found.n_tasks} tasks were judged by both.`),
      h("table", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, Object.entries(rows).map(row))),
      h("p", { class: "faint" }, "Note these figures before you settle anything: they are about judgements made alone."),
      found.disagreements.length > 0 && h("h3", {}, `${found.disagreements.length} to settle`),
      h("ol", { class: "disagreements" }, found.disagreements.map((key) => this.#link(key))),
    ];
  }

  #link(key) {
    const { tasks, keys } = this.index;
    const place = keys.indexOf(key);
    const title = [`step ${place + 1}: `, quoted(tasks.texts[tasks.row[place]], 80)];
    return h("li", {}, h("button", { type: "button", class: "quiet", on: { click: () => this.open(key) } }, title));
  }

  #keys() {
    return [
      { key: "Enter", help: "save, and go to the next step", once: true, within: "#value", act: () => this.save() },
      { key: "0", help: "the text means no element of the page", once: true, act: () => this.choose(NONE) },
      { key: "n", help: "the next candidate: outwards from where you clicked, else in the order of the page", act: () => this.walk(1) },
      { key: "p", help: "the candidate before", act: () => this.walk(-1) },
      ...OPERATIONS.map(({ op, key, name }) => ({ key, help: `operation: ${name.toLowerCase()}`, once: true, act: () => this.#chooseOperation(op, true) })),
      { key: "s", help: "skip; the step comes again", once: true, act: () => this.skip() },
      { key: "u", help: "take the last answer back", once: true, act: () => this.undo() },
      { key: "j", help: "the next step, without saving", once: true, act: () => this.move(1) },
      { key: "k", help: "the step before", once: true, act: () => (this.key ? this.move(-1) : this.open(this.index.keys.at(-1))) },
      { key: "b", help: "all boxes, or only the chosen one", once: true, act: () => this.#toggleBoxes() },
      { key: "f", help: "the page as wide as the view", once: true, act: () => this.view?.fit() },
      { key: "?", help: "this help", once: true, act: help },
    ];
  }

  #toggleBoxes() {
    this.boxes = !this.boxes;
    if (this.step) this.#paint();
  }
}

const takesValue = (op) => op === "TYPE" || op === "SELECT";

/** Replaces a node's children; a choice that had the focus keeps it. */
function redrawn(node, ...children) {
  const focused = node.contains(document.activeElement);
  replace(node, ...children);
  if (focused) node.querySelector("input:checked")?.focus();
}

const named = ({ tag, text, path }) => [h("code", {}, tag), " ", quoted(readable(text), 160), " ", h("span", { class: "path faint" }, path)];

/** A description without the markers that number its nodes. */
const readable = (text) => text.replace(/<\/?\w+(?: id=\d+)?|>/g, " ").replace(/\s+/g, " ").trim() || text;

const action = (name, key, click, kind = null) => h("button", { type: "button", class: kind, on: { click } }, name, " ", h("kbd", {}, key));

const figures = ({ agreement, kappa, ci95 }) => [percent(agreement), kappa === null ? "–" : kappa.toFixed(2), ci95 ? `${ci95[0].toFixed(2)} to ${ci95[1].toFixed(2)}` : "–"];

function clock(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

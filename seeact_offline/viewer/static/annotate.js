/** Grounding by a person: one step at a time, which element its turn-1 text means, and how that is operated. */

import { h, long, percent, quoted, replace } from "./dom.js";
import { bind } from "./keys.js";
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

/** What main.js calls. `fetchJson(name)` raises an Error whose message can be shown. */
export async function annotate({ index, place, token, fetchJson }) {
  const page = new Annotator(index, token, fetchJson);
  replace(place, page.element);
  const asked = /^#\/annotate\/([0-9a-f]{16})$/.exec(location.hash)?.[1];
  if (index.keys.includes(asked)) await page.open(asked);
  else await page.next();
}

/** Time spent on a step: not while the page is hidden, and not after a minute without any movement. */
class Watch {
  constructor() {
    this.spent = 0;
    this.seen = performance.now();
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
  constructor(index, token, fetchJson) {
    Object.assign(this, { index, token, fetchJson });
    this.done = new Map(Object.entries(index.done));
    this.seconds = new Map(Object.entries(index.seconds));
    this.watch = new Watch();
    // from a key that saves or moves until the step that follows is shown; no other key is taken meanwhile
    this.busy = false;
    this.boxes = false;
    this.status = h("p", { class: "status", role: "status" });
    this.progress = h("div", { class: "progress" });
    this.pageSide = h("div", { class: "page-side" });
    this.stepSide = h("div", { class: "step-side" });
    this.element = h(
      "main",
      { class: "annotate" },
      this.pageSide,
      h("section", { class: "panel", "aria-label": "What the text means" }, this.progress, this.stepSide, this.status, this.#agreement()),
    );
    this.#listen();
    setInterval(() => this.#showTime(), 1000);
  }

  // --- going from step to step ---

  /** The first step after this one that nobody judged; then those that were skipped; else the end. */
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
      step = await this.fetchJson(`annotate/${key}.json`);
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
    this.picked = answer ? (answer.element_id ?? NONE) : null;
    this.op = answer ? answer.op : step.plan.op || null;
    this.value = answer ? answer.value : step.plan.value;
    this.watch.restart();
    this.#showPage();
    this.#showStep();
    this.#showProgress();
    this.#paint();
    if (typeof this.picked === "string") this.view.focus(this.picked);
    document.title = `${this.index.keys.indexOf(key) + 1} of ${this.index.n} – ${this.index.title}`;
  }

  /** A step that cannot be had: nothing is left of the one before, whose answer could be taken for its own. */
  #failed(why) {
    this.busy = false;
    replace(this.pageSide);
    replace(this.stepSide);
    this.#showProgress();
    this.#say(why, true);
  }

  #end() {
    this.key = null;
    this.step = null;
    const { out, run } = this.index;
    const skipped = this.index.keys.filter((key) => this.done.get(key) === "skipped");
    replace(this.pageSide);
    replace(
      this.stepSide,
      h("h2", {}, skipped.length ? "All steps but those skipped are judged" : "All steps are judged"),
      h("ol", {}, skipped.map((key) => h("li", {}, h("button", { type: "button", class: "quiet", on: { click: () => this.open(key) } }, this.#title(key))))),
      h("p", {}, "The answers are in ", h("code", {}, out), ". They are scored by"),
      h("pre", { class: "command" }, `seeact-offline eval --grounding oracle --oracle-file ${out} --replay-turn1 ${run} --out DIR`),
      h("p", { class: "faint" }, "with the data set and split of that run. u takes the last answer back, k goes to the last step."),
    );
    this.#showProgress();
  }

  // --- picking ---

  /** `id`: an element, or NONE. */
  pick(id, nest = this.nest) {
    if (!this.step) return;
    this.picked = id;
    this.nest = nest;
    this.#paint();
    this.#showPick();
  }

  /** The next candidate: of those that lie on each other where the page was clicked, else of the whole page, seen or not. */
  walk(by) {
    if (!this.step) return;
    const among = this.nest.length > 1 ? this.nest : [...this.elements.keys()];
    const place = among.indexOf(this.picked);
    const next = among[place < 0 ? (by > 0 ? 0 : among.length - 1) : (place + by + among.length) % among.length];
    if (next === undefined) return;
    this.pick(next);
    if (among !== this.nest) this.view.focus(next);
  }

  choose(op) {
    if (!this.step) return;
    this.op = op;
    this.#showOperation();
  }

  /** By its key, after which the value is typed. */
  #chooseAndType(op) {
    this.choose(op);
    if (op === "TYPE" || op === "SELECT") this.valueField?.focus();
  }

  // --- saving ---

  async save() {
    if (!this.step) return;
    if (this.picked === null) {
      this.#say("Click the element that the text means, or press 0 for none.", true);
      return;
    }
    if (this.op === null && this.picked !== NONE) {
      this.#say("Say which operation the text names: c, t, l, or o where it names none.", true);
      return;
    }
    const element_id = this.picked === NONE ? null : this.picked;
    const value = this.valueField?.value ?? "";
    await this.#send({ element_id, op: this.op ?? "", value, skip: false, seconds: this.watch.seconds }, "Saved.");
  }

  async skip() {
    if (this.step) await this.#send({ skip: true }, "Skipped; it comes again at the end.");
  }

  async undo() {
    const answer = await this.#post("annotate/undo", {});
    if (!answer) return;
    this.#take(answer.done);
    if (answer.undone === null) {
      this.#say("There is nothing to take back.");
      return;
    }
    this.seconds.delete(answer.undone);
    await this.open(answer.undone);
    this.#say("Taken back.");
  }

  /** Says something of the step that is shown, and of no other. */
  async #send(body, said) {
    const { key, turn1_sha256 } = this.step;
    const answer = await this.#post(`annotate/${key}`, { ...body, turn1_sha256 });
    if (!answer) return;
    this.#take(answer.done);
    if (answer.saved) this.seconds.set(key, body.seconds);
    else this.seconds.delete(key);
    this.#say(said);
    await this.next();
  }

  #take(done) {
    for (const [key, state] of Object.entries(done)) {
      if (state === null) this.done.delete(key);
      else this.done.set(key, state);
    }
  }

  /** The answer, which comes only once it is on disk; null where nothing was saved, which is then said. */
  async #post(name, body) {
    if (this.busy) return null;
    if (!this.token) {
      this.#say("Nothing can be saved: open the link that was printed when the server was started.", true);
      return null;
    }
    this.busy = true;
    this.#say("Saving …");
    try {
      const headers = { "Content-Type": "application/json", "X-Seeact-Token": this.token };
      const answer = await fetch(name, { method: "POST", headers, body: JSON.stringify(body) });
      const told = await answer.json();
      if (answer.ok) return told;
      this.#say(`Not saved: ${told.error ?? answer.status}`, true);
    } catch {
      this.#say("Not saved: the server does not answer. Is it still running?", true);
    } finally {
      this.busy = false;
    }
    return null;
  }

  #say(text, bad = false) {
    this.status.classList.toggle("bad", bad);
    replace(this.status, text);
  }

  // --- what is shown ---

  #showPage() {
    const { step } = this;
    this.view = new PageView({ picture: step.picture, elements: step.elements, label: "The page" });
    this.view.onpick = (id, ids) => this.pick(id, ids);
    this.view.onhover = (id) => this.#describe(id);
    this.hovered = h("p", { class: "hovered" });
    this.#describe(null);
    replace(this.pageSide, this.view.element, this.hovered);
  }

  #describe(id) {
    const one = this.elements.get(id);
    replace(this.hovered, one ? named(one) : "Point at the page; click the element that the text means.");
  }

  #paint() {
    const kinds = new Map(this.boxes ? [...this.elements.keys()].map((id) => [id, "other"]) : []);
    const labels = new Map();
    const { other } = this.step;
    if (other?.element_id) {
      kinds.set(other.element_id, "offered");
      labels.set(other.element_id, other.annotator || "second");
    }
    if (typeof this.picked === "string") {
      kinds.set(this.picked, "choice");
      labels.set(this.picked, "yours");
    }
    this.view.paint(kinds, { labels });
  }

  #showStep() {
    const { step } = this;
    this.pickPlace = h("div", { class: "pick" });
    this.operationPlace = h("fieldset", { class: "operation" });
    this.found = h("ul", { class: "found", "aria-label": "Elements found" });
    this.search = h("input", { type: "search", id: "find", placeholder: "words, tag or place", spellcheck: "false", on: { input: () => this.#find() } });
    replace(
      this.stepSide,
      h("p", { class: "site faint" }, [step.website, step.domain].filter(Boolean).join(" · ")),
      h("h2", { class: "task" }, quoted(step.task)),
      step.history.length > 0 &&
        h("details", { class: "history" }, h("summary", {}, `${step.history.length} actions before`), h("ol", {}, step.history.map((one) => h("li", {}, quoted(one))))),
      h("h3", {}, "The text to judge"),
      long(step.turn1, { first: 6000, label: "The text to judge" }),
      step.problems.map((problem) => h("p", { class: "problem" }, problem)),
      h("h3", {}, "It means"),
      this.pickPlace,
      h(
        "details",
        { class: "find" },
        h("summary", {}, "Find an element by its words, also what the picture does not show"),
        h("label", { for: "find" }, "Find"),
        this.search,
        this.found,
      ),
      this.operationPlace,
      step.other && this.#other(),
      h(
        "div",
        { class: "actions" },
        action("Save", "Enter", () => this.save(), "primary"),
        action("None of the page", "0", () => this.pick(NONE)),
        action("Skip", "s", () => this.skip()),
        action("Undo", "u", () => this.undo()),
        action("Help", "?", () => this.help()),
      ),
    );
    this.#showPick();
    this.#showOperation();
    this.#find();
  }

  #showPick() {
    const { picked } = this;
    const one = this.elements.get(picked);
    const nested = this.nest.length > 1 && this.nest.includes(picked);
    redrawn(
      this.pickPlace,
      picked === null && h("p", { class: "faint" }, "nothing chosen yet"),
      picked === NONE && h("p", {}, h("strong", {}, "no element of the page")),
      one && h("p", {}, named(one)),
      one && !one.box && h("p", { class: "faint" }, "It has no place in the picture."),
      nested &&
        h(
          "fieldset",
          { class: "nest" },
          h("legend", {}, "Under the click, innermost first (n, p)"),
          this.nest.map((id) =>
            h("label", {}, h("input", { type: "radio", name: "nest", checked: id === picked, on: { change: () => this.pick(id) } }), " ", named(this.elements.get(id))),
          ),
        ),
    );
  }

  #showOperation() {
    const { plan } = this.step;
    const value = this.valueField?.isConnected ? this.valueField.value : this.value;
    const takesValue = this.op === "TYPE" || this.op === "SELECT";
    this.valueField = h("input", { type: "text", id: "value", maxlength: 10000, value: value ?? "", spellcheck: "false", disabled: !takesValue });
    redrawn(
      this.operationPlace,
      h("legend", {}, plan.op ? "Operation, as read from the text" : "Operation that the text names"),
      OPERATIONS.map(({ op, key, name }) =>
        h("label", {}, h("input", { type: "radio", name: "op", checked: this.op === op, on: { change: () => this.choose(op) } }), ` ${name} `, h("kbd", {}, key)),
      ),
      h("label", { for: "value" }, "Value"),
      this.valueField,
    );
  }

  #find() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = words.length ? [...this.elements.values()].filter((one) => words.every((word) => `${one.text} ${one.path}`.toLowerCase().includes(word))) : [];
    const item = (one) =>
      h(
        "li",
        {},
        h("button", { type: "button", class: "quiet", on: { click: () => this.#pickFound(one.id), focus: () => this.view.hover(one.id), blur: () => this.view.hover(null) } }, named(one)),
      );
    replace(this.found, hits.slice(0, LISTED).map(item), hits.length > LISTED && h("li", { class: "faint" }, `and ${hits.length - LISTED} more`));
  }

  #pickFound(id) {
    this.pick(id, []);
    this.view.focus(id);
  }

  /** The second annotator's answer, where this one has answered otherwise. */
  #other() {
    const { other } = this.step;
    const one = this.elements.get(other.element_id);
    return h(
      "div",
      { class: "other" },
      h("h3", {}, other.annotator ? quoted(other.annotator) : "The second annotator", " says"),
      h("p", {}, one ? named(one) : other.element_id ? quoted(other.element_id) : "no element of the page", ` · ${other.op || "no operation"} `, quoted(other.value)),
      one?.box && h("button", { type: "button", class: "quiet", on: { click: () => this.view.focus(one.id) } }, "Show it on the page"),
    );
  }

  #showProgress() {
    const states = [...this.done.values()];
    const skipped = states.filter((one) => one === "skipped").length;
    const judged = states.length - skipped;
    const { n, annotator } = this.index;
    this.time = h("span", { class: "time" });
    replace(
      this.progress,
      h("progress", { max: n, value: judged, "aria-label": "Steps judged" }),
      h("p", {}, `${judged} of ${n} judged`, skipped > 0 && `, ${skipped} skipped`, annotator && [" by ", quoted(annotator)], this.key && ` · step ${this.index.keys.indexOf(this.key) + 1}: ${this.done.get(this.key) ?? "open"}`),
      h("p", { class: "faint" }, this.time),
    );
    this.#showTime();
  }

  #showTime() {
    if (!this.time) return;
    const known = [...this.seconds.values()].sort((a, b) => a - b);
    const middle = known[Math.floor(known.length / 2)];
    const left = this.index.n - [...this.done.values()].filter((one) => one !== "skipped").length;
    const parts = [this.step && `this step ${clock(this.watch.seconds)}`];
    if (known.length) parts.push(`usually ${clock(middle)}`, left > 0 && `about ${clock(middle * left)} left`);
    replace(this.time, parts.filter(Boolean).join(" · "));
  }

  // --- agreement ---

  #agreement() {
    if (!this.index.second) return null;
    const shown = h("div", {});
    const load = async () => {
      try {
        replace(shown, this.#figures(await this.fetchJson("agreement.json")));
      } catch (error) {
        replace(shown, error.message);
      }
    };
    const details = h("details", { class: "agreement", on: { toggle: () => details.open && load() } }, h("summary", {}, "Agreement with the second file"), shown);
    return details;
  }

  #figures(found) {
    if (!found.n_both) return h("p", {}, "No step has been judged by both yet.");
    const rows = { element: "Which element", found: "Whether there is one", operation: "Operation" };
    return [
      h("p", {}, `${found.n_both} steps of ${found.n_tasks} tasks were judged by both.`),
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, ["", "agree, %", "kappa", "95 % interval"].map((one) => h("th", { scope: "col" }, one)))),
        h("tbody", {}, Object.entries(rows).map(([name, title]) => h("tr", {}, h("th", { scope: "row" }, title), figureCells(found[name])))),
      ),
      h("p", { class: "faint" }, "Note these figures before you settle anything: they are about judgements made alone."),
      found.disagreements.length > 0 && h("h3", {}, `${found.disagreements.length} to settle`),
      h("ol", { class: "disagreements" }, found.disagreements.map((key) => h("li", {}, h("button", { type: "button", class: "quiet", on: { click: () => this.open(key) } }, this.#title(key))))),
    ];
  }

  #title(key) {
    const { tasks, keys } = this.index;
    const place = keys.indexOf(key);
    return [`step ${place + 1}: `, quoted(tasks.texts[tasks.row[place]], 80)];
  }

  // --- keys and help ---

  #keys() {
    return [
      { key: "Enter", help: "save, and go on", act: () => this.save() },
      { key: "0", help: "the text means no element of the page", act: () => this.pick(NONE) },
      { key: "n", help: "the next candidate: outwards from where you clicked, else in the order of the page", act: () => this.walk(1) },
      { key: "p", help: "the one before", act: () => this.walk(-1) },
      ...OPERATIONS.map(({ op, key, name }) => ({ key, help: `operation: ${name.toLowerCase()}`, act: () => this.#chooseAndType(op) })),
      { key: "s", help: "skip; the step comes again", act: () => this.skip() },
      { key: "u", help: "take the last answer back", act: () => this.undo() },
      { key: "j", help: "the next step, without saving", act: () => this.move(1) },
      { key: "k", help: "the step before", act: () => (this.key ? this.move(-1) : this.open(this.index.keys.at(-1))) },
      { key: "b", help: "all boxes, or only the one chosen", act: () => this.#toggleBoxes() },
      { key: "f", help: "the page as wide as the view", act: () => this.view?.fit() },
      { key: "?", help: "this help", act: () => this.help() },
    ];
  }

  #toggleBoxes() {
    this.boxes = !this.boxes;
    if (this.step) this.#paint();
  }

  #listen() {
    this.keys = this.#keys();
    bind([]);
    // before the page's view, in which 0 has another meaning
    document.addEventListener("keydown", (event) => this.#key(event), { capture: true });
    document.querySelector(".help-button")?.addEventListener(
      "click",
      (event) => {
        event.stopImmediatePropagation();
        this.help();
      },
      { capture: true },
    );
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const { target, key } = event;
    const typing = target.matches?.("input:not([type=radio]), textarea, select");
    if (typing && key === "Escape") target.blur();
    if (typing && !(key === "Enter" && target.id === "value")) return;
    if (key === "Enter" && target.matches?.("button, summary, a")) return;
    const found = this.keys.find((one) => one.key === key);
    if (!found || event.repeat && !"np".includes(key)) return;
    event.preventDefault();
    event.stopPropagation();
    if (!this.busy) found.act();
  }

  help() {
    const close = () => dialog.close();
    const dialog = h(
      "dialog",
      { class: "help", "aria-label": "How to judge, and keys", on: { close: () => dialog.remove(), click: (event) => event.target === dialog && close() } },
      h(
        "div",
        {},
        protocol(),
        h("h2", {}, "Keys"),
        h("dl", { class: "keys" }, this.keys.map(({ key, help }) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, help)])),
        h("button", { type: "button", on: { click: close } }, "Close"),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
    // the button below has the focus, and would be scrolled to
    dialog.scrollTop = 0;
  }
}

/** Puts these children in place of a node's own; a choice that had the focus keeps it. */
function redrawn(node, ...children) {
  const focused = node.contains(document.activeElement);
  replace(node, ...children);
  if (focused) node.querySelector("input:checked")?.focus();
}

const named = ({ tag, text, path }) => [h("code", {}, tag), " ", quoted(readable(text), 160), " ", h("span", { class: "path faint" }, path)];

/** A description without the markers that number its nodes. */
const readable = (text) => text.replace(/<\/?\w+(?: id=\d+)?|>/g, " ").replace(/\s+/g, " ").trim() || text;

const action = (name, key, click, kind = null) => h("button", { type: "button", class: kind, on: { click } }, name, " ", h("kbd", {}, key));

const figureCells = ({ agreement, kappa, ci95 }) =>
  [percent(agreement), kappa === null ? "–" : kappa.toFixed(2), ci95 ? `${ci95[0].toFixed(2)} to ${ci95[1].toFixed(2)}` : "–"].map((one) => h("td", {}, one));

function clock(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** One step: the page with its boxes, the questions, the replies and the right answer. */

import { LETTERS } from "./compare.js";
import { loadAhead, loadIndex, loadStep, taskName } from "./data.js";
import { brief, described, examples, groupName, labelOf, notes, operation, showCommand, turnOf, usage } from "./conversation.js";
import { copier, count, counted, cut, h, keepingFocus, long, named, quoted, replace, unknown, words } from "./dom.js";
import { elementTable } from "./elements.js";
import { Filmstrip } from "./filmstrip.js";
import { byPerson, outcomeChip } from "./list.js";
import { save, token } from "./notes.js";
import { PageView } from "./picture.js";
import { replyDifference } from "./replies.js";
import { highlight, termsOf } from "./search.js";

/** Runs from which on one is shown at a time. */
const MANY = 4;
const KINDS = {
  target: "Target",
  choice: "Choice",
  offered: "Offered",
  other: "Other candidates",
};

export class StepView {
  constructor(app) {
    this.app = app;
    this.element = h("main", { class: "step-view" });
    this.others = false;
    this.tab = 0;
    this.film = new Filmstrip(app);
    new ResizeObserver(() => this.#measure()).observe(this.film.element);
  }

  shown() {
    scrollTo(0, 0);
  }

  hidden() {
    this.key = null;
  }

  /** Shows the step of the state; the same step again only changes the group. */
  async open(state) {
    if (this.key === state.step) {
      if (this.step) keepingFocus(this.element, () => this.#paint());
      return;
    }
    const began = performance.now();
    this.key = state.step;
    this.step = null;
    this.element.setAttribute("aria-busy", "true");
    let step;
    try {
      step = await loadStep(state.step);
    } catch (error) {
      if (this.key === state.step) replace(this.element, this.#bar(), h("h1", {}, "This step cannot be shown"), h("p", { class: "problem", role: "alert" }, error.message));
      return;
    } finally {
      this.element.setAttribute("aria-busy", "false");
    }
    // another step was asked for meanwhile
    if (this.key !== state.step) return;
    keepingFocus(this.element, () => this.#show(step));
    performance.measure("seeact:step", { start: began, end: performance.now() });
    this.#prepareNext();
  }

  keys() {
    return [
      { key: "j", help: "next step of the list", act: () => this.#go(1) },
      { key: "k", help: "step before", act: () => this.#go(-1) },
      { key: "f", help: "next step that some run gets wrong", act: () => this.#go(1, (row) => this.app.table.failed(row)) },
      { key: "d", help: "next step on which runs disagree", act: () => this.#go(1, (row) => this.app.table.disagrees(row)) },
      { key: "t", help: "show the target on the page", act: () => this.#look(this.step?.truth.target ?? this.step?.truth.positives[0]) },
      { key: "c", help: "show the choice on the page; again: the next run's", act: () => this.#nextChoice() },
      { key: "g", help: "next group of elements", act: () => this.#turnGroup(1) },
      { key: "G", help: "group before", act: () => this.#turnGroup(-1) },
      { key: "o", help: "show or hide all other candidates", act: () => this.#toggleOthers() },
      { key: "+", act: () => this.page?.zoom(1.25) },
      { key: "-", act: () => this.page?.zoom(0.8) },
      { key: "0", act: () => this.page?.fit() },
      { key: "/", help: "search the list", act: () => this.#toSearch() },
      { key: "Escape", name: "Esc", help: "back to the list", act: () => this.app.go({ step: null }) },
    ];
  }

  // --- moving ---

  #go(way, wanted = () => true) {
    const found = this.#neighbour(way, wanted);
    if (found) this.app.go({ step: found }, { replace: true });
  }

  /** The key of the nearest wanted step in that direction; null for none. */
  #neighbour(way, wanted = () => true) {
    const { table } = this.app;
    const rows = this.app.rows();
    let place = rows.indexOf(table.place.get(this.key) ?? -1);
    for (place += way; place >= 0 && place < rows.length; place += way) {
      if (wanted(rows[place])) return table.index.keys[rows[place]];
    }
    return null;
  }

  #prepareNext() {
    const next = this.#neighbour(1);
    if (next) loadAhead(next);
  }

  #toSearch() {
    this.app.go({ step: null });
    this.app.list.search.focus();
  }

  #look(id) {
    if (id === undefined || id === null || !this.page) return;
    if (!this.page.focus(id)) this.#say(`Element ${id} has no box on the page.`);
    else this.page.element.scrollIntoView({ block: "nearest" });
  }

  #nextChoice() {
    const picked = [...new Set(this.runs.map((one) => one.held?.predicted.element_id).filter((id) => id !== null && id !== undefined))];
    if (!picked.length) return this.#say("No run chose an element.");
    this.lookedAt = picked[(picked.indexOf(this.lookedAt) + 1) % picked.length];
    this.#look(this.lookedAt);
  }

  #turnGroup(way) {
    const names = ["", ...this.groups.keys()];
    const place = Math.max(0, names.indexOf(this.app.state.group));
    this.#setGroup(names[(place + way + names.length) % names.length]);
  }

  #setGroup(group) {
    this.app.go({ group }, { replace: true });
    const frame = this.groups.get(group)?.frame;
    if (frame && this.page) this.page.showFrame(frame);
  }

  #toggleOthers() {
    this.others = !this.others;
    keepingFocus(this.element, () => this.#paint());
  }

  #say(text) {
    replace(this.caption, text);
  }

  // --- building ---

  #show(step) {
    const { table, index } = this.app;
    this.step = step;
    this.lookedAt = null;
    this.elements = new Map(step.elements.map((one) => [one.id, one]));
    this.runs = table.runs.map((place, shown) => ({ place, letter: LETTERS[shown], run: index.runs[place], held: step.runs[place] ?? null }));
    this.many = this.runs.length > 1;
    this.groups = new Map(
      this.runs.flatMap(({ letter, held }) =>
        (held?.groups ?? []).map((group, place) => [`${letter}${place}`, { ...group, letter, frame: group.crop, name: groupName(group, this.many ? letter : "") }]),
      ),
    );
    this.name = step.task || taskName(step.annotation_id);
    document.title = `${cut(this.name, 60)}, step ${step.index + 1} – seeact-offline`;
    replace(
      this.element,
      this.#bar(),
      this.film.element,
      step.problems.map((text) => h("p", { class: "problem" }, text)),
      h("div", { class: "step-columns" }, this.#picture(step), h("div", { class: "details" }, this.#question(step), this.#tabs(), this.#answers(), this.#conversations(), replyDifference(this.#replies()), this.#elements(step))),
    );
    this.film.show(step.key);
    this.#paint();
    this.#showFound();
    this.#measure();
    const target = step.truth.target ?? step.truth.positives[0];
    this.page.focus(...new Set([target, ...this.#open.map((one) => one.held?.predicted.element_id)]));
    scrollTo(0, 0);
  }

  /** Ends the picture at the window's lower edge while the page is at its top. */
  #measure() {
    const columns = this.element.querySelector(".step-columns");
    if (columns) this.element.style.setProperty("--start", `${Math.round(columns.getBoundingClientRect().top + scrollY)}px`);
  }

  /** Opens the groups in which the list's search is found, and marks the words. */
  #showFound() {
    const { q, within } = this.app.state;
    const terms = within ? termsOf(q) : [];
    for (const [name, group] of terms.length ? this.groups : []) {
      const text = [...(within === "prompts" ? (group.prompts ?? []) : []), ...group.replies].join("\n").toLowerCase();
      const node = this.element.querySelector(`[data-group="${name}"]`);
      if (node && terms.some((term) => text.includes(term))) node.open = true;
    }
    highlight(this.element.querySelector(".conversations"), terms);
  }

  /** Shows the step's place in a list that has changed. */
  renewBar() {
    const old = this.step && this.element.querySelector(".step-bar");
    if (old) keepingFocus(this.element, () => old.replaceWith(this.#bar()));
  }

  #bar() {
    const { app } = this;
    const rows = app.rows();
    const place = rows.indexOf(app.table.place.get(this.key) ?? -1);
    const move = (text, way, name) => {
      const key = this.#neighbour(way);
      return key ? h("a", { class: "button", href: app.href({ step: key }), "aria-label": name, title: name }, text) : h("span", { class: "button off", "aria-hidden": "true" }, text);
    };
    return h(
      "nav",
      { class: "step-bar", "aria-label": "Steps" },
      h("a", { class: "button", href: app.href({ step: null }) }, "← All steps"),
      move("‹", -1, "Step before (k)"),
      h("span", { class: "place-in-list" }, place < 0 ? "not among those filtered" : `${count(place + 1)} of ${count(rows.length)}`),
      move("›", 1, "Next step (j)"),
    );
  }

  #picture(step) {
    this.page = new PageView({ picture: step.picture, elements: step.elements, label: "The page before the action" });
    this.page.onhover = (id) => this.#caption(id);
    this.page.onpick = (id) => this.#caption(id);
    this.caption = h("p", { class: "caption" });
    this.choice = h(
      "select",
      { "aria-label": "Group of elements shown on the page", on: { change: () => this.#setGroup(this.choice.value) } },
      h("option", { value: "" }, [...this.groups.values()].every((one) => one.window) ? "All turns" : "All groups"),
      [...this.groups].map(([value, group]) => h("option", { value }, group.name)),
    );
    this.legend = h("ul", { class: "legend", "aria-label": "Legend" });
    const jump = (text, act) => h("button", { type: "button", on: { click: act } }, text);
    const target = step.truth.target ?? step.truth.positives[0];
    this.page.tools.append(
      ...[
        target !== undefined && jump("Target", () => this.#look(target)),
        this.runs.some((one) => one.held?.predicted.element_id) && jump("Choice", () => this.#nextChoice()),
      ].filter(Boolean),
    );
    if (this.groups.size > 1) this.page.tools.append(this.choice);
    this.legend.hidden = !step.picture && !this.page.boxes.size;
    return h("section", { class: "picture", "aria-label": "Page" }, this.legend, this.page.element, this.caption);
  }

  #caption(id) {
    const one = this.elements.get(id);
    replace(this.caption, one ? [h("strong", {}, `#${cut(one.id, 30)} `), one.rank !== null && `rank ${one.rank} `, described(one, 200)] : "");
  }

  #paint() {
    const { group } = this.app.state;
    const chosen = this.groups.get(group);
    const owner = this.runs.findIndex((one) => one.letter === chosen?.letter);
    if (this.runs.length >= MANY && owner >= 0 && owner !== this.tab && group !== this.painted) {
      this.painted = group;
      return this.#turnTab(owner);
    }
    this.painted = group;
    const kinds = new Map();
    const labels = new Map();
    const add = (id, kind) => id !== null && id !== undefined && kinds.set(id, kinds.has(id) ? `${kinds.get(id)} ${kind}` : kind);
    const offered = chosen ? chosen.offered : [...new Set([...this.groups.values()].flatMap((one) => one.offered))];
    for (const id of offered) add(id, "offered");
    if (this.others) for (const id of this.elements.keys()) if (!kinds.has(id)) add(id, "other");
    for (const id of this.step.truth.positives) {
      add(id, "target");
      labels.set(`${id} target`, "target");
    }
    chosen?.offered.forEach((id, place) => labels.set(`${id} offered`, chosen.labels[place] ?? ""));
    const pickers = new Map();
    for (const { letter, held } of this.runs) {
      const id = chosen && chosen.letter === letter ? chosen.parsed?.element_id : held?.predicted.element_id;
      if (id !== null && id !== undefined) pickers.set(id, [...(pickers.get(id) ?? []), letter]);
    }
    for (const [id, letters] of pickers) {
      add(id, "choice");
      labels.set(`${id} choice`, this.many ? `choice of ${letters.join(", ")}` : "choice");
    }
    const points = this.runs.flatMap(({ letter, held }) =>
      held?.predicted.point ? [{ x: held.predicted.point[0], y: held.predicted.point[1], label: this.many ? `click of ${letter}` : "click" }] : [],
    );
    this.page.paint(kinds, { labels, frame: chosen?.frame ?? null, points });
    this.choice.value = group;
    this.#drawLegend(kinds);
    for (const node of this.element.querySelectorAll("[data-group]")) {
      node.classList.toggle("on", node.dataset.group === group);
      if (node.dataset.group === group) node.open = true;
    }
  }

  #drawLegend(kinds) {
    const drawn = (kind) => [...kinds].filter(([id, named]) => named.split(" ").includes(kind) && this.page.boxes.has(id)).length;
    const lacking = this.step.truth.positives.length > 0 && drawn("target") === 0 && "the target has no box";
    const item = (kind) => h("li", {}, h("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), KINDS[kind], h("span", { class: "faint" }, ` ${drawn(kind)}`));
    const box = h("input", { type: "checkbox", checked: this.others, on: { change: () => this.#toggleOthers() } });
    replace(
      this.legend,
      ["target", "choice", "offered"].map(item),
      h("li", {}, h("label", {}, box, h("span", { class: "swatch other", "aria-hidden": "true" }), KINDS.other)),
      this.groups.get(this.app.state.group)?.frame && h("li", {}, h("span", { class: "swatch crop", "aria-hidden": "true" }), "Part sent"),
      lacking && h("li", { class: "faint" }, lacking),
    );
  }

  // --- the step itself ---

  #question(step) {
    const { truth } = step;
    const where = [step.website, step.domain, step.subdomain].filter(Boolean).join(" · ");
    const command = showCommand(this.runs.find((one) => one.held)?.run.settings, step);
    const isPlaced = step.n_actions > 0 || step.index > 0;
    const list = step.history.length > 0 && h("ol", { class: "history" }, step.history.map((text) => h("li", {}, brief(text))));
    const before = step.index > 0 ? unknown(step.index === 1 ? "1 action," : `${step.index} actions,`) : isPlaced ? "nothing" : unknown();
    return h(
      "section",
      { class: "card question", "aria-label": "Task" },
      h("p", { class: "faint" }, where ? quoted(where, 200) : unknown("website"), " · ", isPlaced ? `step ${step.index + 1}${step.n_actions ? ` of ${step.n_actions}` : ""}` : unknown("step")),
      h("h1", {}, brief(this.name, 400)),
      h(
        "dl",
        { class: "facts-list" },
        h("dt", {}, "Right action"),
        h("dd", {}, truth.op ? operation(truth.op, truth.value) : unknown(), truth.original_op && truth.original_op !== truth.op && h("span", { class: "faint" }, ` (recorded as ${truth.original_op})`)),
        h("dt", {}, truth.positives.length > 1 ? "Right elements" : "Right element"),
        h("dd", {}, truth.positives.length ? h("ul", { class: "plain" }, truth.positives.slice(0, 8).map((id) => h("li", {}, this.#element(id)))) : truth.op ? "no right element on the page" : unknown(), truth.positives.length > 8 && `and ${truth.positives.length - 8} more`),
        h("dt", {}, "Done before"),
        h("dd", {}, list || before),
      ),
      h("p", { class: "faint ids" }, "task ", quoted(step.annotation_id, 80), ", action ", quoted(step.action_uid, 80)),
      h("p", { class: "ids" }, copier("Copy id", `${step.annotation_id}_${step.action_uid}`), command && copier("Copy show command", command)),
    );
  }

  #elements(step) {
    const picked = new Set(this.runs.map((one) => one.held?.predicted.element_id));
    const offered = new Set([...this.groups.values()].flatMap((one) => one.offered));
    return elementTable(step.elements, { picked, offered, look: (id) => this.#look(id), hover: (id) => this.page.hover(id) });
  }

  /** An element as a button that shows it on the page. */
  #element(id) {
    if (id === null || id === undefined) return h("span", { class: "faint" }, "none");
    const one = this.elements.get(id);
    const name = h("span", { class: "element-id" }, `#${cut(id, 30)}`);
    if (!one) return h("span", {}, name, h("span", { class: "faint" }, " not described"));
    return h("button", { type: "button", class: "element", title: "Show it on the page", on: { click: () => this.#look(id) } }, name, " ", described(one, 160));
  }

  // --- a column a run, or a tab ---

  #tabs() {
    this.tab = Math.min(this.tab, this.runs.length - 1);
    if (this.runs.length < MANY) return null;
    const step = (event) => {
      const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!way) return;
      this.#turnTab((this.tab + way + this.runs.length) % this.runs.length);
      this.tabs.children[this.tab].focus();
      event.preventDefault();
    };
    this.tabs = h(
      "div",
      { class: "tabs", role: "tablist", "aria-label": "Runs", on: { keydown: step } },
      this.runs.map(({ letter, run, held }, place) => {
        const mark = !held || held.outcome === null || held.outcome === "left_out" ? "·" : held.outcome === "success" ? "✓" : "✗";
        return h("button", { type: "button", role: "tab", title: cut(run.name, 200), on: { click: () => this.#turnTab(place) } }, h("span", { class: "letter" }, letter), h("span", { class: mark === "✓" ? "yes" : mark === "✗" ? "no" : "faint" }, mark), " ", named(run.name, 20));
      }),
    );
    this.#markTab();
    return this.tabs;
  }

  #markTab() {
    [...this.tabs.children].forEach((one, place) => {
      one.setAttribute("aria-selected", String(place === this.tab));
      one.tabIndex = place === this.tab ? 0 : -1;
    });
  }

  #turnTab(place) {
    this.tab = place;
    this.#markTab();
    this.element.querySelector(".answers").replaceWith(this.#answers());
    this.element.querySelector(".conversations").replaceWith(this.#conversations());
    this.#showFound();
    this.#paint();
  }

  /** The runs whose answers are shown. */
  get #open() {
    return this.runs.length < MANY ? this.runs : [this.runs[this.tab]];
  }

  #answers() {
    const open = this.#open;
    return h("section", { class: `answers${open.length > 1 ? " many" : ""}`, "aria-label": "Answers" }, open.map((one) => this.#answer(one)));
  }

  #replies() {
    return this.runs.flatMap(({ letter, held }) =>
      (held?.groups ?? []).flatMap((group) =>
        group.replies.map((text, turn) => ({ run: letter, text: text ?? "", name: `${groupName(group, this.many ? letter : "")}${group.replies.length > 1 ? `, turn ${turn + 1}` : ""}` })),
      ),
    );
  }

  #answer({ place, letter, run, held }) {
    const title = this.many ? h("h2", {}, h("span", { class: "letter" }, letter), named(run.name, 60)) : h("h2", {}, "Answer");
    if (!held) return h("div", { class: "card answer", "data-run": letter }, title, outcomeChip(null), h("p", {}, run.finished ? "This run has no such step." : run.progress ? "This step is not done yet." : "This run cannot be read."));
    const { predicted } = held;
    // false for a run without predictions
    const isKept = held.usage !== null || predicted.op !== "" || predicted.element_id !== null;
    const person = h("p", { class: "cause" });
    const showPerson = () => replace(person, this.#personsCause(held));
    showPerson();
    const verdict = (x) => (x === null || x === undefined ? "–" : x ? "✓ right" : "✗ wrong");
    return h(
      "div",
      { class: "card answer", "data-run": letter },
      title,
      h("p", {}, outcomeChip(held.outcome, this.app.index.outcomes)),
      held.cause && h("p", { class: "cause" }, held.cause),
      person,
      h(
        "dl",
        { class: "facts-list" },
        h("dt", {}, "Element"), h("dd", {}, isKept ? this.#element(predicted.element_id) : unknown(), predicted.point && ` point ${predicted.point.map((x) => Math.round(x)).join(", ")}`),
        h("dt", {}, "Action"), h("dd", {}, predicted.op ? operation(predicted.op, predicted.value) : isKept ? h("span", { class: "faint" }, "none") : unknown()),
        h("dt", {}, "Score"), h("dd", {}, `element ${verdict(held.element)}, operation F1 ${held.f1 === null ? "–" : held.f1.toFixed(2)}, step ${verdict(held.success)}`),
        h("dt", {}, "Target's rank"), h("dd", {}, held.rank === null ? "not ranked" : String(held.rank)),
        held.failure && [h("dt", {}, "Failure"), h("dd", {}, h("span", { title: this.app.index.failures?.[held.failure] ?? null }, words(held.failure)), held.detail && [": ", brief(held.detail)])],
        notes(held.notes),
        usage(held.usage),
      ),
      this.#relabel(place, held, showPerson),
      this.#alsoRight(place, held),
    );
  }

  /** A person's cause of loss, besides the computed one. */
  #personsCause({ relabelled }) {
    if (!relabelled) return null;
    const { cause, annotator, note } = relabelled;
    return [byPerson(cause, this.app.index.outcomes), annotator && [", ", quoted(annotator)], note && [": ", quoted(note)]];
  }

  /** A form for a person's cause of loss, where the server keeps them. */
  #relabel(place, held, showPerson) {
    const { index } = this.app;
    if (!index.causes || !token() || held.outcome === "success") return null;
    const status = h("span", { role: "status" });
    const cause = h(
      "select",
      { "aria-label": "Cause of loss, by a person" },
      h("option", { value: "" }, "none given"),
      Object.keys(index.causes).map((name) => h("option", { value: name }, words(name))),
    );
    cause.value = held.relabelled?.cause ?? "";
    const note = h("input", { type: "text", placeholder: "note", maxlength: 2000, "aria-label": "Note", value: held.relabelled?.note ?? "" });
    const send = async () => {
      try {
        const body = { run: place, answer_sha256: held.answer_sha256, cause: cause.value || null, note: note.value };
        held.relabelled = (await save(`cause/${this.step.key}`, body)).relabelled;
        showPerson();
        this.app.renew(await loadIndex());
        replace(status, "Saved.");
      } catch (error) {
        replace(status, error.message);
      }
    };
    return h(
      "details",
      { class: "relabel" },
      h("summary", {}, "Give a cause of your own"),
      h("div", { class: "toolbar" }, cause, note, h("button", { type: "button", on: { click: send } }, "Save"), status),
    );
  }

  /** A box by which a person marks the answer as right too, where the server keeps such marks. */
  #alsoRight(place, held) {
    if (typeof held.also_right !== "boolean" || held.outcome === "success") return null;
    const status = h("span", { role: "status" });
    const box = h("input", { type: "checkbox", checked: held.also_right, disabled: !token() });
    const send = async () => {
      try {
        const body = { run: place, answer_sha256: held.answer_sha256, right: box.checked };
        held.also_right = (await save(`also/${this.step.key}`, body)).also_right;
        replace(status, "Saved. It counts in a second figure: score --also-right FILE");
      } catch (error) {
        box.checked = held.also_right;
        replace(status, error.message);
      }
    };
    box.addEventListener("change", send);
    return h("div", { class: "relabel also-right" }, h("label", {}, box, " This answer is right too "), status);
  }

  // --- questions and replies ---

  #conversations() {
    const columns = this.#open.map((one) => this.#conversation(one));
    return h("section", { class: `conversations${columns.length > 1 ? " many" : ""}`, "aria-label": "Questions and replies" }, columns);
  }

  #conversation({ letter, held }) {
    const groups = held?.groups ?? [];
    const systems = [...new Set(groups.map((one) => one.system).filter(Boolean))];
    return h(
      "div",
      { class: "card conversation", "data-run": letter },
      h("h2", {}, this.many && h("span", { class: "letter" }, letter), "Questions and replies"),
      groups.length === 0 && h("p", { class: "faint" }, held && held.usage === null ? "The questions are not known." : "Nothing was asked."),
      groups.some((one) => one.window) ? null : examples(groups, "Examples, the same for every group"),
      systems.map((text) => h("details", {}, h("summary", {}, systems.length > 1 ? "System text" : "System text, the same for every group"), long(text, { label: "System text" }))),
      groups.map((group, place) => this.#group(group, `${letter}${place}`, place === groups.length - 1)),
    );
  }

  #group(group, name, last) {
    const { parsed } = group;
    const show = h("button", { type: "button", class: "quiet", on: { click: () => this.#setGroup(this.app.state.group === name ? "" : name) } }, "Show on the page");
    const turns = Math.max(group.replies.length, group.prompts?.length ?? 0);
    const picked = parsed?.failure ? words(parsed.failure) : group.act ? cut(group.act, 60) : parsed?.element_id ? `chose ${labelOf(group, parsed.element_id)}` : "chose none";
    return h(
      "details",
      { class: "group", "data-group": name, open: last },
      h("summary", {}, h("strong", {}, groupName(group, "")), h("span", { class: "faint" }, ` ${group.window ? counted(group.offered.length, "label") : `${count(group.offered.length)} offered`} · `, h("bdi", {}, picked))),
      h("p", {}, show),
      group.window && examples([group], `Messages before this one: ${count(group.examples.length)}`),
      Array.from({ length: turns }, (_, turn) => turnOf(group, turn)),
      h(
        "dl",
        { class: "facts-list" },
        h("dt", {}, "Read as"),
        h("dd", {}, group.act && [h("code", {}, brief(group.act)), " "], (parsed?.element_id || !group.act) && this.#element(parsed?.element_id), " ", parsed?.op && operation(parsed.op, parsed.value), parsed?.failure && [" ", h("span", { class: "no" }, words(parsed.failure)), parsed.detail && [": ", brief(parsed.detail)]]),
      ),
    );
  }
}

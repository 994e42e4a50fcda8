/** The page shows what its address holds. */

import { EMPTY, link, read } from "./address.js";
import { Table, forgetSteps, loadIndex } from "./data.js";
import { h, plain, replace, sheet } from "./dom.js";
import { bind, help, listen } from "./keys.js";
import { ListView } from "./list.js";
import { follow } from "./live.js";
import { takeToken } from "./notes.js";
import { StepView } from "./step.js";

const THEME = "seeact-theme";
const THEMES = { auto: "Auto", light: "Light", dark: "Dark" };

function themeSwitch() {
  const held = () => (localStorage.getItem(THEME) in THEMES ? localStorage.getItem(THEME) : "auto");
  const apply = () => (document.documentElement.dataset.theme = held());
  apply();
  const choice = h(
    "select",
    {
      "aria-label": "Theme",
      class: "theme",
      on: {
        change: () => {
          localStorage.setItem(THEME, choice.value);
          apply();
        },
      },
    },
    Object.entries(THEMES).map(([value, name]) => h("option", { value }, name)),
  );
  choice.value = held();
  return choice;
}

// --- the views ---

class App {
  constructor(index, place) {
    this.place = place;
    this.state = read(location.hash);
    this.renew(index);
    this.list = new ListView(this);
    this.step = new StepView(this);
    this.stale = true;
    addEventListener("hashchange", () => this.#moved());
  }

  /** Takes a newer index of the same runs. */
  renew(index) {
    this.index = index;
    this.table = new Table(index, this.#runs());
    this.stale = true;
  }

  /** Changes the state. `replace`: the back button leads to the state before this one. */
  go(changes, { replace: instead = false } = {}) {
    const address = this.href(changes);
    if (address === location.hash) return;
    history[instead ? "replaceState" : "pushState"](null, "", address);
    this.#moved();
  }

  href(changes) {
    return link({ ...this.state, group: "", ...changes });
  }

  /** Shows these runs, without the filters by run, whose meaning changes. */
  choose(runs) {
    const all = runs.length === this.index.runs.length && runs.every((place, i) => place === i);
    const kept = Object.entries(this.state.filters).filter(([id]) => ["op", "website", "domain", "difficulty"].includes(id));
    const names = all ? [] : runs.map((place) => this.index.runs[place].name);
    this.go({ runs: names, filters: Object.fromEntries(kept), ranges: {}, sort: "" });
  }

  /** The rows of the list, as the address filters and sorts them. */
  rows() {
    const { runs, sort, q, within, filters, ranges } = this.state;
    const asked = JSON.stringify([runs, sort, q, within, filters, ranges]);
    if (this.counted?.asked !== asked || this.counted.table !== this.table || within) {
      this.counted = { asked, table: this.table, rows: this.table.shown(this.state, this.list.texts).rows };
    }
    return this.counted.rows;
  }

  show() {
    const { state } = this;
    const view = state.step ? this.step : this.list;
    if (view === this.list && this.stale) {
      this.list.refresh();
      this.stale = false;
    } else if (view === this.list) {
      this.list.update();
    }
    if (this.view !== view) {
      this.view?.hidden();
      replace(this.place, view.element);
      this.view = view;
      view.shown(this.opened);
    }
    if (state.step) {
      this.opened = state.step;
      this.step.open(state);
    } else {
      document.title = `${plain(this.index.title)} – seeact-offline`;
    }
    bind([...view.keys(), { key: "?", help: "this help", act: help }]);
  }

  #moved() {
    const before = this.state.runs.join("\n");
    this.state = read(location.hash);
    if (this.state.runs.join("\n") !== before) {
      this.renew(this.index);
      // the same step is drawn anew, for these runs
      this.step.hidden();
    }
    this.show();
  }

  #runs() {
    const named = this.state.runs.map((name) => this.index.runs.findIndex((run) => run.name === name)).filter((place) => place >= 0);
    const shown = [...new Set(named)];
    return shown.length ? shown : this.index.runs.map((_, place) => place);
  }
}

function header(title) {
  return h(
    "header",
    { class: "top" },
    h("a", { class: "brand", href: link(EMPTY) }, "seeact-offline"),
    h("span", { class: "title" }, h("bdi", {}, title)),
    h("span", { class: "space" }),
    themeSwitch(),
    h("button", { type: "button", class: "help-button", "aria-label": "Keys and help", on: { click: help } }, "?"),
  );
}

function wrong(error) {
  console.error(error);
  return h("main", { class: "wrong", role: "alert" }, h("h1", {}, "This cannot be shown"), h("p", {}, error.message));
}

async function start() {
  takeToken();
  history.scrollRestoration = "manual";
  const place = h("div", { class: "place" }, h("main", { class: "loading" }, h("p", { role: "status" }, "Loading …")));
  const top = header("");
  document.body.append(top, place);
  listen();
  try {
    const index = await loadIndex();
    replace(top.querySelector(".title"), h("bdi", {}, index.title));
    if (index.mode === "annotate") {
      sheet("annotate.css");
      const { annotate } = await import("./annotate.js");
      await annotate(index, place);
      return;
    }
    if (index.mode === "trajectories") {
      sheet("episodes.css");
      const { showEpisodes } = await import("./episodes.js");
      showEpisodes(index, place);
      return;
    }
    const app = new App(index, place);
    app.show();
    performance.mark("seeact:list");
    follow(index, loadIndex, (found) => {
      forgetSteps();
      app.renew(found);
      if (!app.state.step) app.show();
    });
  } catch (error) {
    replace(place, wrong(error));
  }
}

start();

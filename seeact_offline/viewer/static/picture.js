/** A page's picture with boxes over it, in page pixels: zoom, pan, hover, pick. */

import { h, replace } from "./dom.js";
import { Ink } from "./ink.js";

const LEAST = 0.05, MOST = 8;
const STEP = 1.25;
/** Most page pixels that the pointer moves during a click. */
const STILL = 4;
/** Page pixels from the middle of a click's cross to its ends. */
const ARM = 10;
/** Pixels of the view that the tools may cover. */
const TOOLS = 50;
/** Kinds of boxes in the order of drawing: the last lie on top. */
const KINDS = ["other", "offered", "crop", "target", "choice", "hover"];

export class PageView {
  /** `picture`: as in `step/KEY.json`, or null; `elements`: `{id, tag, box, text}`; `label`: its name for screen readers. */
  constructor({ picture, elements, label }) {
    this.boxes = new Map(elements.filter((one) => one.box).map((one) => [one.id, one.box]));
    this.size = picture ?? extent(this.boxes.values());
    this.scale = 1;
    this.fitted = true;
    this.onpick = () => {};
    this.onhover = () => {};
    this.hovered = null;
    this.svg = h("svg", { class: "boxes", viewBox: `0 0 ${this.size.width} ${this.size.height}`, "aria-hidden": "true" });
    this.drawn = h("g");
    this.over = h("g");
    this.labels = h("g");
    this.labelled = [];
    this.ink = new Ink(this.size);
    this.svg.append(this.drawn, this.over, this.labels);
    this.stage = h("div", { class: "stage" }, (picture?.parts ?? []).map((part) => this.#part(part)), this.svg);
    this.scroller = h(
      "div",
      { class: "scroller", tabindex: 0, role: "group", "aria-label": `${label}. Zoom with plus, minus and 0; move with the arrow keys.` },
      this.stage,
    );
    this.tools = h(
      "div",
      { class: "zoom", role: "group", "aria-label": "Zoom" },
      tool("−", "Zoom out", () => this.zoom(1 / STEP)),
      tool("+", "Zoom in", () => this.zoom(STEP)),
      tool("Fit", "Fit the width", () => this.fit()),
    );
    // boxes without a picture still say where elements are
    this.element = h(
      "div",
      { class: `page-view${picture ? "" : " no-picture"}` },
      !picture && h("p", { class: "faint" }, "The picture of this page is not known."),
      (picture || this.boxes.size > 0) && [this.scroller, this.tools],
    );
    this.#listen();
  }

  /** Draws these boxes and no others. `kinds`: id -> a kind, or several with spaces between; `labels`: id, or "id kind", -> a
   * short text; `frame`: corners of the part of the page that is sent, or null; `points`: `{x, y, label}`. */
  paint(kinds, { labels = new Map(), frame = null, points = [] } = {}) {
    const wanted = [];
    for (const [id, named] of kinds) {
      for (const kind of named.split(" ")) {
        const bare = kind === "choice" && named.includes("target");
        if (this.boxes.has(id)) wanted.push({ id, kind, bare, box: this.boxes.get(id), label: labels.get(`${id} ${kind}`) ?? labels.get(id) });
      }
    }
    if (frame) wanted.push({ kind: "crop", box: [frame[0], frame[1], frame[2] - frame[0], frame[3] - frame[1]] });
    wanted.sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind));
    this.labelled = [...wanted.filter((one) => one.label), ...points.map(({ x, y, label }) => ({ kind: "choice", label, box: [x - ARM, y - ARM, 2 * ARM, 2 * ARM] })).filter((one) => one.label)];
    replace(this.drawn, wanted.map(outline), points.map(cross));
    this.#label();
  }

  /** Puts each label where it lies on the least of what is seen on the page, and on no other label. */
  #label() {
    const taken = [];
    const pixel = 1 / this.scale;
    // the last are the most important, and choose first
    const placed = [...this.labelled].reverse().map((one) => {
      const [width, height] = [(7.4 * one.label.length + 8) * pixel, 16 * pixel];
      const spot = spots(one.box, width, height, this.size, 3 * pixel).map((at, order) => [overlap(at, taken) + 16 * this.ink.in(at) + order * pixel * pixel, at]).reduce((best, each) => (each[0] < best[0] ? each : best))[1];
      taken.push(spot);
      return h("g", { class: `label ${one.kind}` }, h("rect", { x: spot[0], y: spot[1], width, height, class: "plate" }), h("text", { x: spot[0] + 4 * pixel, y: spot[1] + 12 * pixel, class: one.kind }, one.label));
    });
    replace(this.labels, placed.reverse());
  }

  /** Scrolls to elements, and zooms so that one can be read and several are all in sight. Returns false where none has a box. */
  focus(...ids) {
    const known = ids.filter((id) => this.boxes.has(id));
    if (!known.length) return false;
    const box = around(known.map((id) => this.boxes.get(id)));
    this.waiting = null;
    const { clientWidth: width, clientHeight: height } = this.scroller;
    if (!width) {
      this.waiting = known;
      return true;
    }
    if (known.length > 1) return this.#showAll(box, width, height);
    const room = Math.min((0.7 * width) / Math.max(box[2], 1), (0.7 * height) / Math.max(box[3], 1));
    const wanted = clamp(Math.min(room, 1), this.#fitting(), MOST);
    // an element that can be read as it is keeps the zoom that the person chose
    if (this.fitted || room < this.scale || this.scale * box[3] < 8) this.#resize(wanted, wanted <= this.#fitting());
    const smooth = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.scroller.scrollTo({
      left: (box[0] + box[2] / 2) * this.scale - width / 2,
      top: (box[1] + box[3] / 2) * this.scale - height / 2,
      behavior: smooth ? "smooth" : "instant",
    });
    return true;
  }

  #showAll(box, width, height) {
    // room for the labels beside the boxes, and for the tools below
    height -= TOOLS;
    const room = Math.min((width - Math.min(190, width / 4)) / Math.max(box[2], 1), (height - 70) / Math.max(box[3], 1));
    this.#resize(clamp(Math.min(room, 1), LEAST, MOST), false);
    this.scroller.scrollTo({ left: (box[0] + box[2] / 2) * this.scale - width / 2, top: (box[1] + box[3] / 2) * this.scale - height / 2, behavior: "instant" });
    return true;
  }

  /** Shows a part of the page (its corners) as wide as the view. */
  showFrame([left, top, right]) {
    const { clientWidth } = this.scroller;
    if (!clientWidth) return;
    this.#resize(clamp(clientWidth / (right - left), this.#fitting(), 1), false);
    this.scroller.scrollTo({ left: left * this.scale, top: top * this.scale - 12 });
  }

  /** Makes the page larger or smaller; the point (in view pixels from the view's corner; by default its middle) stays in place. */
  zoom(factor, point = null) {
    const { scroller, scale } = this;
    const [x, y] = point ?? [scroller.clientWidth / 2, scroller.clientHeight / 2];
    const page = [(scroller.scrollLeft + x) / scale, (scroller.scrollTop + y) / scale];
    this.#resize(clamp(scale * factor, LEAST, MOST), false);
    scroller.scrollLeft = page[0] * this.scale - x;
    scroller.scrollTop = page[1] * this.scale - y;
  }

  /** Makes the page as wide as the view. */
  fit() {
    this.#resize(this.#fitting(), true);
  }

  /** Ids under a point of the page, innermost (smallest) first. */
  under(x, y) {
    const found = [];
    for (const [id, [left, top, width, height]] of this.boxes) {
      if (x >= left && x <= left + width && y >= top && y <= top + height) found.push([id, width * height]);
    }
    return found.sort((a, b) => a[1] - b[1]).map(([id]) => id);
  }

  /** Outlines one element as if the pointer were over it; null for none. */
  hover(id) {
    if (id === this.hovered) return;
    this.hovered = id;
    const box = this.boxes.get(id);
    replace(this.over, box && outline({ id, kind: "hover", box }));
    this.onhover(id);
  }

  #fitting() {
    return clamp(this.scroller.clientWidth / this.size.width, LEAST, 1);
  }

  #resize(scale, fitted) {
    this.scale = scale;
    this.fitted = fitted;
    this.stage.style.width = `${this.size.width * scale}px`;
    this.stage.style.height = `${this.size.height * scale}px`;
    // texts keep their size on the screen
    this.svg.style.setProperty("--pixel", 1 / scale);
    this.#label();
  }

  #part({ top, height, src }) {
    const image = h("img", { src, alt: "", loading: "lazy", decoding: "async" });
    image.draggable = false;
    image.addEventListener("load", () => {
      this.ink.add(image, top, height);
      this.#label();
    });
    image.style.top = `${(100 * top) / this.size.height}%`;
    image.style.height = `${(100 * height) / this.size.height}%`;
    return image;
  }

  #listen() {
    const { scroller } = this;
    new ResizeObserver(() => {
      if (scroller.clientWidth && this.fitted) this.fit();
      if (scroller.clientWidth && this.waiting) this.focus(...this.waiting);
    }).observe(scroller);
    scroller.addEventListener("keydown", (event) => this.#key(event));
    scroller.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    scroller.addEventListener("pointerdown", (event) => this.#press(event));
    scroller.addEventListener("pointermove", (event) => this.#move(event));
    scroller.addEventListener("pointerup", (event) => this.#release(event));
    scroller.addEventListener("pointercancel", () => (this.pressed = null));
    scroller.addEventListener("pointerleave", () => this.hover(null));
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { "+": () => this.zoom(STEP), "=": () => this.zoom(STEP), "-": () => this.zoom(1 / STEP), 0: () => this.fit() }[event.key];
    if (!act) return;
    act();
    event.preventDefault();
    event.stopPropagation();
  }

  #wheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const { left, top } = this.scroller.getBoundingClientRect();
    this.zoom(Math.exp(-event.deltaY / 300), [event.clientX - left, event.clientY - top]);
  }

  #press(event) {
    if (event.button !== 0) return;
    const { scrollLeft, scrollTop } = this.scroller;
    this.pressed = { x: event.clientX, y: event.clientY, scrollLeft, scrollTop, moved: false };
  }

  #move(event) {
    const { pressed, scroller } = this;
    if (pressed && event.pointerType === "mouse") {
      const [x, y] = [event.clientX - pressed.x, event.clientY - pressed.y];
      if (!pressed.moved && Math.hypot(x, y) > STILL) {
        pressed.moved = true;
        scroller.setPointerCapture(event.pointerId);
        scroller.classList.add("dragged");
      }
      if (pressed.moved) {
        scroller.scrollLeft = pressed.scrollLeft - x;
        scroller.scrollTop = pressed.scrollTop - y;
        return;
      }
    }
    this.hover(this.#at(event)[0] ?? null);
  }

  #release(event) {
    const { pressed, scroller } = this;
    this.pressed = null;
    scroller.classList.remove("dragged");
    if (!pressed || pressed.moved || event.target === scroller) return;
    const ids = this.#at(event);
    if (ids.length) this.onpick(ids[0], ids);
  }

  #at(event) {
    const { left, top } = this.stage.getBoundingClientRect();
    return this.under((event.clientX - left) / this.scale, (event.clientY - top) / this.scale);
  }
}

const clamp = (x, least, most) => Math.max(least, Math.min(most, x));

const tool = (text, name, click) => h("button", { type: "button", "aria-label": name, title: name, on: { click } }, text);

function extent(boxes) {
  let [width, height] = [1280, 0];
  for (const [x, y, w, tall] of boxes) [width, height] = [Math.max(width, x + w), Math.max(height, y + tall)];
  return { width, height: height || 720 };
}

/** The smallest box around all. */
function around(boxes) {
  const [left, top] = [0, 1].map((side) => Math.min(...boxes.map((box) => box[side])));
  const [right, bottom] = [0, 1].map((side) => Math.max(...boxes.map((box) => box[side] + box[side + 2])));
  return [left, top, right - left, bottom - top];
}

/** Pixels of a box that lie on some of these. */
function overlap([x, y, width, height], boxes) {
  let found = 0;
  for (const [left, top, w, tall] of boxes) {
    found += Math.max(0, Math.min(x + width, left + w) - Math.max(x, left)) * Math.max(0, Math.min(y + height, top + tall) - Math.max(y, top));
  }
  return found;
}

/** Places for a label of this size outside a box and on the page, the most usual first: `close` to its sides, then a line further. */
function spots([x, y, width, height], w, tall, page, close) {
  const along = (start, room) => [0, 1, 0.5, 0.25, 0.75].map((share) => start + share * room);
  const found = [close, tall].flatMap((gap) => [
    ...along(x, width - w).flatMap((left) => [[left, y - tall - gap], [left, y + height + gap]]),
    ...along(y, height - tall).flatMap((top) => [[x + width + gap, top], [x - w - gap, top]]),
  ]);
  const on = found.filter(([left, top]) => left >= 0 && top >= 0 && left + w <= page.width && top + tall <= page.height);
  return (on.length ? on : found.slice(0, 1)).map(([left, top]) => [left, top, w, tall]);
}

/** `bare`: nothing light behind the line, so that the line below shows between its dashes. */
function outline({ id, kind, box, bare = false }) {
  const [x, y, width, height] = box;
  const place = { x, y, width: Math.max(width, 1), height: Math.max(height, 1) };
  const strong = kind === "target" || kind === "choice" || kind === "hover";
  return h(
    "g",
    { class: `box ${kind}`, "data-id": id ?? null },
    strong && !bare && h("rect", { ...place, class: "halo" }),
    h("rect", { ...place, class: "line" }),
  );
}

function cross({ x, y }) {
  const lines = [[x - ARM, y, x + ARM, y], [x, y - ARM, x, y + ARM]];
  return h(
    "g",
    { class: "box point" },
    lines.map(([x1, y1, x2, y2]) => h("line", { x1, y1, x2, y2, class: "line" })),
  );
}

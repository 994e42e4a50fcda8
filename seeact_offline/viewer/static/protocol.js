/** How a person grounds a text: the oracle grounding of the SeeAct paper (arXiv 2401.01614v2, section 4), in our own words. */

import { h } from "./dom.js";

const RULES = [
  [
    "Judge the text, not the task.",
    "A model was shown this page and said what it would do next. You say which element of the page it means. Whether that would be right plays no part, and the right element is not shown: a text that means the wrong button gets the wrong button.",
  ],
  [
    "One element.",
    "Take the one that the text describes as its next target, by its words, its kind and its place. Where the text speaks of several actions, take the first that it would carry out now.",
  ],
  [
    "Of nested elements, the control.",
    "Take the smallest element that is the whole button, link, field or list: neither the word inside it nor the area around it. n and p step through the elements under your click.",
  ],
  [
    "Look-alikes.",
    "Where several elements look the same, let the words about their place and surroundings decide. Where nothing in the text tells them apart, it means none of them.",
  ],
  [
    "None.",
    "Choose none where the text means something that is not on this page, or no element at all: scrolling, waiting, going back, being done.",
  ],
  [
    "Operation and value.",
    "As the text says them, mistakes included. They are filled in where they could be read; correct what was read wrongly. Where the text names no operation, choose Not said.",
  ],
  [
    "Alone.",
    "Do not look at the run's results first, nor at another person's answers. Skip what you cannot decide; it comes again at the end. Two people who judge the same texts show how reliable such answers are.",
  ],
];

export function protocol() {
  return [
    h("h2", {}, "How to judge"),
    h("ol", { class: "protocol" }, RULES.map(([rule, why]) => h("li", {}, h("strong", {}, rule), " ", why))),
    h("p", { class: "faint" }, "An answer is on disk once the page says “Saved”."),
  ];
}

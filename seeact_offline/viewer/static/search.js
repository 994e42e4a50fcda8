/** Search in what models were asked and replied: replies of all steps at once, prompts step by step. */

import { fetchJson } from "./data.js";

/** Characters of prompts that stay in memory. */
const KEPT = 60_000_000;
const AT_ONCE = 4;
const SAY_MS = 500;

/** The words of a search in lower case; words in double quotes stay together. */
export const termsOf = (q) => [...q.toLowerCase().matchAll(/"([^"]+)"|\S+/g)].map(([word, phrase]) => phrase ?? word);

export class TextSearch {
  /** `found()` is called whenever more is known. */
  constructor(found) {
    this.found = found;
    this.prompts = new Map();
    this.size = 0;
  }

  /** A test of rows for `Table.shown`, as far as is known, or null for a search in tasks. Loads what is lacking of `rows`. */
  tests(table, { q, within, filters, ranges }, rows) {
    const terms = termsOf(q);
    const asked = JSON.stringify([within, terms, table.runs, within === "prompts" && [filters, ranges]]);
    if (!within || !terms.length) {
      this.asked = this.status = null;
      return null;
    }
    if (this.asked !== asked || this.table !== table) {
      this.#begin(asked, table);
      if (within === "replies") this.#loadReplies(table, terms);
      else this.#scan(table, terms, rows());
    }
    return this.passes;
  }

  #begin(asked, table) {
    [this.asked, this.table] = [asked, table];
    this.passes = new Uint8Array(table.n);
    this.status = "Loading …";
  }

  async #loadReplies(table, terms) {
    const own = this.asked;
    try {
      if (this.index !== table.index) [this.index, this.replies] = [table.index, fetchJson("replies.json")];
      const replies = await this.replies;
      if (this.asked !== own) return;
      table.index.keys.forEach((key, row) => {
        const text = table.runs.map((place) => replies[key]?.[place] ?? "").join("\n").toLowerCase();
        this.passes[row] = Number(terms.every((term) => text.includes(term)));
      });
      this.status = null;
    } catch (error) {
      this.index = null;
      if (this.asked === own) this.status = `Replies cannot be searched: ${error.message}`;
    }
    this.found();
  }

  /** Each step's file has its prompts: the ones listed are looked through first to last, and those found are shown meanwhile. */
  async #scan(table, terms, rows) {
    const own = this.asked;
    let [next, done, failed, said] = [0, 0, 0, performance.now()];
    const worker = async () => {
      while (next < rows.length && this.asked === own && this.table === table) {
        const row = rows[next++];
        const text = await this.#promptsOf(table, row).catch(() => null);
        done++;
        if (text === null) failed++;
        else this.passes[row] = Number(terms.every((term) => text.includes(term)));
        this.status = `Searched ${done} of ${rows.length} steps`;
        if (this.asked === own && performance.now() - said > SAY_MS) {
          said = performance.now();
          this.found();
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    if (this.asked !== own || this.table !== table) return;
    this.status = failed ? `${failed} steps could not be searched` : null;
    this.found();
  }

  async #promptsOf(table, row) {
    const key = table.index.keys[row];
    const place = `${key} ${table.runs}`;
    if (this.prompts.has(place)) return this.prompts.get(place);
    const step = await fetchJson(`step/${key}.json`);
    const groups = table.runs.flatMap((run) => step.runs[run]?.groups ?? []);
    const parts = groups.flatMap((group) => [group.system, ...(group.examples ?? []).map((one) => one.text), ...(group.prompts ?? []), ...group.replies]);
    const text = parts.filter(Boolean).join("\n").toLowerCase();
    this.size += text.length;
    if (this.size < KEPT) this.prompts.set(place, text);
    return text;
  }
}

/** Marks the words of a search in the texts below a node, where the browser can. */
export function highlight(root, terms) {
  if (!window.Highlight || !CSS.highlights) return;
  const ranges = [];
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (texts.nextNode() && ranges.length < 2000) {
    const held = texts.currentNode.data.toLowerCase();
    // lower case of some letters is longer, and then places differ
    if (held.length !== texts.currentNode.data.length) continue;
    for (const term of terms) {
      for (let at = held.indexOf(term); at >= 0 && ranges.length < 2000; at = held.indexOf(term, at + term.length)) {
        const range = new Range();
        range.setStart(texts.currentNode, at);
        range.setEnd(texts.currentNode, at + term.length);
        ranges.push(range);
      }
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
}

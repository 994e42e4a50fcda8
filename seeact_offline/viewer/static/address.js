/** The address holds everything that is shown: `#/?run=A&sort=rank&f.outcome=wrong_element` or `#/step/KEY?…`.
 *
 * A state: `step` (key or null), `runs` (names; none: all), `sort` (a column's id, "-" before it for the reverse), `q` (free text),
 * `within` ("replies" or "prompts" that `q` is looked for in; "": tasks, websites and ids),
 * `filters` (facet -> values), `ranges` (column -> [least or null, most or null]), `group` (such as "A0", or ""), `view` ("matrix", or "": the list).
 */

export const EMPTY = Object.freeze({ step: null, runs: [], sort: "", q: "", within: "", filters: {}, ranges: {}, group: "", view: "" });

export function read(hash) {
  const [, path, query] = /^#?\/?([^?]*)\??(.*)$/s.exec(hash);
  const asked = new URLSearchParams(query);
  const state = { ...EMPTY, filters: {}, ranges: {} };
  state.step = path.startsWith("step/") ? path.slice(5) : null;
  state.runs = asked.getAll("run");
  state.sort = asked.get("sort") ?? "";
  state.q = asked.get("q") ?? "";
  state.within = ["replies", "prompts"].includes(asked.get("within")) ? asked.get("within") : "";
  state.group = asked.get("group") ?? "";
  state.view = asked.get("view") === "matrix" ? "matrix" : "";
  for (const [name, value] of asked) {
    if (name.startsWith("f.")) (state.filters[name.slice(2)] ??= []).push(value);
    for (const [end, place] of [["min.", 0], ["max.", 1]]) {
      if (name.startsWith(end) && value !== "" && Number.isFinite(Number(value))) {
        (state.ranges[name.slice(4)] ??= [null, null])[place] = Number(value);
      }
    }
  }
  return state;
}

export function link(state) {
  const asked = new URLSearchParams();
  for (const name of state.runs) asked.append("run", name);
  if (state.view) asked.set("view", state.view);
  if (state.sort) asked.set("sort", state.sort);
  if (state.q) asked.set("q", state.q);
  if (state.within) asked.set("within", state.within);
  for (const facet of Object.keys(state.filters).sort()) {
    for (const value of state.filters[facet]) asked.append(`f.${facet}`, value);
  }
  for (const column of Object.keys(state.ranges).sort()) {
    const [least, most] = state.ranges[column];
    if (least !== null) asked.set(`min.${column}`, least);
    if (most !== null) asked.set(`max.${column}`, most);
  }
  if (state.step && state.group) asked.set("group", state.group);
  const query = asked.toString();
  return `#/${state.step ? `step/${state.step}` : ""}${query ? `?${query}` : ""}`;
}

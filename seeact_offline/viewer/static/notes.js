/** A person's notes on steps, which the server keeps in a file. */

const TOKEN = "seeact-token";

/** The token of the start-up link, without which nothing can be saved. */
export const token = () => sessionStorage.getItem(TOKEN);

/** Takes the token out of the address, so that a copied link does not hand it on. */
export function takeToken() {
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  if (!found) return;
  sessionStorage.setItem(TOKEN, found[1]);
  history.replaceState(null, "", "#/");
}

/** Saves a note and resolves once it is on disk. Raises an Error whose message can be shown. */
export async function save(name, body) {
  if (!token()) throw new Error("Nothing can be saved: open the link that was printed when the server was started.");
  const headers = { "Content-Type": "application/json", "X-Seeact-Token": token() };
  let answer, found;
  try {
    answer = await fetch(name, { method: "POST", headers, body: JSON.stringify(body) });
    found = await answer.json();
  } catch {
    throw new Error("Not saved: the server does not answer. Is it still running?");
  }
  if (!answer.ok) throw new Error(`Not saved: ${found.error ?? answer.status}`);
  return found;
}

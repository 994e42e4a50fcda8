// The state of a bundled site: what its own script keeps (`siteState`), the fields that were filled in, those that have gone again too, and
// what was sent: every message of the site (`sent` of its state), with the fields that were on the page. Listens before the page does, and
// changes nothing.
(() => {
  if (window !== top) return;
  const first = new Map(), last = new Map(), sent = {};
  let present = new Map(), messages = [];
  const words = (text) => (text || '').trim().replace(/\s+/g, ' ').slice(0, 40);
  const isMark = (field) => field.type === 'checkbox' || field.type === 'radio';
  const label = (field) => words((field.labels?.[0] ?? field.parentElement)?.textContent);
  // a mark of a group is told from the others by its value or its label
  const name = (field) => [
    field.name || field.id || field.getAttribute('aria-label') || field.placeholder || (isMark(field) ? '' : label(field)),
    ...(isMark(field) ? [field.getAttribute('value') || label(field)] : []),
  ].join(' = ');
  const chosen = (options) => options.map((option) => option.label).join(', ');
  const now = (field) => isMark(field) ? field.checked : field.tagName === 'SELECT' ? chosen([...field.selectedOptions]) : field.value;
  const start = (field) => isMark(field) ? field.defaultChecked : field.tagName !== 'SELECT' ? field.defaultValue
    : chosen([...field.options].filter((option, i) => option.defaultSelected || (i === 0 && !field.querySelector('[selected]'))));
  function see(root, prefix, isFresh) {
    const times = {};
    for (const field of root.querySelectorAll('input:not([type=button], [type=submit], [type=hidden]), textarea, select')) {
      const plain = prefix + name(field), n = times[plain] = (times[plain] || 0) + 1, key = n > 1 ? `${plain} #${n}` : plain;
      // a page may set the value of a field that it makes; its event comes after a first change
      if (!first.has(key)) first.set(key, isFresh(field) ? start(field) : now(field));
      last.set(key, now(field));
      present.set(key, now(field));
    }
  }
  const filledIn = (fields) => Object.fromEntries([...fields].filter(([key, value]) => value !== first.get(key)));
  // the fields are those before the event that sent them
  function noteSent() {
    const texts = (window.siteState?.().sent || []).filter(Boolean);
    for (const text of texts) {
      if (!messages.includes(text)) sent[text] = { times: (sent[text]?.times || 0) + 1, fields: filledIn(present) };
    }
    messages = texts;
  }
  function look(target) {
    noteSent();
    present = new Map();
    see(document, '', (field) => field === target);
    for (const frame of document.querySelectorAll('iframe')) {
      if (frame.contentDocument?.body) see(frame.contentDocument, `${frame.className || frame.id || frame.title}: `, () => true);
    }
  }
  for (const kind of ['focusin', 'pointerdown', 'click', 'keydown', 'input', 'change', 'submit']) {
    addEventListener(kind, (event) => look(event.target), true);
  }
  window.__readState = () => {
    look(null);
    const summaries = [...document.querySelectorAll('details[open] > summary')].map((summary) => words(summary.textContent));
    const state = { ...window.siteState?.(), fields: filledIn(last), sent, questions: summaries.filter((text) => text.includes('?')) };
    return JSON.stringify({ ...state, ...window.partsState?.() });
  };
})();

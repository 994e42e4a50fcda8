// What real pages are full of, around a site's own idea: utility links, a mega-menu, an off-canvas menu, carousels, long lists,
// questions, reviews and a footer; and the pages behind their links (?p=NAME). A site calls parts({...}) once, after its own script:
//   name     the site's name, and the seed of everything below it
//   colours  [background, text, lines, accent]
//   topics   {group: [links]}: the mega-menu's panels, the footer's columns, the off-canvas menu, the articles
//   cards    [[carousel's title, button on its cards, [names on the cards]], ...]
//   entries  [title, [first words], [second words], [facts]]: a long list, made of the words
//   forms    names of links whose page is a form, not an article
//   omit     parts that this site does without: top, menu, drawer, list, questions, reviews
(() => {
const STANDARD = [
  ['About us', 'Who we are', 'Our story'], ['Careers', 'Jobs with us', 'Work here'], ['Newsroom', 'Press office', 'Media'],
  ['Help centre', 'Customer care', 'Support hub'], ['Contact form', 'Get in touch', 'Write to us'], ['Accessibility', 'Access statement', 'Reading aids'],
  ['Privacy notice', 'Your data', 'Privacy policy'], ['Terms of use', 'Conditions', 'Legal terms'], ['Gift vouchers', 'Gift credit', 'Give a gift'],
  ['Partners', 'Affiliates', 'For business'], ['Our footprint', 'Sustainability', 'Climate report'], ['Share feedback', 'Tell us more', 'Comments'],
];
const SPEECH = ['What guests say about', 'A closer look at', 'Five things to know about', 'How we think about', 'Your questions on', 'New this month:', 'Plan ahead for', 'The short guide to'];
const PHRASES = ['We check this page every month', 'Prices and times may change without notice', 'Most people decide within a day', 'Our team answers on working days',
  'It takes about five minutes', 'You can change your mind until the evening before', 'Bring a printed copy if you can', 'Members see this first', 'Nothing is charged in advance'];
const PEOPLE = ['Ines R.', 'Tomas B.', 'Yuki A.', 'Greta L.', 'Omar S.', 'Paula N.', 'Femi O.', 'Lucia M.', 'Henrik D.', 'Asha P.'];
const ICON = { heart: 'M10 17L3 9c-3-5 4-8 7-3 3-5 10-2 7 3z', share: 'M4 10l10-6v12zM14 4h3v12h-3z', star: 'M10 2l2 6h6l-5 4 2 6-5-4-5 4 2-6-5-4h6z', photo: 'M2 4h16v12H2zM5 13l4-5 3 4 2-2 3 3z' };

// Seeded by a text: the same page every time.
function chance(text) {
  let state = [...text].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 2147483647, 7);
  const next = (n) => { state = (state * 48271) % 2147483647; return state % n; };
  return { next, pick: (list) => list[next(list.length)], some: (list, n) => list.map((one) => [next(99991), one]).sort((a, b) => a[0] - b[0]).slice(0, n).map((pair) => pair[1]) };
}
const icon = (name, size = 18) => `<svg class="pt-icon ${name}" width="${size}" height="${size}" viewBox="0 0 20 20"><path d="${ICON[name]}"/></svg>`;
const slug = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '');
const link = (text, more = '') => `<a href="?p=${slug(text)}"${more}>${text}</a>`;
const links = (list) => `<ul>${list.map((text) => `<li>${link(text)}</li>`).join('')}</ul>`;

const state = { page: null, noted: {}, forms: {} };
// For checks of what was done: the page behind a link, the buttons pressed, and what forms sent.
window.partsState = () => ({ parts: state });

window.parts = (site) => {
  const at = new URLSearchParams(location.search), page = at.get('p'), dice = chance(site.name + (page || location.hash.split(/[?/-]/)[0]));
  const own = chance(site.name), has = (part) => !(site.omit || []).includes(part), groups = Object.entries(site.topics);
  const standard = STANDARD.map((names) => own.pick(names)), [gift, write] = [standard[8], standard[4]], enter = own.pick(['Sign in', 'Log in', 'My profile']);
  const topics = groups.flatMap(([, list]) => list), all = [...topics, ...standard];
  const say = (topic) => `${dice.pick(PHRASES)}. ${dice.pick(['Ask about', 'Read more on', 'See also'])} ${dice.pick(topics).toLowerCase()} and ${topic.toLowerCase()}.`;

  const top = () => `<div class="pt-top">${page ? `<a class="pt-brand" href="index.html">${site.name}</a>` : ''}<span>${dice.pick(PHRASES)}</span>
    ${link(standard[3])}${link(gift)}${link(standard[9])}${link(enter)}</div>`;
  const menu = () => `<div class="pt-menu">${has('drawer') ? '<button aria-label="All sections" data-open="pt-drawer">☰</button>' : ''}${groups.map(([group, list], i) =>
    `<span class="pt-group"><button aria-expanded="false" data-open="pt-panel${i}">${group}</button><div id="pt-panel${i}" class="pt-panel" hidden><b>${group}</b>${links(list)}</div></span>`).join('')}</div>`;
  const drawer = () => `<div id="pt-drawer" class="pt-drawer"><button aria-label="Close sections" data-open="pt-drawer">✕</button><b>All sections</b>${links(all.slice(0, 22))}</div>`;
  const card = (name, verb) => `<div class="pt-card"><a class="pt-pic" href="?p=${slug(name)}" title="${name}">${icon('photo', 60)}</a>${link(name)}<span>${dice.pick(site.entries[3])}</span><button data-say="${name}">${verb}</button></div>`;
  const carousel = ([title, verb, names], i) => `<div class="pt-carousel"><h2>${title}</h2><button aria-label="Back in ${title}" data-slide="${i}" data-by="-1">‹</button><button aria-label="More of ${title}" data-slide="${i}" data-by="1">›</button>
    <div class="pt-rail" id="pt-rail${i}">${dice.some(names, 11).map((name) => card(name, verb)).join('')}</div></div>`;
  const entry = (name) => `<li><h3>${link(name)}</h3><p>${say(name)}</p><span>${dice.pick(site.entries[3])}</span> ${link(name, ' class="pt-more" aria-label="Details: ' + name + '"').replace(`>${name}<`, '>Details<')}</li>`;
  const names = (n) => [...new Set(Array.from({ length: 3 * n }, () => `${dice.pick(site.entries[1])} ${dice.pick(site.entries[2])}`))].slice(0, n);
  const list = (n) => `<div class="pt-list"><h2>${site.entries[0]}</h2><ol>${names(n).map(entry).join('')}</ol></div>`;
  const questions = () => `<div class="pt-questions"><h2>${own.pick(['Good to know', 'Often asked', 'Before you ask'])}</h2>${dice.some(topics, 7).map((topic) => `<details><summary>${topic}: ${dice.pick(['how does it work', 'what does it cost', 'where is it', 'who is it for'])}?</summary><p>${say(topic)}</p></details>`).join('')}</div>`;
  const reviews = () => `<div class="pt-reviews"><h2>${own.pick(['In their words', 'From our guests', 'Lately written'])}</h2>${dice.some(PEOPLE, 6).map((who) => `<div class="pt-review"><b>${who}</b> ${icon('star')}<p>${say(dice.pick(topics))}</p><button data-say="${who}" aria-label="Useful: ${who}">Useful (${dice.next(40)})</button></div>`).join('')}</div>`;
  const footer = () => `<div class="pt-footer"><div class="pt-columns">${groups.map(([group, items]) => `<div><b>${group}</b>${links(items)}</div>`).join('')}<div><b>${site.name}</b>${links(standard)}</div></div>
    <form class="pt-letter" data-done="${dice.pick(['You are on the list.', 'Look in your inbox.'])}"><label>Letters by mail <input type="email" name="ptLetter" placeholder="Address for our letters"></label><button>Sign me up</button></form>
    <p class="pt-social">${['Photos', 'Videos', 'Posts', 'Maps'].map((where) => `<a href="?p=social" aria-label="${site.name}: ${where}">${icon(dice.pick(['share', 'heart', 'star']))}</a>`).join('')}<small>© 2026 ${site.name}. ${dice.pick(PHRASES)}.</small></p></div>`;

  const title = (all.concat(site.cards.flatMap((one) => one[2]))).find((text) => slug(text) === page) || (page || '').replace(/-/g, ' ').replace(/^./, (c) => c.toUpperCase());
  const form = () => `<form class="pt-form" data-done="Thank you. We have your message about ${title.toLowerCase()}."><label>Your name <input name="ptName"></label><label>Your e-mail <input name="ptMail" type="email"></label><label>Reason <select name="ptReason"><option>Choose</option>${topics.slice(0, 6).map((one) => `<option>${one}</option>`).join('')}</select></label><label>Message <textarea name="ptText" rows="5"></textarea></label><label><input type="checkbox" name="ptCopy"> Send me a copy</label><button>Send message</button></form>`;
  const article = () => `<p>${say(title)}</p>${dice.some(SPEECH, 5).map((words) => `<h2>${words} ${title.toLowerCase()}</h2><p>${say(title)} ${say(title)} ${say(title)}</p>`).join('')}<p>Was this page useful? <button data-say="${title}">Yes, useful</button> <button data-say="${title}">Not really</button></p><h2>Related</h2>${links(dice.some(topics.filter((one) => one !== title), 8))}`;
  const bare = () => `<form class="pt-form pt-bare" data-done="We have sent you a link. Open it to go on."><a class="pt-brand" href="index.html">${site.name}</a><h1>${title}</h1><label>E-mail <input name="ptUser" type="email"></label><label><input type="checkbox" name="ptStay"> Keep me signed in</label><button>Send me a link</button> ${link(write)}</form>`;

  const add = (where, html) => { const box = document.createElement('div'); box.className = 'pt'; box.innerHTML = html; document.body[where](box); return box; };
  ['bg', 'ink', 'line', 'accent'].forEach((name, i) => document.body.style.setProperty('--pt-' + name, site.colours[i]));
  state.page = page;
  if (page) document.body.classList.add('pt-away');
  if (page === slug(enter)) { add('prepend', bare()); return wire(); }
  if (page) add('append', `<div class="pt-page"><p class="pt-crumbs"><a href="index.html">Home</a> / ${title}</p><h1>${title}</h1>${(site.forms || []).concat(write, gift, standard[11]).includes(title) ? form() : article()}</div>`);
  add('prepend', (has('top') || page ? top() : '') + (has('menu') ? menu() : '') + (has('drawer') ? drawer() : ''));
  add('append', site.cards.map(carousel).join('') + (has('list') ? list(page ? 6 : 8 + own.next(6)) : '') + (has('questions') ? questions() : '') + (has('reviews') ? reviews() : '') + footer());
  wire();
};

function wire() {
  const on = (selector, kind, act) => document.querySelectorAll(`.pt ${selector}`).forEach((one) => one.addEventListener(kind, (event) => act(one, event)));
  on('[data-open]', 'click', (one) => {
    const box = document.getElementById(one.dataset.open);
    if (box.id === 'pt-drawer') return box.classList.toggle('open');
    document.querySelectorAll('.pt-panel').forEach((other) => { other.hidden = other !== box || !box.hidden; });
    document.querySelectorAll('.pt-group > button').forEach((other) => other.setAttribute('aria-expanded', String(!other.nextElementSibling.hidden)));
  });
  on('[data-slide]', 'click', (one) => {
    const rail = document.getElementById('pt-rail' + one.dataset.slide), now = +(rail.dataset.at || 0) + +one.dataset.by;
    rail.dataset.at = Math.max(0, Math.min(2, now));
    rail.style.transform = `translateX(${-960 * rail.dataset.at}px)`;
  });
  on('[data-say]', 'click', (one) => { state.noted[one.dataset.say] ||= one.textContent; one.textContent = `Noted: ${one.dataset.say}`; });
  on('form', 'submit', (one, event) => { event.preventDefault(); state.forms[Object.keys(state.forms).length + 1] = Object.fromEntries(new FormData(one)); one.insertAdjacentHTML('beforeend', `<p role="status" class="pt-done">${one.dataset.done}</p>`); });
  on('input:not([type=checkbox]), textarea', 'input', (one) => { one.setAttribute('value', one.value); });
}
})();

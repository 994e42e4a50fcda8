'use strict';
const STATIONS = [['Aldervane Central', 'ALC'], ['Brackmoor', 'BRM'], ['Dunnage', 'DNG'], ['Harrow Quay', 'HRQ'], ['Harrow Moor', 'HRM'],
  ['Merle Cross', 'MLC'], ['Orrin Bridge', 'ORB'], ['Pelham Sands', 'PLS'], ['Port Merrow', 'PTM'], ['Stennick', 'STN'], ['Stennick Parkway', 'STP'],
  ['Tavin', 'TAV'], ['Tavin Road', 'TVR'], ['Wick Lanes', 'WKL']];
const MONTHS = [[3, 'March 2026', 6, 31], [4, 'April 2026', 2, 30]];
const WEEK = ['Mo', 'Tu', 'We', 'Th', 'Fr', 'Sa', 'Su'];
const TRAINS = [
  ['07:04', '09:31', '2h 27m', 0, 'Fennvia', 41.2, 68.5], ['07:46', '10:40', '2h 54m', 1, 'Coastline', 33.4, 59.9], ['08:15', '10:38', '2h 23m', 0, 'Fennvia', 46.8, 74],
  ['09:02', '11:29', '2h 27m', 0, 'Fennvia', 38.1, 61.3], ['10:20', '13:34', '3h 14m', 2, 'Moorlink', 27.9, 44.6], ['12:02', '14:29', '2h 27m', 0, 'Fennvia', 29.5, 52.7],
  ['14:02', '16:31', '2h 29m', 0, 'Fennvia', 35.2, 57.4], ['15:47', '18:40', '2h 53m', 1, 'Coastline', 31.6, 49.8], ['17:15', '19:39', '2h 24m', 0, 'Fennvia', 52.3, 83.1]];
const BOARD = [['13:08', 'Brackmoor', '4', 'On time', 'Moorlink'], ['13:11', 'Stennick', '1', 'On time', 'Fennvia'], ['13:17', 'Port Merrow', '7', 'Exp 13:26', 'Coastline'],
  ['13:24', 'Tavin Road', '2', 'On time', 'Fennvia'], ['13:30', 'Merle Cross', '5', 'Cancelled', 'Moorlink'], ['13:38', 'Dunnage', '3', 'On time', 'Moorlink'],
  ['13:41', 'Stennick', '1', 'On time', 'Fennvia'], ['13:47', 'Port Merrow', '7', 'On time', 'Coastline'], ['13:52', 'Orrin Bridge', '6', 'Exp 13:58', 'Fennvia'],
  ['14:02', 'Pelham Sands', '4', 'On time', 'Coastline'], ['14:11', 'Wick Lanes', '2', 'On time', 'Fennvia'], ['14:17', 'Port Merrow', '7', 'On time', 'Coastline']];
const CARDS = [['Youth 16-25', 'A third off most fares', 30, '#d9f0df'], ['Two Together', 'For two named people', 32, '#fde3cf'], ['Senior 60+', 'A third off, any day', 30, '#dfe8f5'],
  ['Family & Friends', 'Four adults, four children', 35, '#fff4cf'], ['Weekday Worker', 'Eight days in 28', 48, '#eadff5'], ['Access', 'You and a companion', 20, '#f8d5d3']];
const NAV = [['Tickets', [['Plan a journey', 'home'], ['Season tickets', 'season'], ['Group travel', 'home'], ['Basket', 'basket']]],
  ['Times & tracking', [['Live departures', 'board'], ['Timetables', 'home'], ['Planned works', 'home'], ['Station guides', 'board']]],
  ['Railcards', [['All railcards', 'cards'], ['Renew a railcard', 'cards'], ['Lost railcard', 'help']]],
  ['Help', [['Delay compensation', 'delay'], ['Refunds', 'delay'], ['Assisted travel', 'help'], ['Lost property', 'help'], ['Contact', 'help']]]];
const S = {view: 'home', menu: '', tab: 'journey', trip: 'return', from: '', to: '', date: '', time: 'Any time', open: '', adults: 1, kids: 0, card: 'No railcard',
  direct: false, quiet: false, cafe: false, sockets: false, ramp: false, wifi: false, ops: {}, sort: 'Departure', calls: -1, fare: '', coach: 'C', seat: '', bikes: 0, meal: 'No meal', lounge: false,
  boardAt: 'Aldervane Central', boardQ: '', boardTab: 'dep', track: -1, plat: 'All platforms', sFrom: '', sTo: '', sDur: 'Weekly', sDone: false, basket: [],
  cardPick: 2, years: 1, cardMail: '', cardName: '', cref: '', cdate: '', clen: 'Choose length', cwhy: '', cdone: false, cookie: false, line: -1, texts: false, pax: {}};
const icons = {search: '<circle cx="8" cy="8" r="6"/><path d="M12 12l5 5"/>', basket: '<path d="M2 6h14l-2 10H4z"/><path d="M6 6l3-5 3 5"/>', user: '<circle cx="9" cy="5" r="4"/><path d="M1 17c1-9 15-9 16 0"/>',
  swap: '<path d="M2 6h13l-4-4M16 12H3l4 4"/>', close: '<path d="M3 3l12 12M15 3L3 15"/>', calendar: '<path d="M2 4h14v12H2zM2 8h14M6 1v4M12 1v4"/>', down: '<path d="M3 6l6 6 6-6"/>'};
const ico = n => `<svg class="icon icon-${n}" viewBox="0 0 18 18">${icons[n]}</svg>`;
const esc = s => String(s).replace(/&/g, '&amp;').replace(/"/g, '&quot;').replace(/</g, '&lt;');
const money = n => '£' + n.toFixed(2);
const options = (list, cur) => list.map(o => `<option${o === cur ? ' selected' : ''}>${o}</option>`).join('');
const select = (key, list, cls = 'c-select') => `<select class="${cls}" id="${key}" name="${key}" data-bind="${key}">${options(list, S[key])}</select>`;
const check = (key, label) => `<label><input type="checkbox" name="${key}" data-bind="${key}"${S[key] ? ' checked' : ''}> ${label}</label>`;

function station(key, label, ph) {
  return `<div class="c-field"><label for="${key}">${label}</label><input class="c-input" id="${key}" name="${key}" type="text" placeholder="${ph}" autocomplete="off"
    role="combobox" data-bind="${key}" data-suggest="1" value="${esc(S[key])}"><ul class="c-suggest" role="listbox"></ul></div>`;
}
function field(key, label, ph, type = 'text') {
  return `<div class="c-field"><label for="${key}">${label}</label><input class="c-input" id="${key}" name="${key}" type="${type}" placeholder="${ph}" data-bind="${key}" value="${esc(S[key])}"></div>`;
}
function header() {
  const items = NAV.map(([name, sub]) => `<li class="c-nav__item"><a href="#home" class="c-nav__btn" aria-haspopup="true" aria-expanded="${S.menu === name}" data-do="menu" data-v="${name}">${name}</a>
    <ul class="c-menu${S.menu === name ? '' : ' u-hidden'}">${sub.map(([t, v]) => `<li><a href="#${v}" data-do="go" data-v="${v}">${t}</a></li>`).join('')}</ul></li>`).join('');
  return `<header class="c-head"><div class="l-wrap"><a class="c-logo" href="#home" data-do="go" data-v="home"><b></b>fennvia</a><ul class="c-nav">${items}</ul>
    <form class="c-search" role="search"><input type="search" name="q" placeholder="Search"><button type="button" class="c-iconbtn">${ico('search')}</button></form>
    <button class="c-iconbtn" data-do="go" data-v="basket">${ico('basket')}${S.basket.length ? `<span class="c-count">${S.basket.length}</span>` : ''}</button>
    <button class="c-iconbtn" aria-label="Your account">${ico('user')}</button></div></header>`;
}
function calendar() {
  if (S.open !== 'date') return '';
  const tables = MONTHS.map(([m, name, off, len]) => {
    const cells = [...Array(off).fill(0), ...Array.from({length: len}, (_, i) => i + 1)];
    const rows = [];
    for (let i = 0; i < cells.length; i += 7) rows.push(cells.slice(i, i + 7));
    return `<table role="grid"><caption>${name}</caption><thead><tr>${WEEK.map(w => `<th>${w}</th>`).join('')}</tr></thead><tbody>${rows.map(r => `<tr>${r.map(d => d
      ? `<td><button data-do="date" data-v="${d} ${name}" aria-pressed="${S.date === d + ' ' + name}"${m === 3 && d < 12 ? ' disabled' : ''}>${d}</button></td>` : '<td></td>').join('')}</tr>`).join('')}</tbody></table>`;
  });
  return `<div class="c-cal">${tables.join('')}</div>`;
}
function people() {
  if (S.open !== 'people') return '';
  const row = (key, label) => `<div class="c-step"><span>${label}</span><div><button data-do="less" data-v="${key}" aria-label="Fewer">−</button><b>${S[key]}</b><button data-do="more" data-v="${key}" aria-label="More">+</button></div></div>`;
  return `<div class="c-pop">${row('adults', 'Adults (16+)')}${row('kids', 'Children (5-15)')}<label class="c-label" for="card">Railcard</label>${select('card', ['No railcard', ...CARDS.map(c => c[0])])}
    <p></p><button class="c-btn c-btn--sm" data-do="open" data-v="">Done</button></div>`;
}
function planner() {
  const tab = (v, t) => `<button class="c-tabs__tab" role="tab" aria-selected="${S.tab === v}" data-do="tab" data-v="${v}">${t}</button>`;
  const trip = (v, t) => `<label class="c-radio"><input type="radio" name="trip" value="${v}" data-bind="trip"${S.trip === v ? ' checked' : ''}> ${t}</label>`;
  const who = `${S.adults} adult${S.adults > 1 ? 's' : ''}${S.kids ? `, ${S.kids} child${S.kids > 1 ? 'ren' : ''}` : ''}, ${S.card.toLowerCase()}`;
  const body = {
    journey: `<div class="c-row"><div>${trip('single', 'One way')}${trip('return', 'Return')}${trip('open', 'Open return')}</div></div>
      <div class="c-row">${station('from', 'From', 'Station or code')}<button class="c-swap" data-do="swap">${ico('swap')}</button>${station('to', 'To', 'Station or code')}</div>
      <div class="c-row"><div class="c-field"><span class="c-label">Going out</span><button class="c-fakeinput" data-do="open" data-v="date"><span>${S.date || 'Choose a date'}</span>${ico('calendar')}</button>${calendar()}</div>
      <div class="c-field"><label for="time">Leave after</label>${select('time', ['Any time', '06:00', '09:00', '12:00', '14:00', '17:00', '20:00'])}</div>
      <div class="c-field"><span class="c-label">Who's travelling</span><button class="c-fakeinput" data-do="open" data-v="people"><span>${who}</span>${ico('down')}</button>${people()}</div>
      <button class="c-btn" data-do="go" data-v="results">Find trains</button></div>`,
    live: `<div class="c-row">${station('boardQ', 'Station', 'Where are you?')}<button class="c-btn" data-do="board">Show board</button></div>`,
    season: seasonForm()};
  return `<div class="c-planner"><div class="c-tabs" role="tablist">${tab('journey', 'Trains')}${tab('live', 'Live departures')}${tab('season', 'Season tickets')}</div><div class="c-planner__body">${body[S.tab]}</div></div>`;
}
function seasonForm() {
  return `<div class="c-row">${station('sFrom', 'Between', 'Station')}${station('sTo', 'And', 'Station')}</div><div class="c-row"><div class="c-field"><label for="sDur">Valid for</label>
    ${select('sDur', ['Weekly', 'Monthly', 'Quarterly', 'Annual'])}</div><button class="c-btn" data-do="calc">Calculate</button></div>`;
}
function routes() {
  const list = [['Harrow Quay', 'Stennick', 18], ['Tavin', 'Port Merrow', 12], ['Dunnage', 'Merle Cross', 9], ['Brackmoor', 'Tavin', 15], ['Pelham Sands', 'Harrow Quay', 21], ['Orrin Bridge', 'Dunnage', 8], ['Stennick', 'Wick Lanes', 14], ['Port Merrow', 'Brackmoor', 17]];
  const col = ['#bcd4f2', '#cfe8d4', '#f5d9c2', '#e0d4ef'];
  return `<section class="l-sec"><div class="l-wrap"><h2>Popular journeys</h2><div class="l-grid4">${list.map(([a, b, p], i) => `<article class="c-card"><svg class="c-card__pic" viewBox="0 0 270 110" preserveAspectRatio="none"><rect width="270" height="110" fill="${col[i % 4]}"/><path d="M0 110V80l${70 + i * 9}-38 70 50 60-30 70 34v14z" fill="#7d97b8"/></svg>
    <div class="c-card__body"><h3>${a}</h3><span class="u-muted">to ${b}</span><div class="c-card__foot"><b>from £${p}</b><a class="c-btn c-btn--sm" href="#results" data-do="go" data-v="results">Book</a></div></div></article>`).join('')}</div></div></section>`;
}
function status() {
  const lines = [['Coast main line', 'Good service', ''], ['Moor line', 'Minor delays', '--late'], ['Harrow loop', 'Good service', ''], ['Tavin branch', 'Buses replace trains', '--off'], ['Stennick express', 'Good service', '']];
  const why = ['no changes.', 'slow running past Brackmoor after a failed point.', 'no changes.', 'a bridge is being repainted until 20 March.', 'no changes.'];
  return `<section class="l-sec l-sec--tint"><div class="l-wrap"><h2>Service today, 12 March</h2><table class="c-table"><thead><tr><th>Line</th><th>Status</th><th>Next update</th><th></th></tr></thead><tbody>${lines.map(([a, b, c], i) =>
    `<tr><td>${a}</td><td><span class="c-tag${c ? ' c-tag' + c : ''}">${b}</span></td><td>${13 + i % 2}:${20 + i * 5}</td><td><button class="c-link" data-do="line" data-v="${i}">Details</button></td></tr>${S.line === i ? `<tr><td colspan="4">${a}: ${why[i]}</td></tr>` : ''}`).join('')}</tbody></table></div></section>`;
}
const crumbs = (...t) => `<nav class="c-crumbs" aria-label="Breadcrumb"><a href="#home" data-do="go" data-v="home">Home</a>${t.map(x => `<span>/</span><span>${x}</span>`).join('')}</nav>`;
const home = () => `<section class="c-hero"><div class="l-wrap"><h1>Where to next?</h1>${planner()}</div></section>${routes()}<p></p>${status()}`;

function fares() {
  const cells = Array.from({length: 28}, (_, i) => i > 16 ? [i - 16, 'April'] : [i + 15, 'March']).map(([day, month], i) => `<td data-do="date" data-v="${day} ${month} 2026">${day} ${month.slice(0, 3)}<b>£${24 + (i * 7) % 23}</b></td>`);
  const rows = [0, 1, 2, 3].map(r => `<tr>${cells.slice(r * 7, r * 7 + 7).join('')}</tr>`).join('');
  return `<section class="l-sec"><h2>Lowest fares by day</h2><table class="c-fares"><tbody>${rows}</tbody></table></section>`;
}
function trainRow(t, i) {
  const [dep, arr, dur, ch, op, std, fst] = t;
  const fare = (cls, name, p) => `<button class="c-fare" data-do="fare" data-v="${i}:${cls}" aria-pressed="${S.fare === i + ':' + cls}"><small>${name}</small>${money(p)}</button>`;
  return `<article class="c-train"><div class="c-train__main"><span class="c-train__time">${dep} – ${arr}</span><div class="u-muted">${dur}, ${ch ? ch + ' change' + (ch > 1 ? 's' : '') : 'direct'} · ${op}</div>
    <a href="#results" class="c-link" data-do="calls" data-v="${i}">Calling points</a></div>${fare('s', 'Standard', std)}${fare('f', 'First', fst)}${S.calls === i ? `<ul class="c-calls"><li>${dep} ${S.from || 'Harrow Quay'}</li><li>Orrin Bridge</li><li>Merle Cross</li><li>${arr} ${S.to || 'Stennick'}</li></ul>` : ''}</article>`;
}
function shownTrains() {
  const list = TRAINS.map((t, i) => [t, i]).filter(([t]) => (!S.direct || t[3] === 0) && (!Object.values(S.ops).some(Boolean) || S.ops[t[4]]));
  const key = {Departure: t => t[0], 'Lowest price': t => t[5], 'First class price': t => t[6], Duration: t => t[2]}[S.sort];
  return list.sort((a, b) => key(a[0]) < key(b[0]) ? -1 : 1);
}
function results() {
  const pick = S.fare ? TRAINS[+S.fare.split(':')[0]] : null;
  const price = pick ? pick[S.fare.endsWith('f') ? 6 : 5] : 0;
  const list = shownTrains();
  return `<div class="l-wrap">${crumbs('Tickets', 'Choose a train')}<h1>${S.from || 'Harrow Quay'} to ${S.to || 'Stennick'}</h1>
    <div class="c-bar"><b>${S.date || '13 March 2026'}</b><button class="c-link">Earlier</button><button class="c-link">Later</button><span>${list.length} trains</span><label for="sort">Sort by</label>${select('sort', ['Departure', 'Lowest price', 'First class price', 'Duration'])}<button class="c-link" data-do="go" data-v="home">Edit</button></div>
    <div class="l-side"><aside><div class="c-filter"><h3>Trains</h3>${check('direct', 'Direct only')}${check('quiet', 'Quiet coach')}${check('cafe', 'With café')}${check('sockets', 'Power sockets')}${check('ramp', 'Step-free')}${check('wifi', 'Wi-Fi')}</div>
    <div class="c-filter"><h3>Operator</h3>${['Fennvia', 'Coastline', 'Moorlink'].map(o => `<label><input type="checkbox" name="op" value="${o}" data-op="${o}"${S.ops[o] ? ' checked' : ''}> ${o}</label>`).join('')}</div>
    <div class="c-filter"><h3>Railcard</h3>${select('card', ['No railcard', ...CARDS.map(c => c[0])])}</div>
    <div class="c-sum"><h3>Your choice</h3><dl><dt>${pick ? pick[0] + ', ' + (S.fare.endsWith('f') ? 'First' : 'Standard') : 'No train yet'}</dt><dd>${money(price)}</dd></dl><button class="c-btn" data-do="go" data-v="seat"${pick ? '' : ' disabled'}>Continue</button></div></aside>
    <div>${list.map(([t, i]) => trainRow(t, i)).join('')}${fares()}</div></div></div>`;
}
function summary(next, label) {
  const pick = TRAINS[+(S.fare || '5:f').split(':')[0]];
  const first = !S.fare || S.fare.endsWith('f');
  const price = pick[first ? 6 : 5];
  const extra = S.bikes * 4 + (S.lounge ? 15 : 0) + (S.meal === 'No meal' ? 0 : 12.5);
  return `<aside class="c-sum"><h3>${S.from || 'Harrow Quay'} to ${S.to || 'Stennick'}</h3><p>${S.date || '13 March 2026'}, ${pick[0]} – ${pick[1]}</p><dl><dt>${first ? 'First' : 'Standard'} × ${S.adults}</dt><dd>${money(price * S.adults)}</dd>
    <dt>Seat</dt><dd>${S.seat || 'Any'}</dd><dt>Extras</dt><dd>${money(extra)}</dd><dt>Total</dt><dd>${money(price * S.adults + extra)}</dd></dl><a class="c-btn" href="#${next}" data-do="${next}" data-v="Train at ${pick[0]}, seat ${S.seat || 'any'}|${price * S.adults + extra}">${label}</a></aside>`;
}
const steps = n => `<ol class="c-steps">${['Train', 'Seat & extras', 'Travellers', 'Pay'].map((t, i) => `<li${i === n ? ' class="is-on"' : ''}>${t}</li>`).join('')}</ol>`;
function seat() {
  const ex = (t, d, c) => `<div class="c-extra"><div class="c-extra__t"><b>${t}</b><div class="u-muted">${d}</div></div>${c}</div>`;
  return `<div class="l-wrap">${crumbs('Tickets', 'Seat & extras')}${steps(1)}<h1>Seat and extras</h1><div class="l-aside"><div><div class="c-panel"><h2>Choose your seat</h2><div class="c-coach">${['A', 'B', 'C', 'D'].map(c =>
    `<button data-do="coach" data-v="${c}" aria-pressed="${S.coach === c}">Coach ${c}</button>`).join('')}</div><canvas class="seatplan" width="720" height="230"></canvas><p class="u-muted">Blue: taken. White: free. ${S.seat ? 'You chose ' + S.seat + '.' : ''}</p></div>
    <div class="c-panel"><h2>Extras</h2>${ex('Meal at your seat', 'Served after departure, £12.50', `<div style="width:200px">${select('meal', ['No meal', 'Breakfast', 'Vegetarian lunch', 'Chicken lunch', 'Cheese board'])}</div>`)}
    ${ex('Extra luggage', 'Over two bags, £6', '<button class="c-btn c-btn--ghost c-btn--sm">Add</button>')}${ex('Travel insurance', 'One trip, £5', '<button class="c-btn c-btn--ghost c-btn--sm">Add</button>')}${ex('Carbon contribution', '£1', '<button class="c-btn c-btn--ghost c-btn--sm">Add</button>')}${ex('Lounge', 'From two hours before, £15', check('lounge', 'Add'))}
    ${ex('Bicycle space', '£4 each', `<div class="c-step"><div><button data-do="less" data-v="bikes" aria-label="Fewer">−</button><b>${S.bikes}</b><button data-do="more" data-v="bikes" aria-label="More">+</button></div></div>`)}</div></div>
    ${summary('pax', 'Continue')}</div></div>`;
}
function pax() {
  const t = (k, l, ph, ty) => `<div class="c-field"><label>${l}</label><input class="c-input" type="${ty || 'text'}" name="${k}" placeholder="${ph}" data-pax="${k}" value="${esc(S.pax[k] || '')}"></div>`;
  return `<div class="l-wrap">${crumbs('Tickets', 'Travellers')}${steps(2)}<h1>Who is travelling?</h1><div class="l-aside"><div class="c-panel"><h2>Adult 1</h2><div class="c-row">${t('first', 'First name', '')}${t('last', 'Last name', '')}</div><div class="c-row">${t('email', 'Email', 'name@example.org', 'email')}${t('tel', 'Mobile', 'Optional', 'tel')}</div>
    <h3>Get your ticket</h3><label class="c-radio"><input type="radio" name="deliver" checked> In the app</label><label class="c-radio"><input type="radio" name="deliver"> Station machine</label><label class="c-radio"><input type="radio" name="deliver"> Post</label></div>${summary('add', 'Go to payment')}</div></div>`;
}
function board() {
  const shown = BOARD.map((b, i) => [b, i]).filter(([b]) => b[1] !== S.boardAt && (S.plat === 'All platforms' || S.plat === 'Platform ' + b[2]));
  const cls = s => s === 'On time' ? '' : s === 'Cancelled' ? ' c-tag--off' : ' c-tag--late';
  return `<div class="l-wrap">${crumbs('Times & tracking', 'Live departures')}<h1>Live departures: ${S.boardAt}</h1><div class="c-panel"><div class="c-row">${station('boardQ', 'Change station', 'Station or code')}<div class="c-field"><label for="plat">Platform</label>${select('plat', ['All platforms', 'Platform 1', 'Platform 2', 'Platform 4', 'Platform 7'])}</div><button class="c-btn" data-do="board">Show board</button></div></div><p class="c-note">Times are live. A platform may change until five minutes before a train leaves.</p>
    <div class="c-tabs" role="tablist">${[['dep', 'Departures'], ['arr', 'Arrivals']].map(([v, t]) => `<button role="tab" class="c-tabs__tab" aria-selected="${S.boardTab === v}" data-do="btab" data-v="${v}">${t}</button>`).join('')}</div>
    <table class="c-table"><thead><tr><th><button>Time</button></th><th><button>${S.boardTab === 'dep' ? 'To' : 'From'}</button></th><th>Platform</th><th>Status</th><th>Operator</th><th></th></tr></thead><tbody>${shown.map(([b, i]) =>
    `<tr><td><b>${b[0]}</b></td><td>${b[1]}</td><td>${b[2]}</td><td><span class="c-tag${cls(b[3])}">${b[3]}</span></td><td>${b[4]}</td><td>${b[3] === 'Cancelled' ? '' : `<a href="#board" class="c-btn c-btn--ghost c-btn--sm" data-do="track" data-v="${i}">Track</a>`}</td></tr>`).join('')}</tbody></table></div>
    ${S.track >= 0 ? `<div class="c-modal" role="dialog" aria-modal="true"><button class="c-modal__x" data-do="track" data-v="-1">${ico('close')}</button><h2>${BOARD[S.track][0]} to ${BOARD[S.track][1]}</h2><p>Platform ${BOARD[S.track][2]}, ${BOARD[S.track][3].toLowerCase()}.</p><ul><li>Orrin Bridge</li><li>Merle Cross</li><li>${BOARD[S.track][1]}</li></ul>${S.texts ? '<p class="c-ok">We will text you.</p>' : '<button class="c-btn" data-do="texts">Text me changes</button>'}</div>` : ''}`;
}
function season() {
  const days = {Weekly: 1, Monthly: 3.84, Quarterly: 11.5, Annual: 40}[S.sDur];
  const rows = [['Standard', 64.5], ['First', 98.2], ['Flexible, 8 days in 28', 51.3]];
  return `<div class="l-wrap">${crumbs('Tickets', 'Season tickets')}<h1>Season tickets</h1><div class="c-panel">${seasonForm()}</div>${S.sDone ? `<h2>${S.sDur} ticket, ${S.sFrom} – ${S.sTo}</h2><table class="c-table"><thead><tr><th>Ticket</th><th>Price</th><th>Per day</th><th></th></tr></thead><tbody>${rows.map(([n, p]) =>
    `<tr><td>${n}</td><td><b>${money(p * days)}</b></td><td>${money(p / 5)}</td><td><button class="c-btn c-btn--sm" data-do="add" data-v="${S.sDur} season, ${n}: ${S.sFrom} – ${S.sTo}|${(p * days).toFixed(2)}">Add to basket</button></td></tr>`).join('')}</tbody></table>` : '<p class="c-note">Enter two stations to see prices.</p>'}</div>`;
}
function cards() {
  return `<div class="l-wrap">${crumbs('Railcards')}<h1>Railcards</h1><p class="c-note">A railcard takes a third off most fares.</p><div class="l-grid3">${CARDS.map(([n, d, p, c], i) => `<article class="c-card"><svg class="c-card__pic" viewBox="0 0 360 110" preserveAspectRatio="xMidYMid slice"><rect width="360" height="110" fill="${c}"/><rect x="130" y="25" width="100" height="60" rx="6" fill="#0b2447"/></svg><div class="c-card__body"><h3>${n}</h3><span class="u-muted">${d}</span>
    <div class="c-card__foot"><b>£${p} a year</b><button class="c-btn c-btn--sm" data-do="buycard" data-v="${i}">Buy</button></div><button class="c-link">Who can have it</button></div></article>`).join('')}</div></div>`;
}
function cardbuy() {
  const [n, , p] = CARDS[S.cardPick];
  return `<div class="l-wrap">${crumbs('Railcards', n)}<h1>${n} railcard</h1><div class="l-aside"><div class="c-panel"><h3>How long?</h3><div class="c-dur">${[1, 3].map(y => `<button data-do="years" data-v="${y}" aria-pressed="${S.years === y}"><b>${y} year${y > 1 ? 's' : ''}</b><br>£${y === 1 ? p : p * 2 + 10}</button>`).join('')}</div><p></p>
    <div class="c-row">${field('cardName', 'Name on the card', 'First and last name')}</div><div class="c-row">${field('cardMail', 'Email', 'name@example.org', 'email')}</div>
    <label class="c-radio"><input type="radio" name="form" checked> Digital card</label><label class="c-radio"><input type="radio" name="form"> Plastic card (+£2)</label></div>
    <aside class="c-sum"><h3>Summary</h3><dl><dt>${n}, ${S.years} year${S.years > 1 ? 's' : ''}</dt><dd>£${S.years === 1 ? p : p * 2 + 10}</dd></dl><button class="c-btn" data-do="add" data-v="${n} railcard, ${S.years} year${S.years > 1 ? 's' : ''}|${S.years === 1 ? p : p * 2 + 10}">Add to basket</button></aside></div></div>`;
}
function delay() {
  const why = ['Signal fault', 'Train fault', 'Weather', 'I was not told'];
  return `<div class="l-wrap">${crumbs('Help', 'Delay compensation')}<h1>Delay compensation</h1><p class="c-note">Claim within 28 days of travel.</p><div class="l-aside"><div class="c-panel">${S.cdone ? `<p class="c-ok">Claim received for ${esc(S.cref)}. We answer within 10 days.</p>` : ''}<div class="c-row">${field('cref', 'Booking reference', 'e.g. FN00000')}${field('cdate', 'Date of travel', 'dd/mm/yyyy')}</div>
    <div class="c-row"><div class="c-field"><label>How late did you arrive?</label>${select('clen', ['Choose length', '15 to 29 minutes', '30 to 59 minutes', '60 to 119 minutes', '2 hours or more'])}</div></div><h3>What did staff say?</h3>${why.map(w => `<label class="c-radio"><input type="radio" name="cwhy" value="${w}" data-bind="cwhy"${S.cwhy === w ? ' checked' : ''}> ${w}</label>`).join('')}<p></p>
    <button class="c-btn" data-do="claim">Send claim</button></div><aside class="c-sum"><h3>What you get back</h3><dl><dt>15 to 29 min</dt><dd>25 %</dd><dt>30 to 59 min</dt><dd>50 %</dd><dt>60 min or more</dt><dd>100 %</dd></dl></aside></div></div>`;
}
const help = () => `<div class="l-wrap">${crumbs('Help')}<h1>How can we help?</h1><div class="l-grid3">${['Assisted travel', 'Lost property', 'Contact', 'Refunds', 'Railcards', 'Groups'].map(t => `<article class="c-card"><div class="c-card__body"><h3>${t}</h3><p class="u-muted">Open every day, 06:00 to 22:00</p><button class="c-btn c-btn--ghost c-btn--sm">Start</button></div></article>`).join('')}</div></div>`;
function basket() {
  const sum = S.basket.reduce((a, b) => a + b[1], 0);
  return `<div class="l-wrap">${crumbs('Basket')}<h1>Your basket</h1><div class="l-aside"><div class="c-panel">${S.basket.length ? `<table class="c-table"><thead><tr><th>Item</th><th>Price</th><th></th></tr></thead><tbody>${S.basket.map((b, i) =>
    `<tr><td>${esc(b[0])}</td><td>${money(b[1])}</td><td><button class="c-iconbtn" data-do="drop" data-v="${i}">${ico('close')}</button></td></tr>`).join('')}</tbody></table>` : '<p>Nothing here yet.</p>'}</div><aside class="c-sum"><dl><dt>Total</dt><dd>${money(sum)}</dd></dl><button class="c-btn"${sum ? '' : ' disabled'}>Check out</button></aside></div></div>`;
}
const VIEWS = {home, results, seat, pax, board, season, cards, cardbuy, delay, help, basket};
const CONSENT = `<style>body{margin:0;font:15px Arial,sans-serif;background:#14233b;color:#fff;padding:24px 70px}button{font:inherit;padding:11px 20px;margin-right:12px;border:0}.a{background:#ffc629}</style>
  <p>Fennvia uses cookies to keep you signed in and to measure visits.</p><button class='a' onclick='parent.consent()'>Accept all</button><button class='b' onclick='parent.consent()'>Only necessary</button><button>Settings</button>`;
function cookie() {
  let f = document.querySelector('.c-cookie');
  if (!S.cookie) { if (f) f.remove(); return; }
  if (f) return;
  f = document.createElement('iframe');
  f.className = 'c-cookie';
  f.srcdoc = CONSENT;
  document.body.appendChild(f);
}
window.consent = () => { S.cookie = false; cookie(); };
const seatAt = (x, y) => { const row = y < 74 ? 'A' : y < 136 ? 'B' : y > 160 ? 'C' : ''; return row && x > 20 ? row + (1 + Math.floor((x - 20) / 50)) : ''; };
function drawSeats() {
  const c = document.querySelector('.seatplan');
  if (!c) return;
  const g = c.getContext('2d');
  g.fillStyle = '#eef3fa'; g.fillRect(0, 0, 720, 230);
  for (let i = 0; i < 14; i++) for (const [r, y] of [['A', 18], ['B', 80], ['C', 166]]) {
    const id = r + (i + 1);
    g.fillStyle = S.seat === S.coach + ' ' + id ? '#ffc629' : (i * 5 + y) % 7 < 2 ? '#0d4ea6' : '#ffffff';
    g.fillRect(24 + i * 50, y, 40, 48);
  }
  c.onclick = e => { const id = seatAt(e.offsetX, e.offsetY); if (id) { S.seat = S.coach + ' ' + id; render(); } };
}
function render() {
  document.getElementById('app').innerHTML = header() + '<main>' + VIEWS[S.view]() + '</main>';
  drawSeats();
  cookie();
}
function go(v) { S.view = VIEWS[v] ? v : 'home'; S.menu = ''; S.open = ''; window.scrollTo(0, 0); }
const ACT = {
  menu: v => { S.menu = S.menu === v ? '' : v; }, go, tab: v => { S.tab = v; S.open = ''; }, open: v => { S.open = S.open === v ? '' : v; }, date: v => { S.date = v; S.open = ''; },
  swap: () => { [S.from, S.to] = [S.to, S.from]; }, less: k => { S[k] = Math.max(k === 'adults' ? 1 : 0, S[k] - 1); }, more: k => { S[k] += 1; },
  calls: v => { S.calls = S.calls === +v ? -1 : +v; }, fare: v => { S.fare = v; }, coach: v => { S.coach = v; S.seat = ''; }, board: () => { if (S.boardQ) S.boardAt = S.boardQ; S.view = 'board'; },
  btab: v => { S.boardTab = v; }, track: v => { S.track = +v; S.texts = false; }, texts: () => { S.texts = true; }, line: v => { S.line = +v; }, calc: () => { S.sDone = Boolean(S.sFrom && S.sTo); go('season'); }, pax: () => go('pax'), add: v => { const [n, p] = v.split('|'); S.basket.push([n, +p]); go('basket'); },
  buycard: v => { S.cardPick = +v; go('cardbuy'); }, years: v => { S.years = +v; }, claim: () => { S.cdone = true; }, drop: v => { S.basket.splice(+v, 1); },
  pick: v => { const [k, name] = v.split('|'); S[k] = name; if (k === 'boardQ' && S.view === 'board') S.boardAt = name; }};
document.addEventListener('click', e => {
  const el = e.target.closest('[data-do]');
  if (e.target.closest('#app a')) e.preventDefault();
  if (!el || el.disabled) return;
  ACT[el.dataset.do](el.dataset.v);
  render();
});
document.addEventListener('input', e => {
  const el = e.target;
  if (el.dataset.pax) { S.pax[el.dataset.pax] = el.value; el.setAttribute('value', el.value); }
  if (!el.dataset.bind || el.tagName === 'SELECT' || /checkbox|radio/.test(el.type)) return;
  S[el.dataset.bind] = el.value;
  el.setAttribute('value', el.value);
  if (el.dataset.suggest) {
    const q = el.value.toLowerCase();
    el.nextElementSibling.innerHTML = q && !STATIONS.some(s => s[0].toLowerCase() === q) ? STATIONS.filter(s => s[0].toLowerCase().includes(q) || s[1].toLowerCase() === q).map(s => `<li role="option" data-do="pick" data-v="${el.dataset.bind}|${s[0]}"><span>${s[0]}</span><span class="u-muted">${s[1]}</span></li>`).join('') : '';
  }
});
document.addEventListener('change', e => {
  const el = e.target;
  if (el.dataset.op) S.ops[el.dataset.op] = el.checked;
  else if (el.dataset.bind && el.type === 'checkbox') S[el.dataset.bind] = el.checked;
  else if (el.dataset.bind && (el.tagName === 'SELECT' || el.type === 'radio')) S[el.dataset.bind] = el.value;
  else return;
  render();
});
document.addEventListener('submit', e => e.preventDefault());
if (location.hash) go(location.hash.slice(1)); else S.cookie = true;
render();
// For checks of what was done: what counts, and what was sent; not what is only open or unfolded.
window.siteState = () => { const { menu, open, ...kept } = S; return { ...kept, sent: [kept.sDone && 'season ticket', kept.cdone && 'claim'] }; };

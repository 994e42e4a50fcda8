'use strict';
// Today is Thursday, March 12, 2026.
const P = {
  search: '<circle cx="11" cy="11" r="7"/><path d="M16 16l5 5"/>', heart: '<path d="M12 20L4 12a5 5 0 0 1 8-6 5 5 0 0 1 8 6z"/>',
  user: '<circle cx="12" cy="8" r="4"/><path d="M4 21c0-9 16-9 16 0"/>', close: '<path d="M5 5l14 14M19 5L5 19"/>',
  down: '<path d="M5 9l7 7 7-7"/>', left: '<path d="M15 5l-7 7 7 7"/>', right: '<path d="M9 5l7 7-7 7"/>',
  drop: '<path d="M12 3c8 10 6 17 0 17s-8-7 0-17z"/>', bolt: '<path d="M13 2L5 14h6l-1 8 8-12h-6z"/>', broom: '<path d="M14 3l-4 9M6 12h9l2 9H4z"/>',
  leaf: '<path d="M4 20C4 8 12 4 20 4c0 10-6 15-14 13"/>', brush: '<path d="M4 4h14v6H4zM11 10v5M9 15h4v6H9z"/>', key: '<circle cx="8" cy="14" r="4"/><path d="M11 11l9-8M17 6l3 3"/>',
  box: '<path d="M3 7l9-4 9 4v11l-9 4-9-4zM3 7l9 4 9-4M12 11v11"/>', fan: '<circle cx="12" cy="12" r="3"/><path d="M12 9V3M12 15v6M9 12H3M15 12h6"/>', tv: '<path d="M3 5h18v12H3zM8 21h8"/>',
  roof: '<path d="M2 13L12 4l10 9M5 11v9h14v-9"/>', bug: '<circle cx="12" cy="13" r="5"/><path d="M12 8V4M7 13H3M21 13h-4M8 17l-4 3M16 17l4 3"/>', saw: '<path d="M3 8h18l-3 7H6zM6 15v4"/>'
};
const ic = n => `<svg class="icon icon-${n}" viewBox="0 0 24 24">${P[n]}</svg>`;
const CATS = [['plumbing', 'Plumbing', 'drop', '#3a7ca5', 214], ['electrical', 'Electrical', 'bolt', '#d9a021', 163], ['cleaning', 'House cleaning', 'broom', '#5aa17f', 388], ['garden', 'Lawn & garden', 'leaf', '#6b8e23', 201],
  ['painting', 'Painting', 'brush', '#b1597a', 147], ['locks', 'Locksmiths', 'key', '#8a6d3b', 58], ['moving', 'Moving help', 'box', '#a4613c', 176], ['hvac', 'Heating & air', 'fan', '#4d6fa9', 122],
  ['mounting', 'TV mounting', 'tv', '#5b5b7a', 94], ['roofing', 'Roof & gutter', 'roof', '#7a4b3a', 71], ['pest', 'Pest control', 'bug', '#7c8b3d', 64], ['carpentry', 'Carpentry', 'saw', '#946b2d', 109]];
const PROS = [
  ['lakeside', 'Lakeside Pipe & Drain', 'plumbing', 4.8, 312, 95, 'English, Polish', 1, '#3a7ca5'], ['ruiz', 'Ruiz Brothers Plumbing', 'plumbing', 4.7, 188, 88, 'English, Spanish', 1, '#b1597a'],
  ['copperline', 'Copperline Plumbers', 'plumbing', 4.4, 96, 79, 'English, Spanish', 0, '#a4613c'], ['drainjack', 'Drain Jack', 'plumbing', 4.1, 57, 69, 'English', 0, '#5b5b7a'],
  ['wellspring', 'Wellspring Home Water', 'plumbing', 4.9, 420, 120, 'English', 1, '#1f5c4a'], ['northpipe', 'North Branch Pipeworks', 'plumbing', 4.2, 41, 75, 'English, Polish', 1, '#6b8e23'],
  ['oakhurst', 'Oakhurst Electric', 'electrical', 4.6, 143, 110, 'English', 1, '#d9a021'], ['ampere', 'Ampere & Daughters', 'electrical', 4.9, 208, 125, 'English, Polish', 1, '#7a4b3a'],
  ['brightwire', 'Brightwire Electrical', 'electrical', 4.3, 66, 98, 'English, Spanish', 0, '#4d6fa9'], ['faraday', 'Faraday Street Electric', 'electrical', 4.5, 85, 105, 'English', 1, '#5aa17f'],
  ['tidyfox', 'Tidyfox Cleaning', 'cleaning', 4.8, 530, 42, 'English, Spanish', 1, '#c2571f'], ['polishpail', 'Pail & Polish', 'cleaning', 4.5, 231, 38, 'English, Polish', 1, '#5aa17f'],
  ['sunday', 'Sunday Reset Cleaners', 'cleaning', 4.6, 119, 45, 'English', 0, '#4d6fa9'], ['marigold', 'Marigold Housekeeping', 'cleaning', 4.2, 74, 35, 'English, Spanish', 1, '#d9a021']
].map(([id, name, cat, rate, n, price, lang, checked, col]) => ({ id, name, cat, rate, n, price, lang, checked, col }));
const JOBS = [['Leaking faucet repair', 'plumbing'], ['Leaking pipe under sink', 'plumbing'], ['Leak in roof', 'roofing'], ['Light fixture installation', 'electrical'], ['Ceiling fan wiring', 'electrical'], ['Deep cleaning', 'cleaning'], ['Move-out cleaning', 'cleaning'], ['Gutter cleaning', 'roofing']];
const PACKS = { plumbing: [['Diagnostic visit', '45 min on site, written quote', 0], ['Small repair', 'One fixture, parts up to $30', 60], ['Half-day job', 'Up to 4 hours, one plumber', 240]],
  electrical: [['Diagnostic visit', 'Test and report', 0], ['Fixture install', 'One light or fan', 55], ['Panel check', 'Full safety inspection', 130]],
  cleaning: [['Regular clean', '2 cleaners, 2 hours', 64], ['Deep clean', '2 cleaners, 4 hours, inside oven', 148], ['Move-out clean', '3 cleaners, full day', 265]] };
const REV = [[5, 'Dana W.', 'Feb 2026', 'On time, tidy and explained the bill.'], [3, 'Isaac P.', 'Jan 2026', 'Good work, but came two hours late.'], [4, 'Lucia M.', 'Jan 2026', 'Friendly and quick.'], [1, 'Ken T.', 'Dec 2025', 'Had to call back twice.'],
  [3, 'Rosa H.', 'Oct 2025', 'Fair price. Left some dust behind.'], [5, 'Bea O.', 'Sep 2025', 'Would hire again tomorrow.'], [3, 'Omar S.', 'Jun 2025', 'Average job overall.'], [2, 'Yun C.', 'May 2025', 'Quote changed on the day.']];
const S = { view: 'home', menu: '', q: '', what: '', zip: '', cat: 'plumbing', rate: 0, langs: [], checked: false, price: '', when: '', sort: 'Recommended', dd: false, pro: 'tidyfox', tab: 'about', revStars: 'All ratings', revSort: 'Newest first',
  pack: 1, month: 3, day: 0, time: '', size: '', extras: [], note: '', gate: '', paid: false, faq: -1, fav: [], modal: null, reason: '', amt: 50, design: 0, gname: '', gmail: '', gqty: 1, gwhen: 'now', msg: '', btab: 'up', cancelled: [], cart: 0 };
const esc = s => String(s).replace(/&/g, '&amp;').replace(/"/g, '&quot;').replace(/</g, '&lt;');
const pro = () => PROS.find(p => p.id === S.pro);
const catName = id => CATS.find(c => c[0] === id)[1];

function header() {
  const svc = `<ul class="menu menu--wide">${CATS.map(c => `<li><a href="#" data-act="cat:${c[0]}">${c[1]}</a></li>`).join('')}</ul>`;
  const acc = `<ul class="menu"><li><b>Hi, Morgan</b></li><li><a href="#" data-act="go:bookings">My bookings</a></li><li><a href="#">Messages (2)</a></li><li><a href="#">Payment methods</a></li><li><a href="#">Saved pros (${S.fav.length})</a></li><li><a href="#">Sign out</a></li></ul>`;
  return `<div class="topbar"><div class="wrap"><span>Serving Chicago and 41 suburbs</span><span><a href="#" data-act="go:gift">Gift cards</a><a href="#" data-act="go:help">Help</a><a href="?p=join-as-a-pro">Join as a pro</a></span></div></div>
  <header class="header"><div class="wrap header__row"><a class="logo" href="#" data-act="go:home"><i class="logo__mark"></i>brindlefix</a>
  <form class="header__search" data-act="hsearch"><input type="text" name="q" placeholder="Search services or pros" value="${esc(S.q)}"><button type="button" data-act="hsearch">${ic('search')}</button></form>
  <nav class="nav"><button class="nav__item" data-act="menu:svc" aria-expanded="${S.menu === 'svc'}">Services ${ic('down')}</button><a class="nav__item" href="?p=cost-guides">Cost guides</a><button class="iconbtn" title="Saved">${ic('heart')}</button><button class="iconbtn" data-act="menu:acc">${ic('user')}</button>
  ${S.menu === 'svc' ? svc : ''}${S.menu === 'acc' ? acc : ''}</nav></div></header>`;
}
const QS = [['Are pros background-checked?', 'Pros with the Checked badge passed a national check.'], ['When am I charged?', 'Only after the job is done.'], ['Can I cancel?', 'Free up to 24 hours before the visit.'], ['What does the guarantee cover?', 'Up to $2,500 in damages.'], ['Do I need to be at home?', 'Leave gate or lockbox codes when you book.'], ['How do I tip?', 'Tips can be added for 7 days after the visit.']];
const faq = t => `<section class="section wrap"><h2>${t}</h2><div class="faq">${QS.map((q, i) => `<button class="faq__q" data-act="faq:${i}">${q[0]} ${ic('down')}</button>${S.faq === i ? `<div class="faq__a">${q[1]}</div>` : ''}`).join('')}</div></section>`;
const mini = p => `<div class="card"><div class="card__pic" style="background:${p.col}"><svg viewBox="0 0 24 24">${P[CATS.find(c => c[0] === p.cat)[2]]}</svg></div><div class="card__body"><h3>${p.name}</h3><p><span class="stars">&#9733; ${p.rate}</span> <span class="muted">(${p.n}) &middot; ${catName(p.cat)}</span></p>
  <div class="row row--between"><b>from $${p.price}</b><a class="btn btn--main" href="#" data-act="sched:${p.id}">Schedule</a></div></div></div>`;
const near = t => `<section class="section wrap"><h2>${t}</h2><div class="cards">${['wellspring', 'ampere', 'polishpail'].map(i => mini(PROS.find(p => p.id === i))).join('')}</div></section>`;
function home() {
  const sug = S.what.length > 2 && !S.whatPicked ? JOBS.filter(j => j[0].toLowerCase().includes(S.what.toLowerCase())) : [];
  return `<section class="hero"><div class="wrap"><h1>Home repairs, handled by neighbors you can trust</h1><p>Compare prices, pick a time, relax.</p>
  <div class="hero__form"><input class="hero__what" placeholder="What do you need done?" value="${esc(S.what)}" data-in="what" autocomplete="off"><input class="hero__zip" placeholder="ZIP code" value="${esc(S.zip)}" data-in="zip"><button class="btn btn--main" data-act="find">Find pros</button>
  ${sug.length ? `<ul class="suggest">${sug.map(j => `<li data-act="pick:${j[0]}|${j[1]}">${j[0]}<small>${catName(j[1])}</small></li>`).join('')}</ul>` : ''}</div>
  <div class="hero__tags"><a class="tag" href="#" data-act="cat:cleaning">House cleaning</a><a class="tag" href="#" data-act="cat:plumbing">Plumbers</a><a class="tag" href="#">Handyman</a><a class="tag" href="#">Snow removal</a></div></div></section>
  <section class="section wrap"><h2>Browse by trade</h2><div class="tiles">${CATS.map(c => `<div class="tile" data-act="cat:${c[0]}"><div class="tile__ic" style="background:${c[3]};color:#fff">${ic(c[2])}</div><b>${c[1]}</b><small>${c[4]} pros</small></div>`).join('')}</div></section>
  ${near('Available this week near you')}
  <section class="section wrap"><h2>How it works</h2><div class="steps3"><div><b>1</b><h3>Tell us the job</h3>Answer two or three short questions.</div><div><b>2</b><h3>Pick a pro and a time</h3>Real calendars, no phone tag.</div><div><b>3</b><h3>Pay when it is done</h3>Every job is covered by our guarantee.</div></div></section>
  <section class="section wrap"><h2>What jobs cost in Chicago</h2><table class="ptable"><tr><th>Job</th><th>Low</th><th>Typical</th><th>High</th><th></th></tr>${[['Faucet repair', 90, 150, 240], ['Outlet install', 85, 130, 210], ['Deep clean, 3 rooms', 140, 210, 330], ['Gutter cleaning', 110, 165, 260], ['Interior door', 180, 290, 450]].map(r => `<tr><td>${r[0]}</td><td>$${r[1]}</td><td><b>$${r[2]}</b></td><td>$${r[3]}</td><td><a href="?p=${r[0].toLowerCase().replace(/\W+/g, '-')}">Full guide</a></td></tr>`).join('')}</table></section>${faq('Questions people ask')}`;
}
function results() {
  let l = PROS.filter(p => p.cat === S.cat && p.rate >= S.rate && S.langs.every(x => p.lang.includes(x)) && (!S.checked || p.checked));
  if (S.price === 'u80') l = l.filter(p => p.price < 80); if (S.price === 'u100') l = l.filter(p => p.price < 100);
  if (S.sort === 'Lowest price') l.sort((a, b) => a.price - b.price); if (S.sort === 'Highest rated') l.sort((a, b) => b.rate - a.rate); if (S.sort === 'Most reviews') l.sort((a, b) => b.n - a.n);
  const box = (t, name, on, act, n) => `<label class="opt"><input type="checkbox" name="${name}" ${on ? 'checked' : ''} data-act="${act}">${t}<em>${n}</em></label>`;
  const rad = (t, name, v, on, act) => `<label class="opt"><input type="radio" name="${name}" value="${v}" ${on ? 'checked' : ''} data-act="${act}">${t}</label>`;
  const chips = [...S.langs.map(x => [x, 'lang:' + x]), ...(S.rate ? [[S.rate + '+ stars', 'rate:0']] : []), ...(S.checked ? [['Background-checked', 'checked']] : [])];
  return `<div class="wrap"><nav class="crumbs"><a href="#" data-act="go:home">Home</a><span>/</span><a href="#">Chicago</a><span>/</span><span>${catName(S.cat)}</span></nav><h1>${catName(S.cat)} pros${S.zip ? ' near ' + esc(S.zip) : ' in Chicago'}</h1>
  <div class="list"><aside class="filters"><h4>Availability</h4>${rad('Any time', 'when', '', !S.when, 'when:')}${rad('Today', 'when', 'd', S.when === 'd', 'when:d')}${rad('This week', 'when', 'w', S.when === 'w', 'when:w')}${rad('Weekend', 'when', 'e', S.when === 'e', 'when:e')}
  <h4>Customer rating</h4>${rad('Any', 'rating', 0, !S.rate, 'rate:0')}${rad('4.0 and up', 'rating', 4, S.rate === 4, 'rate:4')}${rad('4.5 and up', 'rating', 4.5, S.rate === 4.5, 'rate:4.5')}${rad('4.8 and up', 'rating', 4.8, S.rate === 4.8, 'rate:4.8')}
  <h4>Hourly price</h4>${rad('Any', 'price', '', !S.price, 'price:')}${rad('Under $80', 'price', 'u80', S.price === 'u80', 'price:u80')}${rad('Under $100', 'price', 'u100', S.price === 'u100', 'price:u100')}
  <h4>Languages</h4>${['English', 'Spanish', 'Polish', 'Mandarin'].map((x, i) => box(x, 'lang', S.langs.includes(x), 'lang:' + x, [6, 2, 2, 0][i])).join('')}
  <h4>More</h4>${box('Background-checked', 'bg', S.checked, 'checked', 4)}${box('Instant booking', 'ib', 0, '', 5)}${box('Weekend visits', 'we', 0, '', 3)}${box('Pet friendly', 'pf', 0, '', 2)}</aside>
  <div><div class="row row--between"><span class="muted">${l.length} pros match</span><div class="dd"><button class="dd__btn" data-act="dd">Sort: ${S.sort} ${ic('down')}</button>${S.dd ? `<ul class="dd__list" role="listbox">${['Recommended', 'Highest rated', 'Lowest price', 'Most reviews'].map(x => `<li role="option" data-act="sort:${x}">${x}</li>`).join('')}</ul>` : ''}</div></div>
  <div class="chips">${chips.map(c => `<button class="chip" data-act="${c[1]}">${c[0]} &times;</button>`).join('')}</div>
  ${l.map(p => `<article class="pro"><div class="pro__av" style="background:${p.col}">${p.name[0]}</div><div><h3>${p.name}</h3><p><span class="stars">&#9733; ${p.rate}</span> <span class="muted">${p.n} reviews</span></p><p>${p.checked ? '<span class="badge">Checked</span>' : ''}<span class="badge badge--o">${p.n > 150 ? 'Popular' : 'New slots'}</span></p><p class="muted">Speaks ${p.lang}</p></div>
  <div class="pro__side"><button class="iconbtn" data-act="fav:${p.id}" ${S.fav.includes(p.id) ? 'style="color:#e8743b"' : ''}>${ic('heart')}</button><span class="pro__price">$${p.price}/hr</span><a class="btn btn--main" href="#" data-act="sched:${p.id}">Schedule</a><a href="#" data-act="pro:${p.id}">View profile</a></div></article>`).join('')}
  <div class="pager"><a href="#">1</a><a href="#">2</a><a href="#">3</a><a href="#" aria-label="Next page">${ic('right')}</a></div></div></div></div>${near('Other pros people book')}${faq('Before you hire')}`;
}
function profile() {
  const p = pro();
  let rv = REV.filter(r => S.revStars === 'All ratings' || r[0] === +S.revStars[0]); if (S.revSort === 'Oldest first') rv = rv.slice().reverse(); if (S.revSort === 'Lowest rated') rv = rv.slice().sort((a, b) => a[0] - b[0]);
  const sel = (n, v, o) => `<select class="inp" name="${n}" data-sel="${n}" style="width:190px">${o.map(x => `<option ${x === v ? 'selected' : ''}>${x}</option>`).join('')}</select>`;
  const body = S.tab === 'about' ? `<div class="box"><h2>About</h2><p>A family business with ${p.n} reviews on Brindlefix. Licensed and insured in Illinois.</p><ul class="sum"><li>Founded <b>2011</b></li><li>Employees <b>6</b></li><li>Languages <b>${p.lang}</b></li><li>Answers in <b>about 20 min</b></li></ul></div>`
    : S.tab === 'reviews' ? `<div class="box"><div class="row"><h2 style="flex:1">Reviews</h2>${sel('revStars', S.revStars, ['All ratings', '5 stars', '4 stars', '3 stars', '2 stars', '1 star'])}${sel('revSort', S.revSort, ['Newest first', 'Oldest first', 'Lowest rated'])}</div>${rv.map(r => `<div class="review"><span class="stars">${'&#9733;'.repeat(r[0])}</span> <b>${r[1]}</b> <span class="muted">${r[2]}</span><div>${r[3]}</div><a class="muted" href="#">Helpful</a></div>`).join('')}</div>`
      : `<div class="box"><h2>${S.tab === 'photos' ? 'Photos of past work' : 'Questions'}</h2><div class="designs">${CATS.slice(0, 8).map(c => `<div class="design" style="background:${c[3]}"></div>`).join('')}</div></div>`;
  return `<div class="wrap"><nav class="crumbs"><a href="#" data-act="go:home">Home</a><span>/</span><a href="#" data-act="cat:${p.cat}">${catName(p.cat)}</a><span>/</span><span>${p.name}</span></nav>
  <div class="two"><div><div class="row" style="gap:24px"><div class="pro__av" style="background:${p.col}">${p.name[0]}</div><div><h1>${p.name}</h1><p><span class="stars">&#9733; ${p.rate}</span> <span class="muted">(${p.n} reviews)</span> <span class="badge">Checked</span></p></div></div>
  <div class="box" style="margin-top:20px"><h2>Services</h2>${PACKS[p.cat].map((k, i) => `<div class="pack"><div><h3>${k[0]}</h3><span class="muted">${k[1]}</span></div><b>$${p.price + k[2]}</b><a class="btn btn--main" href="#" data-act="pack:${i}">Schedule</a></div>`).join('')}</div>
  <div class="tabs">${[['about', 'About'], ['reviews', 'Reviews'], ['photos', 'Photos'], ['qa', 'Q&amp;A']].map(t => `<a href="#" class="tabs__tab ${S.tab === t[0] ? 'tabs__tab--on' : ''}" data-act="tab:${t[0]}">${t[1]}</a>`).join('')}</div>${body}</div>
  <aside><div class="box"><h3>Message ${p.name}</h3><textarea class="inp" rows="4" placeholder="Describe your job">${esc(S.msg)}</textarea><p></p><button class="btn btn--line">Send message</button></div><div class="box"><h3>Opening hours</h3><ul class="sum">${['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'].map((d, i) => `<li>${d}<span>${i === 6 ? 'Closed' : i === 5 ? '9 - 3' : '8 - 6'}</span></li>`).join('')}</ul></div><div class="box"><h3>Service area</h3><div style="height:160px;background:#dcebe4;border-radius:8px;padding:50px 60px"><div style="background:#5aa17f;height:60px;border-radius:30px"></div></div></div></aside></div></div>${near('Similar pros')}${faq('Good to know')}`;
}
const PAY = `<style>body{margin:0;padding:12px;font:14px Arial,'Liberation Sans',sans-serif}input{padding:10px;border:1px solid #cbbf9f;border-radius:6px;box-sizing:border-box}p{margin:0 0 8px;font-weight:bold}</style><p>Card details</p><input name='cardnumber' placeholder='Card number' style='width:100%;margin-bottom:8px'><input name='exp' placeholder='MM / YY' style='width:49%'> <input name='cvc' placeholder='CVC' style='width:49%'>`;
function calendar() {
  const first = { 3: 0, 4: 3, 5: 5 }[S.month], n = S.month === 4 ? 30 : 31; let h = '', d = 1 - first;
  while (d <= n) { h += '<tr>'; for (let k = 0; k < 7; k++, d++) h += d < 1 || d > n ? '<td class="is-off"></td>' : (S.month === 3 && d < 13) || k === 0 ? `<td class="is-off">${d}</td>` : `<td class="${S.day === d ? 'is-on' : ''}" data-act="day:${d}">${d}</td>`; h += '</tr>'; }
  return `<div class="row row--between"><button class="iconbtn" data-act="month:-1" ${S.month === 3 ? 'disabled' : ''}>${ic('left')}</button><b>${{ 3: 'March', 4: 'April', 5: 'May' }[S.month]} 2026</b><button class="iconbtn" data-act="month:1">${ic('right')}</button></div><table class="cal"><tr>${['Su', 'Mo', 'Tu', 'We', 'Th', 'Fr', 'Sa'].map(x => `<th>${x}</th>`).join('')}</tr>${h}</table>`;
}
const SLOTS = ['8:00 AM', '9:00 AM', '10:00 AM', '11:00 AM', '12:00 PM', '1:00 PM', '2:00 PM', '3:00 PM', '4:00 PM', '5:00 PM'];
function book() {
  const p = pro(), k = PACKS[p.cat][S.pack], base = p.price + k[2], up = { '1 bedroom': 0, '2 bedrooms': 20, '3 bedrooms': 40, '4+ bedrooms': 65 }[S.size] || 0, ex = S.extras.length * 25;
  if (S.paid) return `<div class="wrap"><div class="note">Booked! ${p.name} will see you on ${{ 3: 'March', 4: 'April', 5: 'May' }[S.month]} ${S.day} at ${S.time}.</div></div>${near('Next on your list?')}${home()}`;
  return `<div class="wrap"><nav class="crumbs"><a href="#" data-act="go:home">Home</a><span>/</span><a href="#" data-act="pro:${p.id}">${p.name}</a><span>/</span><span>Schedule</span></nav><h1>Schedule ${p.name}</h1><div class="two"><div>
  <div class="box"><h3>1. Service</h3>${PACKS[p.cat].map((x, i) => `<label class="opt"><input type="radio" name="service" ${S.pack === i ? 'checked' : ''} data-act="svc:${i}">${x[0]} <em>$${p.price + x[2]}</em></label>`).join('')}</div>
  <div class="box"><h3>2. Date</h3>${calendar()}</div><div class="box"><h3>3. Arrival time</h3><div class="slots">${SLOTS.map((t, i) => `<button class="slot ${S.time === t ? 'slot--on' : ''}" ${!S.day || i === 2 || i === 7 ? 'disabled' : ''} data-act="time:${t}">${t}</button>`).join('')}</div></div>
  <div class="box"><h3>4. Your home</h3><div class="grid2"><div class="fld"><span class="fld__l">Home size</span><select class="inp" data-sel="size"><option value="">Choose...</option>${['1 bedroom', '2 bedrooms', '3 bedrooms', '4+ bedrooms'].map(x => `<option ${S.size === x ? 'selected' : ''}>${x}</option>`).join('')}</select></div><div class="fld"><span class="fld__l">Gate code</span><input class="inp" placeholder="Optional" value="${esc(S.gate)}" data-in="gate"></div></div>
  <div class="fld"><span class="fld__l">Street address</span><input class="inp" value="1847 N Larrabee St, Apt 3"></div>${['Inside fridge', 'Interior windows', 'Laundry'].map(x => `<label class="opt"><input type="checkbox" ${S.extras.includes(x) ? 'checked' : ''} data-act="extra:${x}">${x}<em>+$25</em></label>`).join('')}</div>
  <div class="box"><h3>5. Payment</h3><iframe class="pay" srcdoc="${PAY.replace(/"/g, '&quot;')}"></iframe></div></div>
  <aside class="box"><h3>Summary</h3><ul class="sum"><li>${k[0]}<b>$${base}</b></li><li>Home size<b>$${up}</b></li><li>Extras<b>$${ex}</b></li><li>Date<b>${S.day ? { 3: 'Mar ', 4: 'Apr ', 5: 'May ' }[S.month] + S.day : '-'}</b></li><li>Time<b>${S.time || '-'}</b></li><li class="total">Total<b>$${base + up + ex}</b></li></ul><div class="row" style="margin:14px 0"><input class="inp" placeholder="Promo code"><button class="btn">Apply</button></div><button class="btn btn--green" style="width:100%" data-act="pay" ${S.day && S.time ? '' : 'disabled'}>Confirm booking</button><p class="muted">You pay after the visit.</p></aside></div></div>${faq('Booking questions')}`;
}
const UP = [['Tidyfox Cleaning', 'Regular clean', 'Mon, Mar 16', '9:00 AM', 106], ['Rainright Gutters', 'Gutter cleaning', 'Tue, Mar 24', '11:00 AM', 165], ['Oakhurst Electric', 'Fixture install', 'Tue, Mar 24', '2:00 PM', 165], ['Rainright Gutters', 'Roof inspection', 'Thu, Apr 9', '10:00 AM', 140]];
function bookings() {
  const row = (r, i) => `<tr><td><b>${r[1]}</b><br><span class="muted">${r[0]}</span></td><td>${r[2]}</td><td>${r[3]}</td><td>$${r[4]}</td><td>${S.cancelled.includes(i) ? '<span class="badge badge--o">Cancelled</span>' : '<span class="badge">Confirmed</span>'}</td><td><button class="btn btn--line">Reschedule</button> <button class="btn" data-act="cancel:${i}" ${S.cancelled.includes(i) ? 'disabled' : ''}>Cancel</button></td></tr>`;
  const past = [['Ruiz Brothers Plumbing', 'Small repair', 'Feb 21', 148], ['Tidyfox Cleaning', 'Deep clean', 'Feb 2', 190], ['Moss & Mower', 'Leaf removal', 'Nov 18', 120], ['Tidyfox Cleaning', 'Regular clean', 'Nov 3', 106], ['Keyhole Kate', 'Lock change', 'Oct 11', 95]];
  const m = S.modal !== null ? `<div class="modal" role="dialog"><button class="modal__x" data-act="close">${ic('close')}</button><h2>Cancel this visit?</h2><p>${UP[S.modal][1]} with ${UP[S.modal][0]}, ${UP[S.modal][2]} at ${UP[S.modal][3]}. Free of charge until 24 hours before.</p><div class="fld"><span class="fld__l">Reason</span><select class="inp" name="reason" data-sel="reason"><option value="">Select a reason</option>${['Schedule conflict', 'Found another pro', 'Price too high', 'Job no longer needed'].map(x => `<option ${S.reason === x ? 'selected' : ''}>${x}</option>`).join('')}</select></div><div class="row"><button class="btn" data-act="close">Keep visit</button><button class="btn btn--main" data-act="docancel" ${S.reason ? '' : 'disabled'}>Cancel visit</button></div></div>` : '';
  return `<div class="wrap"><nav class="crumbs"><a href="#" data-act="go:home">Home</a><span>/</span><span>My bookings</span></nav><h1>My bookings</h1>${S.cancelled.length ? '<div class="note">The visit was cancelled. We let the pro know.</div>' : ''}
  <h2>Upcoming</h2><table class="ptable"><tr><th>Service</th><th>Date</th><th>Time</th><th>Price</th><th>Status</th><th></th></tr>${UP.map(row).join('')}</table>
  <section class="section"><h2>Past visits</h2><table class="ptable"><tr><th>Service</th><th>Pro</th><th>Date</th><th>Paid</th><th></th></tr>${past.map(r => `<tr><td><b>${r[1]}</b></td><td>${r[0]}</td><td>${r[2]}</td><td>$${r[3]}</td><td><a href="#">Receipt</a> &nbsp; <a href="#">Review</a> &nbsp; <button class="btn">Rebook</button></td></tr>`).join('')}</table></section>${m}</div>${near('Pick up where you left off')}${faq('Booking help')}`;
}
function gift() {
  return `<div class="wrap"><nav class="crumbs"><a href="#" data-act="go:home">Home</a><span>/</span><span>Gift cards</span></nav><h1>Give someone an afternoon off</h1>${S.cart ? `<div class="note">Added to cart: $${S.amt} gift card for ${esc(S.gname)}. Cart total $${S.amt * S.gqty}.</div>` : ''}<div class="two"><div>
  <div class="box"><h3>Amount</h3><div class="amts">${[25, 50, 75, 100, 150, 250].map(a => `<div class="amt ${S.amt === a ? 'is-sel' : ''}" data-act="amt:${a}">$${a}</div>`).join('')}</div></div>
  <div class="box"><h3>Design</h3><div class="designs">${[['#e8743b', 'leaf'], ['#3a7ca5', 'roof'], ['#1f5c4a', 'broom'], ['#b1597a', 'heart']].map((d, i) => `<div class="design ${S.design === i ? 'is-sel' : ''}" role="img" aria-label="${['Spring leaves', 'Blue house', 'Clean sweep', 'With love'][i]}" style="background:${d[0]}" data-act="design:${i}"><svg viewBox="0 0 24 24">${P[d[1]]}</svg></div>`).join('')}</div></div>
  <div class="box"><h3>Recipient</h3><div class="grid2"><div class="fld"><input class="inp" placeholder="Recipient's name" value="${esc(S.gname)}" data-in="gname"></div><div class="fld"><input class="inp" type="email" placeholder="Recipient's email" value="${esc(S.gmail)}" data-in="gmail"></div></div><div class="fld"><textarea class="inp" rows="3" placeholder="Add a message (optional)"></textarea></div>
  <div class="fld"><label class="opt"><input type="radio" name="when" ${S.gwhen === 'now' ? 'checked' : ''} data-act="gwhen:now">Send right away</label><label class="opt"><input type="radio" name="when" ${S.gwhen === 'later' ? 'checked' : ''} data-act="gwhen:later">Pick a date</label></div></div></div>
  <aside class="box"><h3>Your card</h3><div style="height:150px;border-radius:12px;background:${['#e8743b', '#3a7ca5', '#1f5c4a', '#b1597a'][S.design]};color:#fff;padding:20px;font-size:26px;font-weight:800">$${S.amt}</div><ul class="sum" style="margin-top:14px"><li>To<b class="js-to">${esc(S.gname) || '-'}</b></li><li>Quantity<div class="qty"><span data-act="gq:-1">&minus;</span>${S.gqty}<span data-act="gq:1">+</span></div></li><li class="total">Total<b>$${S.amt * S.gqty}</b></li></ul><p></p><button class="btn btn--main" style="width:100%" data-act="addcart">Add to cart</button></aside></div></div>
  <section class="section wrap"><h2>What it can be spent on</h2><div class="tiles">${CATS.map(c => `<div class="tile" data-act="cat:${c[0]}"><div class="tile__ic" style="background:${c[3]};color:#fff">${ic(c[2])}</div><b>${c[1]}</b><small>${c[4]} pros</small></div>`).join('')}</div></section>${near('Popular gifts')}${faq('Gift card questions')}`;
}
const help = () => `<div class="wrap"><nav class="crumbs"><a href="#" data-act="go:home">Home</a><span>/</span><span>Help</span></nav><h1>Help center</h1></div>${faq('Bookings')}${near('Pros with quick answers')}${faq('Payments')}`;
const VIEWS = { home, results, profile, book, bookings, gift, help };
function render() { document.getElementById('app').innerHTML = header() + VIEWS[S.view](); }
const toggle = (a, x) => { const i = a.indexOf(x); i < 0 ? a.push(x) : a.splice(i, 1); };
const go = v => { S.view = v; S.menu = ''; window.scrollTo(0, 0); };
const ACT = {
  go, menu: v => { S.menu = S.menu === v ? '' : v; }, cat: v => { S.cat = PACKS[v] ? v : 'plumbing'; S.langs = []; S.rate = 0; go('results'); },
  pick: v => { const [w, c] = v.split('|'); S.what = w; S.cat = PACKS[c] ? c : 'plumbing'; S.whatPicked = true; }, find: () => go('results'),
  hsearch: () => { const p = PROS.find(x => S.q && x.name.toLowerCase().includes(S.q.toLowerCase())); const c = CATS.find(x => S.q && x[1].toLowerCase().startsWith(S.q.toLowerCase().slice(0, 5))); S.cat = p ? p.cat : c && PACKS[c[0]] ? c[0] : 'plumbing'; go('results'); },
  faq: v => { S.faq = S.faq === +v ? -1 : +v; }, sched: v => { S.pro = v; S.pack = 0; go('book'); }, pro: v => { S.pro = v; S.tab = 'about'; go('profile'); }, pack: v => { S.pack = +v; go('book'); }, svc: v => { S.pack = +v; },
  lang: v => toggle(S.langs, v), rate: v => { S.rate = +v; }, checked: () => { S.checked = !S.checked; }, price: v => { S.price = v || ''; }, when: v => { S.when = v || ''; }, dd: () => { S.dd = !S.dd; }, sort: v => { S.sort = v; S.dd = false; }, fav: v => toggle(S.fav, v), tab: v => { S.tab = v; },
  day: v => { S.day = +v; }, month: v => { S.month = Math.min(5, S.month + +v); S.day = 0; }, time: v => { S.time = v; }, extra: v => toggle(S.extras, v), pay: () => { S.paid = true; window.scrollTo(0, 0); },
  cancel: v => { S.modal = +v; S.reason = ''; }, close: () => { S.modal = null; }, docancel: () => { S.cancelled.push(S.modal); S.modal = null; }, amt: v => { S.amt = +v; }, design: v => { S.design = +v; }, gwhen: v => { S.gwhen = v; }, gq: v => { S.gqty = Math.max(1, S.gqty + +v); }, addcart: () => { S.cart = 1; window.scrollTo(0, 0); }
};
document.addEventListener('click', e => {
  if (e.target.closest('a[href="#"]')) e.preventDefault();
  const t = e.target.closest('[data-act]'); if (!t || t.disabled || t.tagName === 'FORM') return;
  const [k, ...r] = t.dataset.act.split(':'); if (!ACT[k]) return;
  const card = document.querySelector('iframe.pay'), vals = card && S.view === 'book' ? [...card.contentDocument.querySelectorAll('input')].map(x => x.value) : null;
  ACT[k](r.join(':')); render();
  const f = document.querySelector('iframe.pay'); if (vals && f) f.onload = () => f.contentDocument.querySelectorAll('input').forEach((x, i) => { x.value = vals[i]; });
});
document.addEventListener('input', e => {
  const t = e.target, k = t.dataset.in || (t.name === 'q' ? 'q' : ''); if (!k) return;
  S[k] = t.value; if (k === 'gname') document.querySelector('.js-to').textContent = t.value; if (k === 'what') { S.whatPicked = false; render(); const n = document.querySelector('.hero__what'); n.focus(); n.setSelectionRange(n.value.length, n.value.length); }
});
document.addEventListener('change', e => { const t = e.target; if (t.dataset.sel) { const f = document.querySelector('iframe.pay'); S[t.dataset.sel] = t.value; if (!f) render(); else if (t.dataset.sel === 'size') render(); } });
document.addEventListener('submit', e => { if (!e.target.closest('.header__search')) return; e.preventDefault(); ACT.hsearch(); render(); });
const [v, id] = location.hash.slice(1).split('/'); if (VIEWS[v]) { S.view = v; if (id) S.pro = id; }
render();
// For checks of what was done: what counts, and what was sent; not what is only open or unfolded.
window.siteState = () => { const { menu, dd, msg, ...kept } = S; return { ...kept, sent: [msg, kept.paid && 'paid'] }; };

(() => {
  // tiny element helper: h('div.flex.mid', {props}, ...children)
  const SVG = 'http://www.w3.org/2000/svg';
  const h = (spec, ...rest) => {
    const [name, ...cls] = spec.split('.');
    const el = document.createElement(name);
    if (cls.length) el.className = cls.join(' ');
    rest.flat(3).forEach(r => {
      if (r === null || r === undefined || r === false) return;
      if (r instanceof Node || typeof r !== 'object') { el.append(r); return; }
      Object.entries(r).forEach(([k, v]) => {
        if (k.startsWith('on')) el.addEventListener(k.slice(2), v);
        else if (v !== false && v !== undefined) el.setAttribute(k, v === true ? '' : v);
      });
    });
    return el;
  };
  const ICONS = {store: 'M2 3h16l1 6h-2v8H3V9H1z', browse: 'M2 2h7v7H2zM11 2h7v7h-7zM2 11h7v7H2zM11 11h7v7h-7z', library: 'M2 3h4v14H2zM8 3h4v14H8zM14 4l4-1 2 14-4 1z', plans: 'M10 1l3 6 6 1-4 5 1 6-6-3-6 3 1-6-4-5 6-1z', gear: 'M1 4h8v2H1zM10 2h3v6h-3zM14 4h5v2h-5zM1 13h3v2H1zM5 11h3v6H5zM9 13h10v2H9z', bell: 'M4 14V8c0-8 12-8 12 0v6l2 2H2zM8 17h4v2H8z', cart: 'M1 2h3l1 3h14l-2 8H6z', lens: 'M8 1a7 7 0 105 12l5 5 1-1-5-5A7 7 0 008 1zm0 2a5 5 0 110 10A5 5 0 018 3z', plus: 'M8 2h4v6h6v4h-6v6H8v-6H2V8h6z', x: 'M3 5l2-2 5 5 5-5 2 2-5 5 5 5-2 2-5-5-5 5-2-2 5-5z', gift: 'M1 6h18v4H1zM2 11h7v8H2zM11 11h7v8h-7z', play: 'M4 2l14 8-14 8z', chev: 'M3 6l7 8 7-8z'};
  const icon = n => { const s = document.createElementNS(SVG, 'svg'); s.setAttribute('class', `ico ico-${n}`); s.setAttribute('viewBox', '0 0 20 20'); const p = document.createElementNS(SVG, 'path'); p.setAttribute('d', ICONS[n]); s.append(p); return s; };
  const GAMES = [
    ['Ashen Tides', ['Action', 'Story'], 49.99, 91, true, '#3d5a80'], ['Copper Circuit', ['Racing', 'Co-op'], 24.99, 84, false, '#c06c3a'], ['Moss & Mortar', ['Building', 'Co-op'], 18.5, 93, false, '#5b8c5a'],
    ['Lanternfall', ['Puzzle', 'Story'], 12, 88, false, '#d9a441'], ['Nine Banners', ['Strategy', 'Co-op'], 19.99, 79, false, '#a23b4a'], ['Quiet Orbit', ['Strategy', 'Building'], 29, 90, false, '#5a4fcf'],
    ['Hexhollow', ['Strategy', 'Co-op'], 14.99, 94, false, '#7a9e4c'], ['Gullwing 88', ['Racing'], 9.99, 72, false, '#d16ba5'], ['Bonechoir', ['Action', 'Co-op'], 34.99, 81, true, '#6b6f80'],
    ['Salt Parliament', ['Strategy', 'Story'], 22, 86, false, '#2f8f8b'], ['Tiny Foundry', ['Building', 'Co-op'], 7.5, 89, false, '#b98b5e'], ['Warden Relay', ['Strategy', 'Co-op'], 39.99, 92, false, '#4c7fb0']];
  const FRIENDS = ['moth_king', 'Pell', 'rune.ada', 'Tobermory'];
  const st = {at: 'store', game: 0, q: '', sug: false, menu: false, tab: 'New', tags: [], cap: 'Any price', order: '', wish: [], age: '', ageOk: false, edition: 'Standard', dlg: '', to: '', msg: '', cart: 0, note: '', own: 1, libQ: '', dev: 'This computer', devOpen: false, live: false,
    code: '', human: false, bill: 'month', tier: '', adds: [], res: '720p', fps: '30', hdr: false, subs: false, mute: true, low: false, night: false, spoken: false, server: '', saved: false, sub: '', ptab: 'About'};
  const set = patch => () => { Object.assign(st, patch); paint(); };
  const go = (at, more = {}) => () => { Object.assign(st, {at, menu: false, sug: false, note: '', dlg: ''}, more); window.scrollTo(0, 0); paint(); };
  const usd = n => '$' + n.toFixed(2);
  const art = (g, w, t) => { const s = document.createElementNS(SVG, 'svg'); s.setAttribute('class', 'art'); s.setAttribute('viewBox', `0 0 ${w} ${t}`); s.setAttribute('preserveAspectRatio', 'none');
    const k = GAMES.indexOf(g) % 4, X = f => Math.round(w * f), Y = f => Math.round(t * f);
    const d = [`M0 ${t}V${Y(.7)}H${X(.3)}V${Y(.35)}H${X(.42)}V${Y(.7)}H${X(.6)}V${Y(.5)}H${X(.8)}V${t}z`, `M${X(.1)} ${t}L${X(.38)} ${Y(.3)}L${X(.55)} ${Y(.65)}L${X(.7)} ${Y(.45)}L${X(.95)} ${t}z`, `M${X(.2)} ${t}V${Y(.5)}H${X(.45)}V${Y(.25)}H${X(.7)}V${Y(.6)}H${X(.85)}V${t}z`, `M${X(.5)} ${Y(.18)}L${X(.74)} ${Y(.5)}L${X(.5)} ${Y(.82)}L${X(.26)} ${Y(.5)}z`][k];
    s.innerHTML = `<rect width="${w}" height="${t}" fill="${g[5]}"/><path d="${d}" fill="#12141a"/>`; return s; };
  const type = (key, attrs, cls = 'input.fld') => h(cls, {...attrs, value: st[key], oninput: e => { st[key] = e.target.value; e.target.setAttribute('value', e.target.value); }});
  const pick = (key, list, attrs = {}) => h('select.fld', {...attrs, onchange: e => { st[key] = e.target.value; paint(); }}, list.map(o => h('option', {selected: st[key] === o}, o)));
  const toggle = key => h('button.sw', {type: 'button', role: 'switch', 'aria-checked': String(st[key]), onclick: set({[key]: !st[key]})});
  const wish = i => h(`button.wish${st.wish.includes(i) ? '.on' : ''}`, {onclick: () => { st.wish = st.wish.includes(i) ? st.wish.filter(x => x !== i) : [...st.wish, i]; paint(); }}, icon('plus'));
  const open = i => go('game', {game: i, edition: 'Standard', ptab: 'About'});

  const rail = () => h('nav.rail', h('a.mark', {href: '#store'}, 'b'), [['store', 'store'], ['browse', 'browse'], ['library', 'library'], ['plans', 'plans'], ['settings', 'gear']].map(([v, ic]) =>
    h(`a.rail-item${st.at === v ? '.active' : ''}`, {href: '#' + v, title: {store: 'Store', browse: 'Browse', library: 'Library', plans: 'Plans', settings: 'Streaming settings'}[v], onclick: go(v)}, icon(ic))));
  const suggestions = () => { const box = h('div.drop.sugg', {style: 'top:46px;left:0;width:420px'}); box.hidden = true; return box; };
  const fillSug = (box, text) => {
    const hits = GAMES.map((g, i) => [g, i]).filter(([g]) => text && g[0].toLowerCase().includes(text.toLowerCase()));
    box.replaceChildren(...hits.map(([g, i]) => h('button', {onclick: open(i)}, g[0])));
    box.hidden = !hits.length;
  };
  const bar = () => {
    const box = suggestions();
    return h('div.bar', h('div.rel', h('input', {type: 'text', placeholder: 'Search games', value: st.q, oninput: e => { st.q = e.target.value; e.target.setAttribute('value', st.q); fillSug(box, st.q); }}), box), h('button', icon('lens')), h('div.grow'),
      h('button', icon('bell')), h('button.rel', {onclick: go('cart')}, icon('cart'), st.cart > 0 && h('span', {style: 'position:absolute;top:-8px;right:-4px;color:#b4f03c'}, st.cart)),
      h('div.rel', h('button.avatar', {'aria-haspopup': 'menu', onclick: set({menu: !st.menu})}, 'K'), st.menu && h('div.drop', {role: 'menu', style: 'right:0;top:48px;width:210px'}, [['Profile', 'store'], ['Wishlist', 'wishlist'], ['Redeem a code', 'redeem'], ['Purchases', 'library'], ['Sign out', 'store']].map(([t, v]) => h('a', {href: '#' + v, role: 'menuitem', onclick: go(v)}, t)))));
  };
  const gameCard = i => h('div.card', h('a', {href: '#', onclick: open(i)}, art(GAMES[i], 270, 150)), h('div.p2', h('a.lg', {href: '#', onclick: open(i)}, GAMES[i][0]), h('div.flex.btw.mid', {style: 'margin-top:12px'}, h('span', usd(GAMES[i][2])), h('div.flex.g1', wish(i), h('button.btn.sm', {onclick: () => { st.cart += 1; paint(); }}, 'Buy')))));
  const shelf = (title, ids) => h('section.mt3', h('div.xl.mb2', title), h('div.grid4', ids.map(gameCard)));

  function store() {
    const ids = {New: [1, 2, 3, 6], Popular: [5, 6, 10, 2], Soon: [7, 8, 9, 11], Free: [3, 7, 10, 1]}[st.tab];
    return [h('div.feat', h('div.card', art(GAMES[0], 760, 400), h('div.p2.flex.btw.mid', h('span.xl', 'Ashen Tides'), h('button.btn', {onclick: open(0)}, 'See it'))), h('div.side', [5, 6, 9, 2, 11].map(i => h('a', {href: '#', onclick: open(i)}, art(GAMES[i], 96, 64), GAMES[i][0])))),
      h('div.tabs.mt3', {role: 'tablist'}, ['New', 'Popular', 'Soon', 'Free'].map(t => h('button', {role: 'tab', 'aria-selected': String(st.tab === t), onclick: set({tab: t})}, t))), h('div.grid4', ids.map(gameCard))];
  }
  function browse() {
    const cap = {'Any price': 999, 'Under $10': 10, 'Under $20': 20, 'Under $30': 30}[st.cap];
    const list = GAMES.map((g, i) => [g, i]).filter(([g]) => g[2] < cap && st.tags.every(t => g[1].includes(t)));
    if (st.order === 'score') list.sort((a, b) => b[0][3] - a[0][3]);
    if (st.order === 'price') list.sort((a, b) => a[0][2] - b[0][2]);
    if (st.order === 'name') list.sort((a, b) => a[0][0] < b[0][0] ? -1 : 1);
    const th = (k, t) => h('th', h('button', {onclick: set({order: k})}, t + (st.order === k ? ' ↓' : '')));
    return [h('div.xl.mb2', 'Browse'), h('div.flex.g1.mb2.mid', ['Action', 'Strategy', 'Co-op', 'Story', 'Racing', 'Building', 'Puzzle'].map(t => h(`button.tag${st.tags.includes(t) ? '.on' : ''}`, {onclick: () => { st.tags = st.tags.includes(t) ? st.tags.filter(x => x !== t) : [...st.tags, t]; paint(); }}, t)), h('div.grow'), h('div', {style: 'width:180px'}, pick('cap', ['Any price', 'Under $10', 'Under $20', 'Under $30'], {name: 'cap'}))),
      h('table.tbl', h('thead', h('tr', h('th'), th('name', 'Game'), h('th', 'Tags'), th('score', 'Rating'), th('price', 'Price'), h('th'), h('th'))), h('tbody', list.map(([g, i]) => h('tr', h('td', art(g, 88, 50)), h('td', h('a', {href: '#', onclick: open(i)}, g[0])), h('td.dim', g[1].join(', ')), h('td', g[3] + ' %'), h('td', usd(g[2])), h('td', wish(i)), h('td', h('button.btn.sm', {onclick: () => { st.cart += 1; paint(); }}, 'Buy')))))),
      shelf('For you', [2, 5, 9, 3])];
  }
  function game() {
    const g = GAMES[st.game];
    if (g[4] && !st.ageOk) return [h('div.card.p3', {style: 'width:560px;margin:60px auto 120px'}, h('div.xl.mb2', 'How old are you?'), h('p.dim', g[0] + ' is for adults. Give your year of birth.'), h('div.flex.g2', pick('age', ['', '2012', '2008', '2004', '2000', '1996', '1992', '1988', '1984', '1980', '1970'], {name: 'year'}), h('button.btn', {onclick: set({ageOk: st.age && +st.age < 2008})}, 'Enter'), h('button.btn.alt', {onclick: go('store')}, 'Back'))), shelf('Instead', [2, 3, 5, 6])];
    const eds = [['Standard', 0], ['Deluxe', 15], ['Collector', 40]];
    const add = eds.find(e => e[0] === st.edition)[1];
    return [h('div.xl.mb2', g[0]), h('div.flex.g3', h('div.grow', h('div.card.mb2', art(g, 700, 400)), h('div.tabs', ['About', 'Needs', 'Reviews', 'Add-ons'].map(t => h('button', {role: 'tab', 'aria-selected': String(st.ptab === t), onclick: set({ptab: t})}, t))), h('p.dim', {About: 'Sail a drowned coast. Six chapters, one boat.', Needs: '8 GB memory, 40 GB disk', Reviews: g[3] + ' % of 12,400 liked it', 'Add-ons': 'None yet'}[st.ptab])),
      h('div', {style: 'width:360px'}, eds.map(([n, p]) => h(`button.ed${st.edition === n ? '.on' : ''}`, {onclick: set({edition: n})}, h('span.grow', n), usd(g[2] + p))), h('div.flex.g1.mb2', h('button.btn.grow', {onclick: () => { st.cart += 1; paint(); }}, `Buy for ${usd(g[2] + add)}`), h('button.btn.alt', {onclick: set({dlg: 'gift'})}, icon('gift')), wish(st.game)), h('div.card.p2', [['Rating', g[3] + ' %'], ['Players', '1 to 4'], ['Streaming', 'Yes'], ['Controller', 'Full'], ['Size', '40 GB']].map(([a, b]) => h('div.line', h('span.dim', a), b))))),
      shelf('More like this', [2, 4, 6, 10]), shelf('Same studio', [8, 9, 11, 5])];
  }
  function giftDialog() {
    return h('div.dlg', {role: 'dialog'}, h('button', {style: 'position:absolute;right:16px;top:16px', onclick: set({dlg: ''})}, icon('x')), h('div.lg.mb2', `Gift: ${GAMES[st.game][0]}, ${st.edition}`), h('div.flex.g1.mb2', FRIENDS.map(f => h(`button.tag${st.to === f ? '.on' : ''}`, {style: 'background:' + (st.to === f ? '#7c5cff' : '#434a5e'), onclick: set({to: f})}, f))), type('msg', {placeholder: 'A few words', name: 'msg', style: 'background:#12141a'}), h('p'), h('button.btn', {onclick: set({dlg: '', note: `Gift ready for ${st.to || 'a friend'}`, cart: st.cart + 1})}, 'Add gift to cart'));
  }
  function library() {
    const rows = h('div');
    const fill = () => rows.replaceChildren(...GAMES.map((g, i) => [g, i]).filter(([g]) => g[0].toLowerCase().includes(st.libQ.toLowerCase())).map(([g, i]) => h(`button.lib-row${st.own === i ? '.on' : ''}`, {onclick: set({own: i, live: false})}, art(g, 40, 40), g[0])));
    fill();
    const g = GAMES[st.own];
    return [h('div.lib', h('aside', h('input.fld', {placeholder: 'Filter my games', value: st.libQ, oninput: e => { st.libQ = e.target.value; e.target.setAttribute('value', st.libQ); fill(); }}), h('p.dim', 'Owned'), rows), h('div', h('div.card.mb2', {style: 'overflow:visible'}, art(g, 820, 340), h('div.p3', h('div.xl.mb2', g[0]), st.live && h('div.ok', `Streaming to ${st.dev}`), h('div.flex.g1.mid',
      h('div.rel', h('button.btn.alt.flex.g1.mid', {'aria-haspopup': 'listbox', onclick: set({devOpen: !st.devOpen})}, st.dev, icon('chev')), st.devOpen && h('div.drop', {role: 'listbox', style: 'top:50px;left:0;width:220px'}, ['This computer', 'Living-room TV', 'Tablet', 'Phone'].map(d => h('button', {role: 'option', onclick: set({dev: d, devOpen: false})}, d)))),
      h('button.btn', {onclick: set({live: true})}, 'Stream'), h('button.btn.alt', 'Install'), h('button.wish', icon('gear')), h('button.wish', icon('x'))))), h('div.grid3', ['Saves', 'Captures', 'Friends'].map(t => h('div.card.p2', h('div.lg.mb2', t), [1, 2, 3].map(n => h('div.line', h('span.dim', `${t === 'Friends' ? FRIENDS[n] : 'Slot ' + n}`), h('button', icon('chev'))))))))), shelf('Add to these', [0, 8, 9, 4])];
  }
  function redeem() {
    return [h('div.xl.mb2', 'Redeem a code'), st.note && h('div.ok', st.note), h('div.card.p3.mb3', {style: 'width:640px'}, h('div.dim.mb2', 'Code'), type('code', {placeholder: 'XXXX-XXXX-XXXX', name: 'code'}), h('p'), h('div.mb2', {id: 'human-slot', style: 'height:84px'}), h('button.btn', {disabled: !st.human, onclick: set({note: 'Code accepted'})}, 'Redeem')), h('div.lg.mb2', 'Earlier codes'), h('table.tbl', h('tbody', [['Lanternfall', '3 Feb'], ['$20 credit', '24 Dec'], ['Gullwing 88', '9 Oct'], ['Tiny Foundry', '1 Aug']].map(([a, b]) => h('tr', h('td', a), h('td.dim', b), h('td', h('button.btn.alt.sm', 'Receipt')))))), shelf('Spend your credit', [2, 3, 5, 6])];
  }
  function plans() {
    const tiers = [['Lite', 4, ['720p', '1 device', '40 games', 'Stereo', 'Queue at peak', 'Mail support']], ['Plus', 9, ['1080p', '2 devices', '200 games', 'Surround', 'Short queue', 'Chat support']], ['Ultra', 15, ['4K', '4 devices', '400 games', 'Surround', 'No queue', 'Phone support']]];
    const m = st.bill === 'year' ? 10 : 1, unit = st.bill === 'year' ? ' a year' : ' a month';
    const adds = [['Family seats', 5], ['Retro shelf', 3], ['Cloud saves', 2]];
    const base = tiers.find(t => t[0] === st.tier);
    const total = (base ? base[1] : 0) * m + adds.filter(a => st.adds.includes(a[0])).reduce((s, a) => s + a[1] * m, 0);
    return [h('div.xl.mb2', 'Plans'), st.note && h('div.ok', st.note), h('div.seg.mb3', [['month', 'Monthly'], ['year', 'Yearly']].map(([v, t]) => h(`button${st.bill === v ? '.on' : ''}`, {onclick: set({bill: v})}, t))), h('div.grid3.mb3', tiers.map(([n, p, l]) => h(`div.tier${st.tier === n ? '.on' : ''}`, h('div.lg', n), h('p.xl', '$' + p * m), h('p.dim', unit), l.map(x => h('div.line', x)), h('p'), h('button.btn', {onclick: set({tier: n})}, st.tier === n ? 'Chosen' : 'Choose')))),
      h('div.card.p3.mb3', h('div.lg.mb2', 'Extras'), adds.map(([n, p]) => h('label.line', h('span', n), h('span.flex.g2', '$' + p * m, h('input', {type: 'checkbox', checked: st.adds.includes(n), onchange: e => { st.adds = e.target.checked ? [...st.adds, n] : st.adds.filter(x => x !== n); paint(); }})))), h('div.flex.btw.mid', {style: 'margin-top:22px'}, h('span.xl', '$' + total + unit), h('button.btn', {disabled: !base, onclick: set({note: `You are on ${st.tier}`})}, 'Continue'))), shelf('In every plan', [2, 3, 5, 6])];
  }
  function settings() {
    const line = (t, c) => h('div.line', h('span', t), c);
    return [h('div.xl.mb2', 'Streaming settings'), st.saved && h('div.ok', 'Saved'), h('div.flex.g3', h('div.grow', h('div.card.p3.mb2', h('div.lg', 'Picture'), line('Resolution', pick('res', ['720p', '1080p', '1440p', '4K'])), line('Frames a second', pick('fps', ['30', '60', '120'])), line('HDR', toggle('hdr')), line('Save data', toggle('low'))), h('div.card.p3.mb2', h('div.lg', 'Sound and text'), line('Subtitles', toggle('subs')), line('Mute in background', toggle('mute')), line('Night sound', toggle('night')), line('Spoken menus', toggle('spoken')), line('Voice language', h('select.fld', ['English', 'Polish', 'Portuguese'].map(x => h('option', x)))))),
      h('div', {style: 'width:440px'}, h('div.card.p3', h('div.lg.mb2', 'Server'), h('canvas.globe', {width: 380, height: 300}), h('p.dim', st.server ? `${st.server}, 18 ms` : 'Automatic')))), h('div.flex.g1', h('button.btn', {onclick: set({saved: true})}, 'Save'), h('button.btn.alt', 'Reset')), shelf('Good on a slow line', [3, 7, 10, 6])];
  }
  const cart = () => [h('div.xl.mb2', 'Cart'), st.note && h('div.ok', st.note), h('div.card.p3.mb3', h('div.line', h('span', `${st.cart} items`), h('button.btn', {disabled: !st.cart, onclick: set({cart: 0, note: 'Paid. Have fun!'})}, 'Pay'))), shelf('For you', [2, 5, 9, 3])];
  const wishlist = () => [h('div.xl.mb2', 'Wishlist'), h('div.grid4', st.wish.map(gameCard)), shelf('For you', [2, 5, 9, 3])];
  const VIEWS = {store, browse, game, library, redeem, plans, settings, cart, wishlist};

  function human() {
    const slot = document.getElementById('human-slot');
    if (!slot) return;
    const f = h('iframe.hum', {srcdoc: `<style>body{margin:0;background:#e8eaf0;font:15px sans-serif;padding:22px}div{display:flex;gap:14px;align-items:center}button{width:30px;height:30px;border:2px solid #12141a;background:${st.human ? '#b4f03c' : '#fff'}}</style><div><button class="box" onclick="parent.postHuman()"></button>I am human</div>`});
    slot.append(f);
  }
  window.postHuman = () => { st.human = true; paint(); };
  function globe() {
    const c = document.querySelector('canvas.globe');
    if (!c) return;
    const k = c.getContext('2d'), pins = [['North', 190, 50], ['Midland', 190, 150], ['West', 70, 180], ['East', 310, 120], ['South', 220, 260]];
    k.fillStyle = '#262a36'; k.fillRect(0, 0, 380, 300); k.fillStyle = '#353b4b'; k.fillRect(50, 70, 120, 170); k.fillRect(160, 30, 180, 250);
    pins.forEach(([n, x, y]) => { k.fillStyle = st.server === n ? '#b4f03c' : '#7c5cff'; k.fillRect(x - 10, y - 10, 20, 20); });
    c.onclick = e => { const hit = pins.find(([, x, y]) => Math.abs(e.offsetX - x) < 28 && Math.abs(e.offsetY - y) < 28); if (hit) set({server: hit[0], saved: false})(); };
  }
  function paint() {
    document.getElementById('shell').replaceChildren(rail(), h('div.main', bar(), h('div.page', st.note && st.at === 'game' && h('div.ok', st.note), VIEWS[st.at]())), st.dlg === 'gift' ? giftDialog() : '');
    human(); globe();
  }
  document.addEventListener('click', e => { if (e.target.closest('#shell a')) e.preventDefault(); }, true);
  if (VIEWS[location.hash.slice(1)]) st.at = location.hash.slice(1);
  paint();
  // For checks of what was done: what counts, and what was sent; not what is only open or unfolded.
  window.siteState = () => { const { menu, sug, devOpen, note, ...kept } = st; return { ...kept, sent: [note] }; };
})();

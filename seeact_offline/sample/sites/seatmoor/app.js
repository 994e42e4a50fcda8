"use strict";
// Seatmoor: element builder h(), views return nodes, update() swaps the page. Today is Wednesday, May 6 2026.
(function () {
  var SVGNS = "http://www.w3.org/2000/svg";
  var P = {
    search: "M10 4a6 6 0 1 0 .1 0M15 15l5 5", heart: "M12 20L4 12a5 5 0 0 1 8-6a5 5 0 0 1 8 6z", bell: "M6 17v-7a6 6 0 0 1 12 0v7zM10 20h4", user: "M12 4a4 4 0 1 0 .1 0M4 21c0-8 16-8 16 0",
    caret: "M6 9l6 6l6-6", x: "M5 5l14 14M19 5L5 19", share: "M12 15V3M8 7l4-4l4 4M5 12v8h14v-8", dots: "M5 12h.1M12 12h.1M19 12h.1", pin: "M12 21c-9-10-6-17 0-17s9 7 0 17z",
    ball: "M12 3a9 9 0 1 0 .1 0M3 12h18M12 3v18", note: "M9 18V5l10-2v13M6 18a3 3 0 1 0 3 0M16 16a3 3 0 1 0 3 0", mask: "M4 5h16v8c0 8-16 8-16 0zM8 10h2M14 10h2", laugh: "M12 3a9 9 0 1 0 .1 0M7 13c2 5 8 5 10 0", tent: "M3 20L12 4l9 16zM12 12v8", racket: "M10 3a7 7 0 1 0 .1 0M15 15l6 6",
    left: "M15 5l-7 7l7 7", right: "M9 5l7 7l-7 7"
  };
  function icon(n) {
    var s = document.createElementNS(SVGNS, "svg"), p = document.createElementNS(SVGNS, "path");
    s.setAttribute("class", "icon icon-" + n); s.setAttribute("viewBox", "0 0 24 24"); p.setAttribute("d", P[n]); s.appendChild(p); return s;
  }
  function h(tag, props) {
    var el = document.createElement(tag), kids = Array.prototype.slice.call(arguments, 2);
    Object.keys(props || {}).forEach(function (k) {
      var v = props[k];
      if (k.slice(0, 2) === "on") el.addEventListener(k.slice(2), v);
      else if (k === "cls") el.className = v;
      else if (v !== false && v != null) el.setAttribute(k, v === true ? "" : v);
    });
    (function add(list) { list.forEach(function (c) { if (Array.isArray(c)) add(c); else if (c != null && c !== false) el.append(c); }); })(kids);
    return el;
  }
  var E = [
    ["kites-may16", "Harbor Kites vs Mesa Drifters", "Sports", "Basketball", "Denver", "Tallgrass Arena", "May 16", 62, 0], ["kites-may19", "Harbor Kites vs Mesa Drifters", "Sports", "Basketball", "Phoenix", "Saguaro Dome", "May 19", 71, 0],
    ["kites-may23", "Harbor Kites vs Mesa Drifters", "Sports", "Basketball", "Denver", "Tallgrass Arena", "May 23", 88, 0], ["icehounds", "Northgate Icehounds vs Bayou Kings", "Sports", "Hockey", "Chicago", "Ferris Center", "May 12", 54, 1],
    ["rovers1", "Solano Rovers vs Pine City", "Sports", "Soccer", "Portland", "Alder Field", "May 9", 38, 2], ["rovers2", "Lone Star United vs Solano Rovers", "Sports", "Soccer", "Austin", "Bluebonnet Park", "Jun 6", 41, 2],
    ["rovers3", "Solano Rovers vs Union Mills", "Sports", "Soccer", "Portland", "Alder Field", "Jun 20", 35, 2], ["lakeshore", "Lakeshore Open: Women's Final", "Sports", "Tennis", "Chicago", "Lakeshore Courts", "Jun 13", 240, 3],
    ["marrow", "The Marrow Lights", "Concerts", "Rock", "Seattle", "Cedar Hall", "May 22", 79, 1], ["marrow2", "The Marrow Lights", "Concerts", "Rock", "Austin", "Red Clay Theater", "Jun 4", 66, 1],
    ["vesper", "Vesper Kane", "Concerts", "Pop", "Austin", "Bluebonnet Park", "Jun 13", 112, 0], ["fernfield", "Fernfield Weekender", "Concerts", "Festival", "Portland", "Fernfield Farm", "Jul 17", 145, 2],
    ["dry-river", "Dry River Jubilee", "Concerts", "Festival", "Austin", "Red Clay Ranch", "Jun 26", 98, 3], ["ines", "Ines Calloway: Spare Change", "Comedy", "Stand-up", "Portland", "Rose Cellar", "Jun 11", 34, 3],
    ["two-left", "Two Left Shoes", "Comedy", "Improv", "Seattle", "Little Cedar", "May 14", 22, 0], ["milo", "Milo Brandt", "Comedy", "Stand-up", "Portland", "Rose Cellar", "May 28", 29, 1],
    ["glass", "Glass Orchard", "Theater", "Musical", "Chicago", "Marquette Stage", "May 17", 83, 2], ["lantern", "The Lantern Keeper", "Theater", "Play", "Seattle", "Cedar Hall", "Jun 2", 47, 0]
  ].map(function (a) { return { id: a[0], name: a[1], cat: a[2], sub: a[3], city: a[4], venue: a[5], date: a[6], from: a[7], tone: a[8] }; });
  var CITY = ["Austin, TX", "Chicago, IL", "Denver, CO", "Phoenix, AZ", "Portland, OR", "Seattle, WA"];
  var VENUES = [["Alder Field", "Portland", 21000], ["Bluebonnet Park", "Austin", 18500], ["Cedar Hall", "Seattle", 2600], ["Ferris Center", "Chicago", 19800], ["Marquette Stage", "Chicago", 1400], ["Rose Cellar", "Portland", 320], ["Saguaro Dome", "Phoenix", 17400], ["Tallgrass Arena", "Denver", 18100]];
  var TONE = ["#2f5bea", "#f26a4b", "#1b2440", "#5f6885"], SHAPE = ["M0 70h160v40H0zM40 70l40-45l40 45z", "M80 15a42 42 0 1 0 .1 0", "M30 25h100v60H30z", "M20 90L80 20l60 70z"];
  var MON = { May: [5, 31], Jun: [1, 30], Jul: [3, 31] };
  var S = {
    view: "home", id: null, f: {}, mega: null, dlg: null, toast: "", list: null, cal: false, from: null, to: null, cat: "All", q: "", subs: {}, cities: {}, sort: "Soonest", max: 300, fav: {}, when: "Any",
    qty: null, drop: null, lsort: "Best", section: null, all: false, acc: -1, vtab: "Seating", extras: {}, promo: "", protect: null, sell: {}, deliver: null, otab: "Upcoming", osort: null, row: null, menu: null, human: false, consent: false, team: "All games", region: ["English", "USD"], step: 1
  };
  function ev(id) { return E.find(function (e) { return e.id === id; }) || E[0]; }
  function dnum(d) { var m = d.split(" "); return { May: 0, Jun: 31, Jul: 61 }[m[0]] + +m[1]; }
  function usd(n) { return S.region[1] === "USD" ? "$" + n : S.region[1] === "EUR" ? "€" + Math.round(n * 0.9) : "CA$" + Math.round(n * 1.35); }
  function update(p) { Object.assign(S, p); var r = document.getElementById("__app"); r.replaceChildren.apply(r, page()); paint(); }
  function to(view, p) { update(Object.assign({ view: view, mega: null, dlg: null, list: null, drop: null, menu: null, toast: "", acc: -1 }, p)); scrollTo(0, 0); }
  function up(p) { return function () { update(p); }; }
  function field(name, o) { // a text input that remembers itself without a re-render
    return h("input", Object.assign({ name: name, type: "text", value: S.f[name] || "", oninput: function () { S.f[name] = this.value; this.setAttribute("value", this.value); if (o && o.after) o.after(this); } }, o && o.p));
  }
  function choose(name, first, opts, p) {
    return h("select", Object.assign({ name: name, onchange: function () { S.f[name] = this.value; update(); } }, p), h("option", { value: "" }, first), opts.map(function (o) { return h("option", { selected: S.f[name] === o }, o); }));
  }
  function combo(name, ph, source, done, p) { // ARIA combobox with a list patched after typing
    var list = h("ul", { cls: "Pop_list__w1", role: "listbox", hidden: true });
    var inp = field(name, { p: Object.assign({ placeholder: ph, role: "combobox", autocomplete: "off", "aria-expanded": "false" }, p), after: function (el) {
      var q = el.value.toLowerCase(), hit = q ? source().filter(function (s) { return s.label.toLowerCase().indexOf(q) >= 0; }).slice(0, 6) : [];
      list.replaceChildren.apply(list, hit.map(function (s) { return h("li", { role: "option", onclick: function () { S.f[name] = s.label; done(s); } }, s.label, s.note ? h("small", { cls: "mute" }, " " + s.note) : null); }));
      list.hidden = !hit.length; el.setAttribute("aria-expanded", String(!!hit.length));
    } });
    return [inp, list];
  }
  function events() { return E.map(function (e) { return { label: e.name, note: e.date + ", " + e.city, id: e.id }; }); }
  function cities() { return CITY.map(function (c) { return { label: c }; }); }
  function pic(e) { var d = h("div", {}); d.innerHTML = '<svg class="Tile_pic__t3" viewBox="0 0 160 110" preserveAspectRatio="xMidYMid slice"><rect width="160" height="110" fill="' + TONE[e.tone] + '"/><path d="' + SHAPE[(e.tone + e.sub.length) % 4] + '" fill="#eef1fb"/></svg>'; return d.firstChild; }
  function heart(id) { return h("button", { cls: "Btn_round__c1" + (S.fav[id] ? " on" : ""), type: "button", onclick: function (x) { x.stopPropagation(); S.fav[id] = !S.fav[id]; update(); } }, icon("heart")); }
  function tile(e) { return h("div", { cls: "Tile_card__t2", onclick: function () { to("event", { id: e.id }); } }, pic(e), heart(e.id), h("div", { cls: "Tile_txt__t4" }, h("h3", { cls: "b" }, e.name), h("p", { cls: "mute" }, e.date + ", " + e.city), h("span", {}, "From " + usd(e.from)))); }
  var MEGA = { Sports: ["Basketball", "Hockey", "Soccer", "Tennis"], Concerts: ["Rock", "Pop", "Festival"], "Comedy & Theater": ["Stand-up", "Improv", "Musical", "Play"] };
  function topbar() {
    var nav = Object.keys(MEGA).map(function (k) { return h("button", { cls: "TopBar_link__p0", "aria-expanded": String(S.mega === k), onclick: up({ mega: S.mega === k ? null : k }) }, k, " ", icon("caret")); });
    var find = combo("top", "Team, artist or venue", events, function (s) { to("event", { id: s.id }); }, { "aria-label": "Search" });
    return [h("header", { cls: "TopBar_root__k2Qd" }, h("a", { cls: "TopBar_brand__Zx81", onclick: function () { to("home"); } }, "seatmoor"), h("div", { cls: "TopBar_find__e9 rel" }, find, h("button", { cls: "Btn_ghost__71", type: "submit" }, icon("search"))), nav, h("span", { cls: "grow" }), h("a", { onclick: function () { to("sell"); } }, "Sell"), h("a", { onclick: function () { to("orders"); } }, "My tickets"), h("a", { onclick: function () { to("venues"); } }, "Venues"), h("a", { onclick: function () { to("help"); } }, "Help"), h("button", { cls: "drop-light", "aria-haspopup": "dialog", onclick: up({ dlg: "region" }) }, S.region.join(" · ")), h("button", { cls: "Btn_ghost__71", title: "Favorites" }, icon("heart")), h("button", { cls: "Btn_ghost__71" }, icon("user"))),
      Object.keys(MEGA).map(function (k) {
        return h("div", { cls: "Mega_panel__q7", hidden: S.mega !== k }, h("div", {}, h("p", { cls: "b" }, "By type"), h("ul", {}, MEGA[k].map(function (s) { var sub = {}; sub[s] = true; return h("li", {}, h("a", { onclick: function () { to("results", { cat: "All", q: "", subs: sub }); } }, s)); }))),
          h("div", {}, h("p", { cls: "b" }, "Popular"), h("ul", {}, E.filter(function (e) { return MEGA[k].indexOf(e.sub) >= 0; }).slice(0, 3).map(function (e) { return h("li", {}, h("a", { onclick: function () { to("event", { id: e.id }); } }, e.name)); }))),
          k === "Sports" ? h("div", {}, h("p", { cls: "b" }, "Teams"), h("ul", {}, ["Harbor Kites", "Northgate Icehounds", "Solano Rovers", "Mesa Drifters"].map(function (t) { return h("li", {}, h("a", { onclick: function () { to("team", { q: t }); } }, t)); }))) : null,
          h("div", {}, h("a", { cls: "b", onclick: function () { to("results", { cat: k.split(" ")[0], q: "", subs: {} }); } }, "See all")));
      })];
  }
  function trail() { return h("nav", { cls: "Pg_trail__m2", "aria-label": "Breadcrumb" }, h("ol", {}, h("li", {}, h("a", { onclick: function () { to("home"); } }, "Home")), Array.prototype.map.call(arguments, function (t) { return h("li", {}, t); }))); }
  function faq(title, items) { return h("section", { cls: "mb3" }, h("h2", { cls: "H2" }, title), items.map(function (t, i) { return [h("button", { cls: "Acc_h__a1", "aria-expanded": String(S.acc === i), onclick: up({ acc: S.acc === i ? -1 : i }) }, h("span", {}, t[0]), icon("caret")), h("div", { cls: "Acc_b__a2", hidden: S.acc !== i }, t[1])]; })); }
  var QA = [["When do I get my tickets?", "Most arrive by phone within a day."], ["What if the event moves?", "Your order stays valid for the new date."], ["Can I get a refund?", "Only if the event is canceled."], ["Are fees included?", "Yes, on every price you see."]];
  function more(t) { return h("section", { cls: "mb3" }, h("h2", { cls: "H2" }, t || "Popular near you"), h("div", { cls: "Tile_grid__t1" }, [8, 4, 16, 13].map(function (i) { return tile(E[(i + (t || "").length) % E.length]); }))); }
  function calendar() {
    return h("div", { cls: "Cal_pop__v1", role: "dialog", "aria-label": "Dates" }, ["May", "Jun"].map(function (m) {
      var cells = "SMTWTFS".split("").map(function (d) { return h("span", { cls: "mute" }, d); });
      for (var i = 0; i < MON[m][0]; i++) cells.push(h("span", {}));
      for (var d = 1; d <= MON[m][1]; d++) cells.push(day(m, d));
      return h("div", { cls: "Cal_month__v2" }, h("div", { cls: "fx jc-sb ai-c" }, h("button", { cls: "Btn_ghost__71", type: "button" }, icon("left")), h("b", {}, (m === "Jun" ? "June" : m) + " 2026"), h("button", { cls: "Btn_ghost__71", type: "button" }, icon("right"))), h("div", { cls: "Cal_grid__v3", role: "grid" }, cells));
    }));
  }
  function day(m, d) {
    var k = m + " " + d, n = dnum(k), off = m === "May" && d < 6, in_ = S.from && S.to && n > dnum(S.from) && n < dnum(S.to);
    if (off) return h("span", { cls: "mute" }, String(d));
    return h("span", { role: "gridcell", title: k, cls: k === S.from || k === S.to ? "picked" : in_ ? "within" : "", onclick: function () { if (!S.from || S.to) update({ from: k, to: null }); else update({ to: k, cal: false }); } }, String(d));
  }
  var V = {};
  V.home = function () {
    var dates = S.from ? S.from + (S.to ? " – " + S.to : "") : "Any dates";
    return [h("section", { cls: "Hero_root__u1" }, h("h1", {}, "Be in the room."), h("form", { cls: "Hero_form__u2", onsubmit: function (e) { e.preventDefault(); to("results", { q: S.f.what || "", cat: "All", cities: S.f.where ? Object.fromEntries([[S.f.where.split(",")[0], true]]) : {} }); } },
      h("div", {}, h("label", { for: "w1" }, "What"), combo("what", "Event, artist, team", events, function (s) { to("event-list", { q: s.label }); }, { id: "w1" })),
      h("div", {}, h("label", { for: "w2" }, "Where"), combo("where", "City", cities, function () { update(); }, { id: "w2" })),
      h("div", {}, h("label", {}, "When"), h("button", { cls: "Hero_dates__u3", type: "button", "aria-haspopup": "dialog", onclick: up({ cal: !S.cal }) }, dates), S.cal ? calendar() : null), h("button", { cls: "Btn_main__a4", type: "submit" }, "Search"))),
    h("main", { cls: "Pg_body__m1" }, h("section", { cls: "Cat_row__c1 mb3" }, [["Sports", "ball"], ["Concerts", "note"], ["Theater", "mask"], ["Comedy", "laugh"], ["Festival", "tent"], ["Tennis", "racket"]].map(function (c, i) { return h("div", { cls: "Cat_cell__c2", onclick: function () { var s = {}; if (i > 3) s[c[0]] = true; to("results", { cat: i > 3 ? "All" : c[0], q: "", subs: s }); } }, icon(c[1]), c[0]); })),
      h("h2", { cls: "H2" }, "This month"), h("div", { cls: "Tile_grid__t1 mb3" }, [0, 3, 4, 8, 14, 15, 16, 7].map(function (i) { return tile(E[i]); })),
      h("h2", { cls: "H2" }, "Booked the most"), h("div", { cls: "Tile_grid__t1 mb3" }, [11, 10, 12, 13].map(function (i) { return tile(E[i]); })), h("div", { cls: "Box Box_pale fx ai-c jc-sb" }, h("div", {}, h("h3", { cls: "H2" }, "Can't go?"), h("p", {}, "List your tickets in two minutes.")), h("button", { cls: "Btn_main__a4", onclick: function () { to("sell"); } }, "Sell tickets")), faq("Before you buy", QA))];
  };
  function eventRow(e) { return h("li", { cls: "List_row__l3" }, h("div", { cls: "List_day__l4" }, e.date.split(" ")[0], h("b", {}, e.date.split(" ")[1])), h("div", { cls: "grow" }, h("a", { cls: "b", onclick: function () { to("event", { id: e.id }); } }, e.name), h("p", { cls: "mute" }, e.venue + ", " + e.city)), h("span", {}, "From " + usd(e.from)), heart(e.id), h("a", { cls: "Btn_out__b2", onclick: function () { to("event", { id: e.id }); } }, "See tickets")); }
  function filtered() {
    var subs = Object.keys(S.subs).filter(function (k) { return S.subs[k]; }), ct = Object.keys(S.cities).filter(function (k) { return S.cities[k]; });
    var l = E.filter(function (e) { return (S.cat === "All" || e.cat === S.cat) && (!subs.length || subs.indexOf(e.sub) >= 0) && (!ct.length || ct.indexOf(e.city) >= 0) && e.from <= S.max && (S.when === "Any" || e.date.slice(0, 3) === S.when.slice(0, 3)) && (!S.from || !S.to || dnum(e.date) >= dnum(S.from) && dnum(e.date) <= dnum(S.to)) && (!S.q || e.name.toLowerCase().indexOf(S.q.toLowerCase()) >= 0); });
    return l.sort(function (a, b) { return S.sort === "Price" ? a.from - b.from : S.sort === "Name" ? (a.name < b.name ? -1 : 1) : dnum(a.date) - dnum(b.date); });
  }
  function checks(title, bag, opts) { return h("fieldset", {}, h("legend", {}, title), opts.map(function (o) { return h("label", {}, h("input", { type: "checkbox", name: bag, value: o, checked: !!S[bag][o], onchange: function () { S[bag][o] = !S[bag][o]; update(); } }), o); })); }
  V.results = function () {
    var l = filtered(), on = Object.keys(S.subs).filter(function (k) { return S.subs[k]; }).map(function (k) { return ["subs", k]; }).concat(Object.keys(S.cities).filter(function (k) { return S.cities[k]; }).map(function (k) { return ["cities", k]; }));
    return [trail("Events", S.cat), h("main", { cls: "Pg_body__m1 List_wrap__l1" }, h("aside", { cls: "List_side__l2" }, h("div", { cls: "Form_f__f1 rel" }, combo("city", "Add a city", cities, function (s) { S.cities[s.label.split(",")[0]] = true; S.f.city = ""; update(); })),
      h("fieldset", {}, h("legend", {}, "Price up to " + usd(S.max)), h("canvas", { cls: "range", width: 220, height: 90 })), checks("Type", "subs", ["Basketball", "Hockey", "Soccer", "Tennis", "Rock", "Pop", "Festival", "Stand-up", "Improv", "Musical", "Play"]), checks("City", "cities", CITY.map(function (c) { return c.split(",")[0]; }))),
    h("section", {}, h("div", { cls: "fx ai-c jc-sb mb2" }, h("h1", { cls: "H2" }, l.length + " events"), h("div", { cls: "Seg_root__s1", role: "group", "aria-label": "Month" }, ["Any", "May", "June", "July"].map(function (w) { return h("button", { "aria-pressed": String(S.when === w), onclick: up({ when: w }) }, w); })), h("div", { cls: "Seg_root__s1", role: "group", "aria-label": "Sort" }, ["Soonest", "Price", "Name"].map(function (w) { return h("button", { "aria-pressed": String(S.sort === w), onclick: up({ sort: w }) }, w); }))),
      h("div", { cls: "fx g1 mb2" }, on.map(function (c) { return h("span", { cls: "Chip" }, c[1], h("button", { "aria-label": "Remove", onclick: function () { S[c[0]][c[1]] = false; update(); } }, icon("x"))); }), S.from && S.to ? h("span", { cls: "Chip" }, S.from + " – " + S.to, h("button", { onclick: up({ from: null, to: null }) }, icon("x"))) : null), h("ul", { cls: "mb3" }, l.map(eventRow)))), h("div", { cls: "Pg_body__m1" }, more(), more("Just announced"), l.length < 8 ? faq("Before you buy", QA) : null)];
  };
  V["event-list"] = function () { return V.results(); };
  V.team = function () {
    var l = E.filter(function (e) { return e.name.indexOf(S.q) >= 0 && (S.team === "All games" || (S.team === "Home games") === (e.name.indexOf(S.q) === 0)); });
    return [trail("Teams", S.q), h("section", { cls: "Ev_head__e1 fx ai-c jc-sb" }, h("div", {}, h("h1", {}, S.q), h("p", {}, "Season 2026")), h("div", { cls: "fx g1" }, h("button", { cls: "Btn_round__c1", title: "Share" }, icon("share")), h("button", { cls: "Btn_round__c1 follow" + (S.fav[S.q] ? " on" : ""), title: "Follow", onclick: function () { S.fav[S.q] = !S.fav[S.q]; update(); } }, icon("heart")), h("button", { cls: "Btn_round__c1", title: "Alerts" }, icon("bell")))),
      h("main", { cls: "Pg_body__m1" }, h("div", { cls: "Tabs_l__y1", role: "tablist" }, ["All games", "Home games", "Away games"].map(function (t) { return h("button", { role: "tab", "aria-selected": String(S.team === t), onclick: up({ team: t }) }, t); })), h("ul", { cls: "mb3" }, l.map(eventRow)), more(), more("Fans also follow"), faq("Before you buy", QA))];
  };
  var L = [["101", 4, 1.9], ["112", 9, 1.65], ["118", 15, 1.5], ["204", 2, 1.25], ["209", 11, 1.15], ["215", 6, 1.1], ["221", 20, 1], ["Floor", 1, 2.6], ["222", 8, 0.95]];
  V.event = function () {
    var e = ev(S.id), l = L.map(function (x, i) { return { sec: x[0], row: x[1], price: Math.round(e.from * x[2]), i: i }; }).filter(function (x) { return !S.section || x.sec === S.section; });
    if (S.lsort === "Lowest price") l.sort(function (a, b) { return a.price - b.price; });
    if (S.f.cap) l = l.filter(function (x) { return x.price <= +S.f.cap; });
    return [trail(e.cat, e.name), h("section", { cls: "Ev_head__e1 fx ai-c jc-sb" }, h("div", {}, h("h1", {}, e.name), h("p", {}, e.date + " 2026, 7:30 PM · " + e.venue + ", " + e.city)), h("div", { cls: "fx g1" }, h("button", { cls: "Btn_round__c1" }, icon("share")), heart(e.id), h("button", { cls: "Btn_round__c1", onclick: up({ dlg: "alert" }) }, icon("bell")))),
      h("main", { cls: "Pg_body__m1" }, h("div", { cls: "fx g2 ai-c mb2" }, h("div", { cls: "Drop_root__d1" }, h("button", { cls: "Drop_btn__d2", "aria-haspopup": "listbox", onclick: up({ drop: S.drop ? null : "qty" }) }, S.qty ? S.qty + (S.qty > 1 ? " tickets" : " ticket") : "Quantity", " ", icon("caret")), S.drop === "qty" ? h("ul", { cls: "Pop_list__w1", role: "listbox" }, [1, 2, 3, 4, 5, 6].map(function (n) { return h("li", { role: "option", onclick: up({ qty: n, drop: null }) }, String(n)); })) : null),
        h("div", { cls: "Seg_root__s1" }, ["Best", "Lowest price"].map(function (w) { return h("button", { "aria-pressed": String(S.lsort === w), onclick: up({ lsort: w }) }, w); })), h("span", {}, "Up to"), choose("cap", "Any price", ["50", "80", "100", "150", "200"], { "aria-label": "Maximum price" }), S.section ? h("span", { cls: "Chip" }, "Section " + S.section, h("button", { "aria-label": "Clear section", onclick: up({ section: null }) }, icon("x"))) : null, h("span", { cls: "mute" }, l.length + " listings")),
      h("div", { cls: "Ev_split__e2 mb3" }, h("div", {}, l.map(function (x) { return h("div", { cls: "Lst_item__i1" + (S.section ? " hit" : "") }, h("div", { cls: "grow" }, h("b", {}, "Section " + x.sec), h("p", { cls: "mute" }, "Row " + x.row + ", up to " + (2 + x.i % 3 * 2) + " seats")), h("b", {}, usd(x.price)), h("button", { cls: "Btn_main__a4", onclick: function () { to("checkout", { row: x, qty: S.qty || 2 }); } }, "Buy")); })), h("div", {}, h("canvas", { cls: "map", width: 520, height: 460 }))), more("More like this"), more("Also at this venue"), faq("Before you buy", QA))];
  };
  function doc(s) { return "<style>body{font:14px sans-serif;margin:16px;color:#1b2440}input{padding:9px;border:1px solid #5f6885;width:94%;margin:4px 0 10px}button{font:inherit;padding:8px 16px;margin-right:8px}</style>" + s; }
  V.checkout = function () {
    var e = ev(S.id), x = S.row || { sec: "112", row: 9, price: Math.round(e.from * 1.65) }, n = S.qty || 2, add = (S.extras.Parking ? 25 : 0) + (S.extras["Early entry"] ? 15 : 0) + (S.protect === "Yes" ? 12 : 0), off = S.promo === "ok" ? 10 : 0;
    return [trail(e.name, "Checkout"), h("main", { cls: "Pg_body__m1 Ev_split__e2", style: "grid-template-columns:1fr 360px" }, h("div", {}, h("section", { cls: "Box" }, h("h2", { cls: "H2" }, "1. Delivery"), h("div", { cls: "Form_2__f2" }, h("label", { cls: "Form_f__f1" }, h("span", {}, "Email"), field("em", { p: { type: "email" } })), h("label", { cls: "Form_f__f1" }, h("span", {}, "Mobile number"), field("ph", { p: { type: "tel" } })), h("label", { cls: "Form_f__f1" }, h("span", {}, "Full name"), field("nm")), h("label", { cls: "Form_f__f1" }, h("span", {}, "ZIP code"), field("zip")))),
      h("section", { cls: "Box" }, h("h2", { cls: "H2" }, "2. Extras"), [["Parking", 25], ["Early entry", 15]].map(function (o) { return h("div", { cls: "List_row__l3" }, h("div", { cls: "grow" }, h("b", {}, o[0]), h("p", { cls: "mute" }, usd(o[1]) + " per order")), h("button", { cls: S.extras[o[0]] ? "Btn_main__a4" : "Btn_out__b2", onclick: function () { S.extras[o[0]] = !S.extras[o[0]]; update(); } }, S.extras[o[0]] ? "Added" : "Add")); }), h("p", { style: "margin-top:18px" }, "Protect this order?"), ["Yes", "No"].map(function (o) { return h("label", { style: "margin-right:22px" }, h("input", { type: "radio", name: "protect", value: o, checked: S.protect === o, onchange: up({ protect: o }) }), o === "Yes" ? " Yes, for " + usd(12) : " No thanks"); })),
      h("section", { cls: "Box" }, h("h2", { cls: "H2" }, "3. Card"), h("iframe", { cls: "cc", srcdoc: doc("Card number<input name=num placeholder='1234 1234 1234 1234'>Security code<input name=cvv style='width:120px;display:block'>") }))),
    h("aside", {}, h("div", { cls: "Box Box_pale" }, h("h2", { cls: "H2" }, e.name), h("p", { cls: "mb2" }, e.date + ", " + e.venue), [["Section " + x.sec + ", row " + x.row, n + " × " + usd(x.price)], ["Extras", usd(add)], ["Code", off ? "–" + usd(off) : "–"], ["Total", usd(x.price * n + add - off)]].map(function (r) { return h("p", { cls: "fx jc-sb mb2" }, h("span", {}, r[0]), h("b", {}, r[1])); }), h("div", { cls: "fx g1 mb2" }, field("code", { p: { placeholder: "Promo code", style: "width:170px" } }), h("button", { cls: "Btn_out__b2", onclick: up({ promo: "ok" }) }, "Apply")), h("button", { cls: "Btn_main__a4", onclick: up({ toast: "Order placed. Your tickets are in My tickets." }) }, "Place order")))), h("div", { cls: "Pg_body__m1" }, more("You may also like"), faq("Before you buy", QA))];
  };
  V.sell = function () {
    return [trail("Sell tickets"), h("main", { cls: "Pg_body__m1 Ev_split__e2", style: "grid-template-columns:1fr 360px" }, h("div", {}, h("h1", { cls: "H2" }, "Sell your tickets"), h("section", { cls: "Box" }, h("div", { cls: "Form_f__f1 rel" }, h("span", {}, "Event"), combo("sev", "Start typing", events, function (s) { update({ id: s.id }); })), h("div", { cls: "Form_2__f2" }, h("label", { cls: "Form_f__f1" }, h("span", {}, "How many"), choose("sn", "Select", ["1", "2", "3", "4", "5", "6"])), h("label", { cls: "Form_f__f1" }, h("span", {}, "Type"), choose("st", "Select", ["General admission", "Reserved seat", "VIP"])), h("label", { cls: "Form_f__f1" }, h("span", {}, "Section"), field("ss")), h("label", { cls: "Form_f__f1" }, h("span", {}, "Row"), field("sr")), h("label", { cls: "Form_f__f1" }, h("span", {}, "Price each"), field("sp", { p: { inputmode: "decimal", placeholder: "$" } })), h("label", { cls: "Form_f__f1" }, h("span", {}, "Face value"), field("sf", { p: { placeholder: "$" } }))),
      h("p", { cls: "mb2" }, "How will you send them?"), h("div", { cls: "fx g1 mb3", role: "radiogroup" }, ["Mobile transfer", "PDF", "Paper by mail"].map(function (o) { return h("div", { cls: S.deliver === o ? "Btn_main__a4" : "Btn_out__b2", role: "radio", "aria-checked": String(S.deliver === o), tabindex: 0, onclick: up({ deliver: o }) }, o); })), h("iframe", { cls: "hc", srcdoc: doc("<button onclick=\"this.textContent='✓';parent.smHuman()\">&nbsp;</button>I am a person") }), h("button", { cls: "Btn_main__a4 go", disabled: !S.human, onclick: up({ toast: "Your listing is live." }) }, "List tickets"))), h("aside", {}, h("div", { cls: "Box Box_pale" }, h("h2", { cls: "H2" }, "What sellers get"), ["Free to list", "Paid in 5 days", "Edit at any time"].map(function (t) { return h("p", { cls: "mb2" }, t); })), h("div", { cls: "Box" }, h("h2", { cls: "H2" }, "In demand"), E.slice(8, 13).map(function (e) { return h("p", { cls: "fx jc-sb mb2" }, h("a", {}, e.name), h("b", {}, usd(e.from))); })))), h("div", { cls: "Pg_body__m1" }, more("Selling fast"), more("Sold this week"), faq("Before you sell", QA))];
  };
  var O = [["SM-4471", "Glass Orchard", "May 17", 2, 166], ["SM-4502", "The Marrow Lights", "May 22", 4, 316], ["SM-4390", "Northgate Icehounds", "May 12", 1, 54], ["SM-4518", "Milo Brandt", "May 28", 3, 87], ["SM-4333", "Fernfield Weekender", "Jul 17", 2, 290]];
  V.orders = function () {
    var l = O.slice(); if (S.osort === "Total") l.sort(function (a, b) { return b[4] - a[4]; }); if (S.osort === "Date") l.sort(function (a, b) { return dnum(a[2]) - dnum(b[2]); });
    return [trail("My tickets"), h("main", { cls: "Pg_body__m1" }, h("h1", { cls: "H2" }, "My tickets"), h("div", { cls: "Tabs_l__y1", role: "tablist" }, ["Upcoming", "Past", "Listings", "Settings"].map(function (t) { return h("button", { role: "tab", "aria-selected": String(S.otab === t), onclick: up({ otab: t }) }, t); })),
      S.otab === "Settings" ? h("div", { cls: "Box" }, h("h2", { cls: "H2" }, "Notices"), ["Price drops", "New dates nearby", "Order updates", "Partner offers"].map(function (t, i) { return h("label", { cls: "List_row__l3" }, h("input", { type: "checkbox", name: "n" + i, checked: S.extras[t] === undefined ? i > 1 : S.extras[t], onchange: function () { S.extras[t] = this.checked; update(); } }), t); }), h("div", { cls: "Form_f__f1", style: "margin-top:18px" }, h("span", {}, "How often"), choose("freq", "Weekly", ["Daily", "Monthly", "Never"])), h("button", { cls: "Btn_main__a4", onclick: up({ toast: "Saved." }) }, "Save"))
        : h("table", { cls: "Tbl mb3" }, h("thead", {}, h("tr", {}, ["Order", "Event", "Date", "Tickets", "Total", ""].map(function (t) { return h("th", { "aria-sort": S.osort === t ? "descending" : false }, t === "Total" || t === "Date" ? h("button", { onclick: up({ osort: t }) }, t, " ", icon("caret")) : t); }))), h("tbody", {}, l.map(function (o) { return h("tr", {}, o.slice(0, 4).map(function (c) { return h("td", {}, String(c)); }), h("td", {}, usd(o[4])), h("td", { cls: "rel" }, h("button", { cls: "Btn_out__b2", onclick: up({ dlg: "transfer", row: o }) }, "Transfer"), " ", h("button", { cls: "Btn_out__b2" }, "View"), " ", h("button", { cls: "Btn_ghost__71", onclick: up({ menu: o[0] }) }, icon("dots")), S.menu === o[0] ? h("ul", { cls: "Pop_list__w1", role: "menu" }, ["Sell these", "Download invoice", "Request refund"].map(function (m) { return h("li", { role: "menuitem", onclick: m === "Request refund" ? up({ dlg: "refund", row: o, menu: null }) : m === "Sell these" ? function () { S.f.sev = o[1]; to("sell"); } : up({ toast: "Invoice downloaded.", menu: null }) }, m); })) : null)); }))), more("Because you saw Glass Orchard"), more("New this week"), faq("About your order", QA))];
  };
  V.help = function () {
    return [trail("Help"), h("main", { cls: "Pg_body__m1" }, h("h1", { cls: "H2" }, "Help center"), h("div", { cls: "Cat_row__c1 mb3" }, [["Buying", "ball"], ["Selling", "note"], ["Delivery", "pin"], ["Account", "user"], ["Alerts", "bell"], ["Sharing", "share"]].map(function (c) { return h("div", { cls: "Cat_cell__c2" }, icon(c[1]), c[0]); })), faq("Common questions", QA), h("section", { cls: "Box" }, h("h2", { cls: "H2" }, "Write to us"), h("div", { cls: "Form_2__f2" }, h("label", { cls: "Form_f__f1" }, h("span", {}, "Topic"), choose("ht", "Select a topic", ["Refund", "Delivery", "Wrong seats", "Account"])), h("label", { cls: "Form_f__f1" }, h("span", {}, "Order number"), field("ho"))), h("div", { cls: "Form_f__f1" }, h("textarea", { name: "hm", rows: 4, placeholder: "Tell us what happened", oninput: function () { S.f.hm = this.value; this.textContent = this.value; } }, S.f.hm || "")), h("iframe", { cls: "hc", srcdoc: doc("<button onclick=\"this.textContent='✓';parent.smHuman()\">&nbsp;</button>I am a person") }), h("button", { cls: "Btn_main__a4 go", disabled: !S.human, onclick: up({ toast: "Message sent. We reply within a day." }) }, "Submit")), more(), more("Just announced"))];
  };
  V.venues = function () {
    var v = S.id && VENUES.find(function (x) { return x[0] === S.id; });
    var tbl = h("div", {}, h("div", { cls: "Form_f__f1" }, field("vf", { p: { placeholder: "Filter venues", type: "search" }, after: function (el) { document.querySelectorAll(".Tbl tbody tr").forEach(function (r) { r.hidden = r.textContent.toLowerCase().indexOf(el.value.toLowerCase()) < 0; }); } })), h("table", { cls: "Tbl mb3" }, h("thead", {}, h("tr", {}, ["Venue", "City", "Seats", ""].map(function (t) { return h("th", {}, t); }))), h("tbody", {}, VENUES.map(function (x) { return h("tr", {}, h("td", {}, x[0]), h("td", {}, x[1]), h("td", {}, String(x[2])), h("td", {}, h("button", { cls: "Btn_out__b2", onclick: function () { to("venues", { id: x[0] }); } }, "Open"))); }))));
    var one = v && h("div", {}, h("div", { cls: "Tabs_l__y1", role: "tablist" }, ["Seating", "Accessibility", "Parking", "Bags"].map(function (t) { return h("button", { role: "tab", "aria-selected": String(S.vtab === t), onclick: up({ vtab: t }) }, t); })), h("div", { cls: "Box" }, h("h2", { cls: "H2" }, S.vtab), ["Gate A to D", "Levels 1 and 2", "Ask at the info desk"].map(function (t) { return h("p", { cls: "List_row__l3" }, t, h("span", { cls: "grow" }), h("button", { cls: "Btn_ghost__71" }, icon("share"))); })), h("h2", { cls: "H2" }, "Next here"), h("ul", { cls: "mb3" }, E.filter(function (e) { return e.venue === v[0]; }).map(eventRow)));
    return [trail("Venues", v ? v[0] : ""), h("main", { cls: "Pg_body__m1" }, h("h1", { cls: "H2" }, v ? v[0] + ", " + v[1] : "Venues"), v ? one : tbl, more(), more("Just announced"), more("Sold out soon"), faq("Before you go", QA))];
  };
  var D = {
    alert: function () { return [h("h2", { cls: "H2" }, "Price alert"), h("label", { cls: "Form_f__f1" }, h("span", {}, "Tell me when tickets are below"), field("ap", { p: { placeholder: "$" } })), h("label", { cls: "Form_f__f1" }, h("span", {}, "Email"), field("ae", { p: { type: "email" } })), h("button", { cls: "Btn_main__a4", onclick: up({ dlg: null, toast: "Alert set." }) }, "Save alert")]; },
    transfer: function () { return [h("h2", { cls: "H2" }, "Transfer " + S.row[1]), h("label", { cls: "Form_f__f1" }, h("span", {}, "How many"), choose("tn", "All", ["1", "2", "3"])), h("label", { cls: "Form_f__f1" }, h("span", {}, "Recipient"), field("te", { p: { type: "email", placeholder: "Email" } })), h("label", { cls: "fx g1 mb2" }, h("input", { type: "checkbox", name: "tc", onchange: function () { this.toggleAttribute("checked", this.checked); } }), "I know this is final"), h("button", { cls: "Btn_main__a4", onclick: up({ dlg: null, toast: "Tickets are on their way." }) }, "Send")]; },
    refund: function () { return [h("h2", { cls: "H2" }, "Refund for " + S.row[1]), h("label", { cls: "Form_f__f1" }, h("span", {}, "Why?"), choose("rw", "Select", ["Event canceled", "Bought twice", "Wrong date"])), h("div", { cls: "Form_f__f1" }, field("rn", { p: { placeholder: "Anything else" } })), h("button", { cls: "Btn_main__a4", disabled: !S.f.rw, onclick: up({ dlg: null, toast: "Request received." }) }, "Submit")]; },
    region: function () { return [h("h2", { cls: "H2" }, "Language and currency"), h("div", { cls: "fx g1 mb2" }, ["English", "Español", "Français"].map(function (l) { return h("span", { cls: S.region[0] === l ? "Btn_main__a4" : "Btn_out__b2", onclick: up({ region: [l, S.region[1]] }) }, l); })), h("div", { cls: "fx g1 mb3" }, ["USD", "CAD", "EUR"].map(function (c) { return h("span", { cls: S.region[1] === c ? "Btn_main__a4" : "Btn_out__b2", onclick: up({ region: [S.region[0], c] }) }, c); })), h("button", { cls: "Btn_main__a4", onclick: up({ dlg: null }) }, "Done")]; }
  };
  function page() {
    var cmp = S.consent ? [h("iframe", { cls: "cmp", srcdoc: doc("Seatmoor uses cookies. <button onclick=\"parent.smConsent()\">Accept</button><button onclick=\"parent.smConsent()\">Reject all</button>") })] : [];
    return cmp.concat([S.toast ? h("div", { cls: "Toast", role: "status" }, S.toast) : ""], [].concat.apply([], topbar()), V[S.view](), S.dlg ? [h("div", { cls: "Dlg_box__g1", role: "dialog", "aria-modal": "true" }, h("button", { cls: "Btn_round__c1 x", title: "Close", onclick: up({ dlg: null }) }, icon("x")), D[S.dlg]())] : []);
  }
  window.smHuman = function () { S.human = true; document.querySelectorAll("button.go").forEach(function (b) { b.disabled = false; }); };
  window.smConsent = function () { update({ consent: false }); };
  window.viewName = function () { return S.view; };
  var SECT = ["204", "101", "209", "118", "112", "Floor", "215", "221", "222"];
  function paint() {
    var m = document.querySelector("canvas.map"), r = document.querySelector("canvas.range"), g;
    if (m) { g = m.getContext("2d"); SECT.forEach(function (s, i) { g.fillStyle = s === S.section ? "#f26a4b" : s.length > 3 ? "#cfd6ea" : s[0] === "1" ? "#2f5bea" : "#5f6885"; g.fillRect(20 + i % 3 * 164, 20 + Math.floor(i / 3) * 144, 152, 132); g.fillStyle = "#fff"; g.font = "20px DejaVu Sans"; g.fillText(s, 70 + i % 3 * 164, 92 + Math.floor(i / 3) * 144); }); m.onclick = function (e) { update({ section: SECT[Math.min(2, Math.floor(e.offsetX / 174)) + 3 * Math.min(2, Math.floor(e.offsetY / 154))] }); }; }
    if (r) { g = r.getContext("2d"); g.fillStyle = "#cfd6ea"; g.fillRect(0, 44, 220, 6); for (var i = 0; i < 11; i++) g.fillRect(i * 20, 40 - (i * 7) % 36, 16, (i * 7) % 36); g.fillStyle = "#2f5bea"; g.fillRect(0, 44, S.max / 300 * 208, 6); g.fillRect(S.max / 300 * 208 - 4, 36, 16, 22); r.onclick = function (e) { update({ max: Math.max(30, Math.round(e.offsetX / 220 * 30) * 10) }); }; }
  }
  var hash = location.hash.slice(1).split("/");
  if (hash[0] === "gclid") S.consent = true; else if (V[hash[0]]) { S.view = hash[0]; S.id = hash[1] || null; if (hash[0] === "results" && hash[1]) { S.cat = hash[1]; S.id = null; } }
  update({});
  // For checks of what was done: what counts, and what was sent; not what is only open or unfolded.
  window.siteState = () => { const { mega, cal, list, drop, menu, toast, ...kept } = S; return { ...kept, sent: [toast] }; };
})();

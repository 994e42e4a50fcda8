// Lindqvarn storefront
var KINDS = {
  'Sofas': ['sofa', 890, 'M10 60h150v40H10zM22 30h126v30H22zM4 46h16v54H4zM150 46h16v54h-16z'],
  'Armchairs': ['armchair', 320, 'M45 20h80v50H45zM30 60h110v40H30zM35 100h10v18H35zM125 100h10v18h-10z'],
  'Dining tables': ['table', 640, 'M10 40h150v12H10zM22 52h10v70H22zM138 52h10v70h-10z'],
  'Coffee tables': ['coffee table', 210, 'M20 70h130v12H20zM34 82h8v36h-8zM128 82h8v36h-8z'],
  'Beds': ['bed', 720, 'M10 20h12v100H10zM22 66h140v34H22zM150 60h12v60h-12zM30 50h40v16H30z'],
  'Wardrobes': ['wardrobe', 980, 'M40 6h90v116H40z'],
  'Shelves': ['shelf', 180, 'M40 6h8v120h-8zM122 6h8v120h-8zM48 20h74v8H48zM48 60h74v8H48zM48 100h74v8H48z'],
  'Floor lamps': ['floor lamp', 129, 'M60 8h50l14 36H46zM82 44h6v70h-6zM62 114h46v8H62z'],
  'Table lamps': ['table lamp', 64, 'M60 30h50l14 36H46zM78 66h14v44H78z'],
  'Rugs': ['rug', 150, 'M20 30h130v70H20z']};
var MENU = {Sofas: [['Seating', ['Sofas', 'Armchairs']], ['By room', ['Small spaces', 'Family room']]], Tables: [['Tables', ['Dining tables', 'Coffee tables']], ['Finish', ['Oak', 'Walnut']]],
  Bedroom: [['Sleep', ['Beds', 'Wardrobes']], ['Linen', ['Duvets', 'Pillows']]], Storage: [['Storage', ['Shelves', 'Wardrobes']], ['Parts', ['Doors', 'Legs']]], Lighting: [['Lamps', ['Floor lamps', 'Table lamps']], ['Bulbs', ['LED', 'Smart']]], Rugs: [['Rugs', ['Rugs', 'Runners']], ['Care', ['Cleaning', 'Underlay']]]};
var FIRST = ['Sylva', 'Hemra', 'Tarn', 'Odela', 'Brisk', 'Kallmo', 'Venn', 'Ruskin', 'Ylva'];
var WOOD = ['Oak', 'Ash', 'Walnut', 'Pine'], TINT = ['#c9a66b', '#8d5a3b', '#7d8a6a', '#5d6f7d'], BACK = ['#e6dcc9', '#dbe0d2', '#e9d3c6'];
var FABRIC = [['Linen', '#cbb993'], ['Moss', '#6f7d4f'], ['Rust', '#a6492a'], ['Slate', '#55636e'], ['Ink', '#2a2f45']];
var SHOPS = [['Aldgrove', '12 Mill Row', 'until 20:00'], ['Brackenhurst', '3 Station Yard', 'until 19:00'], ['Corley Bay', 'Harbour Hall', 'until 20:00'], ['Dunmere', '88 High Street', 'until 18:00'], ['Esk Park', 'Unit 7', 'until 21:00']];
var FACTS = {Measurements: 'Height 84 cm, depth 92 cm', Materials: 'Solid wood, wool, flax', Care: 'Brush once a week', Assembly: 'Comes in one piece, only the feet are screwed on', Returns: '60 days'};
var DAYS = ['Wed 15', 'Thu 16', 'Fri 17', 'Sat 18', 'Mon 20'], HOURS = ['8 – 12', '12 – 16', '16 – 20'];
var G = {v: 'home', mega: '', srch: false, q: '', kind: 'Sofas', f: '', seats: [], wood: [], sort: 'Recommended', hearts: {}, item: 0, fab: 'Linen', size: '2 seats', pc: '', pcOk: false, acc: '', note: '', ov: false,
  bag: [], code: '', off: 0, shop: 1, room: '', day: 0, hour: '', who: '', done: false, slot: '', ck: {}, region: 'Region', qtyP: '1', ordered: false};
function ic(n) { return '<svg class="ic" aria-hidden="true"><use href="#i-' + n + '"></use></svg>'; }
function eur(n) { return '€' + String(Math.round(n)).replace(/(\d)(\d{3})$/, '$1,$2'); }
function q(s) { return String(s).replace(/&/g, '&amp;').replace(/"/g, '&quot;').replace(/</g, '&lt;'); }
function goods(kind) {
  var k = KINDS[kind] || KINDS.Sofas;
  return FIRST.map(function (f, i) { return {i: i, kind: kind, name: f + ' ' + k[0], price: Math.round(k[1] * (1 + ((i * 5 + 3) % 9) / 7)), wood: WOOD[i % 4], seats: [4, 6, 8, 6, 2][i % 5], d: k[2], c: TINT[i % 4], b: BACK[i % 3]}; });
}
function pic(p) { return '<svg viewBox="0 0 170 130"><path d="' + p.d + '" fill="' + p.c + '"></path></svg>'; }
function tile(p) {
  var id = p.kind + p.i;
  return '<div class="Tl_r"><div class="Tl_p" style="background:' + p.b + '" onclick="A.item(\'' + p.kind + '\',' + p.i + ')">' + pic(p) + '</div><div class="Tl_hrt' + (G.hearts[id] ? ' yes' : '') + '" onclick="A.heart(\'' + id + '\')">' + ic('heart') + '</div>' +
    '<div class="Tl_n"><a href="#" onclick="A.item(\'' + p.kind + '\',' + p.i + ')">' + p.name + '</a><div>' + eur(p.price) + '</div></div><div class="Tl_sw"><i style="background:#c9a66b"></i><i style="background:#8d5a3b"></i><i style="background:#5d6f7d"></i></div></div>';
}
function top_() {
  var nav = Object.keys(MENU).map(function (m) { return '<a href="#" class="' + (G.mega === m ? 'on' : '') + '" onclick="A.mega(\'' + m + '\')">' + m + '</a>'; }).join('');
  var mega = Object.keys(MENU).map(function (m) {
    return '<div class="Mega_m' + (G.mega === m ? '' : ' shut') + '">' + MENU[m].map(function (c) { return '<div><b>' + c[0] + '</b>' + c[1].map(function (t) { return '<a href="#" onclick="A.kind(\'' + t + '\')">' + t + '</a>'; }).join('') + '</div>'; }).join('') + '</div>';
  }).join('');
  var n = G.bag.reduce(function (a, b) { return a + b.n; }, 0), h = Object.values(G.hearts).filter(Boolean).length;
  return '<div class="Promo_x1">Free delivery over €400</div><div class="Top_a9"><div class="Top_row"><div class="Top_side"><a href="#" onclick="A.v(\'stores\')">Stores</a><a href="?p=design-help">Design help</a><a href="#" onclick="A.v(\'track\')">Orders</a></div><div class="Top_brand" onclick="A.v(\'home\')">LINDQVARN</div>' +
    '<div class="Top_side end"><div onclick="A.srch()">' + ic('loupe') + '</div><div onclick="A.v(\'saved\')">' + ic('heart') + (h ? '<span class="Top_dot">' + h + '</span>' : '') + '</div><div onclick="A.v(\'bag\')">' + ic('bag') + (n ? '<span class="Top_dot">' + n + '</span>' : '') + '</div></div></div><div class="Top_nav">' + nav + '</div>' + mega + '</div>' +
    (G.srch ? '<div class="Srch_s">' + ic('loupe') + '<input name="q" placeholder="Search products" value="' + q(G.q) + '" oninput="A.t(this,\'q\')" onkeydown="if(event.key===\'Enter\')A.find()"><div onclick="A.srch()">' + ic('x') + '</div></div>' : '');
}
function strip(title, kind, n) { return '<div class="Sec_c"><div class="Sec_h">' + title + '</div><div class="Tl_g">' + goods(kind).slice(9 - n).map(tile).join('') + '</div></div>'; }
function home() {
  return '<div class="Hero_h"><div class="Hero_t"><div>Made to be kept</div><a class="Bt_k" href="#" onclick="A.kind(\'Sofas\')">See sofas</a></div><svg viewBox="0 0 720 480"><path d="M80 260h560v150H80zM130 160h460v100H130zM50 210h60v230H50zM610 210h60v230h-60z" fill="#7d8a6a"></path></svg></div><div class="Sec_c"><div class="Sec_h">Rooms and things</div><div class="Cat_g">' +
    Object.keys(KINDS).slice(0, 8).map(function (k, i) { return '<div class="Cat_t" onclick="A.kind(\'' + k + '\')"><div>' + pic(goods(k)[i]) + '</div>' + k + '</div>'; }).join('') + '</div></div>' + strip('New this spring', 'Armchairs', 6) + strip('Lights', 'Table lamps', 3);
}
function drop(key, label, opts) {
  var sel = G[key];
  return '<div class="Flt_w"><div class="Flt_d" onclick="A.f(\'' + key + '\')">' + label + (sel.length ? ' (' + sel.length + ')' : '') + ic('down') + '</div>' + (G.f === key ? '<div class="Flt_p">' + opts.map(function (o) {
    return '<div class="Flt_o" role="checkbox" aria-checked="' + (sel.indexOf(o) >= 0) + '" onclick="A.tick(\'' + key + '\',\'' + o + '\')"><i></i>' + o + '</div>'; }).join('') + '</div>' : '') + '</div>';
}
function list() {
  var all = G.q && G.v === 'found' ? Object.keys(KINDS).reduce(function (a, k) { return a.concat(goods(k)); }, []).filter(function (p) { return p.name.toLowerCase().indexOf(G.q.toLowerCase()) >= 0; }) : goods(G.kind);
  var show = all.filter(function (p) { return (!G.seats.length || G.seats.indexOf(p.seats + ' people') >= 0) && (!G.wood.length || G.wood.indexOf(p.wood) >= 0); });
  if (G.sort !== 'Recommended') show.sort(function (a, b) { return (G.sort === 'Lowest price' ? 1 : -1) * (a.price - b.price); });
  var sort = '<div class="Flt_w" style="margin-left:auto"><div class="Flt_d" role="combobox" aria-expanded="' + (G.f === 'sort') + '" onclick="A.f(\'sort\')">' + G.sort + ic('down') + '</div>' + (G.f === 'sort' ? '<div class="Flt_p" role="listbox" style="left:auto;right:0">' + ['Recommended', 'Lowest price', 'Highest price'].map(function (o) { return '<div class="Flt_o" role="option" onclick="A.sort(\'' + o + '\')">' + o + '</div>'; }).join('') + '</div>' : '') + '</div>';
  return '<div class="Crumb_z">Home / ' + (G.v === 'found' ? 'Search' : G.kind) + '</div><div class="Sec_c" style="padding-top:20px"><div class="Sec_h">' + (G.v === 'found' ? '“' + q(G.q) + '”' : G.kind) + '</div></div><div class="Flt_b">' + drop('seats', 'Seats', ['2 people', '4 people', '6 people', '8 people']) + drop('wood', 'Wood', WOOD) +
    G.seats.concat(G.wood).map(function (c) { return '<div class="Chip_c">' + c + '</div>'; }).join('') + '<span>' + show.length + ' items</span>' + sort + '</div><div class="Sec_c" style="padding-top:0"><div class="Tl_g">' + show.map(tile).join('') + '</div></div>';
}
function product() {
  var p = goods(G.kind)[G.item], soft = /Sofas|Armchairs/.test(G.kind), col = soft ? FABRIC.filter(function (f) { return f[0] === G.fab; })[0][1] : p.c;
  var price = p.price + (G.size === '3 seats' ? 260 : G.size === 'Corner' ? 590 : 0);
  return '<div class="Crumb_z">Home / ' + G.kind + ' / ' + p.name + '</div><div class="Pdp_g"><div><div class="Pdp_big" style="background:' + p.b + '"><svg viewBox="0 0 170 130"><path d="' + p.d + '" fill="' + col + '"></path></svg></div><div class="Pdp_th"><div></div><div></div><div></div><div></div></div></div><div><div class="Pdp_n">' + p.name + '</div><div>' + (soft ? G.fab + ' velvet' : p.wood + ', ' + p.seats + ' people') + '</div><div class="Pdp_pr">' + eur(price) + '</div>' +
    (soft ? '<div class="Lab_l">Colour</div><div class="Sw_r">' + FABRIC.map(function (f) { return '<div class="' + (G.fab === f[0] ? 'on' : '') + '" title="' + f[0] + '" style="background:' + f[1] + '" onclick="A.s(\'fab\',\'' + f[0] + '\')"></div>'; }).join('') + '</div><div class="Lab_l">Size</div><div class="Opt_r">' + ['2 seats', '3 seats', 'Corner'].map(function (o) { return '<div class="' + (G.size === o ? 'on' : '') + '" onclick="A.s(\'size\',\'' + o + '\')">' + o + '</div>'; }).join('') + '</div>' : '') +
    '<div class="Lab_l">How many</div><select class="In_f" onchange="A.s(\'qtyP\',this.value)">' + [1, 2, 3, 4, 5, 6].map(function (n) { return '<option' + (G.qtyP === String(n) ? ' selected' : '') + '>' + n + '</option>'; }).join('') + '</select><p></p><div class="In_row"><div class="Bt_k wide" onclick="A.add(' + price + ')">Add to bag</div><div class="Bt_k lite" onclick="A.heart(\'' + p.kind + p.i + '\')">' + ic('heart') + '</div></div>' +
    '<div class="Lab_l">Can we deliver to you?</div><div class="In_row"><input class="In_f" placeholder="Postcode" value="' + q(G.pc) + '" oninput="A.t(this,\'pc\')"><div class="Bt_k lite" onclick="A.pc()">Check</div></div>' + (G.pcOk ? '<div class="Ok_n">Yes, to ' + q(G.pc) + ' from 22 April</div>' : '') +
    Object.keys(FACTS).map(function (t) { return '<div class="Acc_a" onclick="A.s(\'acc\',\'' + t + '\')"><span>' + t + '</span>' + ic('down') + '</div>' + (G.acc === t ? '<div>' + FACTS[t] + '</div>' : ''); }).join('') + '</div></div>' + strip('Goes well with', 'Coffee tables', 3);
}
function sums() {
  var s = G.bag.reduce(function (a, b) { return a + b.n * b.p.price; }, 0);
  return '<div class="ln"><span>Goods</span><span>' + eur(s) + '</span></div>' + (G.off ? '<div class="ln"><span>' + q(G.code) + '</span><span>−' + eur(s * G.off) + '</span></div>' : '') + '<div class="ln"><span>Delivery</span><span>' + (s > 400 ? 'Free' : '€39') + '</span></div><div class="ln tot"><span>Total</span><span>' + eur(s * (1 - G.off) + (s > 400 ? 0 : 39)) + '</span></div>';
}
function bag() {
  return '<div class="Sec_c"><div class="Sec_h">Your bag</div></div><div class="Bag_g"><div>' + G.bag.map(function (b, i) {
    return '<div class="Bag_l"><div class="pic" style="background:' + b.p.b + '">' + pic(b.p) + '</div><div class="tx">' + b.p.name + '</div><select class="In_f" style="width:80px" onchange="A.n(' + i + ',this.value)">' + [1, 2, 3, 4, 5, 6].map(function (n) { return '<option' + (b.n === n ? ' selected' : '') + '>' + n + '</option>'; }).join('') + '</select><div>' + eur(b.n * b.p.price) + '</div><div class="bin" onclick="A.bin(' + i + ')">' + ic('bin') + '</div></div>';
  }).join('') + '<div class="Acc_a"></div></div><div class="Sum_s">' + sums() + '<div class="In_row"><input class="In_f" placeholder="Discount code" value="' + q(G.code) + '" oninput="A.t(this,\'code\')"><div class="Bt_k lite" onclick="A.code()">Apply</div></div><a class="Bt_k wide" href="#" onclick="A.v(\'checkout\')">Check out</a></div></div>';
}
function inp(k, ph) { return '<input class="In_f" name="' + k + '" placeholder="' + ph + '" value="' + q(G.ck[k] || '') + '" oninput="G.ck[this.name]=this.value;this.setAttribute(\'value\',this.value)">'; }
function checkout() {
  var slots = '<div></div>' + DAYS.map(function (d) { return '<div>' + d + '</div>'; }).join('') + HOURS.map(function (h, r) { return '<div>' + h + '</div>' + DAYS.map(function (d, c) {
    var id = d + ', ' + h, no = (r * 5 + c) % 4 === 2; return '<div class="s' + (no ? ' no' : '') + (G.slot === id ? ' on' : '') + '"' + (no ? '' : ' onclick="A.s(\'slot\',\'' + id + '\')"') + '>' + (no ? 'Full' : G.slot === id ? 'Chosen' : 'Pick') + '</div>'; }).join(''); }).join('');
  return '<div class="Sec_c"><div class="Sec_h">Check out</div></div><div class="Bag_g"><div>' + (G.ordered ? '<div class="Ok_n">Thank you. Order LQ-20418 is placed.</div>' : '') + '<div class="Lab_l">Address</div><div class="In_row">' + inp('nm', 'Full name') + inp('ph', 'Phone') + '</div><div class="In_row">' + inp('st', 'Street and number') + '</div><div class="In_row">' + inp('ct', 'Town') + inp('pc', 'Postcode') + '<select class="In_f" onchange="A.s(\'region\',this.value)">' + ['Region', 'Northmark', 'Eastmark', 'Islands'].map(function (o) { return '<option' + (G.region === o ? ' selected' : '') + '>' + o + '</option>'; }).join('') + '</select></div>' +
    '<div class="Lab_l">Delivery, April</div><div class="Slot_g">' + slots + '</div><div class="Lab_l">Card</div><div id="paybox"></div></div><div class="Sum_s">' + sums() + (G.slot ? '<div class="ln"><span>' + G.slot + '</span></div>' : '') + '<div class="Bt_k wide" onclick="A.order()">Place order</div></div></div>';
}
function stores() {
  return '<div class="Sec_c"><div class="Sec_h">Stores</div></div><div class="St_g"><div>' + SHOPS.map(function (s, i) { return '<div class="St_r"><div><b>' + s[0] + '</b><div>' + s[1] + ', ' + s[2] + '</div></div><div class="Bt_k lite" onclick="A.shop(' + i + ')">Book a visit</div></div>'; }).join('') + '<div class="Acc_a"></div></div><canvas class="Map_m" width="560" height="520"></canvas></div>';
}
function appoint() {
  var cal = ['Mo', 'Tu', 'We', 'Th', 'Fr', 'Sa', 'Su'].map(function (d) { return '<div class="hd">' + d + '</div>'; }).join('') + '<div class="no"></div><div class="no"></div>';
  for (var d = 1; d <= 30; d++) { var no = d < 10 || d % 7 === 5; cal += '<div class="' + (no ? 'no' : '') + (G.day === d ? ' on' : '') + '"' + (no ? '' : ' onclick="A.s(\'day\',' + d + ')"') + '>' + d + '</div>'; }
  return '<div class="Sec_c"><div class="Sec_h">Visit us in ' + SHOPS[G.shop][0] + '</div></div><div class="Bag_g"><div>' + (G.done ? '<div class="Ok_n">See you soon, ' + q(G.who) + '</div>' : '') + '<div class="Lab_l">We plan your</div><div class="Opt_r">' + ['Living room', 'Kitchen', 'Bedroom', 'Office'].map(function (r) { return '<div class="' + (G.room === r ? 'on' : '') + '" onclick="A.s(\'room\',\'' + r + '\')">' + r + '</div>'; }).join('') + '</div><div class="Lab_l">April 2026</div><div class="Cal_g">' + cal + '</div><div class="Lab_l">Time</div><div class="Opt_r">' + ['9:00', '10:30', '12:00', '14:30', '16:00'].map(function (r) { return '<div class="' + (G.hour === r ? 'on' : '') + '" onclick="A.s(\'hour\',\'' + r + '\')">' + r + '</div>'; }).join('') + '</div></div><div class="Sum_s"><div class="ln"><span>' + (G.room || 'Room') + '</span><span>Free</span></div><div class="ln"><span>' + (G.day ? G.day + ' April' : 'Day') + '</span><span>' + G.hour + '</span></div><p></p><div class="In_row"><input class="In_f" placeholder="Name" value="' + q(G.who) + '" oninput="A.t(this,\'who\')"></div><div class="Bt_k wide" onclick="A.s(\'done\',true)">Book</div></div></div>';
}
function saved() {
  var all = Object.keys(KINDS).reduce(function (a, k) { return a.concat(goods(k)); }, []).filter(function (p) { return G.hearts[p.kind + p.i]; });
  return '<div class="Sec_c"><div class="Sec_h">Saved</div><div class="Tl_g">' + all.map(tile).join('') + '</div></div>';
}
function track() { return '<div class="Sec_c"><div class="Sec_h">Find your order</div><div class="In_row">' + inp('no', 'Order number') + inp('em', 'Email') + '<div class="Bt_k">Find</div></div></div>'; }
var VIEW = {home: home, list: list, found: list, product: product, bag: bag, checkout: checkout, stores: stores, appoint: appoint, saved: saved, track: track};
var payFrame = null;
function pay() {
  var box = document.getElementById('paybox');
  if (!box) return;
  if (box.firstChild) return;
  payFrame = document.createElement('iframe');
  payFrame.className = 'Pay_if';
  payFrame.srcdoc = "<style>body{margin:0;padding:18px;font:15px sans-serif}input{font:inherit;height:44px;border:1px solid #888;padding:0 12px;box-sizing:border-box}.n{width:100%;margin-bottom:10px}.h{width:48%}</style><input class='n' name='num' placeholder='Card number'><input class='h' name='exp' placeholder='MM / YY'> <input class='h' name='cvc' placeholder='CVC'>";
  box.appendChild(payFrame);
}
function map_() {
  var c = document.querySelector('.Map_m');
  if (!c) return;
  var g = c.getContext('2d'), at = [[90, 110], [280, 260], [420, 90], [150, 420], [460, 400]];
  g.fillStyle = '#dbe0d2'; g.fillRect(0, 0, 560, 520);
  g.strokeStyle = '#fff'; g.lineWidth = 10; g.beginPath(); g.moveTo(0, 180); g.lineTo(560, 340); g.moveTo(230, 0); g.lineTo(330, 520); g.stroke();
  at.forEach(function (p) { g.fillStyle = '#a6492a'; g.fillRect(p[0] - 12, p[1] - 12, 24, 24); });
  c.onclick = function (e) { at.forEach(function (p, i) { if (Math.abs(e.offsetX - p[0]) < 30 && Math.abs(e.offsetY - p[1]) < 30) A.shop(i); }); };
}
function draw() {
  var box = document.getElementById('paybox'), keep = G.v === 'checkout' && box && box.firstChild;
  var root = document.getElementById('root');
  if (keep) {                       // moving an iframe would reload it: patch around it
    var next = document.createElement('div');
    next.innerHTML = top_() + VIEW[G.v]();
    ['.Slot_g', '.Sum_s', '.Top_a9'].forEach(function (s) { root.querySelector(s).replaceWith(next.querySelector(s)); });
    if (G.ordered && !root.querySelector('.Ok_n')) box.parentNode.prepend(next.querySelector('.Ok_n'));
  } else root.innerHTML = top_() + VIEW[G.v]();
  document.getElementById('portal').innerHTML = (G.ov ? '<div class="Ov_o"><div class="cl" onclick="A.s(\'ov\',false)">' + ic('x') + '</div><div class="Sec_h">10 % off your first order</div><div class="In_row"><input class="In_f" placeholder="Your email"></div><div class="Bt_k wide">Send me the code</div></div>' : '') + (G.note ? '<div class="Tst_t">' + G.note + '</div>' : '');
  pay(); map_();
}
var A = {
  s: function (k, v) { G[k] = v; G.note = ''; draw(); }, t: function (el, k) { G[k] = el.value; el.setAttribute('value', el.value); }, v: function (v) { G.v = v; G.mega = ''; G.note = ''; G.f = ''; scrollTo(0, 0); draw(); },
  mega: function (m) { G.mega = G.mega === m ? '' : m; draw(); }, kind: function (k) { G.kind = KINDS[k] ? k : 'Sofas'; G.seats = []; G.wood = []; A.v('list'); }, srch: function () { G.srch = !G.srch; draw(); }, find: function () { A.v('found'); },
  f: function (k) { G.f = G.f === k ? '' : k; draw(); }, tick: function (k, o) { var i = G[k].indexOf(o); if (i < 0) G[k].push(o); else G[k].splice(i, 1); G.f = ''; draw(); }, sort: function (o) { G.sort = o; G.f = ''; draw(); },
  heart: function (id) { G.hearts[id] = !G.hearts[id]; draw(); }, item: function (k, i) { G.kind = k; G.item = i; A.v('product'); },
  add: function (p) { var g = goods(G.kind)[G.item]; g.price = p; G.bag.push({p: g, n: +G.qtyP}); G.note = g.name + ' is in your bag'; draw(); }, pc: function () { G.pcOk = Boolean(G.pc); draw(); },
  n: function (i, n) { G.bag[i].n = +n; draw(); }, bin: function (i) { G.bag.splice(i, 1); draw(); }, code: function () { G.off = G.code ? 0.15 : 0; draw(); }, shop: function (i) { G.shop = i; A.v('appoint'); }, order: function () { G.ordered = true; draw(); }};
(function () {
  var h = location.hash.slice(1);
  G.ov = !h;
  if (h === 'bag' || h === 'checkout') G.bag = [{p: goods('Dining tables')[3], n: 1}, {p: goods('Armchairs')[1], n: 2}, {p: goods('Rugs')[5], n: 1}];
  if (VIEW[h]) G.v = h;
  draw();
})();
// For checks of what was done: what counts, and what was sent; not what is only open or unfolded.
window.siteState = () => { const { mega, f, srch, note, bag, ...kept } = G; return { ...kept, bag: bag.map((line) => ({ ...line, p: line.p.name })), sent: [note, kept.done && 'visit', kept.ordered && 'order'] }; };

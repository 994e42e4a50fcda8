// Vellamere Clinic site script. "Today" is Monday 9 March 2026.
(function () {
  var $ = function (s, r) { return (r || document).querySelector(s); };
  var $$ = function (s, r) { return Array.prototype.slice.call((r || document).querySelectorAll(s)); };
  function el(tag, attrs, kids) {
    var e = document.createElement(tag), k;
    for (k in attrs || {}) { if (k.slice(0, 2) === 'on') e.addEventListener(k.slice(2), attrs[k]); else e.setAttribute(k, attrs[k]); }
    [].concat(kids === undefined ? [] : kids).forEach(function (c) { e.append(c); });
    return e;
  }
  var SPECS = ['Allergy', 'Cardiology', 'Dermatology', 'Ear, nose & throat', 'Endocrinology', 'Eye care', 'Family medicine', 'Gastroenterology', 'Neurology', 'Obstetrics', 'Oncology', 'Orthopedics', 'Pediatrics', 'Psychiatry', 'Rheumatology', 'Urology'];
  var DOCS = [['Adeyemi, Folake', 'Dermatology', 'Northgate', 'F', 1, 1, 17], ['Brandt, Johanna', 'Dermatology', 'Northgate', 'F', 0, 1, 30], ['Castellano, Rui', 'Dermatology', 'Northgate', 'M', 1, 0, 12], ['Dunmore, Alice', 'Dermatology', 'Harbor Street', 'F', 1, 0, 19],
    ['Eklund, Per', 'Cardiology', 'Northgate', 'M', 1, 1, 23], ['Farrow, Denise', 'Family medicine', 'Elm Hollow', 'F', 1, 1, 10], ['Gupta, Anil', 'Family medicine', 'Northgate', 'M', 1, 0, 11], ['Hollis, Grace', 'Pediatrics', 'Elm Hollow', 'F', 1, 1, 13],
    ['Ito, Kenji', 'Orthopedics', 'Westfield Park', 'M', 0, 0, 31], ['Jansen, Mieke', 'Neurology', 'Harbor Street', 'F', 1, 1, 26], ['Kovacs, Laszlo', 'Eye care', 'Northgate', 'M', 1, 0, 16], ['Lindqvist, Sara', 'Obstetrics', 'Elm Hollow', 'F', 0, 1, 27]];
  var COL = ['#22466b', '#8bb38f', '#a5674a', '#7aa6c9', '#6a5a8c'];
  var FAQ = [['Which insurance plans do you take?', 'Most regional plans and all public plans.'], ['Can I bring someone with me?', 'Yes, one adult for each patient.'], ['How early should I arrive?', 'Ten minutes before your time.'], ['How do I change a visit?', 'Call or use the portal until 5 pm the day before.'], ['Do you offer video visits?', 'Yes, for most follow-ups.'], ['Where do I park?', 'Every campus has a visitor lot.'], ['How do I get my records?', 'Ask for them under Medical records.']];
  var view;
  function art() { $$('.art').forEach(function (a, i) { a.innerHTML = '<svg viewBox="0 0 300 150" aria-hidden="true">' + ['<circle cx="215" cy="60" r="34" fill="#ffd75e"/><path d="M40 150l70-80 70 80z" fill="#fff"/>', '<path d="M60 40h180v80H60z" fill="#dcebf7"/><path d="M130 60h40v40h-40z" fill="#0a5fb4"/>', '<circle cx="150" cy="80" r="45" fill="#fff6d8"/><path d="M145 80h10v70h-10z" fill="#22466b"/>'][i % 3] + '</svg>'; }); }
  function faqs() { $$('.faqs').forEach(function (f) { FAQ.forEach(function (q) { f.append(el('details', {}, [el('summary', {}, q[0]), el('p', {}, q[1])])); }); }); }
  var INIT = {
    home: function () {
      SPECS.concat(['Laboratory', 'Nutrition', 'Pharmacy', 'Sleep', 'Sports medicine', 'Travel health', 'Vaccinations', 'Wound care']).forEach(function (s) { $('#az').append(el('li', {}, el('a', { href: '#doctors' }, s))); });
      [['Mar 14', 'Birth class for beginners', 'Elm Hollow', 'Free'], ['Mar 18', 'Living with diabetes', 'Northgate', 'Free'], ['Mar 21', 'First aid for babies', 'Harbor Street', '$25'], ['Mar 28', 'Yoga for sore backs', 'Westfield Park', '$10'], ['Apr 2', 'Blood drive', 'Northgate', 'Free']].forEach(function (r) {
        $('#events').append(el('tr', {}, r.map(function (c) { return el('td', {}, c); }).concat(el('td', {}, el('a', { href: '?p=' + r[1].toLowerCase().replace(/ /g, '-'), 'class': 'ghost' }, 'Sign up')))));
      });
    },
    doctors: function () {
      var f = $('#docform'), sort = 'name';
      ['Any specialty'].concat(SPECS).forEach(function (s) { $('#spec').append(el('option', {}, s)); });
      function rows() {
        var v = new FormData(f), l = DOCS.filter(function (d) {
          return (v.get('specialty') === 'Any specialty' || d[1] === v.get('specialty')) && (v.get('campus') === 'Any campus' || d[2] === v.get('campus')) && (!v.get('gender') || d[3] === v.get('gender')) && (!v.get('new') || d[4]) && (!v.get('video') || d[5]) && d[0].toLowerCase().indexOf(v.get('name').toLowerCase()) === 0;
        });
        l.sort(function (a, b) { var i = { name: 0, spec: 1, next: 6 }[sort]; return a[i] < b[i] ? -1 : a[i] > b[i] ? 1 : 0; });
        $('#doccount').textContent = l.length + (l.length === 1 ? ' doctor found' : ' doctors found');
        $('.dir tbody').replaceChildren.apply($('.dir tbody'), l.map(function (d) {
          var i = DOCS.indexOf(d);
          return el('tr', {}, [el('td', {}, el('div', { 'class': 'face', style: 'background:' + COL[i % 5] }, d[0][0])), el('th', { scope: 'row' }, el('a', { href: '#doctors' }, d[0] + ', MD')), el('td', {}, d[1]), el('td', {}, d[2]), el('td', {}, d[4] ? 'Yes' : 'Waitlist'), el('td', {}, 'Mar ' + d[6]), el('td', {}, el('button', { type: 'button', 'class': 'ghost', onclick: function () { times(d); } }, 'See times'))]);
        }));
      }
      function times(d) {
        var t = $('#times'); t.hidden = false; t.replaceChildren(el('h3', {}, 'Openings with Dr. ' + d[0].split(',')[0]), el('ol', {}, [0, 1, 2, 3, 4].map(function (k) {
          return el('li', {}, [el('b', {}, 'Mar ' + (d[6] + k))].concat(['8:30', '10:15', '2:45'].map(function (h) { return el('button', { type: 'button', 'class': 'ghost', onclick: function () { t.replaceChildren(el('h3', {}, 'Held for you: Dr. ' + d[0].split(',')[0] + ', Mar ' + (d[6] + k) + ' at ' + h)); } }, h); })));
        })));
      }
      f.addEventListener('submit', function (e) { e.preventDefault(); rows(); });
      $$('.dir thead button').forEach(function (b) { b.onclick = function () { sort = b.dataset.k; rows(); }; });
      rows();
    },
    book: function () {
      var m = 3, day = 0, hour = '', M = { 3: ['March 2026', 0, 31], 4: ['April 2026', 3, 30], 5: ['May 2026', 5, 31] };
      ['Check-up', 'Sick visit', 'Vaccination', 'Follow-up', 'Blood test', 'Physical therapy', 'Video visit', 'Something else'].forEach(function (t) {
        var l = el('label', {}, [el('input', { type: 'radio', name: 'reason', value: t, onchange: function () { $$('.tiles label').forEach(function (x) { x.className = ''; }); l.className = 'on'; } }), t]);
        $('.tiles').append(l);
      });
      function cal() {
        var b = $('.month tbody'), r, d, k; b.replaceChildren(el('tr', {}, ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'].map(function (x) { return el('th', { scope: 'col' }, x); })));
        $('.month caption span').textContent = M[m][0]; $('#pm').disabled = m === 3; $('#nm').disabled = m === 5;
        for (d = 1 - M[m][1]; d <= M[m][2];) {
          r = el('tr', {});
          for (k = 0; k < 7; k++, d++) (function (n, off) {
            if (n < 1 || n > M[m][2]) return r.append(el('td', {}));
            var x = el('button', { type: 'button', 'aria-pressed': String(n === day), onclick: function () { day = n; hour = ''; cal(); hrs(); } }, String(n)); x.disabled = off; r.append(el('td', { role: 'gridcell' }, x));
          })(d, k === 0 || k === 6 || (m === 3 && d < 10));
          b.append(r);
        }
      }
      function hrs() {
        $('.hours').replaceChildren.apply($('.hours'), ['8:20', '8:40', '9:00', '9:20', '9:40', '10:00', '10:20', '1:00', '1:20', '1:40', '2:00', '2:20'].map(function (h, i) {
          var off = !day || i % 5 === 2;
          return el('li', { role: 'option', 'aria-selected': String(h === hour), 'aria-disabled': String(off), onclick: function () { if (!off) { hour = h; hrs(); } } }, h + (i < 7 ? ' am' : ' pm'));
        }));
      }
      $('#nm').onclick = function () { m++; day = 0; cal(); hrs(); }; $('#pm').onclick = function () { m--; day = 0; cal(); hrs(); };
      $('#bookform').addEventListener('submit', function (e) { e.preventDefault(); var d = $('.done'); d.hidden = false; d.textContent = 'Thank you. We asked for ' + M[m][0].split(' ')[0] + ' ' + day + ' at ' + hour + '. You will get a text message soon.'; window.scrollTo(0, 0); });
      cal(); hrs();
    },
    locations: function () {
      var L = [['Northgate', '400 Northgate Blvd', 'sun late xray lab park', 'Every day 7 am - 9 pm', 3.1], ['Harbor Street', '18 Harbor St', 'late lab rx', 'Mon - Sat 8 am - 8 pm', 1.4], ['Elm Hollow', '77 Hollow Rd', 'sun lab park', 'Every day 8 am - 5 pm', 4.8], ['Westfield Park', '2 Westfield Pkwy', 'xray rx park', 'Mon - Fri 8 am - 5 pm', 6.2], ['Quarry Lane', '905 Quarry Ln', 'sun xray late', 'Every day 9 am - 9 pm', 8.0]], f = $('#locform'), open = '';
      var W = { sun: 'Open Sunday', late: 'Late hours', xray: 'X-ray', lab: 'Laboratory', rx: 'Pharmacy', park: 'Free parking' };
      function draw() {
        var v = new FormData(f), want = Object.keys(W).filter(function (k) { return v.get(k); });
        $('#loclist').replaceChildren.apply($('#loclist'), L.filter(function (l) { return want.every(function (w) { return l[2].indexOf(w) >= 0; }); }).map(function (l) {
          var i = L.indexOf(l), kids = [el('div', { 'class': 'plan', style: 'background:' + COL[i] }), el('div', {}, [el('h3', {}, l[0] + ' Urgent Care'), el('div', {}, l[1]), el('div', {}, l[3]), el('small', {}, l[2].split(' ').map(function (s) { return W[s]; }).join(', '))]), el('div', {}, [el('button', { type: 'button', 'class': 'ghost' }, 'Hold my place'), el('button', { type: 'button', 'class': 'ghost', onclick: function () { open = l[0]; draw(); } }, 'Directions'), el('span', { 'class': 'away' }, v.get('zip') ? l[4] + ' miles from ' + v.get('zip') : '')])];
          if (open === l[0]) kids.push(el('div', { 'class': 'route' }, 'Route to ' + l[1] + ': 11 minutes by car, 26 minutes by bus 4.'));
          return el('li', {}, kids);
        }));
      }
      f.addEventListener('input', draw); f.addEventListener('submit', function (e) { e.preventDefault(); }); draw();
    },
    portal: function () {
      var refill = [], paid = {}, pane = $('#pane'), dlg = $('#dlg');
      function table(head, rows) { return el('table', { 'class': 'plain' }, [el('thead', {}, el('tr', {}, head.map(function (h) { return el('th', { scope: 'col' }, h); }))), el('tbody', {}, rows.map(function (r) { return el('tr', {}, r.map(function (c) { return el('td', {}, c); })); }))]); }
      function act(t, fn, off) { var b = el('button', { type: 'button', 'class': 'ghost', onclick: fn }, t); b.disabled = !!off; return b; }
      function modal(title, kids) { dlg.replaceChildren.apply(dlg, [el('h3', {}, title)].concat(kids)); dlg.setAttribute('open', ''); }
      function shut(msg) { dlg.removeAttribute('open'); if (msg) { $('.done').hidden = false; $('.done').textContent = msg; window.scrollTo(0, 0); } }
      function options(name, list) { return el('select', { name: name }, list.map(function (o) { return el('option', {}, o); })); }
      var RX = [['Lisinopril 10 mg', 'Once a day', 2], ['Metformin 500 mg', 'Twice a day', 1], ['Atorvastatin 20 mg', 'At bedtime', 3], ['Fluticasone spray', 'As needed', 0], ['Vitamin D 1000 IU', 'Once a day', 5]];
      var BILLS = [['Feb 26', 'Northgate Imaging', 'MRI, left knee', '$310.00'], ['Feb 11', 'Elm Hollow', 'Lab work', '$86.40'], ['Jan 20', 'Harbor Street', 'Urgent care visit', '$125.00'], ['Jan 8', 'Elm Hollow', 'Check-up copay', '$30.00']];
      var P = {
        over: function () {
          return el('div', { 'class': 'cards' }, [['Next visit', 'Dr. Farrow, Mar 19, 9:20 am', 'Reschedule'], ['New result', 'Lipid panel, Mar 6', 'View'], ['Balance due', '$551.40 in 4 statements', 'Pay'], ['Medicines', '5 active prescriptions', 'Refill'], ['Care team', 'Dr. Farrow, Dr. Jansen', 'Message'], ['Vaccines', 'Tetanus due in May', 'Book']].map(function (c) { return el('section', {}, [el('h3', {}, c[0]), el('p', {}, c[1]), act(c[2], function () {})]); }));
        },
        res: function () { return table(['Test', 'Date', 'Value', 'Range', 'Flag', ''], [['Total cholesterol', 'Mar 6', '214', '125-200'], ['HDL', 'Mar 6', '52', '> 40'], ['LDL', 'Mar 6', '131', '< 100'], ['Triglycerides', 'Mar 6', '122', '< 150'], ['Hemoglobin A1c', 'Feb 11', '6.1', '4.0-5.6'], ['Vitamin D', 'Feb 11', '38', '30-100']].map(function (r, i) { return r.concat([el('span', { 'class': i % 2 ? 'low' : 'high' }, i % 2 ? 'Normal' : 'High'), act('Trend', function () {})]); })); },
        rx: function () {
          return table(['Medicine', 'How to take', 'Refills left', ''], RX.map(function (r, i) {
            return [r[0], r[1], String(r[2]), act(refill.indexOf(i) < 0 ? 'Refill' : 'Requested', function () {
              modal('Refill ' + r[0], [el('p', {}, [el('label', {}, 'Pick up at'), options('pharmacy', ['Choose a pharmacy', 'Northgate pharmacy', 'Harbor Street pharmacy', 'Westfield Park pharmacy', 'Mail to my home'])]), el('fieldset', {}, [el('legend', {}, 'Tell me when it is ready')].concat(['Text message', 'Phone call', 'E-mail'].map(function (t, j) { return el('span', { 'class': 'ck' }, [el('input', { type: 'radio', name: 'notify', id: 'nt' + j }), el('label', { 'for': 'nt' + j }, t)]); }))), el('button', { type: 'button', 'class': 'cta', onclick: function () { refill.push(i); shut('Your refill of ' + r[0] + ' was sent to the pharmacy.'); show('rx'); } }, 'Request refill'), ' ', act('Close', function () { shut(); })]);
            }, !r[2] || refill.indexOf(i) >= 0)];
          }));
        },
        msg: function () { return table(['From', 'Subject', 'Date'], [['Dr. Farrow', 'Your lipid panel', 'Mar 6'], ['Billing office', 'New statement', 'Feb 27'], ['Dr. Jansen', 'MRI follow-up', 'Feb 26'], ['Front desk', 'Visit reminder', 'Feb 10']]); },
        bill: function () {
          return table(['Date', 'Place', 'Service', 'Amount', ''], BILLS.map(function (r, i) {
            return r.slice(0, 3).concat([paid[i] ? r[3] + ' (paid ' + paid[i] + ')' : r[3], act('Pay', function () {
              var amt = el('input', { name: 'amount', value: r[3].slice(1) });
              modal('Pay statement of ' + r[0], [el('p', {}, [el('label', {}, 'Amount in dollars'), amt]), el('iframe', { 'class': 'vault', srcdoc: "<style>body{margin:14px;font:14px Arial,'Liberation Sans',sans-serif}input{padding:9px;border:1px solid #888;margin:6px 0;width:240px}input+input{width:90px;margin-left:8px}</style>Card number, expiry, code<br><input name='pan' placeholder='0000 0000 0000 0000'><input name='exp' placeholder='MM/YY'><input name='cvc' placeholder='000'>" }), el('button', { type: 'button', 'class': 'cta', onclick: function () { paid[i] = '$' + amt.value; shut('Thank you. We received $' + amt.value + '.'); show('bill'); } }, 'Pay now'), ' ', act('Close', function () { shut(); })]);
            }, paid[i])]);
          }));
        }
      };
      function show(k) { $$('.ptabs button').forEach(function (b) { b.setAttribute('aria-selected', String(b.id === 'tb-' + k)); }); pane.replaceChildren(el('h2', { style: 'margin-top:0' }, { over: 'Overview', res: 'Test results', rx: 'Prescriptions', msg: 'Messages', bill: 'Statements' }[k]), P[k](), el('h3', { style: 'margin-top:40px' }, 'Your care team'), el('div', { 'class': 'cards' }, [['Denise Farrow, MD', 'Family medicine'], ['Mieke Jansen, MD', 'Neurology'], ['Per Eklund, MD', 'Cardiology'], ['Tom Okoro, RN', 'Care coordinator']].map(function (c) { return el('section', {}, [el('h3', {}, c[0]), el('p', {}, c[1]), act('Message', function () {}), ' ', act('Book', function () {})]); }))); }
      $$('.ptabs button').forEach(function (b) { b.onclick = function () { show(b.id.slice(3)); }; });
      show('over');
    }
  };
  function open(v) {
    view = INIT[v] ? v : 'home';
    $('#main').replaceChildren($('#t-' + view).content.cloneNode(true));
    INIT[view](); faqs(); art(); $('#mn-care').hidden = true; window.scrollTo(0, 0);
  }
  document.addEventListener('click', function (e) {
    var a = e.target.closest('a[href^="#"]'); if (!a) return; e.preventDefault();
    var h = a.getAttribute('href').slice(1); if (INIT[h] && h !== view) open(h);
  });
  $('header nav button').onclick = function () { var m = $('#mn-care'); m.hidden = !m.hidden; this.setAttribute('aria-expanded', String(!m.hidden)); };
  $('#site-search').onsubmit = function (e) { e.preventDefault(); };
  open(location.hash.slice(1));
  // For checks of what was done: what counts, and what was sent; not what is only open or unfolded.
  window.siteState = function () {
    function shown(s) { return $$(s).filter(function (e) { return e.offsetParent; }).map(function (e) { return e.innerText; }); }
    return {
      view: view, sent: shown('.done'), times: shown('#times h3'), doctors: shown('.dir tbody th').join('; '), places: shown('#loclist h3'), route: shown('.route'),
      tab: shown('.ptabs [aria-selected=true]'), dialog: shown('#dlg[open] h3'), month: shown('.month caption span'), day: shown('.month [aria-pressed=true]'), hour: shown('.hours [aria-selected=true]')
    };
  };
})();

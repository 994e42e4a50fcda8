// What an act must know of a page, and what it does there without a pointer. Called on an element; `at` and `focused` on the document.
function (name, ...values) {
  const short = (text) => JSON.stringify((text ?? '').trim().replace(/\s+/g, ' ').slice(0, 40));
  const words = (e) => `${e.tagName.toLowerCase()} ${short(e.ariaLabel || e.innerText || e.placeholder || e.title || e.id)}`;
  const boxes = (e) => [...e.getClientRects()].filter((box) => box.width && box.height);
  const isWithin = (box, x, y) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
  const isInside = (above, e) => {
    for (; e; e = e.assignedSlot ?? e.parentNode ?? e.host ?? e.defaultView?.frameElement) if (e === above) return true;
    return false;
  };
  const control = (e) => e.closest('button, input, select, textarea, option') ?? e.closest('label')?.control ?? e;
  const isEntry = (e) => e.tagName === 'OPTION' && e.closest('select')?.size <= 1;
  // in shadow trees too, and in frames of the same origin
  const at = (x, y, scope = document, outer = null) => {
    const e = scope.elementFromPoint(x, y);
    if (!e || e === outer) return outer;
    if (e.shadowRoot) return at(x, y, e.shadowRoot, e);
    const box = e.getBoundingClientRect();
    return e.contentDocument ? at(x - box.x - e.clientLeft, y - box.y - e.clientTop, e.contentDocument, e) : e;
  };
  // a pointer meets an element in what is inside of it, in the control of its label, and in what it is a part of
  const meets = (e, top) => top && (isInside(e, top) || control(top) === e || control(e) === top
    || (isInside(top, e) && ![document.body, document.documentElement].includes(top)));
  // where it was seen if that is still inside of it, else the middle of what is in the window
  const points = (e, seen) => [...boxes(e).some((box) => isWithin(box, ...seen ?? [])) ? [seen] : [], ...boxes(e)
    .map((box) => [Math.max(box.left, 0), Math.min(box.right, innerWidth), Math.max(box.top, 0), Math.min(box.bottom, innerHeight)])
    .filter(([left, right, top, bottom]) => left < right && top < bottom)
    .map(([left, right, top, bottom]) => [(left + right) / 2, (top + bottom) / 2])];
  const place = (e, seen) => {
    const shown = [e, ...e.querySelectorAll('*'), ...e.labels ?? []].find((one) => boxes(one).length);
    if (!shown) return {problem: 'the element is not shown'};
    const find = () => points(shown, seen).find((one) => meets(e, at(...one)));
    const scroll = () => shown.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
    const point = find() ?? (scroll(), find()), [first] = points(shown), cover = first && at(...first);
    return point ? {point} : {problem: cover ? `the element is covered by ${words(cover)}` : 'the element cannot be brought into the window'};
  };
  const obstacle = (e, kind) => {
    const own = control(e);
    if (!e.isConnected) return 'the element is no longer on the page';
    if (['hover', 'drag'].includes(kind)) return '';
    if (own.matches(':disabled') || e.closest('[aria-disabled="true"]')) return 'the element is disabled';
    if (own.type === 'file') return 'a page is given no file here';
    return ['type', 'clear'].includes(kind) && (own.readOnly || own.ariaReadOnly === 'true') ? 'the field is read-only' : '';
  };
  const tell = (e, ...kinds) => kinds.forEach((kind) => e.dispatchEvent(new Event(kind, {bubbles: true, composed: kind === 'input'})));
  const calls = {
    at, words,
    focused: () => {
      let e = document.activeElement, inner;
      while ((inner = e?.shadowRoot?.activeElement ?? e?.contentDocument?.activeElement)) e = inner;
      return e;
    },
    // why an act of this kind cannot be carried out, or where; without a name the element is what is at the place
    aim: (e, kind, seen, isNamed) => {
      const problem = obstacle(e, kind), list = e.closest('select');
      if (problem) return {problem};
      const labels = list && [...list.options].map((one) => one.label.trim().replace(/\s+/g, ' '));
      return {...isNamed ? place(isEntry(e) ? list : e, seen) : {point: seen}, labels, entry: isEntry(e) ? e.index : null, isList: e === list};
    },
    choose: (e, index) => {
      const list = e.closest('select'), entry = list.options[index];
      if (entry.matches(':disabled') || entry.closest('optgroup:disabled')) return `the entry ${short(entry.label)} is disabled`;
      list.selectedIndex = index;
      tell(list, 'input', 'change');
    },
    kind: (e) => ({INPUT: /button|check|radio|submit|reset|image|file/.test(e.type) ? '' : e.type, TEXTAREA: 'text', SELECT: 'select',
      IFRAME: 'frame'})[e.tagName] ?? (e.isContentEditable ? 'editable' : ''),
    // by the browser's own setter, as frameworks put theirs in front of it
    set: (e, text) => {
      Object.getOwnPropertyDescriptor(e.ownerDocument.defaultView.HTMLInputElement.prototype, 'value').set.call(e, text);
      if (e.value.toLowerCase() !== text.toLowerCase()) return `the field takes no ${short(text)}`;
      tell(e, 'input', 'change');
    },
    focus: (e) => e.focus(),
    mark: (e) => { e.isContentEditable ? e.ownerDocument.getSelection().selectAllChildren(e) : e.select?.(); },
    holds: (e, x, y) => e.isConnected && isWithin(e.getBoundingClientRect(), x, y),
    outer: (e) => { while (e.ownerDocument.defaultView.frameElement) e = e.ownerDocument.defaultView.frameElement; return e; },
    // the nearest part around the element that scrolls, at last the page; `isPage`: the page comes first
    scroll: (e, dx, dy, isPage) => {
      const root = document.scrollingElement ?? document.documentElement;
      const moves = (part) => {
        const before = [part.scrollLeft, part.scrollTop];
        part.scrollBy({left: dx, top: dy, behavior: 'instant'});
        return part.scrollLeft !== before[0] || part.scrollTop !== before[1];
      };
      if (isPage && moves(root)) return true;
      for (; e && e !== root; e = e.parentElement) if (/auto|scroll/.test(getComputedStyle(e).overflow) && moves(e)) return true;
      return moves(root);
    },
  };
  return this.nodeType === 9 ? calls[name](...values) : calls[name](this.nodeType === 1 ? this : this.parentElement, ...values);
}

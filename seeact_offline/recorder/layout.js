// Returns what is measured of each element of the page, in the order of the flat tree, level by level: `parent` is the place of its
// parent. `onTop` of a rectangle is the place of the element that a pointer at its centre meets. Points outside of the window are met by
// scrolling them into the middle half of it, where bars that stick to its edges cover nothing. All of it happens in one turn of the
// page's own script, and ends where it began: no frame is drawn meanwhile, and no listener is told. `inWindow`: nothing is scrolled, and
// what lies on top of a rectangle is found only where its centre is in the window.
(inWindow = false) => {
  const inside = (el) => el.shadowRoot ? el.shadowRoot.children
    : el.tagName === 'SLOT' && el.assignedNodes().length ? el.assignedElements() : el.children;
  const elements = [document.documentElement], parents = [-1];
  for (let i = 0; i < elements.length; i++) for (const child of inside(elements[i])) { elements.push(child); parents.push(i); }
  const places = new Map(elements.map((el, i) => [el, i]));
  const round = (value) => Math.round(100 * value) / 100;
  const [left, top, height] = [scrollX, scrollY, innerHeight];
  const measured = elements.map((el, i) => {
    const style = getComputedStyle(el);
    const rects = [...el.getClientRects()].map((r) => ({box: [r.x + left, r.y + top, r.width, r.height].map(round), onTop: -1}));
    return {tag: el.tagName.toLowerCase(), parent: parents[i], cursor: style.cursor, visibility: style.visibility, rects};
  });
  const bands = new Map();
  for (const rect of measured.flatMap((one) => one.rects)) {
    const y = rect.box[1] + rect.box[3] / 2 - top;
    const isSeen = y >= 0 && y < height;
    if (inWindow && !isSeen) continue;
    const band = isSeen ? top : top + (Math.floor(2 * y / height) - 0.5) * height / 2;
    if (!bands.has(band)) bands.set(band, []);
    bands.get(band).push(rect);
  }
  const hit = (x, y) => {
    let found = document.elementFromPoint(x, y), inner;
    while (found?.shadowRoot && (inner = found.shadowRoot.elementFromPoint(x, y)) && inner !== found) found = inner;
    return places.get(found) ?? -1;
  };
  window.__recorderScrolls = true;
  for (const [band, rects] of bands) {
    if (band !== scrollY) scrollTo({left, top: band, behavior: 'instant'});
    for (const rect of rects) {
      const [x, y, w, h] = rect.box;
      rect.onTop = hit(x + w / 2 - scrollX, y + h / 2 - scrollY);
    }
  }
  if (!inWindow) scrollTo({left, top, behavior: 'instant'});
  // its own scroll events come with the next frames; the recorder scrolls again only after two
  requestAnimationFrame(() => requestAnimationFrame(() => { window.__recorderScrolls = false; }));
  return measured;
}

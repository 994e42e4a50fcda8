// Whether a pointer at a place meets the element.
(e, [x, y]) => {
  const met = e.getRootNode().elementFromPoint(x, y);
  return met !== null && (e.contains(met) || (met.contains(e) && met !== document.body && met !== document.documentElement));
}

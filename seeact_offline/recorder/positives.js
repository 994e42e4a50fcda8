// Called with `this` = the element acted on. Returns it, and the elements around and in it that have the very same box: no picture tells
// them apart, and a click hits them alike. A part of a button, or a checkbox's label, is another element, as in the data set.
function () {
  const box = this.getBoundingClientRect();
  const alike = (other) => {
    const its = other.getBoundingClientRect();
    return ['x', 'y', 'width', 'height'].every((name) => Math.abs(box[name] - its[name]) < 1);
  };
  const around = [];
  for (let e = this.parentElement; e && e !== this.ownerDocument.body; e = e.parentElement) around.push(e);
  return [this, ...[...this.querySelectorAll('*'), ...around].filter(alike)];
}

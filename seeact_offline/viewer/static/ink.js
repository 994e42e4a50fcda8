/** Where a page's picture has text or other detail, so that labels can lie beside it. */

/** Page pixels of a side of a cell. */
const CELL = 4;
/** Difference of brightness, of 255, between neighbouring cells that counts as detail. */
const EDGE = 14;

export class Ink {
  constructor({ width, height }) {
    [this.columns, this.rows] = [Math.ceil(width / CELL), Math.ceil(height / CELL)];
    this.marks = new Uint8Array(this.columns * this.rows);
    // of all cells above and left of a corner
    this.sums = new Uint32Array((this.columns + 1) * (this.rows + 1));
  }

  /** Adds a loaded part of the picture; `top`, `height` in page pixels. */
  add(image, top, height) {
    const { columns } = this;
    const [first, rows] = [Math.floor(top / CELL), Math.ceil(height / CELL)];
    const canvas = new OffscreenCanvas(columns, rows);
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0, columns, rows);
    const { data } = context.getImageData(0, 0, columns, rows);
    const light = (at) => 0.3 * data[4 * at] + 0.6 * data[4 * at + 1] + 0.1 * data[4 * at + 2];
    for (let row = 0; row + 1 < rows && first + row < this.rows; row++) {
      for (let column = 0; column + 1 < columns; column++) {
        const at = row * columns + column;
        const here = light(at);
        if (Math.max(Math.abs(here - light(at + 1)), Math.abs(here - light(at + columns))) > EDGE) this.marks[first * columns + at] = 1;
      }
    }
    this.#sum();
  }

  /** Cells with detail in a box of page pixels. */
  in([x, y, width, height]) {
    const [left, top] = [this.#within(x / CELL, this.columns), this.#within(y / CELL, this.rows)];
    const [right, bottom] = [this.#within(Math.ceil((x + width) / CELL), this.columns), this.#within(Math.ceil((y + height) / CELL), this.rows)];
    const at = (column, row) => this.sums[row * (this.columns + 1) + column];
    return at(right, bottom) - at(left, bottom) - at(right, top) + at(left, top);
  }

  #within(place, most) {
    return Math.max(0, Math.min(most, Math.floor(place)));
  }

  #sum() {
    const wide = this.columns + 1;
    for (let row = 0; row < this.rows; row++) {
      let line = 0;
      for (let column = 0; column < this.columns; column++) {
        line += this.marks[row * this.columns + column];
        this.sums[(row + 1) * wide + column + 1] = this.sums[row * wide + column + 1] + line;
      }
    }
  }
}

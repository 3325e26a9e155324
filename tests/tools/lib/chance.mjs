// Repeatable random numbers: the same seed produces the same sequence.

export class Chance {
  #state;

  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /** Returns a uniform number in [0, 1). */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Returns a whole number from `low` to `high`, both included. */
  between(low, high) {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  isOneIn(count) {
    return this.next() * count < 1;
  }

  of(list) {
    return list[Math.floor(this.next() * list.length)];
  }

  bytes(count) {
    return Buffer.from(Array.from({ length: count }, () => this.between(0, 255)));
  }
}

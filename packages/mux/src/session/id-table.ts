// Values by ids that rise, for streams that come and go all the time: see LinkedSet of the rules package for what V8's Map would cost. Open addressing; the ids of one
// side stand side by side, so that they hardly ever meet.

const LEAST_SLOTS = 64;

export class IdTable<T extends { readonly id: number }> {
  #slots: (T | null)[] = emptySlots(LEAST_SLOTS);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): T | undefined {
    return this.#slots[this.#slotOf(id)] ?? undefined;
  }

  /** Its id is not in. */
  add(item: T): void {
    if ((this.#size + 1) * 2 > this.#slots.length) this.#resize(this.#slots.length * 2);
    this.#slots[this.#slotOf(item.id)] = item;
    this.#size += 1;
  }

  /** false: it was not in. */
  delete(id: number): boolean {
    let hole = this.#slotOf(id);
    if (this.#slots[hole] === null) return false;
    this.#slots[hole] = null;
    this.#size -= 1;
    // Whoever stands behind it, and did not find its own slot free, moves up: a search ends at the first empty one.
    const mask = this.#slots.length - 1;
    for (let at = (hole + 1) & mask; ; at = (at + 1) & mask) {
      const item = this.#slots[at] ?? null;
      if (item === null) break;
      const distance = (at - homeOf(item.id)) & mask;
      if (distance < ((at - hole) & mask)) continue;
      this.#slots[hole] = item;
      this.#slots[at] = null;
      hole = at;
    }
    // After a flood it does not stay large.
    if (this.#size * 16 < this.#slots.length && this.#slots.length > LEAST_SLOTS) this.#resize(this.#slots.length / 4);
    return true;
  }

  /** A copy: whoever looks may take some out. */
  values(): T[] {
    return this.#slots.filter((item) => item !== null);
  }

  /** Where it is, or the empty slot where it would be: there always is one. */
  #slotOf(id: number): number {
    const mask = this.#slots.length - 1;
    let at = homeOf(id) & mask;
    for (let item = this.#slots[at]; item !== null && item?.id !== id; item = this.#slots[at]) at = (at + 1) & mask;
    return at;
  }

  #resize(slots: number): void {
    const items = this.values();
    this.#slots = emptySlots(Math.max(LEAST_SLOTS, slots));
    for (const item of items) this.#slots[this.#slotOf(item.id)] = item;
  }
}

/** Ids of one side are two apart. */
const homeOf = (id: number): number => id >>> 1;

const emptySlots = <T>(count: number): (T | null)[] => new Array<T | null>(count).fill(null);

// Hash table for streams by ascending id. Streams come and go constantly; LinkedSet in the rules package explains the cost of V8's Map in
// this case. Uses open addressing; ids of the same side fall into adjacent slots, so collisions are rare.

/** Small, because most carriers of an edge with many clients have few streams or none. */
const LEAST_SLOTS = 16;

export class StreamIdMap<T extends { readonly id: number }> {
  #slots: (T | null)[] = emptySlots(LEAST_SLOTS);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): T | undefined {
    return this.#slots[this.#slotOf(id)] ?? undefined;
  }

  /** Adds a stream to the table. Its id must not be in the table yet. */
  add(item: T): void {
    if ((this.#size + 1) * 2 > this.#slots.length) this.#resize(this.#slots.length * 2);
    this.#slots[this.#slotOf(item.id)] = item;
    this.#size += 1;
  }

  /** Removes the stream with this id. Returns false if the id was not in the table. */
  delete(id: number): boolean {
    let hole = this.#slotOf(id);
    if (this.#slots[hole] === null) return false;
    this.#slots[hole] = null;
    this.#size -= 1;
    // Moves up displaced items behind the hole, because a lookup stops at the first empty slot.
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
    // Shrinks the table once most of its slots are empty, after a flood of streams.
    if (this.#size * 16 < this.#slots.length && this.#slots.length > LEAST_SLOTS) this.#resize(this.#slots.length / 4);
    return true;
  }

  /** Returns a copy of the table's streams, so that callers can delete streams while iterating. */
  values(): T[] {
    return this.#slots.filter((item) => item !== null);
  }

  /** Returns the slot of the id, or the empty slot for it. The table always has an empty slot. */
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

/** Stream ids of one side differ by two, so half of the id is the preferred slot. */
const homeOf = (id: number): number => id >>> 1;

const emptySlots = <T>(count: number): (T | null)[] => new Array<T | null>(count).fill(null);

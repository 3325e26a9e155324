// A binary heap of members by rank, highest first. Adding, removing and changing a rank take logarithmic time. Every member stores its heap
// position, so no operation searches.

export interface Ranked {
  rank: number;
  /** Position of the member in the ranking's heap, or NOT_RANKED. */
  heapIndex: number;
}

export const NOT_RANKED = -1;

export class Ranking<T extends Ranked> {
  readonly #members: T[] = [];

  get size(): number {
    return this.#members.length;
  }

  /** The member with the highest rank, or null if the ranking is empty. */
  get first(): T | null {
    return this.#members[0] ?? null;
  }

  add(member: T): void {
    if (member.heapIndex !== NOT_RANKED) return this.moved(member);
    member.heapIndex = this.#members.length;
    this.#members.push(member);
    this.#rise(member);
  }

  /** Removes a member. Does nothing for a member that is not in the ranking. */
  remove(member: T): void {
    const { heapIndex } = member;
    if (heapIndex === NOT_RANKED) return;
    member.heapIndex = NOT_RANKED;
    const last = this.#members.pop();
    if (last === undefined || last === member) return;
    this.#put(last, heapIndex);
    this.moved(last);
  }

  /** Restores the order of the ranking. Must be called after the rank of a member has changed. */
  moved(member: T): void {
    if (member.heapIndex === NOT_RANKED) return;
    this.#rise(member);
    this.#sink(member);
  }

  #rise(member: T): void {
    while (member.heapIndex > 0) {
      const at = member.heapIndex;
      const above = this.#members[(at - 1) >> 1] as T;
      if (above.rank >= member.rank) return;
      this.#put(member, above.heapIndex);
      this.#put(above, at);
    }
  }

  #sink(member: T): void {
    for (;;) {
      const at = member.heapIndex;
      const left = this.#members[2 * at + 1];
      const right = this.#members[2 * at + 2];
      if (left === undefined) return;
      const below = right !== undefined && right.rank > left.rank ? right : left;
      if (below.rank <= member.rank) return;
      this.#put(member, below.heapIndex);
      this.#put(below, at);
    }
  }

  #put(member: T, heapIndex: number): void {
    this.#members[heapIndex] = member;
    member.heapIndex = heapIndex;
  }
}

// Which network holds which connections, and which one holds most. Every step takes the same short time, however many there are: they come
// with each connection of a flood.

export class NetworkHoldings<T> {
  readonly #all = new Set<T>();
  readonly #of = new Map<string, Set<T>>();
  /** Networks by how many they hold; those of a level in the order in which they came to it. Empty levels stay: the next connection is back at them. */
  readonly #levels: Set<string>[] = [];
  #highest = 0;

  /** Of all networks, oldest first. */
  get all(): ReadonlySet<T> {
    return this.#all;
  }

  count(network: string): number {
    return this.#of.get(network)?.size ?? 0;
  }

  /** Of the network that holds most, oldest first; among equals the one that has held so many for longest. */
  get largest(): { readonly network: string; readonly held: ReadonlySet<T> } | null {
    for (const network of this.#levels[this.#highest] ?? []) {
      const held = this.#of.get(network);
      if (held !== undefined) return { network, held };
    }
    return null;
  }

  add(network: string, item: T): void {
    let held = this.#of.get(network);
    if (held === undefined) {
      held = new Set();
      this.#of.set(network, held);
    }
    const before = held.size;
    held.add(item);
    this.#all.add(item);
    if (held.size > before) this.#move(network, before, held.size);
  }

  remove(network: string, item: T): void {
    const held = this.#of.get(network);
    if (held === undefined || !held.delete(item)) return;
    this.#all.delete(item);
    // Networks come and go for ever.
    if (held.size === 0) this.#of.delete(network);
    this.#move(network, held.size + 1, held.size);
  }

  #move(network: string, from: number, to: number): void {
    this.#levels[from]?.delete(network);
    if (to > 0) this.#level(to).add(network);
    // One step at a time, so that the highest level is never further away than the next.
    if (to > this.#highest) this.#highest = to;
    else if (from === this.#highest && this.#levels[from]?.size === 0) this.#highest = to;
  }

  #level(count: number): Set<string> {
    const level = this.#levels[count];
    if (level !== undefined) return level;
    const made = new Set<string>();
    this.#levels[count] = made;
    return made;
  }
}

// Which network holds which connections, and which one holds most. Every step takes the same short time, however many there are: they come
// with each connection of a flood.
import { LinkedSet, type ListNode } from '../collections/linked-set.ts';

/** What is held has a place among all, and one among those of its network. */
export interface Holdable<T> {
  amongAll: ListNode<T> | null;
  amongNetwork: ListNode<T> | null;
}

/** Those of one network, oldest first. */
export interface NetworkHolding<T> {
  readonly network: string;
  readonly held: Iterable<T> & { readonly size: number };
}

class Holder<T> implements NetworkHolding<T> {
  readonly network: string;
  readonly held = new LinkedSet<T>();
  /** Among the networks that hold as many. */
  amongEquals: ListNode<Holder<T>> | null = null;

  constructor(network: string) {
    this.network = network;
  }
}

export class NetworkHoldings<T extends Holdable<T>> {
  readonly #all = new LinkedSet<T>();
  readonly #of = new Map<string, Holder<T>>();
  /** Networks by how many they hold; those of a level in the order in which they came to it. Empty levels stay: the next connection is back at them. */
  readonly #levels: LinkedSet<Holder<T>>[] = [];
  #highest = 0;

  /** Of all networks, oldest first. */
  get all(): Iterable<T> & { readonly size: number } {
    return this.#all;
  }

  count(network: string): number {
    return this.#of.get(network)?.held.size ?? 0;
  }

  /** The network that holds most; among equals the one that has held so many for longest. */
  get largest(): NetworkHolding<T> | null {
    return this.#levels[this.#highest]?.first ?? null;
  }

  /** One that is not held yet. */
  add(network: string, item: T): void {
    let holder = this.#of.get(network);
    if (holder === undefined) {
      holder = new Holder(network);
      this.#of.set(network, holder);
    }
    const before = holder.held.size;
    item.amongNetwork = holder.held.add(item);
    item.amongAll = this.#all.add(item);
    this.#move(holder, before, before + 1);
  }

  remove(network: string, item: T): void {
    const holder = this.#of.get(network);
    if (holder === undefined || !holder.held.delete(item.amongNetwork)) return;
    this.#all.delete(item.amongAll);
    // Networks come and go for ever.
    if (holder.held.size === 0) this.#of.delete(network);
    this.#move(holder, holder.held.size + 1, holder.held.size);
  }

  #move(holder: Holder<T>, from: number, to: number): void {
    this.#levels[from]?.delete(holder.amongEquals);
    if (to > 0) holder.amongEquals = this.#level(to).add(holder);
    // One step at a time, so that the highest level is never further away than the next.
    if (to > this.#highest) this.#highest = to;
    else if (from === this.#highest && this.#levels[from]?.size === 0) this.#highest = to;
  }

  #level(count: number): LinkedSet<Holder<T>> {
    const level = this.#levels[count];
    if (level !== undefined) return level;
    const made = new LinkedSet<Holder<T>>();
    this.#levels[count] = made;
    return made;
  }
}

// Connections by network, and the network with the most. Every operation takes constant time, because a flood triggers it per connection.
import { LinkedSet, type ListNode } from '../collections/linked-set.ts';

/** A member stores its positions in the overall list and in the list of its network. */
export interface NetworkListed<T> {
  amongAll: ListNode<T> | null;
  amongNetwork: ListNode<T> | null;
}

/** Connections of a network, oldest first. */
export interface NetworkConnections<T> {
  readonly network: string;
  readonly held: Iterable<T> & { readonly size: number };
}

class Holder<T> implements NetworkConnections<T> {
  readonly network: string;
  readonly held = new LinkedSet<T>();
  /** Position in the list of networks with the same number of connections. */
  amongEquals: ListNode<Holder<T>> | null = null;

  constructor(network: string) {
    this.network = network;
  }
}

export class ConnectionsByNetwork<T extends NetworkListed<T>> {
  readonly #all = new LinkedSet<T>();
  readonly #of = new Map<string, Holder<T>>();
  /** Networks by count, in order of reaching it. Empty levels stay, because the next connection needs them again. */
  readonly #levels: LinkedSet<Holder<T>>[] = [];
  #highest = 0;

  /** Connections of all networks, oldest first. */
  get all(): Iterable<T> & { readonly size: number } {
    return this.#all;
  }

  count(network: string): number {
    return this.#of.get(network)?.held.size ?? 0;
  }

  /** The network with the most connections; among equals, the network that reached the count first. */
  get largest(): NetworkConnections<T> | null {
    return this.#levels[this.#highest]?.first ?? null;
  }

  /** Adds a connection of a network. The connection must not be listed yet. */
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
    // Networks without connections are deleted, because new networks keep arriving.
    if (holder.held.size === 0) this.#of.delete(network);
    this.#move(holder, holder.held.size + 1, holder.held.size);
  }

  #move(holder: Holder<T>, from: number, to: number): void {
    this.#levels[from]?.delete(holder.amongEquals);
    if (to > 0) holder.amongEquals = this.#level(to).add(holder);
    // A network's number of connections changes by 1, so the next highest count is always adjacent.
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

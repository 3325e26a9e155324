// Work that many want done, a few at a time. Those who wait come in turn by owner: who brings much waits for itself alone. Where there is no room
// to wait, the last of whoever has most waiting gives way to one who has less.

export interface FairTurnsOptions {
  readonly atOnce: number;
  readonly waitingMax: number;
}

export interface Turn {
  readonly owner: string;
  /** It is its turn, maybe at once; who begins owes one `done`. */
  begin(): void;
  /** It waited, and its room is another's now: it never begins. */
  giveWay(): void;
}

export class FairTurns {
  readonly #bounds: FairTurnsOptions;
  /** Those that wait, by owner; whose turn is next first. */
  readonly #queues = new Map<string, Set<Turn>>();
  #running = 0;
  #waiting = 0;

  constructor(bounds: FairTurnsOptions) {
    this.#bounds = bounds;
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting;
  }

  hasRoomFor(owner: string): boolean {
    return this.#isFree || this.#waiting < this.#bounds.waitingMax || this.#queueAbove(owner) !== null;
  }

  /** false: there is no room, and nothing comes of it. */
  enter(turn: Turn): boolean {
    if (this.#isFree) {
      this.#running += 1;
      turn.begin();
      return true;
    }
    if (this.#waiting >= this.#bounds.waitingMax) {
      const [last] = [...(this.#queueAbove(turn.owner) ?? [])].slice(-1);
      if (last === undefined) return false;
      this.leave(last);
      last.giveWay();
    }
    const queue = this.#queues.get(turn.owner) ?? new Set();
    this.#queues.set(turn.owner, queue.add(turn));
    this.#waiting += 1;
    return true;
  }

  /** It has neither begun nor given way. */
  isWaiting(turn: Turn): boolean {
    return this.#queues.get(turn.owner)?.has(turn) === true;
  }

  /** Nobody wants it any more. false: it does not wait. */
  leave(turn: Turn): boolean {
    const queue = this.#queues.get(turn.owner);
    if (queue?.delete(turn) !== true) return false;
    if (queue.size === 0) this.#queues.delete(turn.owner);
    this.#waiting -= 1;
    return true;
  }

  /** One that began has ended. */
  done(): void {
    this.#running -= 1;
    const [next] = this.#queues;
    if (next === undefined) return;
    const [owner, queue] = next;
    const [turn] = queue as Set<Turn> & Iterable<Turn>;
    if (turn === undefined) return;
    this.leave(turn);
    // Behind all others that wait.
    if (queue.size > 0) {
      this.#queues.delete(owner);
      this.#queues.set(owner, queue);
    }
    this.#running += 1;
    turn.begin();
  }

  get #isFree(): boolean {
    return this.#running < this.#bounds.atOnce;
  }

  /** The longest queue, if it stays at least as long as the owner's when one of it gives way; null: there is none. */
  #queueAbove(owner: string): ReadonlySet<Turn> | null {
    let longest: ReadonlySet<Turn> | null = null;
    for (const queue of this.#queues.values()) if (queue.size > (longest?.size ?? 0)) longest = queue;
    const own = this.#queues.get(owner)?.size ?? 0;
    return longest !== null && longest.size > own + 1 ? longest : null;
  }
}

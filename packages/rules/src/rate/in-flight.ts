// Concurrency limits, in total and per key. A caller beyond the limit is rejected (InFlight) or waits in a queue that is fair between
// owners (FairTurns): owners take turns, so that an owner with many tasks delays only itself. When the queue is full, the owner with the
// most tasks loses its last task to an owner with fewer.
import { LinkedSet, type ListNode } from '../collections/linked-set.ts';

export interface InFlightRules {
  /** Maximum number of running tasks over all keys. Default: no limit. */
  readonly atOnce?: number;
  /** Maximum number of running tasks per key. Default: no limit. */
  readonly perKey?: number;
}

/** Counts running tasks. A key is stored only while a task of it runs. */
export class InFlight {
  readonly atOnce: number;
  readonly perKey: number;
  readonly #of = new Map<string, number>();
  #total = 0;

  constructor({ atOnce = Number.POSITIVE_INFINITY, perKey = Number.POSITIVE_INFINITY }: InFlightRules) {
    this.atOnce = atOnce;
    this.perKey = perKey;
  }

  get total(): number {
    return this.#total;
  }

  /** Number of keys with a running task. */
  get keys(): number {
    return this.#of.size;
  }

  of(key: string): number {
    return this.#of.get(key) ?? 0;
  }

  hasRoom(key = ''): boolean {
    return this.#total < this.atOnce && this.of(key) < this.perKey;
  }

  /** Counts a task as running. Returns false if a limit is reached. If true, one end() must follow. */
  begin(key = ''): boolean {
    const count = this.of(key);
    if (this.#total >= this.atOnce || count >= this.perKey) return false;
    this.#of.set(key, count + 1);
    this.#total += 1;
    return true;
  }

  /** Ends a running task of the key. Does nothing if no task of the key runs. */
  end(key = ''): void {
    const count = this.of(key);
    if (count === 0) return;
    // Keys without running tasks are deleted, because new keys keep arriving.
    if (count > 1) this.#of.set(key, count - 1);
    else this.#of.delete(key);
    this.#total -= 1;
  }
}

/** Whether an owner may begin now: `begin` with priority, `spare` only if no waiting owner may `begin`. */
export type Standing = 'begin' | 'spare' | 'wait';

export type FairTurnsOptions = { readonly waitingMax: number } & (
  | { readonly atOnce: number }
  /** A rule that decides per owner. `beginNext` must be called whenever its answer may have changed. */
  | { readonly standing: (owner: string) => Standing }
);

export interface Turn {
  readonly owner: string;
  /** Begins the waiting task, possibly inside `enter`. One `done` must follow. */
  begin(): void;
  /** Called when the task has lost its place in the queue and never begins. */
  giveWay(): void;
}

export class FairTurns {
  readonly #waitingMax: number;
  readonly #standing: (owner: string) => Standing;
  /** Waiting tasks by owner. The owner with the next turn comes first. */
  readonly #queues = new Map<string, LinkedSet<Turn>>();
  readonly #nodes = new Map<Turn, ListNode<Turn>>();
  #running = 0;

  constructor(options: FairTurnsOptions) {
    this.#waitingMax = options.waitingMax;
    this.#standing =
      'standing' in options ? options.standing : () => (this.#running < options.atOnce ? 'begin' : 'wait');
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#nodes.size;
  }

  waitingOf(owner: string): number {
    return this.#queues.get(owner)?.size ?? 0;
  }

  hasRoomFor(owner: string): boolean {
    return this.#beginsAtOnce(owner) || this.waiting < this.#waitingMax || this.#queueAbove(owner) !== null;
  }

  /** Begins a task or puts it into the queue. Returns false if the queue is full; then the task never begins. */
  enter(turn: Turn): boolean {
    const { owner } = turn;
    if (this.#beginsAtOnce(owner)) {
      this.#running += 1;
      turn.begin();
      return true;
    }
    if (this.waiting >= this.#waitingMax) {
      const last = this.#queueAbove(owner)?.last ?? null;
      if (last === null) return false;
      this.leave(last);
      last.giveWay();
    }
    let queue = this.#queues.get(owner);
    if (queue === undefined) {
      queue = new LinkedSet();
      this.#queues.set(owner, queue);
    }
    this.#nodes.set(turn, queue.add(turn));
    return true;
  }

  /** Returns whether the task is still in the queue. */
  isWaiting(turn: Turn): boolean {
    return this.#nodes.has(turn);
  }

  /** Removes the task from the queue. Returns false if it was not waiting. */
  leave(turn: Turn): boolean {
    const node = this.#nodes.get(turn);
    const queue = this.#queues.get(turn.owner);
    if (node === undefined || queue === undefined) return false;
    queue.delete(node);
    this.#nodes.delete(turn);
    if (queue.size === 0) this.#queues.delete(turn.owner);
    return true;
  }

  /** Empties the queue; its tasks never begin. */
  clear(): void {
    this.#queues.clear();
    this.#nodes.clear();
  }

  /** Must be called when a running task has ended, so that the next task begins. */
  done(): void {
    this.#running -= 1;
    this.beginNext();
  }

  /** Begins waiting tasks, as long as one of their owners may begin. */
  beginNext(): void {
    for (let owner = this.#nextOwner(); owner !== null; owner = this.#nextOwner()) {
      const queue = this.#queues.get(owner);
      const turn = queue?.first ?? null;
      if (queue === undefined || turn === null) return;
      this.leave(turn);
      // The owner of the begun task moves to the end of the line.
      if (queue.size > 0) {
        this.#queues.delete(owner);
        this.#queues.set(owner, queue);
      }
      this.#running += 1;
      turn.begin();
    }
  }

  /** A task begins at once only if no other task of its owner waits. */
  #beginsAtOnce(owner: string): boolean {
    return !this.#queues.has(owner) && this.#standing(owner) !== 'wait';
  }

  #nextOwner(): string | null {
    let spare: string | null = null;
    for (const owner of this.#queues.keys()) {
      const standing = this.#standing(owner);
      if (standing === 'begin') return owner;
      if (standing === 'spare') spare ??= owner;
    }
    return spare;
  }

  /** The longest queue, if it stays at least as long as the owner's after losing a task. Otherwise null. */
  #queueAbove(owner: string): LinkedSet<Turn> | null {
    let longest: LinkedSet<Turn> | null = null;
    for (const queue of this.#queues.values()) if (queue.size > (longest?.size ?? 0)) longest = queue;
    return longest !== null && longest.size > this.waitingOf(owner) + 1 ? longest : null;
  }
}

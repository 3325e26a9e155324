// At most so many at once, in total and of each key. A caller without room is refused (InFlight), or waits in a line that is fair between owners (FairTurns):
// owners take turns, so that an owner with many tasks delays only its own. When the line is full, the last task of the owner with most tasks leaves it
// for a task of an owner with fewer.
import { LinkedSet, type ListNode } from '../collections/linked-set.ts';

export interface InFlightRules {
  /** Of all keys together; no bound unless told. */
  readonly atOnce?: number;
  /** No bound unless told. */
  readonly perKey?: number;
}

/** A key is held for as long as something of it is under way. */
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

  /** Keys of which something is under way. */
  get keys(): number {
    return this.#of.size;
  }

  of(key: string): number {
    return this.#of.get(key) ?? 0;
  }

  hasRoom(key = ''): boolean {
    return this.#total < this.atOnce && this.of(key) < this.perKey;
  }

  /** true: it is counted, and one end() is owed. */
  begin(key = ''): boolean {
    const count = this.of(key);
    if (this.#total >= this.atOnce || count >= this.perKey) return false;
    this.#of.set(key, count + 1);
    this.#total += 1;
    return true;
  }

  /** Does nothing where nothing of the key is under way. */
  end(key = ''): void {
    const count = this.of(key);
    if (count === 0) return;
    // Keys come and go for ever.
    if (count > 1) this.#of.set(key, count - 1);
    else this.#of.delete(key);
    this.#total -= 1;
  }
}

/** Whether an owner may begin a turn now: `begin` before all others, `spare` only where no waiting owner may `begin`. */
export type Standing = 'begin' | 'spare' | 'wait';

export type FairTurnsOptions = { readonly waitingMax: number } & (
  | { readonly atOnce: number }
  /** A rule that knows owners. When an answer of it has changed, its holder calls `beginNext`. */
  | { readonly standing: (owner: string) => Standing }
);

export interface Turn {
  readonly owner: string;
  /** Begins the task, possibly inside `enter`. The task owes one `done`. */
  begin(): void;
  /** The task lost its place in the line and never begins. */
  giveWay(): void;
}

export class FairTurns {
  readonly #waitingMax: number;
  readonly #standing: (owner: string) => Standing;
  /** Waiting tasks by owner; the owner with the next turn comes first. */
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

  /** false if the line is full; the task never begins. */
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

  /** Whether the task is still in the line. */
  isWaiting(turn: Turn): boolean {
    return this.#nodes.has(turn);
  }

  /** Takes the task out of the line. false if it was not waiting. */
  leave(turn: Turn): boolean {
    const node = this.#nodes.get(turn);
    const queue = this.#queues.get(turn.owner);
    if (node === undefined || queue === undefined) return false;
    queue.delete(node);
    this.#nodes.delete(turn);
    if (queue.size === 0) this.#queues.delete(turn.owner);
    return true;
  }

  /** Empties the line; its tasks never begin. */
  clear(): void {
    this.#queues.clear();
    this.#nodes.clear();
  }

  /** A task that began has ended. */
  done(): void {
    this.#running -= 1;
    this.beginNext();
  }

  /** Begins turns that wait, for as long as an owner of one may. */
  beginNext(): void {
    for (let owner = this.#nextOwner(); owner !== null; owner = this.#nextOwner()) {
      const queue = this.#queues.get(owner);
      const turn = queue?.first ?? null;
      if (queue === undefined || turn === null) return;
      this.leave(turn);
      // Behind all others that wait.
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

  /** The longest queue, if it stays at least as long as the owner's when one of it gives way; null: there is none. */
  #queueAbove(owner: string): LinkedSet<Turn> | null {
    let longest: LinkedSet<Turn> | null = null;
    for (const queue of this.#queues.values()) if (queue.size > (longest?.size ?? 0)) longest = queue;
    return longest !== null && longest.size > this.waitingOf(owner) + 1 ? longest : null;
  }
}

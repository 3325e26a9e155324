// Hashes passwords, a few at a time, because a hash takes 19 MiB and a full thread. The queue is bounded too, so that a flood of sign-ins
// is rejected instead of exhausting memory or slowing down other requests.
import { availableParallelism } from 'node:os';
import { hash, parseOptions, verify } from '@node-rs/argon2';
import { Fault } from '@tunnel/errors';
import { type HashCost, isHashTooCheap } from '@tunnel/rules/sign-in';
import { randomToken, SingleFlight } from '@tunnel/runtime';

/** Memory of an Argon2id hash. A stored hash with less memory is replaced at the next sign-in. */
const PASSWORD_MEMORY_KIB = 19 * 1024;
/** Number of Argon2id passes, as OWASP recommends for this amount of memory. */
const PASSWORD_PASSES = 2;
/** Number of Argon2id lanes per hash. Parallelism comes from hashing several passwords at a time. */
const PASSWORD_LANES = 1;
/** Maximum number of passwords queued for hashing. Further sign-ins are rejected with 503. */
const PASSWORDS_WAITING_MAX = 64;
/** Retry-After value sent when the queue of passwords is full. */
const PASSWORDS_RETRY_AFTER_SECS = 2;

export interface PasswordHasherOptions {
  readonly cost?: HashCost;
  /** Maximum number of hashes computed at the same time. */
  readonly slots?: number;
  readonly waitingMax?: number;
}

const COST: HashCost = {
  memoryKib: PASSWORD_MEMORY_KIB,
  passes: PASSWORD_PASSES,
  lanes: PASSWORD_LANES,
};

/** Default number of concurrent hashes. Leaves a core to the event loop, and leaves one of libuv's four threads to other work. */
const defaultSlots = (): number => Math.max(1, Math.min(3, availableParallelism() - 1));

export class PasswordHasher {
  readonly #cost: HashCost;
  readonly #waitingMax: number;
  readonly #waiting: (() => void)[] = [];
  #free: number;
  /** Hash of a random password, compared with when the account is unknown. */
  readonly #nobodys = new SingleFlight(() => this.hash(randomToken()), { keepsResult: true });

  constructor(options: PasswordHasherOptions = {}) {
    this.#cost = options.cost ?? COST;
    this.#free = options.slots ?? defaultSlots();
    this.#waitingMax = options.waitingMax ?? PASSWORDS_WAITING_MAX;
  }

  hash(password: string): Promise<string> {
    const { memoryKib, passes, lanes } = this.#cost;
    // Argon2id is the library's default algorithm.
    return this.#inTurn(() => hash(password, { memoryCost: memoryKib, timeCost: passes, parallelism: lanes }));
  }

  /** Compares a password with a stored hash. If `stored` is null, returns false after the same time as for a wrong password. */
  async matches(stored: string | null, password: string): Promise<boolean> {
    // The hash of the random password is awaited even if a stored hash exists, so that the first call takes the same time in both cases.
    const nobodys = await this.#nobodys.run();
    const matches = await this.#inTurn(() => verify(stored ?? nobodys, password));
    return matches && stored !== null;
  }

  /** Returns true if the hash was computed with a lower cost than required now. */
  isOutdated(stored: string): boolean {
    const { memoryCost, timeCost, parallelism } = parseOptions(stored);
    return isHashTooCheap({ memoryKib: memoryCost, passes: timeCost, lanes: parallelism }, this.#cost);
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    await this.#reserveKey();
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      // The slot is handed to the next queued call, so that a new call cannot overtake the queue.
      if (next === undefined) this.#free += 1;
      else next();
    }
  }

  #reserveKey(): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free -= 1;
      return undefined;
    }
    if (this.#waiting.length >= this.#waitingMax) {
      throw new Fault('LOGIN_BUSY', { seconds: PASSWORDS_RETRY_AFTER_SECS });
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

// Hashing passwords, a few at a time: each one takes 19 MiB and all of a thread. Those that wait are bounded too, so that a
// flood of logins is refused and neither memory nor the other requests pay for it.
import { availableParallelism } from 'node:os';
import { hash, parseOptions, verify } from '@node-rs/argon2';
import { Fault } from '@tunnel/errors';
import { type HashCost, isHashTooCheap } from '@tunnel/rules/sign-in';
import { randomToken, SingleFlight } from '@tunnel/runtime';

/** Of Argon2id; a stored hash with less is made anew at the next login. */
const PASSWORD_MEMORY_KIB = 19 * 1024;
/** Of Argon2id, as OWASP recommends for this much memory. */
const PASSWORD_PASSES = 2;
/** Of Argon2id; several passwords are hashed side by side instead. */
const PASSWORD_LANES = 1;
/** Passwords that wait to be hashed; more are refused with 503. */
const PASSWORDS_WAITING_MAX = 64;
/** What a caller is told to wait while too many passwords wait. */
const PASSWORDS_RETRY_AFTER_SECS = 2;

export interface PasswordHasherOptions {
  readonly cost?: HashCost;
  /** Hashes at once. */
  readonly slots?: number;
  readonly waitingMax?: number;
}

const COST: HashCost = {
  memoryKib: PASSWORD_MEMORY_KIB,
  passes: PASSWORD_PASSES,
  lanes: PASSWORD_LANES,
};

/** A core stays for the event loop, and of the four threads of libuv one for everything else that uses them. */
const defaultSlots = (): number => Math.max(1, Math.min(3, availableParallelism() - 1));

export class PasswordHasher {
  readonly #cost: HashCost;
  readonly #waitingMax: number;
  readonly #waiting: (() => void)[] = [];
  #free: number;
  /** The hash of a password that nobody knows. */
  readonly #nobodys = new SingleFlight(() => this.hash(randomToken()), { keepsResult: true });

  constructor(options: PasswordHasherOptions = {}) {
    this.#cost = options.cost ?? COST;
    this.#free = options.slots ?? defaultSlots();
    this.#waitingMax = options.waitingMax ?? PASSWORDS_WAITING_MAX;
  }

  hash(password: string): Promise<string> {
    const { memoryKib, passes, lanes } = this.#cost;
    // The default algorithm is Argon2id.
    return this.#inTurn(() => hash(password, { memoryCost: memoryKib, timeCost: passes, parallelism: lanes }));
  }

  /** null: there is nothing to compare with; that takes as long as a wrong password does. */
  async matches(stored: string | null, password: string): Promise<boolean> {
    // Waited for in any case: whoever comes first waits for it to be made.
    const nobodys = await this.#nobodys.run();
    const matches = await this.#inTurn(() => verify(stored ?? nobodys, password));
    return matches && stored !== null;
  }

  /** It was made when less was asked for. */
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
      // A slot goes from hand to hand: nobody who comes now gets in before those who wait.
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

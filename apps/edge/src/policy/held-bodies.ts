// Bodies that are held until it is known whether they may pass: few, small, and within one bound for the whole edge, of which no owner has more than
// its share. What is held is counted until it has been passed on or is let go.

import { Fault } from '@tunnel/errors';
import { type HeaderField } from '@tunnel/http1';
import { ByteQueue } from '@tunnel/mux';
import { type PolicyEvent } from '@tunnel/policy';
import { FairShare } from '@tunnel/rules/rate';
import { isOperatorsTenant } from '@tunnel/rules/tunnels';

/** a body that is held for a signature: one that is not whole by then is cut off with its visitor */
export const POLICY_HELD_BODY_MS = 30_000;
/** bytes of all such bodies of an edge; one that finds no room is answered 503 */
const POLICY_HELD_BYTES_MAX = 64 * 1024 * 1024;
/** the same for one account: a quarter; nearly at the bound of the edge, those go on who hold less than the mean */
const POLICY_HELD_BYTES_PER_OWNER = 16 * 1024 * 1024;

const NO_TRAILERS: readonly HeaderField[] = [];
/** After which one that found no room is told to come again. */
const BUSY_RETRY_SECS = 5;

export class HeldBodies {
  readonly #shares: FairShare;

  constructor(maxBytes: number = POLICY_HELD_BYTES_MAX, perOwner: number = POLICY_HELD_BYTES_PER_OWNER) {
    this.#shares = new FairShare({ limit: maxBytes, perHolder: perOwner, unlimited: isOperatorsTenant });
  }

  /** Of all bodies that are held now. */
  get bytes(): number {
    return this.#shares.taken;
  }

  /** `owner`: the tenant of the route that it came to. Anybody can send a body that is held: whoever floods one tunnel takes the room of its owner alone. */
  hold(maxBytes: number, nowMs: number, owner: string): HeldBody {
    return new HeldBody(this, maxBytes, nowMs, owner);
  }

  /** false: there is no room. */
  take(bytes: number, owner: string): boolean {
    if (this.#shares.refusal(owner, bytes) !== null) return false;
    this.#shares.take(owner, bytes);
    return true;
  }

  give(bytes: number, owner: string): void {
    this.#shares.give(owner, bytes);
  }
}

/** One body on its way in, as data. Whoever reads the visitor writes it here, and stops when it is told so. */
export class HeldBody {
  /** Settles when it is known what became of it; never once it was let go. */
  readonly done: Promise<PolicyEvent>;
  /** null: it is not whole, or was let go. */
  body: Buffer | null = null;
  trailers: readonly HeaderField[] = NO_TRAILERS;
  readonly #bodies: HeldBodies;
  readonly #maxBytes: number;
  readonly #deadlineMs: number;
  readonly #owner: string;
  readonly #queue = new ByteQueue();
  #heldBytes = 0;
  #isSettled = false;
  #settle: (event: PolicyEvent) => void = () => {};

  constructor(bodies: HeldBodies, maxBytes: number, nowMs: number, owner: string) {
    this.#bodies = bodies;
    this.#maxBytes = maxBytes;
    this.#deadlineMs = nowMs + POLICY_HELD_BODY_MS;
    this.#owner = owner;
    this.done = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** No more of it is wanted: it is whole, too large, or nobody waits for it. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** Once a second: a visitor that takes too long is told so. */
  tick(nowMs: number): void {
    if (this.#isSettled || nowMs < this.#deadlineMs) return;
    this.#fail({ kind: 'failed', fault: new Fault('HTTP_HEAD_TIMEOUT') });
  }

  /** Same rule as ByteDuplex.write; it never drains after a false. */
  writeBody(bytes: Buffer, start: number, end: number): boolean {
    if (this.#isSettled) return false;
    const size = end - start;
    if (this.#heldBytes + size > this.#maxBytes) this.#fail({ kind: 'body-too-large' });
    else if (!this.#bodies.take(size, this.#owner)) {
      this.#fail({ kind: 'failed', fault: new Fault('POLICY_BUSY'), retryAfterSecs: BUSY_RETRY_SECS });
    } else {
      this.#heldBytes += size;
      this.#queue.push(bytes, start, end);
    }
    return !this.#isSettled;
  }

  /** Its last byte has come. */
  end(trailers: readonly HeaderField[]): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.trailers = trailers;
    const pieces: Buffer[] = [];
    while (this.#queue.length > 0) pieces.push(this.#queue.shift(this.#queue.length));
    this.body = Buffer.concat(pieces);
    this.#settle({ kind: 'body-held', body: this.body });
  }

  #fail(event: PolicyEvent): void {
    this.release();
    this.#settle(event);
  }

  /** It was passed on, or nobody wants it: its memory is counted no more. */
  release(): void {
    this.#isSettled = true;
    this.body = null;
    this.#queue.clear();
    this.#bodies.give(this.#heldBytes, this.#owner);
    this.#heldBytes = 0;
  }
}

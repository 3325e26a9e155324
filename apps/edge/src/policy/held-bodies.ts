// Request bodies held in memory until a rule has decided about the request. The number and size of held bodies are limited for the whole
// edge, with a share for each owner. The memory counts until the body was passed on or discarded.

import { Fault } from '@tunnel/errors';
import { type HeaderField } from '@tunnel/http1';
import { ByteQueue } from '@tunnel/mux';
import { type PolicyEvent } from '@tunnel/policy';
import { FairShare } from '@tunnel/rules/rate';
import { isOperatorsTenant } from '@tunnel/rules/tunnels';

/** Timeout for a body that is held for a signature check. A visitor with an incomplete body is disconnected after this time. */
export const POLICY_HELD_BODY_MS = 30_000;
/** Maximum memory for held bodies of an edge. Further bodies get a 503. */
const POLICY_HELD_BYTES_MAX = 64 * 1024 * 1024;
/**
 * Maximum memory for held bodies of an account: a quarter of the edge's limit. When the edge's limit is nearly reached, only accounts
 * that hold less than the mean get more.
 */
const POLICY_HELD_BYTES_PER_OWNER = 16 * 1024 * 1024;

const NO_TRAILERS: readonly HeaderField[] = [];
/** Seconds in the Retry-After header of a response to a body that did not fit in memory. */
const BUSY_RETRY_SECS = 5;

export class HeldBodies {
  readonly #shares: FairShare;

  constructor(maxBytes: number = POLICY_HELD_BYTES_MAX, perOwner: number = POLICY_HELD_BYTES_PER_OWNER) {
    this.#shares = new FairShare({ limit: maxBytes, perHolder: perOwner, unlimited: isOperatorsTenant });
  }

  /** Total size of the bodies held at present. */
  get bytes(): number {
    return this.#shares.taken;
  }

  /**
   * Starts to hold a body. `owner` is the tenant of the requested route and is charged for the memory. Any visitor can cause a body to be
   * held, so a flood at a tunnel must only use up the share of the tunnel's owner.
   */
  hold(maxBytes: number, nowMs: number, owner: string): HeldBody {
    return new HeldBody(this, maxBytes, nowMs, owner);
  }

  /** Reserves memory for a body. Returns false if the limit of the edge or of the owner is reached. */
  take(bytes: number, owner: string): boolean {
    if (this.#shares.refusal(owner, bytes) !== null) return false;
    this.#shares.take(owner, bytes);
    return true;
  }

  give(bytes: number, owner: string): void {
    this.#shares.give(owner, bytes);
  }
}

/**
 * Request body that is being received and held in memory. The reader of the visitor writes decoded body data here, and stops when
 * writeBody() returns false.
 */
export class HeldBody {
  /** Resolves with the result: body complete, body too large, no memory, or timeout. Never resolves if the body was released before. */
  readonly done: Promise<PolicyEvent>;
  /** The complete body, or null while it is incomplete and after it was released. */
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

  /** True if no more data is accepted: the body is complete or too large, or its request was abandoned. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** Called once a second. Fails with a timeout error if the visitor takes too long to send the body. */
  tick(nowMs: number): void {
    if (this.#isSettled || nowMs < this.#deadlineMs) return;
    this.#fail({ kind: 'failed', fault: new Fault('HTTP_HEAD_TIMEOUT') });
  }

  /** Appends body data, with the same contract as ByteDuplex.write; but after false, no onDrain follows. */
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

  /** Completes the body after its last byte, and resolves `done`. */
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

  /** Frees the memory of the body after the body was passed on, or when its request was abandoned. */
  release(): void {
    this.#isSettled = true;
    this.body = null;
    this.#queue.clear();
    this.#bodies.give(this.#heldBytes, this.#owner);
    this.#heldBytes = 0;
  }
}

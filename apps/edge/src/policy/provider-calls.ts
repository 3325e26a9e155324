// Calls to providers of logins and of keys: by the guarded fetch, bounded in time, bytes and number. Tenants name these URLs; what comes
// back of a failure is its kind, never a body.
import { setMaxListeners } from 'node:events';
import { problemOfAddress } from '@tunnel/core';
import { type Clock, createGuardedFetch, type GuardedFetch, type NameLookup } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';

/** Whose URL it is: a tenant's, or one that the operator has written into server.toml. */
export type ProviderTrust = 'tenant' | 'operator';

export const PROVIDER_RESULTS = [
  'ok',
  'status',
  'refused',
  'unresolved',
  'timeout',
  'too_long',
  'failed',
  'busy',
] as const;

export type ProviderResult = (typeof PROVIDER_RESULTS)[number];

/** Whom a call is for: they share what may be under way at once. */
export interface ProviderRef {
  readonly trust: ProviderTrust;
  readonly issuer: string;
}

export interface ProviderAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

export interface ProviderRequest {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** POST with one. */
  readonly body?: Buffer | undefined;
}

/** No answer to go by. `reason` is for the log of the operator. */
export class ProviderAway extends Error {
  readonly result: ProviderResult;

  constructor(result: ProviderResult, reason: string) {
    super(reason);
    this.name = 'ProviderAway';
    this.result = result;
  }
}

export interface ProviderCallsDeps {
  readonly clock: Clock;
  /** Tenants' providers at private addresses, and over http. */
  readonly allowPrivate: boolean;
  readonly lookup?: NameLookup | undefined;
  /** Certificates to trust instead of the usual authorities'. */
  readonly ca?: string | undefined;
}

/** Of one provider. */
interface Lane {
  running: number;
  readonly waiting: Set<() => void>;
}

export class ProviderCalls {
  readonly results = Object.fromEntries(PROVIDER_RESULTS.map((result) => [result, 0])) as Record<
    ProviderResult,
    number
  >;
  readonly #clock: Clock;
  readonly #allowPrivate: boolean;
  readonly #fetches: Readonly<Record<ProviderTrust, GuardedFetch>>;
  readonly #lanes = new Map<string, Lane>();
  readonly #closed = new AbortController();
  /** Apart: what tenants' providers hold up does not hold up the operator's. */
  readonly #running: Record<ProviderTrust, number> = { tenant: 0, operator: 0 };

  constructor({ clock, allowPrivate, lookup, ca }: ProviderCallsDeps) {
    // One listener a call.
    setMaxListeners(2 * EDGE_LIMITS.PROVIDER_CALLS_TOTAL_MAX, this.#closed.signal);
    this.#clock = clock;
    this.#allowPrivate = allowPrivate;
    const fetchOf = (isPrivateAllowed: boolean): GuardedFetch =>
      createGuardedFetch({
        problemOfAddress: (address) => problemOfAddress(address, isPrivateAllowed),
        clock,
        lookup,
        ca,
      });
    this.#fetches = { tenant: fetchOf(allowPrivate), operator: fetchOf(true) };
  }

  /** Plain http is for providers on this machine or network, and for those of the operator, who knows. */
  mayBePlain(trust: ProviderTrust): boolean {
    return trust === 'operator' || this.#allowPrivate;
  }

  /** Any status is an answer. Rejects with `ProviderAway`. */
  async send(provider: ProviderRef, request: ProviderRequest): Promise<ProviderAnswer> {
    try {
      const answer = await this.#send(provider, request);
      this.results[answer.status >= 200 && answer.status < 300 ? 'ok' : 'status'] += 1;
      return answer;
    } catch (error) {
      const away = error instanceof ProviderAway ? error : new ProviderAway('failed', 'it could not be asked');
      this.results[away.result] += 1;
      throw away;
    }
  }

  /** What is under way is given up. */
  close(): void {
    this.#closed.abort();
  }

  async #send(provider: ProviderRef, { url, headers, body }: ProviderRequest): Promise<ProviderAnswer> {
    if (!this.mayBePlain(provider.trust) && !/^https:/i.test(url)) throw new ProviderAway('refused', 'it is not https');
    const deadline = this.#clock.monotonic() + EDGE_LIMITS.PROVIDER_CALL_MS;
    const release = await this.#turn(provider);
    try {
      const timeoutMs = Math.max(1, Math.ceil(deadline - this.#clock.monotonic()));
      const maxBytes = EDGE_LIMITS.PROVIDER_ANSWER_MAX_BYTES;
      const signal = this.#closed.signal;
      const outcome = await this.#fetches[provider.trust](url, { maxBytes, timeoutMs, body, headers, signal });
      if (outcome.kind !== 'answer') throw new ProviderAway(outcome.kind, outcome.reason);
      return {
        status: outcome.status,
        contentType: outcome.headers['content-type'] ?? '',
        body: outcome.body,
      };
    } finally {
      release();
    }
  }

  /** Waits for one of the calls to this provider to end. What it is given must be called once. */
  async #turn({ trust, issuer }: ProviderRef): Promise<() => void> {
    const key = `${trust} ${issuer}`;
    const lane = this.#lanes.get(key) ?? { running: 0, waiting: new Set() };
    if (lane.running >= EDGE_LIMITS.PROVIDER_CALLS_AT_ONCE) await this.#wait(lane);
    else if (this.#running[trust] >= EDGE_LIMITS.PROVIDER_CALLS_TOTAL_MAX) {
      throw new ProviderAway('busy', 'too many providers are being asked');
    } else {
      this.#lanes.set(key, lane);
      lane.running += 1;
      this.#running[trust] += 1;
    }
    return () => {
      const [next] = lane.waiting;
      // Its turn goes on to the one that waited longest; neither count changes.
      if (next !== undefined) return next();
      lane.running -= 1;
      this.#running[trust] -= 1;
      if (lane.running === 0) this.#lanes.delete(key);
    };
  }

  #wait(lane: Lane): Promise<void> {
    if (lane.waiting.size >= EDGE_LIMITS.PROVIDER_CALLS_WAITING_MAX) {
      throw new ProviderAway('busy', 'too many calls wait for it');
    }
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        timer.cancel();
        lane.waiting.delete(begin);
        resolve();
      };
      const timer = this.#clock.setTimeout(() => {
        lane.waiting.delete(begin);
        reject(new ProviderAway('timeout', 'other calls to it took too long'));
      }, EDGE_LIMITS.PROVIDER_CALL_MS);
      lane.waiting.add(begin);
    });
  }
}

// Requests to login providers and key providers, with the guarded fetch and limits for time, size and number. Because tenants choose
// these URLs, a failure reports its kind, never the body of a response.
import { setMaxListeners } from 'node:events';
import { problemOfAddress } from '@tunnel/rules/net';
import { FairShare, FairTurns, type Turn } from '@tunnel/rules/rate';
import { isOperatorsTenant } from '@tunnel/rules/tunnels';
import { type Clock, createGuardedFetch, type GuardedFetch, type NameLookup } from '@tunnel/runtime';

/**
 * Timeout for a call to a provider, including the time in the queue.
 * @limit policies: Call to a sign-in provider, time | 502 `POLICY_PROVIDER_AWAY`
 */
export const PROVIDER_CALL_MS = 5000;
/** Maximum size of a provider's response. */
export const PROVIDER_ANSWER_MAX_BYTES = 256 * 1024;

/**
 * Limits for calls to a single provider; every tenant has a separate limit for its own providers. Waiting calls take turns by the
 * visitor's network and by account. Calls beyond the limit fail immediately, starting with the owner that has the most waiting calls.
 */
export const CALLS_TO_ONE = { atOnce: 4, waitingMax: 64 };

/**
 * Limits for concurrent calls, and therefore sockets, to all providers of tenants, and the same again for all providers of the operator;
 * `perHolder` is the limit for an account. Each of the operator's own tunnels can exceed the account limit, but never take the capacity
 * reserved for other accounts.
 */
export const CALLS_TO_ALL = { limit: 128, perHolder: 32 };

/** Origin of a provider's URL: the policy of a tenant, or the operator's server.toml. */
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

/** The provider to call, with the tenant and visitor that cause the call. */
export interface ProviderRef {
  readonly trust: ProviderTrust;
  readonly issuer: string;
  /** Tenant charged for the call. Default: the edge. */
  readonly tenant?: string | undefined;
  /** Network of the visitor that caused the call. Absent if the result is for all visitors. */
  readonly visitor?: string | undefined;
}

export interface ProviderAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

export interface ProviderRequest {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Body of the request. With a body the method is POST, otherwise GET. */
  readonly body?: Buffer | undefined;
}

/** Error for a call without a usable response. `reason` is meant for the operator's log. */
export class ProviderAway extends Error {
  readonly result: ProviderResult;

  constructor(result: ProviderResult, reason: string) {
    super(reason);
    this.name = 'ProviderAway';
    this.result = result;
  }
}

export interface ProviderCallsOptions {
  readonly clock: Clock;
  /** True if providers of tenants can be at private addresses and use plain http. */
  readonly allowPrivate: boolean;
  readonly lookup?: NameLookup | undefined;
  /** Trusted CA certificates, instead of the public authorities. */
  readonly ca?: string | undefined;
}

export class ProviderCalls {
  readonly results = Object.fromEntries(PROVIDER_RESULTS.map((result) => [result, 0])) as Record<
    ProviderResult,
    number
  >;
  readonly #clock: Clock;
  readonly #allowPrivate: boolean;
  readonly #fetches: Readonly<Record<ProviderTrust, GuardedFetch>>;
  /**
   * Queues of calls by tenant and provider, in which visitors take turns. For each of the operator's providers there is another queue, in
   * which tenants take turns.
   */
  readonly #lanes = new Map<string, FairTurns>();
  readonly #closed = new AbortController();
  /** Separate limits, so that slow providers of tenants do not delay calls to the operator's providers. */
  readonly #running: Readonly<Record<ProviderTrust, FairShare>> = { tenant: callShares(), operator: callShares() };

  constructor({ clock, allowPrivate, lookup, ca }: ProviderCallsOptions) {
    // Raise the warning limit for event listeners, because every call adds a listener to the signal.
    setMaxListeners(2 * CALLS_TO_ALL.limit, this.#closed.signal);
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

  /**
   * Returns true if the provider's URL can be plain http: the operator's own providers always, and tenants' providers if private
   * addresses are allowed.
   */
  mayBePlain(trust: ProviderTrust): boolean {
    return trust === 'operator' || this.#allowPrivate;
  }

  /** Sends a request to a provider. Resolves for any HTTP status; rejects with `ProviderAway`. */
  async send(provider: ProviderRef, request: ProviderRequest): Promise<ProviderAnswer> {
    try {
      const answer = await this.#send(provider, request);
      this.results[answer.status >= 200 && answer.status < 300 ? 'ok' : 'status'] += 1;
      return answer;
    } catch (error) {
      const away = error instanceof ProviderAway ? error : new ProviderAway('failed', 'the request failed');
      this.results[away.result] += 1;
      throw away;
    }
  }

  /** Aborts all running calls. */
  close(): void {
    this.#closed.abort();
  }

  async #send(provider: ProviderRef, { url, headers, body }: ProviderRequest): Promise<ProviderAnswer> {
    if (!this.mayBePlain(provider.trust) && !/^https:/i.test(url))
      throw new ProviderAway('refused', 'the URL is not https');
    const deadline = this.#clock.monotonic() + PROVIDER_CALL_MS;
    const release = await this.#turn(provider, deadline);
    try {
      const timeoutMs = Math.max(1, Math.ceil(deadline - this.#clock.monotonic()));
      const maxBytes = PROVIDER_ANSWER_MAX_BYTES;
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

  /** Waits for a free slot for a call to this provider. The returned function frees the slot and must be called once. */
  async #turn({ trust, issuer, tenant = '', visitor = '' }: ProviderRef, deadline: number): Promise<() => void> {
    const leaveOwn = await this.#enter(`${trust} ${tenant} ${issuer}`, visitor, deadline);
    try {
      const leaveShared = trust === 'operator' ? await this.#enter(`${trust} ${issuer}`, tenant, deadline) : () => {};
      const running = this.#running[trust];
      if (running.refusal(tenant) !== null) {
        leaveShared();
        throw new ProviderAway('busy', 'too many concurrent provider requests');
      }
      running.take(tenant);
      return () => {
        running.give(tenant);
        leaveShared();
        leaveOwn();
      };
    } catch (error) {
      leaveOwn();
      throw error;
    }
  }

  /** Waits for a slot in a queue. Returns the function that frees the slot. */
  async #enter(key: string, owner: string, deadline: number): Promise<() => void> {
    const lane = this.#laneOf(key);
    await this.#wait(lane, owner, deadline);
    return () => {
      lane.done();
      if (lane.running === 0) this.#lanes.delete(key);
    };
  }

  #laneOf(key: string): FairTurns {
    const found = this.#lanes.get(key);
    if (found !== undefined) return found;
    const lane = new FairTurns(CALLS_TO_ONE);
    this.#lanes.set(key, lane);
    return lane;
  }

  #wait(lane: FairTurns, owner: string, deadline: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const busy = (): void => reject(new ProviderAway('busy', 'too many requests are queued for the provider'));
      const turn: Turn = {
        owner,
        begin: () => {
          timer.cancel();
          resolve();
        },
        giveWay: () => {
          timer.cancel();
          busy();
        },
      };
      const leftMs = Math.max(1, deadline - this.#clock.monotonic());
      const timer = this.#clock.setTimeout(() => {
        lane.leave(turn);
        reject(new ProviderAway('timeout', 'earlier requests to the provider took too long'));
      }, leftMs);
      if (lane.enter(turn)) return;
      timer.cancel();
      busy();
    });
  }
}

const callShares = (): FairShare => new FairShare({ ...CALLS_TO_ALL, unlimited: isOperatorsTenant });

// Calls to providers of logins and of keys: by the guarded fetch, bounded in time, bytes and number. Tenants name these URLs; what comes
// back of a failure is its kind, never a body.
import { setMaxListeners } from 'node:events';
import { problemOfAddress } from '@tunnel/rules/net';
import { FairShare, FairTurns, type Turn } from '@tunnel/rules/rate';
import { isOperatorsTenant } from '@tunnel/rules/tunnels';
import { type Clock, createGuardedFetch, type GuardedFetch, type NameLookup } from '@tunnel/runtime';

/**
 * a call to a provider that is not answered by then has failed, its wait for others included
 * @limit policies: Call to a sign-in provider, time | 502 `POLICY_PROVIDER_AWAY`
 */
export const PROVIDER_CALL_MS = 5000;
/** no answer of a provider is longer */
export const PROVIDER_ANSWER_MAX_BYTES = 256 * 1024;

/**
 * To one provider; of tenants each has as many at its own. Calls that wait have turns by the visitor's address and by account. Further ones fail at
 * once, first of all those of the owner with most waiting.
 */
export const CALLS_TO_ONE = { atOnce: 4, waitingMax: 64 };

/**
 * To all providers of tenants, and as many to the operator's, each with a socket; and of these for one account. The operator's own tunnels may have
 * more, each for itself, but never what is left for others.
 */
export const CALLS_TO_ALL = { limit: 128, perHolder: 32 };

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

/** Who is asked, and for whom. */
export interface ProviderRef {
  readonly trust: ProviderTrust;
  readonly issuer: string;
  /** Whose share of the calls it takes; absent: the edge's own. */
  readonly tenant?: string | undefined;
  /** The network of the visitor who causes it; absent: it is for all. */
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

export interface ProviderCallsOptions {
  readonly clock: Clock;
  /** Tenants' providers at private addresses, and over http. */
  readonly allowPrivate: boolean;
  readonly lookup?: NameLookup | undefined;
  /** Certificates to trust instead of the usual authorities'. */
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
  /** By tenant and provider: there visitors come in turn. Of the operator's providers one more each: there tenants do. */
  readonly #lanes = new Map<string, FairTurns>();
  readonly #closed = new AbortController();
  /** Apart: what tenants' providers hold up does not hold up the operator's. */
  readonly #running: Readonly<Record<ProviderTrust, FairShare>> = { tenant: callShares(), operator: callShares() };

  constructor({ clock, allowPrivate, lookup, ca }: ProviderCallsOptions) {
    // One listener a call.
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
      const away = error instanceof ProviderAway ? error : new ProviderAway('failed', 'the request failed');
      this.results[away.result] += 1;
      throw away;
    }
  }

  /** What is under way is given up. */
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

  /** Waits for one of the calls to this provider to end. What it is given must be called once. */
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

  /** It gives what ends the turn. */
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

// How many alerts may leave in a minute: of a group, of an account, and to one receiving host. What is over it is dropped, never queued or merged.

import { SlidingWindows } from '@tunnel/rules/rate';
import type { Clock } from '@tunnel/runtime';
import type { ZeroHealthyAlert } from './alert-message.ts';

/** In a minute each. */
export interface AlertRates {
  readonly perGroup: number;
  readonly perAccount: number;
  /** Posts to one receiving host: of one account, and of all. */
  readonly perHostOfAccount: number;
  readonly perHost: number;
}

/** `perHost` is for all accounts together: an edge is no weapon. */
const RATES: AlertRates = {
  /** @limit tunnels: Alerts per group and minute | further alerts are dropped (reason `group`) */
  perGroup: 10,
  /** @limit tunnels: Alerts per account and minute | further alerts are dropped (reason `account`) */
  perAccount: 30,
  perHostOfAccount: 60,
  /** @limit operator: Alert requests per receiving host and minute, over all accounts | further requests are dropped (reason `host`) */
  perHost: 600,
};

/** The minute, and a little more: whichever minute one looks at, with both its ends, has no more. */
const MINUTE = { windowMs: 61_000, keys: 20_000 };

/** `slots`: too many are under way; the others are the budget that is used up. */
export const DROP_REASONS = ['group', 'account', 'host-of-account', 'host', 'slots'] as const;
export type DropReason = (typeof DROP_REASONS)[number];

export class AlertBudgets {
  readonly #clock: Clock;
  readonly #groups: SlidingWindows;
  readonly #accounts: SlidingWindows;
  readonly #hostsOfAccounts: SlidingWindows;
  readonly #hosts: SlidingWindows;

  constructor(clock: Clock, rates: AlertRates = RATES) {
    this.#clock = clock;
    const window = (perWindow: number): SlidingWindows => new SlidingWindows({ ...MINUTE, perWindow });
    this.#groups = window(rates.perGroup);
    this.#accounts = window(rates.perAccount);
    this.#hostsOfAccounts = window(rates.perHostOfAccount);
    this.#hosts = window(rates.perHost);
  }

  /** Of a whole alert, to whomever it goes; null: it may leave, and is counted. */
  takeAlert({ groupId, account }: ZeroHealthyAlert): DropReason | null {
    const now = this.#clock.monotonic();
    if (!this.#groups.hasRoom(groupId, now)) return 'group';
    if (!this.#accounts.hasRoom(account, now)) return 'account';
    this.#groups.record(groupId, now);
    this.#accounts.record(account, now);
    return null;
  }

  /** Of one post to a tenant's URL, whichever its port; null: it may leave, and is counted. */
  takePost(account: string, hostname: string): DropReason | null {
    const now = this.#clock.monotonic();
    const ofAccount = `${account} ${hostname}`;
    if (!this.#hostsOfAccounts.hasRoom(ofAccount, now)) return 'host-of-account';
    if (!this.#hosts.hasRoom(hostname, now)) return 'host';
    this.#hostsOfAccounts.record(ofAccount, now);
    this.#hosts.record(hostname, now);
    return null;
  }
}

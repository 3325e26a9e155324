// Limits of alerts per minute: per group, per account, and per receiving host. Alerts above a limit are dropped, never queued or merged.

import { SlidingWindows } from '@tunnel/rules/rate';
import type { Clock } from '@tunnel/runtime';
import type { ZeroHealthyAlert } from './alert-message.ts';

/** Maximum alerts per minute for each kind of budget. */
export interface AlertRates {
  readonly perGroup: number;
  readonly perAccount: number;
  /** Maximum requests to a receiving host: from a single account, and from all accounts together. */
  readonly perHostOfAccount: number;
  readonly perHost: number;
}

/** Default limits. `perHost` counts the requests of all accounts, so that an edge cannot be used to flood a host. */
const RATES: AlertRates = {
  /** @limit tunnels: Alerts per group and minute | further alerts are dropped (reason `group`) */
  perGroup: 10,
  /** @limit tunnels: Alerts per account and minute | further alerts are dropped (reason `account`) */
  perAccount: 30,
  perHostOfAccount: 60,
  /** @limit operator: Alert requests per receiving host and minute, over all accounts | further requests are dropped (reason `host`) */
  perHost: 600,
};

/** Window of the limits: slightly more than a minute, so that no full minute, including both of its ends, exceeds a limit. */
const MINUTE = { windowMs: 61_000, keys: 20_000 };

/** Reasons for dropping an alert. `slots`: too many alerts are in progress. The other reasons name the exhausted budget. */
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

  /**
   * Takes an alert, over all its destinations, out of the group and account budgets. Returns null if the alert can be sent, or the
   * exhausted budget.
   */
  takeAlert({ groupId, account }: ZeroHealthyAlert): DropReason | null {
    const now = this.#clock.monotonic();
    if (!this.#groups.hasRoom(groupId, now)) return 'group';
    if (!this.#accounts.hasRoom(account, now)) return 'account';
    this.#groups.record(groupId, now);
    this.#accounts.record(account, now);
    return null;
  }

  /**
   * Takes a request to a tenant's URL out of the host budgets, regardless of the port. Returns null if the request can be sent, or the
   * exhausted budget.
   */
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

// How many alerts may leave in a minute: of a group, of an account, and to one receiving host. What is over it is dropped, never queued or merged.

import type { Clock } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';
import type { ZeroHealthyAlert } from './alert-message.ts';
import { RateWindow } from './rate-window.rules.ts';

/** In a minute each. */
export interface AlertRates {
  readonly perGroup: number;
  readonly perAccount: number;
  /** Posts to one receiving host: of one account, and of all. */
  readonly perHostOfAccount: number;
  readonly perHost: number;
}

const RATES: AlertRates = {
  perGroup: EDGE_LIMITS.ALERTS_PER_MINUTE_GROUP,
  perAccount: EDGE_LIMITS.ALERTS_PER_MINUTE_ACCOUNT,
  perHostOfAccount: EDGE_LIMITS.ALERT_POSTS_PER_MINUTE_HOST_OF_ACCOUNT,
  perHost: EDGE_LIMITS.ALERT_POSTS_PER_MINUTE_HOST,
};

/** `slots`: too many are under way; the others are the budget that is used up. */
export const DROP_REASONS = ['group', 'account', 'host-of-account', 'host', 'slots'] as const;
export type DropReason = (typeof DROP_REASONS)[number];

export class AlertBudgets {
  readonly #clock: Clock;
  readonly #groups: RateWindow;
  readonly #accounts: RateWindow;
  readonly #hostsOfAccounts: RateWindow;
  readonly #hosts: RateWindow;

  constructor(clock: Clock, rates: AlertRates = RATES) {
    this.#clock = clock;
    const window = (perWindow: number): RateWindow =>
      new RateWindow({
        perWindow,
        windowMs: EDGE_LIMITS.ALERT_BUDGET_WINDOW_MS,
        keysMax: EDGE_LIMITS.ALERT_BUDGETS_REMEMBERED,
      });
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

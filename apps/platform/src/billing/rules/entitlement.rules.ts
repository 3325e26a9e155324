// Rules for an account's current entitlement: whether the account is closed to traffic and why, how many tunnels its plan allows, and
// which open tunnels are over the limit.
import type { ErrorCode, FaultValues } from '@tunnel/errors';
import { capState, monthOf, showDollars } from './rating.rules.ts';
import { isGraceOver, PAST_DUE_GRACE_MS } from './subscription.rules.ts';

export interface AccountFacts {
  readonly status: 'active' | 'suspended';
  readonly plan: {
    /** Maximum number of open tunnels. Null means no limit. */
    readonly tunnelLimit: number | null;
    readonly allowCustomSubdomains: boolean;
    readonly priceCentsPerGb: number;
  };
  /** Metered usage of one month (YYYY-MM). Null without usage so far. */
  readonly usage: { readonly month: string; readonly bytes: number } | null;
  /** Spend cap in cents. Null means no cap. */
  readonly capCents: number | null;
  /** Time since which the account is past due. Null if the account is not past due. */
  readonly pastDueSince: number | null;
}

/** An error code, and the values for the placeholders of its message. */
export interface ClosedReason {
  readonly code: Extract<ErrorCode, 'ACCOUNT_SUSPENDED' | 'SPEND_CAP_REACHED' | 'ACCOUNT_PAST_DUE'>;
  readonly values: FaultValues;
}

export interface Entitlement {
  /** Reason why the account is closed: new tunnels are refused, and live tunnels are ended. Null if the account is open. */
  readonly closed: ClosedReason | null;
  /** Maximum number of open tunnels. Null means no limit. */
  readonly tunnelLimit: number | null;
  readonly allowCustomSubdomains: boolean;
}

const DAY_MS = 24 * 60 * 60 * 1000;

export const entitlement = (account: AccountFacts, now: number): Entitlement => {
  const { tunnelLimit, allowCustomSubdomains } = account.plan;
  return { closed: closedReason(account, now), tunnelLimit, allowCustomSubdomains };
};

/** Returns the first reason that applies: the operator's suspension, then the owner's spend cap, then an overdue payment. */
const closedReason = (account: AccountFacts, now: number): ClosedReason | null => {
  const { status, plan, usage, capCents, pastDueSince } = account;
  if (status === 'suspended') return { code: 'ACCOUNT_SUSPENDED', values: {} };
  // Usage of an earlier month does not count toward the current month.
  const bytes = usage !== null && usage.month === monthOf(now) ? usage.bytes : 0;
  if (capState({ bytes, priceCentsPerGb: plan.priceCentsPerGb, capCents }).reached) {
    return { code: 'SPEND_CAP_REACHED', values: { cap: showDollars(capCents ?? 0) } };
  }
  if (!isGraceOver(pastDueSince, now)) return null;
  return { code: 'ACCOUNT_PAST_DUE', values: { days: PAST_DUE_GRACE_MS / DAY_MS } };
};

export interface OpenTunnel {
  readonly tunnelId: string;
  /** True if the tunnel was opened with a key exempted from the limit by an operator. */
  readonly unlimited: boolean;
}

/**
 * Returns the open tunnels over a limit, newest first: the tunnels that the limit would have refused from the start. `oldestFirst` has
 * all open tunnels of the account. A tunnel of an unlimited key counts toward the limit, as when a tunnel is opened, but is never over.
 */
export const tunnelsOver = (tunnelLimit: number | null, oldestFirst: readonly OpenTunnel[]): OpenTunnel[] => {
  if (tunnelLimit === null) return [];
  let kept = 0;
  const over: OpenTunnel[] = [];
  for (const tunnel of oldestFirst) {
    if (tunnel.unlimited || kept < tunnelLimit) kept += 1;
    else over.push(tunnel);
  }
  return over.toReversed();
};

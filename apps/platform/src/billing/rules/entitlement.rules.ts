// What an account may have at this moment: whether it is closed to traffic and why, how many tunnels its plan allows, and which
// of those that are open are over that.
import type { ErrorCode, FaultValues } from '@tunnel/errors';
import { capState, monthOf, showDollars } from './rating.rules.ts';
import { isGraceOver, PAST_DUE_GRACE_MS } from './subscription.rules.ts';

export interface AccountFacts {
  readonly status: 'active' | 'suspended';
  readonly plan: {
    /** null: none. */
    readonly tunnelLimit: number | null;
    readonly allowCustomSubdomains: boolean;
    readonly priceCentsPerGb: number;
  };
  /** Metered, of one month (YYYY-MM); null: nothing yet. */
  readonly usage: { readonly month: string; readonly bytes: number } | null;
  /** null: no cap. */
  readonly capCents: number | null;
  /** null: it is not. */
  readonly pastDueSince: number | null;
}

/** A code of the catalogue and what its text is filled with. */
export interface ClosedReason {
  readonly code: Extract<ErrorCode, 'ACCOUNT_SUSPENDED' | 'SPEND_CAP_REACHED' | 'ACCOUNT_PAST_DUE'>;
  readonly values: FaultValues;
}

export interface Entitlement {
  /** Against every tunnel: none is opened, and those that live are closed. null: the account is open. */
  readonly closed: ClosedReason | null;
  /** null: none. */
  readonly tunnelLimit: number | null;
  readonly allowCustomSubdomains: boolean;
}

const DAY_MS = 24 * 60 * 60 * 1000;

export const entitlement = (account: AccountFacts, now: number): Entitlement => {
  const { tunnelLimit, allowCustomSubdomains } = account.plan;
  return { closed: closedReason(account, now), tunnelLimit, allowCustomSubdomains };
};

/** The operator's word first, then what the owner set, then what the processor says. */
const closedReason = (account: AccountFacts, now: number): ClosedReason | null => {
  const { status, plan, usage, capCents, pastDueSince } = account;
  if (status === 'suspended') return { code: 'ACCOUNT_SUSPENDED', values: {} };
  // What was used in another month says nothing about this one.
  const bytes = usage !== null && usage.month === monthOf(now) ? usage.bytes : 0;
  if (capState({ bytes, priceCentsPerGb: plan.priceCentsPerGb, capCents }).reached) {
    return { code: 'SPEND_CAP_REACHED', values: { cap: showDollars(capCents ?? 0) } };
  }
  if (!isGraceOver(pastDueSince, now)) return null;
  return { code: 'ACCOUNT_PAST_DUE', values: { days: PAST_DUE_GRACE_MS / DAY_MS } };
};

export interface OpenTunnel {
  readonly tunnelId: string;
  /** Opened with a key that an operator freed from the limit. */
  readonly unlimited: boolean;
}

/**
 * Which of the open tunnels are over a limit, newest first: those that the limit would have refused, had it been there from the
 * start. `oldestFirst`: all that the account has. A tunnel of an unlimited key takes up room, as where one is opened, and is
 * never over.
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

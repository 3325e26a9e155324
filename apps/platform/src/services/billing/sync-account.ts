// Reads the state of an account from the payment processor and stores it. A webhook only triggers this sync; its content is not used. So
// webhooks in any order and number lead to the same state.

import { Fault } from '@tunnel/errors';
import type { Transaction } from 'kysely';
import type { CardFacts, CustomerFacts } from '../../billing/processor/processor.ts';
import {
  followClock,
  nextSubscription,
  type SubscriptionEffect,
  type SubscriptionState,
  type SubscriptionStep,
} from '../../billing/rules/subscription.rules.ts';
import type { Schema } from '../../db/schema.ts';
import { queueMail } from '../mail/mail-template.ts';
import { paymentFailedMail } from '../mail/mails.ts';
import { writeAudit } from '../shared/audit.ts';
import { announceChange } from '../shared/edge-changes.ts';
import { type BillingAccount, type BillingContext, findAccount, heldSubscription } from './billing-account.ts';

export interface SyncOptions {
  /** Skips the sync if the account was synced after this time. */
  readonly notReadSince?: number;
  /** If true, a customer unknown to the processor counts as deleted. If false, the missing customer is only logged. */
  readonly mayForget?: boolean;
}

export const syncAccount = async (
  context: BillingContext,
  userId: string,
  { notReadSince = Number.POSITIVE_INFINITY, mayForget = true }: SyncOptions = {},
): Promise<void> =>
  context.locks.hold(userId, async (trx) => {
    const account = await findAccount(trx, userId);
    if (account === undefined || account.customer_id === null) return;
    if (account.synced_at !== null && account.synced_at.getTime() > notReadSince) return;
    const facts = await context.processor.readCustomer(account.customer_id);
    if (facts !== null) await followEmail(context, trx, { account, facts });
    if (facts !== null || mayForget) {
      await applyFacts(context, trx, { account, facts, actor: 'system' });
      return;
    }
    // With the API key of a wrong processor account, every customer would look deleted and every subscription would end. So an operator
    // has to check.
    context.logger.error(
      { user_id: userId, customer: account.customer_id },
      'the payment processor does not know the customer',
    );
    const now = new Date(context.clock.now());
    await trx.updateTable('billing_accounts').set({ synced_at: now }).where('user_id', '=', userId).execute();
  });

type Trx = Transaction<Schema>;

/**
 * Sends a changed email address to the payment processor, so that invoices go to the new address. For a deleted account, the processor
 * keeps the address on its invoices.
 */
const followEmail = async (
  { processor, logger }: BillingContext,
  trx: Trx,
  { account, facts }: { readonly account: BillingAccount; readonly facts: CustomerFacts },
): Promise<void> => {
  const user = await trx
    .selectFrom('users')
    .select('email')
    .where('id', '=', account.user_id)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  if (user === undefined || user.email === facts.email || account.customer_id === null) return;
  try {
    await processor.setEmail(account.customer_id, user.email);
  } catch (error) {
    // An address rejected by the processor must not block the rest of the sync.
    if (!(error instanceof Fault) || error.code !== 'BILLING_PROCESSOR_REFUSED') throw error;
    logger.warn({ user_id: account.user_id }, 'the payment processor rejected the email address of an account');
  }
};

export interface AppliedFacts {
  readonly account: BillingAccount;
  /** State of the customer at the payment processor. Null if the customer is unknown or was deleted. */
  readonly facts: CustomerFacts | null;
  /** Actor named in the audit entries of the sync. */
  readonly actor: string;
}

/**
 * Stores the state of a customer reported by the payment processor; subscription.rules decides its consequences. Calls to the processor
 * come first, so that a failed call leaves nothing written and is retried. Edges are notified last. Returns the new subscription state
 * and the new plan.
 */
export const applyFacts = async (
  context: BillingContext,
  trx: Trx,
  applied: AppliedFacts,
): Promise<{ readonly subscription: SubscriptionState; readonly plan: string }> => {
  const now = context.clock.now();
  const grace = graceOf(applied, now);
  const step = stepOf(applied, grace.pastDueSince, now);
  await setFinalMinimum(context, applied, step.effects);
  const { user_id: userId } = applied.account;
  const user = await trx
    .selectFrom('users')
    .select(['email', 'plan', 'deleted_at'])
    .where('id', '=', userId)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow();
  // A deleted account keeps no card details, because they could identify the owner.
  const card = user.deleted_at === null ? (applied.facts?.card ?? null) : null;
  await writeAccount(trx, applied, step.state, { now, aheadMs: grace.aheadMs, card });
  const plan = await setPlan(trx, { userId, present: user.plan, now }, step.effects);
  await tell(context, trx, { ...applied, user, effects: step.effects, now });
  return { subscription: step.state, plan };
};

const graceOf = ({ account, facts }: AppliedFacts, now: number) => {
  const pastDueSince = account.past_due_since?.getTime() ?? null;
  return followClock(
    { pastDueSince, aheadMs: account.processor_ahead_ms },
    facts?.clock === undefined ? null : facts.clock.now - now,
  );
};

const stepOf = ({ account, facts }: AppliedFacts, pastDueSince: number | null, now: number): SubscriptionStep => {
  const held = { ...heldSubscription(account), pastDueSince };
  const told = facts?.subscription ?? null;
  if (told === null) return nextSubscription(held, null, now);
  // The clock of a simulated processor can be ahead of the local clock, and usage is recorded with local time.
  const isKnown = held.id === told.id && held.meteredFrom !== null;
  const startedAt = isKnown ? (held.meteredFrom ?? now) : Math.min(told.startedAt, now);
  const { clock } = facts ?? {};
  const unpaidMs = clock === undefined || clock.unpaidSince === null ? 0 : Math.max(0, clock.now - clock.unpaidSince);
  return nextSubscription(held, { ...told, startedAt, unpaidMs }, now);
};

/**
 * Sets or removes the minimum charge on the last invoice. The call is repeated at every sync, even without a change: if a process died
 * between the call and the commit, an account could keep a forgotten extra charge.
 */
const setFinalMinimum = async (
  { processor }: BillingContext,
  { account, facts }: AppliedFacts,
  effects: readonly SubscriptionEffect[],
): Promise<void> => {
  const { customer_id: customerId } = account;
  const subscription = facts?.subscription ?? null;
  if (customerId === null || subscription === null) return;
  const hasEnded = subscription.status === 'canceled';
  const wantedAt = new Map<number, boolean>();
  for (const effect of effects) if (effect.kind === 'set-final-minimum') wantedAt.set(effect.periodEnd, effect.wanted);
  const { id: subscriptionId, periodEnd: present, cancelsAtPeriodEnd } = subscription;
  if (present !== null && !hasEnded) wantedAt.set(present, cancelsAtPeriodEnd);
  for (const [periodEnd, wanted] of wantedAt) {
    await processor.setFinalMinimum({ customerId, subscriptionId, periodEnd, wanted, hasEnded });
  }
};

const timeOf = (ms: number | null): Date | null => (ms === null ? null : new Date(ms));

const writeAccount = async (
  trx: Trx,
  { account, facts }: AppliedFacts,
  state: SubscriptionState,
  { now, aheadMs, card }: { readonly now: number; readonly aheadMs: number | null; readonly card: CardFacts | null },
): Promise<void> => {
  const isNew = state.id !== null && state.id !== account.subscription_id;
  if (isNew) await leaveUnreported(trx, account.user_id);
  await trx
    .updateTable('billing_accounts')
    .set({
      customer_id: facts === null ? null : account.customer_id,
      has_payment_method: facts !== null && hasPaymentMethod(facts),
      card_brand: card?.brand ?? null,
      card_last4: card?.last4 ?? null,
      subscription_id: state.id,
      subscription_status: state.status,
      cancels_at_period_end: state.cancelsAtPeriodEnd,
      current_period_end: timeOf(state.periodEnd),
      metered_from: timeOf(state.meteredFrom),
      past_due_since: timeOf(state.pastDueSince),
      past_due_mailed_at: timeOf(state.pastDueMailedAt),
      processor_ahead_ms: aheadMs,
      subscriptions: account.subscriptions + (isNew ? 1 : 0),
      synced_at: new Date(now),
      updated_at: new Date(now),
    })
    .where('user_id', '=', account.user_id)
    .execute();
};

/** Drops usage not yet reported as meter events, because usage from before a subscription is never billed. */
const leaveUnreported = async (trx: Trx, userId: string): Promise<void> => {
  await trx
    .updateTable('metered_usage')
    .set((usage) => ({ bytes: usage.ref('cut_bytes') }))
    .where('user_id', '=', userId)
    .whereRef('bytes', '>', 'cut_bytes')
    .execute();
};

export const hasPaymentMethod = ({ defaultPaymentMethod, paymentMethods }: CustomerFacts): boolean =>
  defaultPaymentMethod !== null || paymentMethods.length > 0;

/**
 * Assigns the plan required by the effects and returns the resulting plan. After a change to the free plan, a job looks for tunnels above
 * the new limit.
 */
const setPlan = async (
  trx: Trx,
  { userId, present, now }: { readonly userId: string; readonly present: string; readonly now: number },
  effects: readonly SubscriptionEffect[],
): Promise<string> => {
  const effect = effects.find(({ kind }) => kind === 'set-plan');
  if (effect?.kind !== 'set-plan' || effect.plan === present) return present;
  // An operator assigned another plan meanwhile; the end of a subscription does not revoke that plan.
  if (effect.plan === 'free' && present !== 'payg') return present;
  await trx.updateTable('users').set({ plan: effect.plan }).where('id', '=', userId).execute();
  const limit_check_at = effect.plan === 'free' ? new Date(now) : null;
  await trx.updateTable('billing_accounts').set({ limit_check_at }).where('user_id', '=', userId).execute();
  return effect.plan;
};

interface Told extends AppliedFacts {
  readonly user: { readonly email: string; readonly deleted_at: Date | null };
  readonly effects: readonly SubscriptionEffect[];
  readonly now: number;
}

const tell = async ({ settings }: BillingContext, trx: Trx, told: Told): Promise<void> => {
  const { account, actor, user, effects, now } = told;
  const { user_id: userId } = account;
  const kinds = new Set(effects.map(({ kind }) => kind));
  // For a deleted account, no mail is sent, and edges are not notified, because a change could make them accept the account again.
  const isDeleted = user.deleted_at !== null;
  if (kinds.has('mail-payment-failed') && !isDeleted) {
    await queueMail(trx, paymentFailedMail(settings.public_url, user.email), { userId, now });
  }
  for (const effect of effects) {
    if (effect.kind === 'audit') await writeAudit(trx, { actor, action: effect.action, userId });
  }
  if (kinds.has('announce-account') && !isDeleted)
    await announceChange(trx, { kind: 'account-changed', accountId: userId });
};

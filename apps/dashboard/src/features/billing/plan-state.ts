// What the state of an account means, in words.
import type { BillingStatus } from '@tunnel/contract';
import type { Tone } from '../../ui/badge.tsx';

/** Days that new tunnels are still taken after a payment has failed. */
const GRACE_DAYS = 7;

/** What a person can do about it here. */
export type PlanAction = 'subscribe' | 'keep' | 'pay' | 'none';

export interface PlanState {
  readonly plan: string;
  readonly badge: { readonly text: string; readonly tone: Tone };
  readonly meaning: string;
  /** A thing that needs attention now. */
  readonly warning: string | null;
  readonly action: PlanAction;
}

type StatusFields = Pick<BillingStatus, 'billing_model' | 'plan_name' | 'subscription_status'>;

/** `periodEnd` as people read it; null: not told. */
export const planStateOf = (status: StatusFields, periodEnd: string | null): PlanState => {
  const { billing_model: model, subscription_status: subscription } = status;
  const plan = planText(status);
  if (subscription === 'past_due') return { ...PAST_DUE, plan };
  if (subscription === 'canceled' && model === 'payg') return endingState(plan, periodEnd);
  if (subscription === 'canceled') return { ...ENDED, plan };
  if (subscription === 'active') return { ...ACTIVE, plan };
  return { ...(model === 'payg' ? GRANTED : FREE), plan };
};

const planText = ({ billing_model: model, plan_name: name }: StatusFields): string => {
  if (model === 'payg') return name === 'payg' ? 'Pay as you go' : `Pay as you go (${name})`;
  return name === 'free' ? 'Free plan' : `Plan ${name}`;
};

type Fixed = Omit<PlanState, 'plan'>;

const FREE: Fixed = {
  badge: { text: 'No subscription', tone: 'neutral' },
  meaning: 'Your usage costs nothing, and you get no invoices. The tunnel limit of the plan holds.',
  warning: null,
  action: 'subscribe',
};

const ACTIVE: Fixed = {
  badge: { text: 'Active', tone: 'good' },
  meaning: 'You pay for what your tunnels carry, at least the monthly minimum. One invoice a month.',
  warning: null,
  action: 'none',
};

const GRANTED: Fixed = {
  badge: { text: 'No subscription', tone: 'neutral' },
  meaning:
    'An operator has put your account on this plan. Usage is counted; without a subscription nothing is charged.',
  warning: null,
  action: 'subscribe',
};

const PAST_DUE: Fixed = {
  badge: { text: 'Past due', tone: 'bad' },
  meaning: 'The subscription goes on, and its usage is counted.',
  warning: `A payment has failed. Pay the open invoice or correct the payment method in the billing portal. ${GRACE_DAYS} days after the failure live tunnels are closed and new tunnels are refused. As soon as the payment succeeds all is as before.`,
  action: 'pay',
};

const ENDED: Fixed = {
  badge: { text: 'Ended', tone: 'neutral' },
  meaning:
    'The subscription has ended and your account is on the free plan. Tunnels over its limit were closed, the newest first; new ones are refused when there are more than the plan allows.',
  warning: null,
  action: 'subscribe',
};

const endingState = (plan: string, periodEnd: string | null): PlanState => ({
  plan,
  badge: { text: 'Canceled', tone: 'warn' },
  meaning: 'Until it ends everything works as before, and usage is paid for with the last invoice.',
  warning: `The subscription is canceled and ends ${periodEnd === null ? 'with its period' : `on ${periodEnd}`}. Then your account goes to the free plan: tunnels over its limit are closed, the newest first.`,
  action: 'keep',
});

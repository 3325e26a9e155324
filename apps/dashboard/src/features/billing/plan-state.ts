// Texts that explain the state of an account's plan and subscription.
import type { BillingStatus } from '@tunnel/contract';
import type { Tone } from '../../ui/badge.tsx';

/** Days after a failed payment until the account's tunnels stop. */
const GRACE_DAYS = 7;

/** The action offered on the plan card: start a subscription, keep a canceled subscription, pay an open invoice, or no action. */
export type PlanAction = 'subscribe' | 'keep' | 'pay' | 'none';

export interface PlanState {
  readonly plan: string;
  readonly badge: { readonly text: string; readonly tone: Tone };
  readonly meaning: string;
  /** Problem that the user should fix now. Null if no action is needed. */
  readonly warning: string | null;
  readonly action: PlanAction;
}

type StatusFields = Pick<BillingStatus, 'billing_model' | 'plan_name' | 'subscription_status'>;

/** Returns the texts for a plan and subscription. `periodEnd` is a formatted date, or null if unknown. */
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

/** Creates the texts of a state without a warning. */
const quiet = (badge: PlanState['badge'], action: PlanAction, meaning: string): Fixed => ({
  badge,
  meaning,
  warning: null,
  action,
});

const NO_SUBSCRIPTION = { text: 'No subscription', tone: 'neutral' } as const;

const FREE = quiet(NO_SUBSCRIPTION, 'subscribe', 'Usage is free, up to the tunnel limit of your plan.');

const ACTIVE = quiet(
  { text: 'Active', tone: 'good' },
  'none',
  'You pay for the data your tunnels transfer, with a monthly minimum. Invoiced monthly.',
);

const GRANTED = quiet(
  NO_SUBSCRIPTION,
  'subscribe',
  'The operator gave you this plan. Your usage is counted, but not charged until you subscribe.',
);

const ENDED = quiet(
  { text: 'Ended', tone: 'neutral' },
  'subscribe',
  'Your subscription has ended, and you are on the free plan. Tunnels above the free limit were stopped, newest first.',
);

const PAST_DUE: Fixed = {
  badge: { text: 'Past due', tone: 'bad' },
  meaning: 'Your subscription continues, and usage still counts.',
  warning: `A payment failed. Pay the open invoice or change your payment method in the billing portal. Your tunnels stop ${GRACE_DAYS} days after the failed payment, until you pay.`,
  action: 'pay',
};

const endingState = (plan: string, periodEnd: string | null): PlanState => ({
  plan,
  badge: { text: 'Canceled', tone: 'warn' },
  meaning: 'Your plan works until then. The last invoice includes your usage.',
  warning: `You canceled your subscription. It ends ${periodEnd === null ? 'at the end of the paid period' : `on ${periodEnd}`}. After that, you are on the free plan, and tunnels above the free limit stop, newest first.`,
  action: 'keep',
});

// What an account pays, in lines for people: plan, the month so far against the cap, and what is on file.
import type { BillingStatus } from '@tunnel/contract';
import { oneLine } from '../problem-report.ts';
import type { Colours } from './colours.ts';
import { momentText } from './columns.ts';
import { cutVisible } from './cut-visible.ts';
import { dollarsText } from './dollars.ts';

export interface BillingFacts {
  readonly status: BillingStatus;
  /** Of this month. Up to the minimum the estimate does not tell it, and only usage counts for the cap. */
  readonly usedCents: number;
}

export interface BillingLook {
  /** null: no terminal. */
  readonly width: number | null;
  readonly colours: Colours;
}

const BAR_WIDTH = 20;
/** From here on the owner was told by mail. */
const NEAR_PERCENT = 80;

export const billingLines = (facts: BillingFacts, { width, colours }: BillingLook): string[] => {
  const { status } = facts;
  const rows = status.billing_model === 'free' ? freeRows(status) : paygRows(facts, colours);
  const nameWidth = Math.max(...rows.map(([name]) => name.length));
  const lines = [titleOf(status, colours), ...rows.map(([name, text]) => `  ${name.padEnd(nameWidth)}  ${text}`)];
  return width === null ? lines : lines.map((line) => cutVisible(line, Math.max(20, width - 1)));
};

const titleOf = ({ plan_name, billing_model }: BillingStatus, colours: Colours): string =>
  `${colours.bold(`plan ${oneLine(plan_name)}`)}: ${billing_model === 'free' ? 'nothing is charged' : 'pay as you go'}`;

type Row = readonly [name: string, text: string];

const freeRows = (status: BillingStatus): Row[] => [
  ...(status.subscription_status === null ? [] : [['subscription', status.subscription_status] as const]),
  ['payment method', status.has_payment_method ? 'on file' : 'none'],
];

const paygRows = ({ status, usedCents }: BillingFacts, colours: Colours): Row[] => {
  const { estimated_mtd_cents: estimate, monthly_minimum_cents: minimum, current_period_end: end } = status;
  return [
    ['this month (UTC)', `${dollarsText(estimate)} so far, ${dollarsText(minimum)} at least`],
    ['spend cap', capText(status.spend_cap_cents, usedCents, colours)],
    ['subscription', subscriptionText(status, colours)],
    ...(end === null ? [] : [['period ends', momentText(end)] as const]),
    ['payment method', status.has_payment_method ? 'on file' : colours.yellow('none')],
  ];
};

const SUBSCRIPTION_WORDS = {
  active: 'active',
  past_due: 'past due: the last payment failed; see `tunnel billing portal`',
  canceled: 'canceled: the plan is free after the end of the period',
} as const;

const subscriptionText = ({ subscription_status: state }: BillingStatus, colours: Colours): string => {
  if (state === null) return 'none';
  const words = SUBSCRIPTION_WORDS[state];
  return state === 'active' ? words : colours.yellow(words);
};

const capText = (cap: number | null, used: number, colours: Colours): string => {
  if (cap === null) return 'none';
  if (cap === 0) return `${dollarsText(0)}: no usage is allowed`;
  const percent = Math.floor((used * 100) / cap);
  const end = used >= cap ? ': reached, no tunnels' : ` (${dollarsText(used)} of usage)`;
  return `${dollarsText(cap)}  ${paintOf(percent, colours)(barOf(percent, used))} ${percent} %${end}`;
};

const paintOf = (percent: number, colours: Colours): ((text: string) => string) => {
  if (percent >= 100) return colours.red;
  return percent >= NEAR_PERCENT ? colours.yellow : colours.green;
};

/** What was used is seen: at least one block, and all of them only when it is all. */
const barOf = (percent: number, used: number): string => {
  const full = Math.max(used > 0 ? 1 : 0, Math.min(BAR_WIDTH, Math.floor((percent * BAR_WIDTH) / 100)));
  return '█'.repeat(full) + '░'.repeat(BAR_WIDTH - full);
};

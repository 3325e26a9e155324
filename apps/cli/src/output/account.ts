// Account data from the platform as lines for people: API keys, usage and billing.
import { protocolTraits } from '@tunnel/client';
import {
  type ApiToken,
  type BillingStatus,
  SUMMARY_DAYS,
  type TunnelLogEntry,
  type UsageChartPoint,
  type UsageSummary,
} from '@tunnel/contract';
import { oneLine } from '../io/problem-report.ts';
import { bytesText, type Colours, chartLines, columns, counted, cutVisible, dollarsText, momentText } from './text.ts';

export interface KeyLook {
  /** SHA-256 of the API key used by tunnels of this computer. Null if no key is known. */
  readonly usedHash: string | null;
  /** Width of the terminal. Null without a terminal. */
  readonly width: number | null;
  readonly colours: Colours;
}

export const keyLines = (keys: readonly ApiToken[], { usedHash, width, colours }: KeyLook): string[] => {
  if (keys.length === 0) return ['no keys', '  Create a key: tunnel keys create --label laptop --save'];
  const hasOwn = keys.some(({ token_hash: hash }) => hash === usedHash);
  const cells = keys.map((key) => keyCells(key, hasOwn ? [key.token_hash === usedHash ? 'this computer' : ''] : []));
  return columns(cells).map((line, at) => {
    const shown = line.replace(/^ {2}/, '');
    const cut = width === null ? shown : cutVisible(shown, Math.max(20, width - 1));
    return keys[at]?.last_used_at === null ? colours.dim(cut) : cut;
  });
};

/** Returns the cells of an API key, the most important cells first, because a narrow terminal cuts off the end of a line. */
const keyCells = (key: ApiToken, own: readonly string[]): string[] => [
  oneLine(key.id),
  oneLine(key.label),
  ...own,
  useText(key),
  counted(key.tunnel_count, 'tunnel', 'tunnels'),
  `created ${momentText(key.created_at).slice(0, DAY_CHARS)}`,
  ...(key.unlimited ? ['unlimited'] : []),
];

const DAY_CHARS = 'YYYY-MM-DD'.length;
/** Length of a time without seconds, because the platform updates the last use once a minute. */
const MINUTE_CHARS = 'YYYY-MM-DD hh:mm'.length;

const useText = ({ active_tunnels: live = 0, last_used_at: used }: ApiToken): string => {
  if (live > 0) return `in use by ${counted(live, 'tunnel', 'tunnels')}`;
  return used === null ? 'never used' : `used ${momentText(used).slice(0, MINUTE_CHARS)}`;
};

export interface Usage {
  readonly summary: UsageSummary;
  readonly chart: readonly UsageChartPoint[];
  readonly tunnels: readonly TunnelLogEntry[];
}

export interface UsageLook {
  /** Width of the terminal. Null without a terminal; a searchable list then replaces the charts. */
  readonly width: number | null;
  readonly colours: Colours;
}

export const usageLines = ({ summary, chart, tunnels }: Usage, { width, colours }: UsageLook): string[] => {
  const days = width === null ? dayList(chart) : dayCharts(chart, width, colours);
  const lines = [...summaryLines(summary, colours), '', ...days, '', ...tunnelLines(tunnels, colours)];
  return width === null ? lines : lines.map((line) => cutVisible(line, Math.max(20, width - 1)));
};

const summaryLines = (summary: UsageSummary, colours: Colours): string[] => {
  const { active_tunnels: open, tunnel_limit: limit } = summary;
  const tunnels = limit === null ? `${counted(open, 'tunnel', 'tunnels')} open` : `${open} of ${limit} tunnels open`;
  const isFull = limit !== null && open >= limit;
  return [
    `${colours.bold(`plan ${oneLine(summary.plan)}`)}: ${isFull ? colours.yellow(tunnels) : tunnels}`,
    `last ${SUMMARY_DAYS} days: ${[
      counted(summary.total_tunnels_30d, 'tunnel', 'tunnels'),
      counted(summary.total_requests_30d, 'request', 'requests'),
      bytesText(summary.total_bytes_30d),
    ].join(', ')}`,
  ];
};

const dayCharts = (chart: readonly UsageChartPoint[], width: number, colours: Colours): string[] => {
  const valuesOf = (key: 'requests' | 'tunnels') => chart.map((point) => ({ date: point.date, value: point[key] }));
  return [
    ...chartLines('requests per day', valuesOf('requests'), { width, colours }),
    '',
    ...chartLines('tunnels per day', valuesOf('tunnels'), { width, colours }),
  ];
};

/** Lists the usage per day, from the first day with usage, so that a new account does not show a month of zeros. */
const dayList = (chart: readonly UsageChartPoint[]): string[] => {
  const first = chart.findIndex(({ requests, tunnels, bytes }) => requests + tunnels + bytes > 0);
  if (first === -1) return ['No usage yet'];
  const cells = chart
    .slice(first)
    .map(({ date, requests, tunnels }) => [
      date,
      counted(requests, 'request', 'requests'),
      counted(tunnels, 'tunnel', 'tunnels'),
    ]);
  return ['days (UTC)', ...columns(cells)];
};

const tunnelLines = (tunnels: readonly TunnelLogEntry[], colours: Colours): string[] => {
  if (tunnels.length === 0) return ['No tunnels yet'];
  const lines = columns(tunnels.map(tunnelCells));
  return ['recent tunnels', ...lines.map((line, at) => (isOpen(tunnels[at]) ? colours.green(line) : line))];
};

const isOpen = (tunnel: TunnelLogEntry | undefined): boolean => tunnel?.unregistered_at === null;

const tunnelCells = (tunnel: TunnelLogEntry): string[] => [
  tunnel.protocol,
  oneLine(tunnel.public_url ?? tunnel.label),
  momentText(tunnel.registered_at),
  tunnel.unregistered_at === null ? 'open' : `to ${momentText(tunnel.unregistered_at)}`,
  visitsText(tunnel),
  bytesText(tunnel.bytes_proxied),
  oneLine(tunnel.region_id ?? ''),
];

const visitsText = ({ protocol, request_count: count }: TunnelLogEntry): string =>
  protocolTraits(protocol).carriesRequests
    ? counted(count, 'request', 'requests')
    : counted(count, 'connection', 'connections');

export interface BillingFacts {
  readonly status: BillingStatus;
  /**
   * Usage of this month in cents. Up to the monthly minimum the estimate does not show the usage, and only usage counts for the spend
   * cap.
   */
  readonly usedCents: number;
}

export interface BillingLook {
  /** Width of the terminal. Null without a terminal. */
  readonly width: number | null;
  readonly colours: Colours;
}

const BAR_WIDTH = 20;
/** Percentage of the spend cap from which the owner has been notified by mail. */
const NEAR_PERCENT = 80;

export const billingLines = (facts: BillingFacts, { width, colours }: BillingLook): string[] => {
  const { status } = facts;
  const rows = status.billing_model === 'free' ? freeRows(status) : paygRows(facts, colours);
  const nameWidth = Math.max(...rows.map(([name]) => name.length));
  const lines = [titleOf(status, colours), ...rows.map(([name, text]) => `  ${name.padEnd(nameWidth)}  ${text}`)];
  return width === null ? lines : lines.map((line) => cutVisible(line, Math.max(20, width - 1)));
};

const titleOf = ({ plan_name, billing_model, test_mode }: BillingStatus, colours: Colours): string => {
  const price = billing_model === 'free' ? 'free of charge' : 'pay as you go';
  return `${colours.bold(`plan ${oneLine(plan_name)}`)}: ${price}${test_mode === true ? ' (test mode, no real charges)' : ''}`;
};

const paymentText = ({ has_payment_method, payment_method: card }: BillingStatus, none: string): string => {
  if (!has_payment_method) return none;
  return card == null ? 'on file' : oneLine(`${card.brand} •••• ${card.last4}`);
};

type Row = readonly [name: string, text: string];

const freeRows = (status: BillingStatus): Row[] => [
  ...(status.subscription_status === null ? [] : [['subscription', status.subscription_status] as const]),
  ['payment method', paymentText(status, 'none')],
];

const paygRows = ({ status, usedCents }: BillingFacts, colours: Colours): Row[] => {
  const { estimated_mtd_cents: estimate, monthly_minimum_cents: minimum, current_period_end: end } = status;
  return [
    ['this month (UTC)', `${dollarsText(estimate)} so far, ${dollarsText(minimum)} at least`],
    ['spend cap', capText(status.spend_cap_cents, usedCents, colours)],
    ['subscription', subscriptionText(status, colours)],
    ...(end === null ? [] : [['period ends', momentText(end)] as const]),
    ['payment method', paymentText(status, colours.yellow('none'))],
  ];
};

const SUBSCRIPTION_WORDS = {
  active: 'active',
  past_due: 'past due: the last payment failed (see `tunnel billing portal`)',
  canceled: 'canceled: changes to the free plan when the period ends',
} as const;

const subscriptionText = ({ subscription_status: state }: BillingStatus, colours: Colours): string => {
  if (state === null) return 'none';
  const words = SUBSCRIPTION_WORDS[state];
  return state === 'active' ? words : colours.yellow(words);
};

const capText = (cap: number | null, used: number, colours: Colours): string => {
  if (cap === null) return 'none';
  if (cap === 0) return `${dollarsText(0)}: no usage allowed`;
  const percent = Math.floor((used * 100) / cap);
  const end = used >= cap ? ': reached, tunnels are stopped' : ` (${dollarsText(used)} of usage)`;
  return `${dollarsText(cap)}  ${paintOf(percent, colours)(barOf(percent, used))} ${percent} %${end}`;
};

const paintOf = (percent: number, colours: Colours): ((text: string) => string) => {
  if (percent >= 100) return colours.red;
  return percent >= NEAR_PERCENT ? colours.yellow : colours.green;
};

/** Draws the bar of the spend cap. Any usage fills at least one block, and the bar is full only at the cap. */
const barOf = (percent: number, used: number): string => {
  const full = Math.max(used > 0 ? 1 : 0, Math.min(BAR_WIDTH, Math.floor((percent * BAR_WIDTH) / 100)));
  return '█'.repeat(full) + '░'.repeat(BAR_WIDTH - full);
};

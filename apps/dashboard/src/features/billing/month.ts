// The numbers of a month: what the minimum covers, how near the cap is, and when the next month begins.
import type { BillingUsage } from '@tunnel/contract';

const BYTES_PER_GB = 1e9;

export type Prices = Pick<BillingUsage, 'price_cents_per_gb' | 'monthly_minimum_cents'>;

/** What the minimum pays for. */
export const coveredBytes = ({ price_cents_per_gb: price, monthly_minimum_cents: minimum }: Prices): number =>
  price === 0 ? 0 : (minimum / price) * BYTES_PER_GB;

/** Of a cap: 0 to 1 and above; a cap of 0 is reached from the start. */
export const capShare = (usageCents: number, capCents: number): number => (capCents === 0 ? 1 : usageCents / capCents);

/** Mails are sent from here on too. */
const NEAR = 0.8;

export const capTone = (share: number): 'accent' | 'warn' | 'bad' => {
  if (share >= 1) return 'bad';
  return share >= NEAR ? 'warn' : 'accent';
};

const MONTH = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' });
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });

/** `now` in ms: "November 2030". Months are UTC's. */
export const monthText = (now: number): string => MONTH.format(now);

/** The first day of the next month, when the invoice is made: "1 December 2030". */
export const nextMonthText = (now: number): string => {
  const date = new Date(now);
  return DAY.format(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1));
};

/** A moment of the processor as its day in UTC. */
export const utcDateText = (at: number): string => DAY.format(at);

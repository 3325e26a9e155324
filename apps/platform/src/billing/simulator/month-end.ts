// What the end of a period costs: a pure sum of the fixed price of the period to come, the metered price of the one that ended, and
// what waited. Money is in cents, each line rounded down once.
import type { SimPrice } from './sim-objects.ts';

export interface PeriodEnd {
  readonly prices: readonly SimPrice[];
  readonly bytes: number;
  /** The subscription goes on: its fixed price is charged in advance. */
  readonly goesOn: boolean;
  readonly waiting: readonly { readonly amount: number; readonly description: string }[];
}

export interface MonthLine {
  readonly kind: 'fixed' | 'metered' | 'item';
  readonly cents: number;
  readonly quantity: number;
  readonly description: string;
  readonly price: SimPrice | null;
}

export const monthEndLines = ({ prices, bytes, goesOn, waiting }: PeriodEnd): MonthLine[] => [
  ...prices
    .filter(({ recurring }) => recurring.usage_type === 'metered')
    .map((price) => lineOf('metered', price, bytes)),
  ...prices
    .filter(({ recurring }) => recurring.usage_type === 'licensed' && goesOn)
    .map((price) => lineOf('fixed', price, 1)),
  ...waiting.map(
    ({ amount, description }): MonthLine => ({ kind: 'item', cents: amount, quantity: 1, description, price: null }),
  ),
];

const lineOf = (kind: 'fixed' | 'metered', price: SimPrice, quantity: number): MonthLine => ({
  kind,
  cents: centsFor(price, quantity),
  quantity,
  description: price.metadata.product_name,
  price,
});

/** The processor takes up to 12 decimal places of a cent. */
const PLACES = 12;
const ONE_CENT = 10n ** BigInt(PLACES);

export const centsFor = (price: Pick<SimPrice, 'tiers' | 'unit_amount_decimal'>, quantity: number): number => {
  const unit_amount_decimal = price.unit_amount_decimal ?? '0';
  const tiers = price.tiers ?? [{ up_to: null, unit_amount_decimal, flat_amount_decimal: null }];
  let left = BigInt(quantity);
  let from = 0n;
  let sum = 0n;
  for (const { up_to, ...tier } of tiers) {
    const room = up_to === null ? left : BigInt(up_to) - from;
    const units = left < room ? left : room;
    sum += units * amountOf(tier.unit_amount_decimal);
    if (units > 0n) sum += amountOf(tier.flat_amount_decimal ?? '0');
    left -= units;
    from += units;
  }
  return Number(sum / ONE_CENT);
};

const amountOf = (decimal: string): bigint => {
  const [whole = '0', part = ''] = decimal.split('.');
  return BigInt(whole) * ONE_CENT + BigInt(part.padEnd(PLACES, '0'));
};

/** The first of the next month in UTC; times are in seconds. */
export const nextMonthStart = (at: number): number => {
  const date = new Date(at * 1000);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1) / 1000;
};

// Monthly recurring prices of subscriptions: fixed, and metered per byte.
import { randomId } from '@tunnel/runtime';
import * as z from 'zod';
import type { Price, Tier } from '../state/model.ts';
import type { Sandbox } from '../state/sandbox.ts';
import { badRequest, decimal, flag, listPage, noSuch, paging, type Route, route, text, whole } from './api-route.ts';

const cents = whole(0, 99_999_999);

const newTier = z.strictObject({
  up_to: z.union([z.literal('inf').transform(() => null), whole(1, Number.MAX_SAFE_INTEGER)]),
  unit_amount: cents.optional(),
  unit_amount_decimal: decimal().optional(),
  flat_amount_decimal: decimal().optional(),
});

const newPrice = z.strictObject({
  currency: z.literal('usd'),
  lookup_key: text(200),
  product_data: z.strictObject({ name: text(250) }),
  recurring: z.strictObject({
    interval: z.literal('month'),
    usage_type: z.enum(['licensed', 'metered']).default('licensed'),
    meter: text().optional(),
  }),
  billing_scheme: z.enum(['per_unit', 'tiered']).default('per_unit'),
  tiers_mode: z.literal('graduated').optional(),
  tiers: z.array(newTier).min(1).max(100).optional(),
  unit_amount: cents.optional(),
  unit_amount_decimal: decimal().optional(),
});

type NewPrice = z.output<typeof newPrice>;

const createPrice = (sandbox: Sandbox, params: NewPrice): Price => {
  const { recurring, billing_scheme } = params;
  if (sandbox.store.all('prices').some(({ lookup_key }) => lookup_key === params.lookup_key)) {
    throw badRequest(`A price already uses that lookup key: ${params.lookup_key}`, { param: 'lookup_key' });
  }
  checkMeter(sandbox, params);
  const amount = unitAmountOf(params);
  if (billing_scheme === 'per_unit' && amount === null) {
    throw badRequest('Missing required param: unit_amount.', { code: 'parameter_missing', param: 'unit_amount' });
  }
  const meter = recurring.meter ?? null;
  return sandbox.store.put('prices', {
    id: randomId('price'),
    object: 'price',
    livemode: false,
    created: sandbox.now(),
    active: true,
    currency: params.currency,
    lookup_key: params.lookup_key,
    product: randomId('prod'),
    type: 'recurring',
    recurring: { interval: 'month', interval_count: 1, usage_type: recurring.usage_type, meter },
    billing_scheme,
    tiers_mode: params.tiers_mode ?? null,
    tiers: billing_scheme === 'tiered' ? tiersOf(params) : null,
    unit_amount_decimal: amount,
    metadata: { product_name: params.product_data.name },
  });
};

const checkMeter = (sandbox: Sandbox, { recurring }: NewPrice): void => {
  const param = 'recurring[meter]';
  if ((recurring.usage_type === 'metered') !== (recurring.meter !== undefined)) {
    throw badRequest('A metered price needs a meter, and only such a price has one.', { param });
  }
  if (recurring.meter !== undefined && sandbox.store.get('meters', recurring.meter) === undefined) {
    throw noSuch('meter', recurring.meter, param);
  }
};

const unitAmountOf = (amounts: Pick<NewPrice, 'unit_amount' | 'unit_amount_decimal'>): string | null => {
  if (amounts.unit_amount !== undefined && amounts.unit_amount_decimal !== undefined) {
    throw badRequest('Only one of unit_amount and unit_amount_decimal can be set.', { param: 'unit_amount' });
  }
  return amounts.unit_amount_decimal ?? amounts.unit_amount?.toString() ?? null;
};

const tiersOf = ({ tiers = [], tiers_mode }: NewPrice): Tier[] => {
  if (tiers_mode === undefined || tiers.at(-1)?.up_to !== null) {
    throw badRequest('A tiered price needs tiers_mode, and tiers of which the last is up_to=inf.', { param: 'tiers' });
  }
  return tiers.map((each) => ({
    up_to: each.up_to,
    unit_amount_decimal: unitAmountOf(each) ?? '0',
    flat_amount_decimal: each.flat_amount_decimal ?? null,
  }));
};

const listing = z.strictObject({
  ...paging,
  active: flag().optional(),
  lookup_keys: z.array(text(200)).max(10).optional(),
});

export const priceRoutes: readonly Route[] = [
  route('POST', '/v1/prices', newPrice, createPrice),
  route('GET', '/v1/prices', listing, ({ store }, { active, lookup_keys, ...page }) => {
    const found = store
      .all('prices')
      .filter((price) => active !== false && (lookup_keys?.includes(price.lookup_key) ?? true));
    return listPage('/v1/prices', found, page);
  }),
];

// Amounts at the end of a period: the fixed price of the next period, the metered price of the ended period, and waiting items. Amounts are
// in cents, every line rounded down once.

interface PeriodEnd {
  readonly prices: readonly Price[];
  readonly bytes: number;
  /** True if the subscription continues. Then the fixed price is charged in advance. */
  readonly goesOn: boolean;
  readonly waiting: readonly { readonly amount: number; readonly description: string }[];
}

export interface MonthLine {
  readonly kind: 'fixed' | 'metered' | 'item';
  readonly cents: number;
  readonly quantity: number;
  readonly description: string;
  readonly price: Price | null;
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

const lineOf = (kind: 'fixed' | 'metered', price: Price, quantity: number): MonthLine => ({
  kind,
  cents: centsFor(price, quantity),
  quantity,
  description: price.metadata.product_name,
  price,
});

/** Number of decimal places of a cent that the payment processor accepts. */
const DECIMALS = 12;
const ONE_CENT = 10n ** BigInt(DECIMALS);

export const centsFor = (price: Pick<Price, 'tiers' | 'unit_amount_decimal'>, quantity: number): number => {
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

const amountOf = (amount: string): bigint => {
  const [units = '0', part = ''] = amount.split('.');
  return BigInt(units) * ONE_CENT + BigInt(part.padEnd(DECIMALS, '0'));
};

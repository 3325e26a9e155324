// Prices that recur each month: fixed ones, and metered ones by the byte.
import { randomId } from '@tunnel/runtime';
import * as z from 'zod';
import { listPage } from '../list-page.ts';
import { decimal, flag, paging, text, whole } from '../params.ts';
import { type Route, route } from '../route.ts';
import { badRequest, noSuch } from '../sim-error.ts';
import type { SimPrice, SimTier } from '../sim-objects.ts';
import type { SimWorld } from '../sim-world.ts';

const cents = whole(0, 99_999_999);

const tier = z.strictObject({
  up_to: z.union([z.literal('inf').transform(() => null), whole(1, Number.MAX_SAFE_INTEGER)]),
  unit_amount: cents.optional(),
  unit_amount_decimal: decimal().optional(),
  flat_amount_decimal: decimal().optional(),
});

const creating = z.strictObject({
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
  tiers: z.array(tier).min(1).max(100).optional(),
  unit_amount: cents.optional(),
  unit_amount_decimal: decimal().optional(),
});

type Creating = z.output<typeof creating>;

const create = (world: SimWorld, params: Creating): SimPrice => {
  const { recurring, billing_scheme } = params;
  if (world.state.all('prices').some(({ lookup_key }) => lookup_key === params.lookup_key)) {
    throw badRequest(`A price already uses that lookup key: ${params.lookup_key}`, { param: 'lookup_key' });
  }
  checkMeter(world, params);
  const amount = amountOf(params);
  if (billing_scheme === 'per_unit' && amount === null) {
    throw badRequest('Missing required param: unit_amount.', { code: 'parameter_missing', param: 'unit_amount' });
  }
  const meter = recurring.meter ?? null;
  return world.state.put('prices', {
    id: randomId('price'),
    object: 'price',
    livemode: false,
    created: world.now(),
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

const checkMeter = (world: SimWorld, { recurring }: Creating): void => {
  const param = 'recurring[meter]';
  if ((recurring.usage_type === 'metered') !== (recurring.meter !== undefined)) {
    throw badRequest('A metered price needs a meter, and only such a price has one.', { param });
  }
  if (recurring.meter !== undefined && world.state.get('meters', recurring.meter) === undefined) {
    throw noSuch('meter', recurring.meter, param);
  }
};

const amountOf = (amounts: Pick<Creating, 'unit_amount' | 'unit_amount_decimal'>): string | null => {
  if (amounts.unit_amount !== undefined && amounts.unit_amount_decimal !== undefined) {
    throw badRequest('Only one of unit_amount and unit_amount_decimal can be set.', { param: 'unit_amount' });
  }
  return amounts.unit_amount_decimal ?? amounts.unit_amount?.toString() ?? null;
};

const tiersOf = ({ tiers = [], tiers_mode }: Creating): SimTier[] => {
  if (tiers_mode === undefined || tiers.at(-1)?.up_to !== null) {
    throw badRequest('A tiered price needs tiers_mode, and tiers of which the last is up_to=inf.', { param: 'tiers' });
  }
  return tiers.map((each) => ({
    up_to: each.up_to,
    unit_amount_decimal: amountOf(each) ?? '0',
    flat_amount_decimal: each.flat_amount_decimal ?? null,
  }));
};

const listing = z.strictObject({
  ...paging,
  active: flag().optional(),
  lookup_keys: z.array(text(200)).max(10).optional(),
});

export const priceRoutes: readonly Route[] = [
  route('POST', '/v1/prices', creating, create),
  route('GET', '/v1/prices', listing, ({ state }, { active, lookup_keys, ...page }) => {
    const found = state
      .all('prices')
      .filter((price) => active !== false && (lookup_keys?.includes(price.lookup_key) ?? true));
    return listPage('/v1/prices', found, page);
  }),
];

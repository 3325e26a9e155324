// The meter and the two prices at the payment processor. Searched for once per process, by names that contain the amounts, and created if
// missing. The price of a running subscription never changes: different amounts are new prices.
import { Stripe } from 'stripe';
import { isRefused } from './processor-client.ts';

export interface PriceList {
  readonly minimumCents: number;
  readonly priceCentsPerGb: number;
}

export const METER_EVENT = 'tunnel_bytes';
export const CURRENCY = 'usd';
const GB = 10n ** 9n;
const GB_DIGITS = 9;

/**
 * Cache of the ids of meter and prices. Only successful lookups are cached, so that a lookup is retried after an outage of the processor.
 */
export class Prices {
  readonly #amounts: PriceList;
  #meter: Promise<string> | undefined;
  #items: Promise<readonly string[]> | undefined;

  constructor(amounts: PriceList) {
    this.#amounts = amounts;
  }

  meterId(stripe: Stripe): Promise<string> {
    this.#meter ??= ensureMeter(stripe).catch((error: unknown) => {
      this.#meter = undefined;
      throw error;
    });
    return this.#meter;
  }

  /** Returns the price ids of a subscription: the fixed price, then the metered price. */
  ids(stripe: Stripe): Promise<readonly string[]> {
    this.#items ??= this.#ensurePrices(stripe).catch((error: unknown) => {
      this.#items = undefined;
      throw error;
    });
    return this.#items;
  }

  async #ensurePrices(stripe: Stripe): Promise<readonly string[]> {
    const meter = await this.meterId(stripe);
    const minimum = await ensurePrice(stripe, fixedPrice(this.#amounts));
    return [minimum, await ensurePrice(stripe, meteredPrice(this.#amounts, meter))];
  }
}

const ensureMeter = async (stripe: Stripe): Promise<string> => {
  const find = async (): Promise<string | undefined> => {
    for await (const meter of stripe.billing.meters.list({ status: 'active', limit: 100 })) {
      if (meter.event_name === METER_EVENT) return meter.id;
    }
    return undefined;
  };
  return foundOrMade(find, async () => {
    const made = await stripe.billing.meters.create({
      display_name: 'Tunnel bytes',
      event_name: METER_EVENT,
      default_aggregation: { formula: 'sum' },
      customer_mapping: { type: 'by_id', event_payload_key: 'stripe_customer_id' },
      value_settings: { event_payload_key: 'value' },
    });
    return made.id;
  });
};

const ensurePrice = (stripe: Stripe, price: Stripe.PriceCreateParams & { lookup_key: string }): Promise<string> => {
  const find = async (): Promise<string | undefined> => {
    const found = await stripe.prices.list({ lookup_keys: [price.lookup_key], active: true, limit: 1 });
    return found.data[0]?.id;
  };
  return foundOrMade(find, async () => (await stripe.prices.create(price)).id);
};

/**
 * Finds an object, or creates it. If another process creates the same object at the same moment, the processor rejects the second
 * creation, and the object of the other process is found.
 */
const foundOrMade = async (find: () => Promise<string | undefined>, make: () => Promise<string>): Promise<string> => {
  const found = await find();
  if (found !== undefined) return found;
  try {
    return await make();
  } catch (error) {
    const others = isRefused(error) ? await find() : undefined;
    if (others === undefined) throw error;
    return others;
  }
};

const fixedPrice = ({ minimumCents }: PriceList) => ({
  currency: CURRENCY,
  lookup_key: `tunnel_payg_minimum_${minimumCents}`,
  unit_amount: minimumCents,
  recurring: { interval: 'month' as const },
  product_data: { name: 'Hatchway: monthly minimum (credited toward usage)' },
});

const meteredPrice = ({ minimumCents, priceCentsPerGb }: PriceList, meter: string) => ({
  currency: CURRENCY,
  lookup_key: `tunnel_payg_bytes_${priceCentsPerGb}_${minimumCents}`,
  recurring: { interval: 'month' as const, usage_type: 'metered' as const, meter },
  product_data: { name: 'Hatchway: bytes above the monthly minimum' },
  ...usageRate(BigInt(minimumCents), BigInt(priceCentsPerGb)),
});

/**
 * Builds the price per byte. Bytes covered by the monthly minimum are free. If the minimum does not cover a whole number of bytes, the
 * rest of the partly covered byte is charged as a flat amount.
 */
const usageRate = (minimumCents: bigint, price: bigint): Partial<Stripe.PriceCreateParams> => {
  const perByte = decimalOf(price);
  const free = price === 0n ? 0n : (minimumCents * GB + price - 1n) / price;
  if (free === 0n) return { billing_scheme: 'per_unit', unit_amount_decimal: perByte };
  const part = free * price - minimumCents * GB;
  return {
    billing_scheme: 'tiered',
    tiers_mode: 'graduated',
    tiers: [
      { up_to: Number(free), unit_amount: 0 },
      {
        up_to: 'inf',
        unit_amount_decimal: perByte,
        ...(part === 0n ? {} : { flat_amount_decimal: decimalOf(part) }),
      },
    ],
  };
};

/** Formats billionths of a cent as a decimal number of cents, such as 0.00000001 for 10, without trailing zeros. */
const decimalOf = (billionths: bigint): Stripe.Decimal => {
  const digits = (billionths % GB).toString().padStart(GB_DIGITS, '0').replace(/0+$/, '');
  return Stripe.Decimal.from(`${billionths / GB}${digits === '' ? '' : `.${digits}`}`);
};

// Usage at the processor: events that are counted once each, and their sum.
import type { Stripe } from 'stripe';
import { METER_EVENT, type Prices } from './prices.ts';
import type { UsageEvent, UsageRange } from './processor.ts';
import { isRefused } from './processor-client.ts';

const MINUTE_SECS = 60;

/** An event that is known there already is one that was taken. */
export const reportUsage = async (stripe: Stripe, prices: Prices, event: UsageEvent): Promise<void> => {
  await prices.meterId(stripe);
  const timestamp = Math.floor(event.at / 1000);
  try {
    await stripe.billing.meterEvents.create(
      {
        event_name: METER_EVENT,
        identifier: event.identifier,
        timestamp,
        payload: { stripe_customer_id: event.customerId, value: String(event.bytes) },
      },
      // A key stands for one request to the letter, and the same event may be sent again with another time.
      { idempotencyKey: `usage:${event.identifier}:${timestamp}` },
    );
  } catch (error) {
    if (!isKnownEvent(error)) throw error;
  }
};

const isKnownEvent = (error: unknown): boolean =>
  isRefused(error) && (error.code === 'duplicate_meter_event' || /already exists with identifier/i.test(error.message));

/** Whole minutes only: from the one that `from` is in to the one that `to` is in, both included. */
export const meteredBytes = async (stripe: Stripe, prices: Prices, range: UsageRange): Promise<number> => {
  const meter = await prices.meterId(stripe);
  const params = {
    customer: range.customerId,
    start_time: Math.floor(range.from / 1000 / MINUTE_SECS) * MINUTE_SECS,
    end_time: Math.ceil(range.to / 1000 / MINUTE_SECS) * MINUTE_SECS,
    limit: 100,
  };
  let sum = 0;
  for await (const summary of stripe.billing.meters.listEventSummaries(meter, params)) sum += summary.aggregated_value;
  return sum;
};

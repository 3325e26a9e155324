// Usage at the payment processor: reports events, each counted only once, and reads sums.
import type { Stripe } from 'stripe';
import { METER_EVENT, type Prices } from './prices.ts';
import type { UsageEvent, UsageRange } from './processor.ts';
import { isRefused } from './processor-client.ts';

const MINUTE_SECS = 60;

/** Reports an event. An event already known to the processor counts as accepted. */
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
      // The idempotency key includes the time, because a key stands for one exact request, and an event may be sent again with a
      // different time.
      { idempotencyKey: `usage:${event.identifier}:${timestamp}` },
    );
  } catch (error) {
    if (!isKnownEvent(error)) throw error;
  }
};

const isKnownEvent = (error: unknown): boolean =>
  isRefused(error) && (error.code === 'duplicate_meter_event' || /already exists with identifier/i.test(error.message));

/** Sums the usage of whole minutes, from the minute that contains `from` to the minute that contains `to`, both inclusive. */
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

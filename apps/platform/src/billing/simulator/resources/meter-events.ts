// Usage that is reported: each identifier counts once, for as long as the processor remembers it.
import * as z from 'zod';
import { text, whole } from '../params.ts';
import { type Route, route } from '../route.ts';
import { badRequest } from '../sim-error.ts';
import type { SimWorld } from '../sim-world.ts';
import { customerOf } from './customers.ts';
import { lastOfDraft, openSince } from './subscriptions.ts';

const DAY_SECS = 24 * 60 * 60;
const REMEMBERED_MS = DAY_SECS * 1000;
const OLDEST_SECS = 35 * DAY_SECS;
const EARLIEST_SECS = 5 * 60;

const creating = z.strictObject({
  event_name: text(100),
  identifier: text(100),
  timestamp: whole(0, 100_000_000_000),
  payload: z.strictObject({ stripe_customer_id: text(), value: whole(0, Number.MAX_SAFE_INTEGER) }),
});

const create = (world: SimWorld, params: z.output<typeof creating>): object => {
  const { event_name, identifier, timestamp, payload } = params;
  if (!world.state.all('meters').some((meter) => meter.event_name === event_name)) {
    throw badRequest(`No active meter found for event name ${event_name}`, { code: 'no_meter', param: 'event_name' });
  }
  const customer = customerOf(world, payload.stripe_customer_id, 'payload[stripe_customer_id]').id;
  checkTime(world, timestamp);
  world.state.put('meter_events', {
    id: freshId(world, identifier),
    customer,
    value: payload.value,
    timestamp,
    billed_at: billedAt(world, customer, timestamp),
    received_ms: world.realNow(),
  });
  return {
    object: 'billing.meter_event',
    livemode: false,
    created: world.now(),
    event_name,
    identifier,
    timestamp,
    payload: { ...payload, value: String(payload.value) },
  };
};

/** How old an event is, is a matter of the machine's time: that is what whoever reports lives in. */
const checkTime = (world: SimWorld, timestamp: number): void => {
  if (timestamp < world.realNow() / 1000 - OLDEST_SECS) {
    throw badRequest('The timestamp is too far in the past.', {
      code: 'timestamp_too_far_in_past',
      param: 'timestamp',
    });
  }
  if (timestamp > world.now() + EARLIEST_SECS) {
    throw badRequest('The timestamp is in the future.', { code: 'timestamp_in_future', param: 'timestamp' });
  }
};

const freshId = (world: SimWorld, identifier: string): string => {
  const now = world.realNow();
  let id = identifier;
  for (let turn = 2; ; turn += 1) {
    const before = world.state.get('meter_events', id);
    if (before === undefined) return id;
    if (now - before.received_ms < REMEMBERED_MS) {
      throw badRequest(`An event already exists with identifier ${identifier}.`, {
        code: 'duplicate_meter_event',
        param: 'identifier',
      });
    }
    id = `${identifier}#${turn}`;
  }
};

/**
 * The processor never bills what falls before the periods that are open. Here that would also hit usage of this minute once the
 * clock was moved ahead, so it is then moved along, into the period whose invoice is a draft if there is one: that one waits for
 * it. Else it stays where it is, unbilled.
 */
const billedAt = (world: SimWorld, customer: string, timestamp: number): number => {
  const since = openSince(world, customer);
  if (world.aheadMs === 0 || since === null || timestamp >= since) return timestamp;
  const moved = timestamp + Math.floor(world.aheadMs / 1000);
  return Math.min(Math.max(moved, since), lastOfDraft(world, customer) ?? Math.max(world.now(), since));
};

export const meterEventRoutes: readonly Route[] = [route('POST', '/v1/billing/meter_events', creating, create)];

// Meters, reported usage, and usage summaries.
import { randomId } from '@tunnel/runtime';
import * as z from 'zod';
import type { Meter } from '../state/model.ts';
import type { Sandbox } from '../state/sandbox.ts';
import { badRequest, listPage, noSuch, paging, type Route, route, text, whole } from './api-route.ts';
import { findCustomer } from './customers.ts';
import { lastOfDraft, openSince } from './subscriptions.ts';

const LATEST_SECS = 100_000_000_000;
const MINUTE_SECS = 60;

const newMeter = z.strictObject({
  display_name: text(250),
  event_name: text(100),
  default_aggregation: z.strictObject({ formula: z.literal('sum') }),
  customer_mapping: z.strictObject({ type: z.literal('by_id'), event_payload_key: z.literal('stripe_customer_id') }),
  value_settings: z.strictObject({ event_payload_key: z.literal('value') }),
});

const createMeter = (sandbox: Sandbox, params: z.output<typeof newMeter>): Meter => {
  const taken = sandbox.store.all('meters').some(({ event_name }) => event_name === params.event_name);
  if (taken) throw badRequest(`There is already an active meter with event_name ${params.event_name}`);
  return sandbox.store.put('meters', {
    id: randomId('mtr_test'),
    object: 'billing.meter',
    livemode: false,
    created: sandbox.now(),
    status: 'active',
    ...params,
  });
};

const summing = z.strictObject({
  ...paging,
  customer: text(),
  start_time: whole(0, LATEST_SECS),
  end_time: whole(0, LATEST_SECS),
});

const sum = (sandbox: Sandbox, params: z.output<typeof summing>, id: string): object => {
  if (sandbox.store.get('meters', id) === undefined) throw noSuch('meter', id);
  findCustomer(sandbox, params.customer);
  const { start_time, end_time, customer } = params;
  for (const [param, time] of Object.entries({ start_time, end_time })) {
    if (time % MINUTE_SECS !== 0) throw badRequest(`${param} must be aligned with minute boundaries`, { param });
  }
  if (start_time >= end_time) throw badRequest('start_time must be before end_time', { param: 'start_time' });
  const counted = sandbox.store
    .all('meter_events')
    .filter((event) => event.customer === customer && event.timestamp >= start_time && event.timestamp < end_time);
  const summary = {
    id: `mtrusg_${id}_${customer}_${start_time}_${end_time}`,
    object: 'billing.meter_event_summary',
    livemode: false,
    meter: id,
    start_time,
    end_time,
    aggregated_value: counted.reduce((bytes, { value }) => bytes + value, 0),
  };
  return listPage(`/v1/billing/meters/${id}/event_summaries`, counted.length === 0 ? [] : [summary], params);
};

export const meterRoutes: readonly Route[] = [
  route('POST', '/v1/billing/meters', newMeter, createMeter),
  route(
    'GET',
    '/v1/billing/meters',
    z.strictObject({ ...paging, status: z.literal('active').optional() }),
    ({ store }, page) => listPage('/v1/billing/meters', store.all('meters'), page),
  ),
  route('GET', '/v1/billing/meters/{id}/event_summaries', summing, sum),
];

// Reported usage: an identifier counts once, for as long as the processor remembers it.

const DAY_SECS = 24 * 60 * 60;
const REMEMBERED_MS = DAY_SECS * 1000;
const OLDEST_SECS = 35 * DAY_SECS;
const EARLIEST_SECS = 5 * 60;

const newMeterEvent = z.strictObject({
  event_name: text(100),
  identifier: text(100),
  timestamp: whole(0, 100_000_000_000),
  payload: z.strictObject({ stripe_customer_id: text(), value: whole(0, Number.MAX_SAFE_INTEGER) }),
});

const createMeterEvent = (sandbox: Sandbox, params: z.output<typeof newMeterEvent>): object => {
  const { event_name, identifier, timestamp, payload } = params;
  if (!sandbox.store.all('meters').some((meter) => meter.event_name === event_name)) {
    throw badRequest(`No active meter found for event name ${event_name}`, { code: 'no_meter', param: 'event_name' });
  }
  const customer = findCustomer(sandbox, payload.stripe_customer_id, 'payload[stripe_customer_id]').id;
  checkTime(sandbox, timestamp);
  sandbox.store.put('meter_events', {
    id: freshId(sandbox, identifier),
    customer,
    value: payload.value,
    timestamp,
    billed_at: billedAt(sandbox, customer, timestamp),
    received_ms: sandbox.realNow(),
  });
  return {
    object: 'billing.meter_event',
    livemode: false,
    created: sandbox.now(),
    event_name,
    identifier,
    timestamp,
    payload: { ...payload, value: String(payload.value) },
  };
};

/** The age of an event is measured by the machine's clock, because the reporting platform uses it. */
const checkTime = (sandbox: Sandbox, timestamp: number): void => {
  if (timestamp < sandbox.realNow() / 1000 - OLDEST_SECS) {
    throw badRequest('The timestamp is too far in the past.', {
      code: 'timestamp_too_far_in_past',
      param: 'timestamp',
    });
  }
  if (timestamp > sandbox.now() + EARLIEST_SECS) {
    throw badRequest('The timestamp is in the future.', { code: 'timestamp_in_future', param: 'timestamp' });
  }
};

const freshId = (sandbox: Sandbox, identifier: string): string => {
  const now = sandbox.realNow();
  let id = identifier;
  for (let turn = 2; ; turn += 1) {
    const before = sandbox.store.get('meter_events', id);
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
 * The processor never bills usage before the open periods. If the clock was moved ahead, that would also affect current usage. So such
 * usage is moved ahead by the same time, at most to the end of the draft invoice's period or to now. Without an open period it stays
 * unbilled.
 */
const billedAt = (sandbox: Sandbox, customer: string, timestamp: number): number => {
  const since = openSince(sandbox, customer);
  if (sandbox.aheadMs === 0 || since === null || timestamp >= since) return timestamp;
  const moved = timestamp + Math.floor(sandbox.aheadMs / 1000);
  return Math.min(Math.max(moved, since), lastOfDraft(sandbox, customer) ?? Math.max(sandbox.now(), since));
};

export const meterEventRoutes: readonly Route[] = [
  route('POST', '/v1/billing/meter_events', newMeterEvent, createMeterEvent),
];

/** Returns all bytes of usage ever reported for a customer. */
export const reportedBytes = ({ store }: Sandbox, customerId: string): number =>
  store
    .all('meter_events')
    .filter(({ customer }) => customer === customerId)
    .reduce((bytes, { value }) => bytes + value, 0);

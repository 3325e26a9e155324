// Meters, what is reported to them, and the sums of it.
import { randomId } from '@tunnel/runtime';
import * as z from 'zod';
import { listPage } from '../list-page.ts';
import { paging, text, whole } from '../params.ts';
import { type Route, route } from '../route.ts';
import { badRequest, noSuch } from '../sim-error.ts';
import type { SimMeter } from '../sim-objects.ts';
import type { SimWorld } from '../sim-world.ts';
import { customerOf } from './customers.ts';

const LATEST_SECS = 100_000_000_000;
const MINUTE_SECS = 60;

const creating = z.strictObject({
  display_name: text(250),
  event_name: text(100),
  default_aggregation: z.strictObject({ formula: z.literal('sum') }),
  customer_mapping: z.strictObject({ type: z.literal('by_id'), event_payload_key: z.literal('stripe_customer_id') }),
  value_settings: z.strictObject({ event_payload_key: z.literal('value') }),
});

const create = (world: SimWorld, params: z.output<typeof creating>): SimMeter => {
  const taken = world.state.all('meters').some(({ event_name }) => event_name === params.event_name);
  if (taken) throw badRequest(`There is already an active meter with event_name ${params.event_name}`);
  return world.state.put('meters', {
    id: randomId('mtr_test'),
    object: 'billing.meter',
    livemode: false,
    created: world.now(),
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

const sum = (world: SimWorld, params: z.output<typeof summing>, id: string): object => {
  if (world.state.get('meters', id) === undefined) throw noSuch('meter', id);
  customerOf(world, params.customer);
  const { start_time, end_time, customer } = params;
  for (const [param, time] of Object.entries({ start_time, end_time })) {
    if (time % MINUTE_SECS !== 0) throw badRequest(`${param} must be aligned with minute boundaries`, { param });
  }
  if (start_time >= end_time) throw badRequest('start_time must be before end_time', { param: 'start_time' });
  const counted = world.state
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
  route('POST', '/v1/billing/meters', creating, create),
  route(
    'GET',
    '/v1/billing/meters',
    z.strictObject({ ...paging, status: z.literal('active').optional() }),
    ({ state }, page) => listPage('/v1/billing/meters', state.all('meters'), page),
  ),
  route('GET', '/v1/billing/meters/{id}/event_summaries', summing, sum),
];

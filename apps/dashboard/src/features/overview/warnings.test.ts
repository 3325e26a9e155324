import type { GroupSummary, UsageSummary } from '@tunnel/contract';
import { expect, it } from 'vitest';
import { warningsOf } from './warnings.ts';

const usage = (active: number, limit: number | null): UsageSummary => ({
  active_tunnels: active,
  total_tunnels_30d: 0,
  total_requests_30d: 0,
  total_bytes_30d: 0,
  plan: 'free',
  tunnel_limit: limit,
});
const pool = (name: string, healthy: number): GroupSummary => ({
  protocol: 'http',
  label: name,
  name,
  key_hash_short: '00000000',
  region_id: 'local',
  member_count: 2,
  healthy_count: healthy,
  unhealthy_count: 2 - healthy,
  total_dispatches: 0,
  total_health_failures: 0,
  members: [],
});
const cost = { billing_model: 'payg', estimated_mtd_cents: 900, monthly_minimum_cents: 300 } as const;
const keysOf = (inputs: Parameters<typeof warningsOf>[0]): string[] => warningsOf(inputs).map(({ key }) => key);

it('the overview has no warnings without data or without problems', () => {
  expect(warningsOf({})).toEqual([]);
  const pools = { groups: [pool('shop', 1)], warnings: [] };
  expect(warningsOf({ usage: usage(2, 3), pools })).toEqual([]);
  expect(warningsOf({ usage: usage(200, null) })).toEqual([]);
});

it('the overview warns about a full tunnel limit, groups without a healthy member, and regions that do not respond', () => {
  expect(keysOf({ usage: usage(3, 3) })).toEqual(['limit']);
  const pools = { groups: [pool('shop', 0), pool('api', 1)], warnings: ['region eu did not answer'] };
  expect(keysOf({ pools })).toEqual(['zero-healthy', 'region eu did not answer']);
  expect(warningsOf({ pools })[0]?.text).toContain('Group shop');
  expect(warningsOf({ pools })[1]?.text).toBe('Region eu did not answer.');
  expect(warningsOf({ usage: usage(1000, 1000) })[0]?.text).toContain('All 1,000 tunnels');
  const both = { groups: [pool('shop', 0), pool('api', 0)], warnings: [] };
  expect(warningsOf({ pools: both })[0]?.text).toContain('2 groups');
});

it('the overview warns about the spend cap and about a failed payment', () => {
  expect(
    keysOf({ cost: { ...cost, spend_cap_cents: 1000, subscription_status: 'active' }, used: { usage_cents: 900 } }),
  ).toEqual(['cap']);
  expect(keysOf({ cost: { ...cost, spend_cap_cents: null, subscription_status: 'past_due' } })).toEqual(['past-due']);
});

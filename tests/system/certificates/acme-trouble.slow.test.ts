// Tests of decisions of a certificate authority: a refused challenge, after which the next is tried, and a request for an early renewal.
import { eventually, FastClock } from '@tunnel/testkit';
import { expect } from 'vitest';
import { itWith } from '../in-process.fixture.ts';
import { AcmeEdge, DOMAIN } from './acme-edge.fixture.ts';

const clock = new FastClock(20);
const it = itWith({ clock });
const inTime = { timeoutMs: 60_000, intervalMs: 50 };

it('the edge falls back to http-01 after tls-alpn-01 was refused', async ({ harness }) => {
  // The authority validates tls-alpn-01 at port 1, where no server listens, so that the challenge fails.
  const stage = await AcmeEdge.open(harness, {}, { addressOf: () => ({ ...stage.target, tlsPort: 1 }) });
  await stage.start();
  await eventually(() => stage.serialOf(DOMAIN), inTime);
  expect(stage.authority.orders).toHaveLength(2);
});

// A unit test of the keeper checks the minute exactly. With the authority's usual Retry-After of six hours this test would time out.
it('an edge asks again for renewal information after Retry-After: 60, and renews the certificate early', async ({
  harness,
}) => {
  const stage = await AcmeEdge.open(harness);
  stage.authority.renewalRetryAfter = '60';
  await stage.start();
  const first = await eventually(() => stage.serialOf(DOMAIN), inTime);
  // The first query must have been answered, so that only a repeated query can cause the renewal.
  await eventually(() => expect(stage.authority.count('renewal-info')).toBeGreaterThan(0), inTime);
  stage.authority.renewalWindow = { start: clock.now() - 7_200_000, end: clock.now() - 3_600_000 };
  await eventually(async () => expect(await stage.serialOf(DOMAIN)).not.toBe(first), inTime);
  stage.authority.renewalWindow = null;
  expect(stage.authority.orders[1]?.replaces).toContain('.');
});

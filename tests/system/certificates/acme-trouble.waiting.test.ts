// What an authority does in its own time: it refuses one challenge and takes the next, and wants a certificate renewed.
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { it } from '../system-test.fixture.ts';
import { AcmeEdge, DOMAIN } from './acme-edge.fixture.ts';

const inTime = { timeoutMs: 110_000, intervalMs: 500 };

it('http-01 after tls-alpn-01 was refused', async ({ harness }) => {
  // Whoever looks at the https port finds nobody there.
  const stage = await AcmeEdge.open(harness, {}, { addressOf: () => ({ ...stage.target, tlsPort: 1 }) });
  await stage.start();
  await eventually(() => stage.serialOf(DOMAIN), inTime);
  expect(stage.authority.orders).toHaveLength(2);
});

it('a renewal that the authority asks for is there within a minute of its word', async ({ harness }) => {
  const stage = await AcmeEdge.open(harness);
  stage.authority.renewalRetryAfter = '60';
  await stage.start();
  const first = await eventually(() => stage.serialOf(DOMAIN), inTime);
  stage.authority.renewalWindow = { start: Date.now() - 7_200_000, end: Date.now() - 3_600_000 };
  await eventually(async () => expect(await stage.serialOf(DOMAIN)).not.toBe(first), inTime);
  stage.authority.renewalWindow = null;
  expect(stage.authority.orders[1]?.replaces).toContain('.');
});

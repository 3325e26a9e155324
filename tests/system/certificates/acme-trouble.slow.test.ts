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

it('a certificate is renewed within two minutes after the authority asks for the renewal, with Retry-After: 60', async ({
  harness,
}) => {
  const stage = await AcmeEdge.open(harness);
  stage.authority.renewalRetryAfter = '60';
  await stage.start();
  const first = await eventually(() => stage.serialOf(DOMAIN), inTime);
  stage.authority.renewalWindow = { start: clock.now() - 7_200_000, end: clock.now() - 3_600_000 };
  const saidAt = clock.monotonic();
  await eventually(async () => expect(await stage.serialOf(DOMAIN)).not.toBe(first), inTime);
  // One Retry-After period of a minute, doubled for a busy machine.
  expect(clock.monotonic() - saidAt).toBeLessThan(120_000);
  stage.authority.renewalWindow = null;
  expect(stage.authority.orders[1]?.replaces).toContain('.');
});

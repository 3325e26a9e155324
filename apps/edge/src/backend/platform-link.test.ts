import { Secret } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { PlatformLink } from './platform-link.ts';

const failing = (): PlatformLink =>
  new PlatformLink({
    clock: new FakeClock(),
    fetch: async () => new Response('broken', { status: 500 }),
    url: 'http://platform.test',
    credential: new Secret('tne_x'),
  });

it('nobody waits for a platform that has just failed', async () => {
  const link = failing();
  await expect(link.verifyKey('a'.repeat(64))).rejects.toMatchObject({ kind: 'away' });
  expect(link.isPaused).toBe(true);
});

it('a list of names that cannot be had keeps nobody from being let in', async () => {
  const link = failing();
  await expect(link.names(new AbortController().signal)).rejects.toMatchObject({ kind: 'away' });
  expect(link.isPaused).toBe(false);
});

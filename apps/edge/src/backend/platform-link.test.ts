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

it('a failed key check pauses requests to the platform', async () => {
  const link = failing();
  await expect(link.verifyKey('a'.repeat(64))).rejects.toMatchObject({ kind: 'away' });
  expect(link.isPaused).toBe(true);
});

it('a failed download of names does not pause requests to the platform', async () => {
  const link = failing();
  await expect(link.names(new AbortController().signal)).rejects.toMatchObject({ kind: 'away' });
  expect(link.isPaused).toBe(false);
});

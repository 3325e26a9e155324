// The address of a tunnel without a requested name or port, over several starts of the client at a real edge.
import type { Edge } from '@tunnel/edge';
import { sha256Hex } from '@tunnel/runtime';
import { eventually, startEchoServer, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { makeTestIo } from '../io/io.fixture.ts';
import { startEdge } from './edge.fixture.ts';

let home: TemporaryDirectory;
let edge: Edge;
let service: Awaited<ReturnType<typeof startEchoServer>>;

beforeEach(async () => {
  home = await temporaryDirectory();
  service = await startEchoServer();
  edge = await startEdge({ auth: { keys: [{ account: 'alice', sha256: sha256Hex('alice') }] } });
});
afterEach(async () => {
  await edge.stop({ drainMs: 0 });
  await service.close();
  await home.close();
});

const start = async (kind: 'http' | 'tcp', ...more: string[]) => {
  const io = makeTestIo({ home: home.path });
  const flags = ['--server', `127.0.0.1:${edge.addresses.control.port}`, '--token', 'alice', '--drain-secs', '0'];
  const code = run([kind, String(service.port), '--json', ...flags, ...more], io);
  const ready = await eventually(() => {
    const found = io.events().find(({ event }) => event === 'ready');
    expect(found).toBeDefined();
    return found as Record<string, unknown>;
  });
  const stop = async (): Promise<void> => {
    io.signal('SIGTERM');
    expect(await code).toBe(0);
  };
  return { url: ready['public_url'], stop };
};

it.each(['http', 'tcp'] as const)(
  'the address of a tunnel stays the same over ten starts of the client: %s',
  async (kind) => {
    const urls = new Set<unknown>();
    for (let time = 0; time < 10; time += 1) {
      const { url, stop } = await start(kind);
      urls.add(url);
      await stop();
    }
    expect(urls.size).toBe(1);
  },
);

it('a second client gets a different address, and both keep their addresses after a restart', async () => {
  const first = await start('http');
  const second = await start('http');
  expect(second.url).not.toBe(first.url);
  await second.stop();
  const again = await start('http');
  expect(again.url).toBe(second.url);
  await first.stop();
  const firstAgain = await start('http');
  expect(firstAgain.url).toBe(first.url);
  await Promise.all([again.stop(), firstAgain.stop()]);
});

it('--new-name gives a new address, which later starts keep', async () => {
  const first = await start('http');
  await first.stop();
  const second = await start('http', '--new-name');
  await second.stop();
  const third = await start('http');
  await third.stop();
  expect([second.url === first.url, third.url]).toEqual([false, second.url]);
});

// Tests of `tunnel p2p connect`: how long the first start keeps trying, and the error when the client gives up.
import { eventually, FastClock, startEchoServer } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, itWith } from './in-process.fixture.ts';
import { connectTo, publish, startConnect } from './p2p.fixture.ts';
import type { Stack } from './stack.fixture.ts';

const clock = new FastClock(10);
const it = itWith({ clock });
const shared = new Harness({ clock });
let stack: Stack;
beforeAll(async () => {
  stack = await shared.stack();
});
afterAll(() => shared.close());

describe.concurrent('the first start of `tunnel p2p connect`', () => {
  it('with a wrong secret or an unknown name gives up after 30 s with exit code 4 and the error of the edge', async ({
    harness,
  }) => {
    const echo = harness.use(await startEchoServer());
    await publish(harness, stack, 'guarded', echo.port);
    const began = clock.monotonic();
    const programs = [
      await startConnect(harness, stack, 'guarded', { secret: 'not the secret of the publisher' }),
      await startConnect(harness, stack, 'nobody'),
    ];
    for (const program of programs) expect(await program.exitCode(60_000)).toBe(4);
    expect(clock.monotonic() - began).toBeGreaterThan(29_000);
    expect(programs[0]?.stderr.filter((line) => line.startsWith('tunnel: '))).toHaveLength(1);
    expect(programs[0]?.stderr[0]).toBe("tunnel: guarded: p2p 'guarded' was not found, or the secret does not match");
    expect(programs[0]?.events('ready')).toEqual([]);
  });

  it('with --wait finds a publisher that starts later', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const subscriber = await startConnect(harness, stack, 'later', { flags: ['--wait'] });
    await subscriber.waitFor('error');
    await publish(harness, stack, 'later', echo.port);
    await subscriber.ready();
  });
});

it('a subscriber finds its publisher again after a kill and a restart of the publisher', async ({ harness }) => {
  const echo = harness.use(await startEchoServer());
  const home = await harness.folder();
  const first = await publish(harness, stack, 'killed', echo.port, { home });
  const subscriber = await connectTo(harness, stack, 'killed');
  await first.program.kill();
  const second = await publish(harness, stack, 'killed', echo.port, { home });
  await eventually(() => expect(second.program.events('peer')).toMatchObject([{ state: 'joined' }]), {
    timeoutMs: 60_000,
  });
  expect(subscriber.program.exit).toBeNull();
});

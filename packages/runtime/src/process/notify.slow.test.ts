import { chmodSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { eventually, FakeClock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createServiceNotifier } from './notify.ts';

let folder: TemporaryDirectory;
beforeEach(async () => {
  folder = await temporaryDirectory();
});
afterEach(() => folder.close());

/** Installs a fake `systemd-notify` that records its arguments, for computers without the real program. */
const withProgram = (script: string) => {
  const { path } = folder;
  const log = join(path, 'told');
  writeFileSync(join(path, 'systemd-notify'), `#!/bin/sh\n${script.replaceAll('LOG', log)}\n`);
  chmodSync(join(path, 'systemd-notify'), 0o755);
  const env: Record<string, string | undefined> = {
    PATH: `${path}${delimiter}${process.env['PATH'] ?? ''}`,
    NOTIFY_SOCKET: '/run/notify',
  };
  const told = (): string[] => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []);
  return { env, told };
};

const RECORDING = 'echo "$NOTIFY_SOCKET $*" >> LOG';

describe('a service notifier', () => {
  it('sends its messages in order, and hides the socket from child processes', async () => {
    const { env, told } = withProgram(RECORDING);
    const notifier = createServiceNotifier({ env });
    expect(env['NOTIFY_SOCKET']).toBeUndefined();
    notifier.ready();
    notifier.reloading();
    notifier.ready();
    notifier.stopping();
    await eventually(() => expect(told()).toHaveLength(4));
    await notifier.close();
    expect(told()).toEqual([
      '/run/notify READY=1',
      expect.stringMatching(/^\/run\/notify RELOADING=1 MONOTONIC_USEC=\d+$/),
      '/run/notify READY=1',
      '/run/notify STOPPING=1',
    ]);
  });

  it('sends watchdog messages at half of the watchdog interval until it is closed', async () => {
    const { env, told } = withProgram(RECORDING);
    const clock = new FakeClock();
    const notifier = createServiceNotifier({ env: Object.assign(env, { WATCHDOG_USEC: '60000000' }), clock });
    expect(env).not.toHaveProperty('WATCHDOG_USEC');
    await clock.advance(29_999);
    expect(told()).toEqual([]);
    await clock.advance(1);
    await eventually(() => expect(told()).toEqual(['/run/notify WATCHDOG=1']));
    // The program has written its line, but its exit is noticed slightly later.
    await eventually(async () => {
      await clock.advance(30_000);
      expect(told().length).toBeGreaterThan(1);
    });
    await notifier.close();
    const before = told().length;
    await clock.advance(300_000);
    expect(told()).toHaveLength(before);
  });

  it.each([
    ['the manager watches another process', { WATCHDOG_USEC: '60000000', WATCHDOG_PID: '1' }],
    ['the time is no number', { WATCHDOG_USEC: 'soon' }],
    ['it does not watch', {}],
  ])('sends no watchdog messages when %s', (_, watchdog) => {
    const { env } = withProgram(RECORDING);
    const clock = new FakeClock();
    createServiceNotifier({ env: Object.assign(env, watchdog), clock });
    expect(clock.pendingTimers).toBe(0);
  });

  it('limits the watchdog interval to the longest possible timer', async () => {
    const { env } = withProgram(RECORDING);
    const clock = new FakeClock();
    const setInterval = vi.spyOn(clock, 'setInterval');
    const notifier = createServiceNotifier({ env: Object.assign(env, { WATCHDOG_USEC: '9000000000000' }), clock });
    expect(setInterval).toHaveBeenCalledExactlyOnceWith(expect.any(Function), 2 ** 31 - 1);
    await notifier.close();
  });

  it('sends nothing without a service manager', async () => {
    const { env, told } = withProgram(RECORDING);
    delete env['NOTIFY_SOCKET'];
    const notifier = createServiceNotifier({ env });
    notifier.ready();
    await notifier.close();
    expect(told()).toEqual([]);
  });

  it('ignores a missing systemd-notify program', async () => {
    const notifier = createServiceNotifier({ env: { PATH: folder.path, NOTIFY_SOCKET: '/run/notify' } });
    notifier.ready();
    await notifier.close();
    notifier.stopping();
    await notifier.close();
  });

  it('ignores a systemd-notify program that cannot be started', async () => {
    // Node.js throws instead of emitting an event when a program fails to start for an unusual reason, such as a symlink loop or missing
    // memory.
    symlinkSync('systemd-notify', join(folder.path, 'systemd-notify'));
    const notifier = createServiceNotifier({ env: { PATH: folder.path, NOTIFY_SOCKET: '/run/notify' } });
    expect(() => notifier.ready()).not.toThrow();
    await notifier.close();
    expect(() => notifier.stopping()).not.toThrow();
    await notifier.close();
  });

  it('keeps a bounded number of messages while systemd-notify hangs, including the last, and closes anyway', async () => {
    const { env, told } = withProgram('echo "$*" >> LOG; exec sleep 60');
    const clock = new FakeClock();
    const notifier = createServiceNotifier({ env, clock });
    notifier.ready();
    await eventually(() => expect(told()).toEqual(['READY=1']));
    for (let count = 0; count < 100; count += 1) notifier.reloading();
    notifier.stopping();
    const closed = notifier.close();
    await clock.advance(2000);
    await closed;
    // A hanging program is killed at its timeout, after it has recorded its message, and the next one starts. At most eight messages
    // wait.
    for (let programs = 2; programs <= 9; programs += 1) {
      await clock.advance(10_000);
      await eventually(() => expect(told()).toHaveLength(programs));
    }
    expect(told().at(-1)).toBe('STOPPING=1');
    await clock.advance(10_000);
  });
});

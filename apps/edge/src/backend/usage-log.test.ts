import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Secret } from '@tunnel/runtime';
import { eventually, FakeClock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { closedTunnel, openedTunnel, quiet } from './platform-backend.fixture.ts';
import { PlatformLink } from './platform-link.ts';
import { TunnelCounters } from './tunnel-counters.ts';
import { JOURNAL_RECORDS_MAX, JOURNAL_STREAM_END_MS, JOURNAL_WRITE_MS, UsageLog } from './usage-log.ts';

let root: TemporaryDirectory;
let clock: FakeClock;
let log: UsageLog;
let counters: TunnelCounters;

beforeEach(async () => {
  root = await temporaryDirectory();
  clock = new FakeClock();
  counters = new TunnelCounters();
  const away = async (): Promise<never> => {
    throw new TypeError('fetch failed');
  };
  const link = new PlatformLink({ clock, fetch: away, url: 'http://platform.test', credential: new Secret('tne_x') });
  log = new UsageLog({ clock, logger: quiet, link, runId: 'run_1', folder: root.path });
  await log.start();
  log.opened(openedTunnel('tun_1', 'alice', { counters }), 'alice', {});
});
afterEach(async () => {
  await log.stop();
  await root.close();
});

const onDisk = (): { kind: string; bytes?: number }[] =>
  readdirSync(root.path)
    .filter((name) => name.endsWith('.jsonl'))
    .flatMap((name) => readFileSync(join(root.path, name), 'utf8').trim().split('\n'))
    .map((line) => JSON.parse(line) as { kind: string; bytes?: number });
const bytesOnDisk = (): number => onDisk().reduce((sum, { bytes = 0 }) => sum + bytes, 0);

describe('traffic of a tunnel', () => {
  it('is on disk within a tenth of a second', async () => {
    counters.addBytes(70);
    await clock.advance(JOURNAL_WRITE_MS - 1);
    expect(bytesOnDisk()).toBe(0);
    await clock.advance(1);
    await eventually(() => expect(bytesOnDisk()).toBe(70));
  });

  it('is on disk at once when a stream ends, and many stream ends are written together', async () => {
    await clock.advance(50);
    counters.addBytes(70);
    log.streamEnded();
    await clock.advance(0);
    await eventually(() => expect(bytesOnDisk()).toBe(70));
    const lines = onDisk().length;
    for (let n = 0; n < 1000; n += 1) {
      counters.addBytes(1);
      log.streamEnded();
    }
    await clock.advance(JOURNAL_STREAM_END_MS + 1);
    await eventually(() => expect(bytesOnDisk()).toBe(1070));
    // The stream ends add one usage line. The delivery, which runs in parallel, may add further lines.
    expect(onDisk().length - lines).toBeLessThanOrEqual(3);
  });

  it('is on disk before the record of the tunnel’s end', async () => {
    counters.addBytes(70);
    log.closed(closedTunnel('tun_1', 'alice'), 'alice');
    // Earlier records may have been numbered by now, so the test compares only the last two lines.
    await eventually(() => expect(onDisk().map(({ kind }) => kind)).toContain('closed'));
    expect(
      onDisk()
        .map(({ kind }) => kind)
        .slice(-2),
    ).toEqual(['usage', 'closed']);
  });
});

it('the usage log is full when too many records wait for the platform', () => {
  expect(log.isFull).toBe(false);
  for (let n = 0; n < JOURNAL_RECORDS_MAX; n += 1) log.abandoned(`tun_${n}`, 'alice');
  expect(log.isFull).toBe(true);
}, 60_000);

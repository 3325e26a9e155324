import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { CRASH_BOUNDS, type Crash, crashErrorOf, writeCrash } from './crash-reports.ts';

let dir: TemporaryDirectory;
beforeEach(async () => {
  dir = await temporaryDirectory();
});
afterEach(() => dir.close());

const NOON = Date.UTC(2030, 0, 1, 12);
const crash: Crash = {
  part: 'edge',
  version: '1.2.3',
  uptimeMs: 61_500,
  error: null,
  exitCode: null,
  signal: 'SIGKILL',
  counters: { sessions: 3 },
};
const read = (file: string | null): Record<string, unknown> =>
  JSON.parse(readFileSync(file ?? '', 'utf8')) as Record<string, unknown>;

it('a crash report contains the part, the exit, the uptime and the counters', () => {
  const file = writeCrash(dir.path, crash, NOON);
  expect(file).toBe(join(dir.path, 'crashes', '2030-01-01T12-00-00.000Z.json'));
  expect(read(file)).toEqual({
    time: '2030-01-01T12:00:00.000Z',
    part: 'edge',
    version: '1.2.3',
    uptime_secs: 61.5,
    exit_code: null,
    signal: 'SIGKILL',
    error: null,
    counters: { sessions: 3 },
    output: null,
  });
  expect(statSync(file ?? '').mode & 0o777).toBe(0o600);
});

it('a crash report contains a truncated stack and no secrets', () => {
  const error = new Error('no answer for tnl_0123456789abcdef');
  const output = `${'x'.repeat(100_000)}postgres://tunnel:hunter2@db/tunnel`;
  const report = read(writeCrash(dir.path, { ...crash, error: crashErrorOf(error), output }, NOON));
  expect(JSON.stringify(report)).not.toMatch(/0123456789abcdef|hunter2/);
  expect(report).toMatchObject({ error: { type: 'Error', stack: expect.stringContaining('crash-reports.test.ts') } });
  expect(String(report['output'])).toHaveLength(CRASH_BOUNDS.TEXT_CHARS - 'hunter2'.length + '[secret]'.length);
});

it('the latest 20 crash reports are kept, even if two have the same millisecond', () => {
  // Writes 30 crash reports, with two reports per timestamp.
  for (let n = 0; n < 30; n += 1) writeCrash(dir.path, { ...crash, uptimeMs: n * 1000 }, NOON + 10 * (n >> 1));
  const names = readdirSync(join(dir.path, 'crashes')).sort();
  expect(names).toHaveLength(CRASH_BOUNDS.KEPT);
  expect(read(join(dir.path, 'crashes', names.at(-1) ?? ''))['uptime_secs']).toBe(29);
  expect(read(join(dir.path, 'crashes', names[0] ?? ''))['uptime_secs']).toBe(10);
});

it('a crash folder that cannot be written only loses the report', () => {
  writeFileSync(join(dir.path, 'crashes'), 'a file');
  expect(writeCrash(dir.path, crash, NOON)).toBeNull();
  mkdirSync(join(dir.path, 'other'));
  expect(writeCrash(join(dir.path, 'other'), crash, NOON)).not.toBeNull();
});

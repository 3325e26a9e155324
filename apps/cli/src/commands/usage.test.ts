import { afterEach, beforeEach, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { type LoggedIn, logIn, type ScriptedPlatform } from '../api/scripted-platform.fixture.ts';
import { makeTestIo, type TestIo, type TestIoOptions } from '../io/io.fixture.ts';

let login: LoggedIn;
let platform: ScriptedPlatform;

beforeEach(async () => {
  login = await logIn();
  platform = login.platform;
  platform.chart = [{ date: '2030-01-01', tunnels: 1, requests: 31, bytes: 5_000_000 }];
});
afterEach(() => login.close());

const usage = async (
  args: string[] = [],
  options: Partial<TestIoOptions> = {},
): Promise<{ code: number; io: TestIo }> => {
  const io = makeTestIo({ home: login.home.path, ...options });
  return { code: await run(['usage', ...args], io), io };
};

it('`tunnel usage --days 7` asks the platform for 7 days', async () => {
  const { code, io } = await usage(['--days', '7']);
  expect([code, io.err()]).toEqual([0, '']);
  expect(platform.paths().sort()).toEqual(['GET /usage', 'GET /usage/chart?days=7', 'GET /usage/tunnels?limit=10']);
  expect(io.out()).toContain('  2030-01-01  31 requests  1 tunnel\n');
});

it('`tunnel usage` uses colors on a terminal unless NO_COLOR is set', async () => {
  const coloured = await usage([], { isTTY: true });
  const plain = await usage([], { isTTY: true, env: { NO_COLOR: '1' } });
  expect(coloured.io.out()).toContain('\u001b[');
  expect(plain.io.out()).not.toContain('\u001b[');
  expect(plain.io.out()).toContain('requests per day, last day\n  31 │███');
});

it('`tunnel usage --json` prints a single object with summary, chart and tunnels', async () => {
  const { io } = await usage(['--json'], { isTTY: true });
  expect(JSON.parse(io.out())).toMatchObject({ summary: { plan: 'free' }, chart: platform.chart, tunnels: [] });
});

it.each(['0', '91', 'x'])('`tunnel usage` refuses %s days', async (days) => {
  const { code, io } = await usage(['--days', days]);
  expect([code, io.err()]).toEqual([2, expect.stringContaining('Use 1-90.')]);
});

it('`tunnel usage` refreshes the session only once for its requests', async () => {
  platform.accessTokens.clear();
  expect((await usage()).code).toBe(0);
  expect(platform.paths().filter((path) => path === 'POST /auth/refresh')).toHaveLength(1);
});

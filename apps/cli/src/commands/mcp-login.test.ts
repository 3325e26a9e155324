// `tunnel mcp` with a login: the platform's tools.
import { afterEach, beforeEach, expect, it } from 'vitest';
import { EMAIL, KEY, type LoggedIn, logIn, type ScriptedPlatform } from '../api/scripted-platform.fixture.ts';
import { McpSession } from '../mcp/mcp-session.fixture.ts';

let login: LoggedIn;
let platform: ScriptedPlatform;
let session: McpSession;

beforeEach(async () => {
  login = await logIn();
  platform = login.platform;
  platform.keys = [KEY];
  platform.chart = [{ date: '2030-01-01', tunnels: 1, requests: 31, bytes: 5_000_000 }];
  session = await McpSession.open(['--read-only'], { home: login.home.path });
});
afterEach(async () => {
  await session.end();
  await login.close();
});

it('with a login, the MCP tools return daily usage, account limits and labels of API keys', async () => {
  expect(await session.tools()).toEqual(expect.arrayContaining(['get_usage', 'list_keys']));
  const usage = await session.call('get_usage', { days: 7 });
  expect([usage.refusal, usage.data]).toMatchObject([null, { summary: { plan: 'free' }, days: platform.chart }]);
  expect(platform.paths()).toContain('GET /usage/chart?days=7');
  const keys = await session.call('list_keys');
  expect([keys.refusal, JSON.stringify(keys.data)]).toEqual([null, expect.stringContaining(KEY.label)]);
  expect((await session.call('get_status')).data).toMatchObject({
    account: { email: EMAIL, problem: null },
    plan: 'free',
    limits: { tunnels: 3 },
    active_tunnels: 2,
  });
  expect((await session.call('list_tunnels', { state: 'ended', limit: 5 })).refusal).toBeNull();
  expect(platform.paths()).toContain('GET /usage/tunnels?state=closed&limit=6');
});

it('with a login, the MCP tools report an expired session and an unreachable platform', async () => {
  platform.accessTokens.clear();
  platform.refreshTokens.clear();
  expect((await session.call('list_keys')).refusal).toMatch(/^CLIENT_LOGIN_NEEDED: .* Next: .*tunnel login/);
  await platform.stop();
  expect((await session.call('get_usage')).refusal).toMatch(/^CLIENT_PLATFORM_UNREACHABLE/);
  expect((await session.call('get_status')).data).toMatchObject({
    account: { problem: expect.stringContaining('CLIENT_PLATFORM_UNREACHABLE') },
  });
});

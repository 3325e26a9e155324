// Tunnels of a model in unusual orders of events, with a real edge in the same process.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Client, connect } from '@tunnel/client';
import type { Edge } from '@tunnel/edge';
import { type Clock, sha256Hex, systemClock } from '@tunnel/runtime';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { TestIoOptions } from '../io/io.fixture.ts';
import { startEdge } from '../run/edge.fixture.ts';
import { calledOf, McpSession } from './mcp-session.fixture.ts';

const PATIENCE = { timeoutMs: 20_000 };
const KEY = 'key-of-alice';

let home: TemporaryDirectory;
let edge: Edge;
const sessions: McpSession[] = [];

beforeAll(async () => {
  edge = await startEdge({ auth: { keys: [{ account: 'alice', sha256: sha256Hex(KEY) }] } });
});
afterAll(() => edge.stop({ drainMs: 0 }));
beforeEach(async () => {
  home = await temporaryDirectory();
});
afterEach(async () => {
  for (const session of sessions.splice(0)) await session.end();
  await home.close();
});

const open = async (options: Partial<TestIoOptions> = {}): Promise<McpSession> => {
  const where = [
    ...['--server', `127.0.0.1:${edge.addresses.control.port}`],
    ...['--api', `http://127.0.0.1:${edge.addresses.api.port}`],
  ];
  const session = await McpSession.open(where, { home: home.path, env: { TUNNEL_API_KEY: KEY }, ...options });
  sessions.push(session);
  return session;
};

const web = (more: object = {}) => ({ protocol: 'http', local_port: 3000, name: 'web', ...more });

const live = async (): Promise<string[]> => {
  const headers = { authorization: `Bearer ${KEY}` };
  const answer = await fetch(`http://127.0.0.1:${edge.addresses.api.port}/api/tunnels`, { headers });
  return ((await answer.json()) as { name: string }[]).map(({ name }) => name);
};

/** The system clock, except that timers of exactly this length are held until the test fires them. */
const clockWith = (heldMs: number): Clock & { held: Set<() => void> } => {
  const held = new Set<() => void>();
  return {
    ...systemClock,
    held,
    setTimeout: (fn, ms) => {
      if (ms !== heldMs) return systemClock.setTimeout(fn, ms);
      held.add(fn);
      return { cancel: () => void held.delete(fn) };
    },
  };
};

describe('a tunnel name in use', () => {
  it('is refused, and the existing tunnel stays open', async () => {
    const session = await open();
    await session.call('open_tunnel', web());
    for (const more of [{}, { protocol: 'tcp' }]) {
      expect((await session.call('open_tunnel', web(more))).refusal).toMatch(/already has a tunnel 'web'/);
    }
    // After this call every earlier request to the edge has been processed.
    await session.call('open_tunnel', web({ name: 'other' }));
    expect((await live()).sort()).toEqual(['other', 'web']);
  });
});

describe('a tunnel with `ttl_secs`', () => {
  it('closes when its time has passed, and its name can be used again', async () => {
    const clock = clockWith(61_000);
    const session = await open({ clock });
    await session.call('open_tunnel', web({ ttl_secs: 61 }));
    expect(clock.held.size).toBe(1);
    for (const end of clock.held) end();
    await eventually(async () => expect(await live()).toEqual([]), PATIENCE);
    expect((await session.call('get_status')).data).toMatchObject({ client: { tunnels: [] } });
    expect((await session.call('open_tunnel', web())).refusal).toBeNull();
    expect([clock.held.size, await live()]).toEqual([0, ['web']]);
  });

  it('keeps its own timer when a tunnel of the same name has just been closed', async () => {
    const clock = clockWith(61_000);
    const session = await open({ clock });
    for (let round = 0; round < 5; round += 1) {
      await session.call('open_tunnel', web({ ttl_secs: 61 }));
      const [closed, opened] = await Promise.all([
        session.call('close_tunnel', { tunnel: 'web' }),
        session.call('open_tunnel', web({ ttl_secs: 61, protocol: 'tcp' })),
      ]);
      expect([closed.refusal, opened.refusal]).toEqual([null, null]);
      await eventually(() => expect(clock.held.size).toBe(1), PATIENCE);
      await session.call('close_tunnel', { tunnel: 'web' });
      expect(clock.held.size).toBe(0);
    }
  });
});

describe('a connection of the MCP server', () => {
  it('is closed if its caller canceled meanwhile, and the next call connects again', async () => {
    const made: Client[] = [];
    const session = await open({
      connect: async (options) => {
        const client = await connect(options);
        made.push(client);
        if (made.length > 1) return client;
        session.cancel(asked);
        await eventually(() => expect(options.signal?.aborted).toBe(true), PATIENCE);
        return client;
      },
    });
    const asked = session.send('tools/call', { name: 'open_tunnel', arguments: web() });
    await eventually(() => expect(made[0]?.state).toBe('closed'), PATIENCE);
    expect((await session.call('open_tunnel', web())).refusal).toBeNull();
    expect([made.length, await live()]).toEqual([2, ['web']]);
  });
});

describe('a config.yml that becomes unreadable', () => {
  it('is reported on each call until it is valid again, and the MCP server keeps running', async () => {
    const session = await open();
    mkdirSync(join(home.path, '.tunnel'), { recursive: true });
    const file = join(home.path, '.tunnel', 'config.yml');
    writeFileSync(file, 'log_file: [');
    for (const call of [session.call('list_tunnels'), session.call('list_pools'), session.call('open_tunnel', web())]) {
      expect((await call).refusal).toMatch(/^CONFIG_.*config\.yml:1/);
    }
    writeFileSync(file, '{}');
    expect((await session.call('list_tunnels')).refusal).toBeNull();
  });
});

describe('the tool run_doctor', () => {
  it('returns all checks of `tunnel doctor`, reports progress for each, and prints no secret', async () => {
    const env = {
      TUNNEL_API_KEY: KEY,
      TUNNEL_P2P_SECRET: 'a secret of sixteen bytes and more',
      HTTPS_PROXY: 'http://user:hunter2@127.0.0.1:9',
    };
    const session = await open({ env });
    const params = { name: 'run_doctor', arguments: {}, _meta: { progressToken: 'doctor' } };
    const { data, refusal } = calledOf(await session.ask('tools/call', params));
    const checks = data['checks'] as { id: string; status: string }[];
    expect([refusal, checks[0]?.id, checks.at(-1)?.id, checks.length]).toEqual([null, 'config', 'platform', 16]);
    expect(checks.find(({ id }) => id === 'key')).toMatchObject({ status: 'ok' });
    const told = session.messages.filter(({ method }) => method === 'notifications/progress');
    expect(told).toHaveLength(checks.length);
    const said = session.io.out() + session.io.err();
    for (const secret of [KEY, env.TUNNEL_P2P_SECRET, 'hunter2']) expect(said).not.toContain(secret);
  });
});

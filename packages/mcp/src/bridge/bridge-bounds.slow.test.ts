// Checks of the bridge before the MCP protocol, its limits, and servers with unusual behavior.

import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { isProcessAlive } from '@tunnel/runtime';
import { eventually, temporaryDirectory } from '@tunnel/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type BridgeUnderTest, startBridge, TOKEN } from './bridge.conformance.ts';
import { BRIDGE_LIMITS } from './bridge-limits.ts';
import { STOP_STEP_MS } from './group-watch.ts';
import { RESTART_FORGET_AFTER_MS } from './server-keeper.ts';
import { handWrittenServer, type Manners, shellServer } from './stdio-servers.fixture.ts';

const HOST = 'published.example.com';
const HEADERS = {
  host: HOST,
  authorization: `Bearer ${TOKEN}`,
  accept: 'application/json, text/event-stream',
  'content-type': 'application/json',
};

const requestOf = (body: unknown, headers: Record<string, string> = {}, more: RequestInit = {}): Request =>
  new Request(`https://${HOST}/mcp`, {
    method: 'POST',
    headers: { ...HEADERS, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...more,
  });

const call = (id: number, name: string, given: object = {}): object => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: given },
});

let under: BridgeUnderTest;
beforeAll(async () => {
  under = await startBridge(handWrittenServer(), { allowTools: ['echo', 'hang', 'grow', 'grown'] });
});
afterAll(() => under.bridge.close());
afterEach(() => eventually(() => expect(under.bridge.openCalls).toBe(0)));

const ask = (body: unknown, headers: Record<string, string> = {}, more: RequestInit = {}): Promise<Response> =>
  under.bridge.fetch(requestOf(body, headers, more));

describe('a request to the bridge', () => {
  it.each([
    ['no token', 401, { authorization: '' }],
    ['another origin', 403, { origin: 'https://evil.example.com' }],
    ['an opaque origin', 403, { origin: 'null' }],
    ['another type of body', 415, { 'content-type': 'text/plain' }],
    ['a length over the limit', 413, { 'content-length': String(BRIDGE_LIMITS.MESSAGE_MAX_BYTES + 1) }],
  ])('is refused with %s', async (_, status, headers) => {
    expect((await ask(call(1, 'echo', { text: 'x' }), headers)).status).toBe(status);
  });

  it('is refused if it is longer than announced, not JSON, or not a POST', async () => {
    const text = 'x'.repeat(BRIDGE_LIMITS.MESSAGE_MAX_BYTES);
    expect((await ask(call(1, 'echo', { text }))).status).toBe(413);
    const broken = await ask('{"jsonrpc":');
    expect([broken.status, await broken.json()]).toMatchObject([400, { error: { code: -32700 } }]);
    for (const method of ['GET', 'DELETE', 'PUT']) {
      const { body: _, ...init } = { headers: HEADERS, method, body: null };
      const refused = await under.bridge.fetch(new Request(`https://${HOST}/mcp`, init));
      expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'POST']);
    }
  });

  it.each(['null', '[]', '"text"', '7', '{}', '{"jsonrpc":"2.0","id":{},"method":"tools/call"}', '{"method":1}'])(
    'that is not a JSON-RPC message (%s) does not affect later calls',
    async (body) => {
      const answer = await ask(body);
      await answer.text();
      expect(answer.status).toBeLessThan(500);
      expect(await (await ask(call(1, 'echo', { text: 'well' }))).text()).toContain('well');
    },
  );

  it('with 200,000 nested arrays does not affect later calls', async () => {
    const depth = 200_000;
    const nested = `${'['.repeat(depth)}${']'.repeat(depth)}`;
    const answer = await ask(
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":${nested}}}}`,
    );
    expect(await answer.text()).toContain('"error"');
    expect(await (await ask(call(1, 'echo', { text: 'well' }))).text()).toContain('well');
  });

  it('for a tool outside of allowTools gets the same error as for a missing tool', async () => {
    const [foreign, missing] = await Promise.all(
      ['crash', 'no-such'].map(async (name) => (await ask(call(1, name))).text()),
    );
    expect(foreign).toBe(missing?.replace('no-such', 'crash'));
    expect(foreign).toContain('"code":-32602');
  });

  it('gets 429 with Retry-After while 32 calls are open, and a cancellation makes room', async () => {
    const session = { 'mcp-session-id': 'one' };
    const ids = Array.from({ length: BRIDGE_LIMITS.CALLS_MAX }, (_, id) => id);
    const open = await Promise.all(ids.map((id) => ask(call(id, 'hang'), session)));
    await eventually(() => expect(under.bridge.openCalls).toBe(BRIDGE_LIMITS.CALLS_MAX));
    const more = await ask(call(99, 'echo', { text: 'x' }));
    expect([more.status, more.headers.get('retry-after')]).toEqual([429, '1']);
    const batch = await ask([call(99, 'echo', { text: 'x' })]);
    expect(batch.status).toBe(429);

    const cancel = (id: number, who: string): Promise<Response> =>
      ask({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } }, { 'mcp-session-id': who });
    await cancel(3, 'other');
    expect(under.bridge.openCalls).toBe(BRIDGE_LIMITS.CALLS_MAX);
    for (const id of ids) expect((await cancel(id, 'one')).status).toBe(202);
    await eventually(() => expect(under.bridge.openCalls).toBe(0));
    await eventually(() => expect(under.said.filter((line) => line === 'cancelled')).toHaveLength(ids.length));
    // Every cancelled call ends.
    await Promise.all(open.map((answer) => answer.text()));
    expect(await (await ask(call(1, 'echo', { text: 'room' }))).text()).toContain('room');
  });

  it('with a batch counts each call toward the limit', async () => {
    const many = Array.from({ length: BRIDGE_LIMITS.CALLS_MAX + 3 }, (_, id) => call(id, 'echo', { text: `t${id}` }));
    const text = await (await ask(many)).text();
    expect(text.match(/"code":-32000/g) ?? []).toHaveLength(3);
  });

  it('of a caller that disconnects is cancelled at the server', async () => {
    const before = under.said.length;
    const gone = new AbortController();
    await ask(call(1, 'hang'), {}, { signal: gone.signal });
    await eventually(() => expect(under.bridge.openCalls).toBe(1));
    gone.abort();
    await eventually(() => expect(under.said.slice(before)).toEqual(['hanging', 'cancelled']));
  });

  it('for list changes is notified when the list of tools changes', async () => {
    const changes: string[][] = [];
    const client = new Client(
      { name: 'caller', version: '1' },
      {
        versionNegotiation: { mode: { pin: '2026-07-28' } },
        listChanged: {
          tools: {
            debounceMs: 0,
            onChanged: (_error, tools) => changes.push((tools ?? []).map(({ name }) => name)),
          },
        },
      },
    );
    const fetchOf = (url: string | URL, init?: RequestInit): Promise<Response> =>
      under.bridge.fetch(new Request(url, init));
    const headers = { authorization: HEADERS.authorization, host: HOST };
    const options = { fetch: fetchOf, requestInit: { headers } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`https://${HOST}/mcp`), options));
    await client.callTool({ name: 'grow', arguments: {} });
    await eventually(() => expect(changes.at(-1)).toEqual(['echo', 'grow', 'hang', 'grown']));
    await client.close();
  });
});

describe('a stdio server', () => {
  it.each<[Manners, string]>([
    ['strict', 'that exits on an unknown request'],
    ['silent', 'that ignores an unknown request'],
  ])('(%s) %s is served', async (manners) => {
    const { bridge, ends } = await startBridge(shellServer(manners), { probeTimeoutMs: 300 });
    expect(bridge.server).toMatchObject({ name: 'in-shell', protocolVersion: '2025-06-18' });
    expect(ends).toEqual([]);
    expect(await (await bridge.fetch(requestOf(call(1, 'echo', { text: 'here' })))).text()).toContain('here');
    await bridge.close();
  });

  it('that crashes repeatedly is restarted after longer pauses, and after 1 s once it has run well', async () => {
    const folder = await temporaryDirectory();
    const broken = join(folder.path, 'broken');
    const { bridge, clock, ends, restarts } = await startBridge(shellServer('polite', broken));
    const crash = async (): Promise<void> => {
      const before = ends.length;
      await (await bridge.fetch(requestOf(call(1, 'crash')))).text();
      await eventually(() => expect(ends).toHaveLength(before + 1));
    };
    await crash();
    writeFileSync(broken, '');
    await clock.advance(1000);
    await eventually(() => expect(ends).toHaveLength(2));
    rmSync(broken);
    await clock.advance(1999);
    expect(restarts).toHaveLength(0);
    await clock.advance(1);
    await eventually(() => expect(restarts).toHaveLength(1));
    await crash();
    await clock.advance(4000);
    await eventually(() => expect(restarts).toHaveLength(2));
    await clock.advance(RESTART_FORGET_AFTER_MS);
    await crash();
    const first = 'exited with code 3';
    const second = 'exited with code 9';
    expect(ends).toEqual([`${first}, 1000`, `${second}, 2000`, `${first}, 4000`, `${first}, 1000`]);
    await bridge.close();
    expect(clock.pendingTimers).toBe(0);
    await folder.close();
  });

  it('finishes its open calls when the bridge finishes, and new calls get 503', async () => {
    const { bridge } = await startBridge(shellServer());
    const pid = bridge.pid ?? 0;
    const answer = await bridge.fetch(requestOf(call(1, 'echo', { text: 'the last' })));
    const finished = bridge.finish();
    expect(await answer.text()).toContain('the last');
    await finished;
    expect(isProcessAlive(pid)).toBe(false);
    expect((await bridge.fetch(requestOf(call(2, 'echo', { text: 'x' })))).status).toBe(503);
  });

  it('that ignores the end of its stdin is killed with its child processes', async () => {
    const { bridge, clock, said } = await startBridge(shellServer('stubborn'));
    const helper = await eventually(() => {
      const pid = /^helper (\d+)$/m.exec(said.join('\n'))?.[1];
      expect(pid).toBeDefined();
      return Number(pid);
    });
    const pids = [bridge.pid ?? 0, helper];
    expect(pids.map(isProcessAlive)).toEqual([true, true]);
    const closed = bridge.close();
    await clock.advance(2 * STOP_STEP_MS);
    await closed;
    await eventually(() => expect(pids.map(isProcessAlive)).toEqual([false, false]));
  });
});

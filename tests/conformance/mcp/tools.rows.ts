// Each tool of /mcp on a running tunnel: names, fields, and the error messages for a model.
import { capturedRequest, captureList, tunnelLogEntry } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { beforeAll, expect, it } from 'vitest';
import { PATIENCE_MS, type Person } from '../platform/platform-harness.fixture.ts';
import { entryWhen, openTunnel, startService, visitHttp } from '../platform/tunnels.fixture.ts';
import type { McpHarness } from './mcp-harness.fixture.ts';
import { row } from './rows.fixture.ts';

interface Listed {
  readonly name: string;
  readonly annotations: { readonly readOnlyHint: boolean; readonly destructiveHint: boolean };
}

export const toolRows = (harness: McpHarness): void => {
  let ann: Person;
  let key: string;
  /** Paths of the requests that reached the local service. */
  const visits: string[] = [];
  /** The id of a captured request. */
  let first: string;
  let tunnel: { tunnelId: string; publicUrl: string };
  beforeAll(async () => {
    ann = await harness.person();
    const localPort = await startService(harness, ({ url = '' }, response) => {
      visits.push(url.replace(/\?.*/, ''));
      response.end('hello');
    });
    const open = await openTunnel(harness, ann, { localPort });
    [key, tunnel] = [open.key.token, open.tunnel];
    await entryWhen(harness, ann, tunnel.tunnelId);
    await visitHttp(tunnel, '/first?token=SECRET');
    first = await eventually(
      async () => {
        const { body } = await harness.get(`/usage/tunnels/${tunnel.tunnelId}/requests`, ann.token);
        const [request] = captureList.parse(body).requests;
        if (request === undefined) throw new Error('no request yet');
        return request.id;
      },
      { timeoutMs: PATIENCE_MS },
    );
  });
  const found = (name: string, args: object = {}) => harness.found(key, name, args);
  const listed = async (): Promise<Listed[]> =>
    (await harness.mcp(key, { method: 'tools/list' })).result['tools'] as Listed[];

  it(row('Tools', 1, '/mcp'), async () => {
    const tools = await listed();
    const names =
      'close_tunnel get_request get_status get_tunnel get_usage list_keys list_pools list_requests list_tunnels replay_request wait_for_request';
    expect(tools.map(({ name }) => name)).toEqual(names.split(' '));
    for (const tool of tools) {
      expect(tool).toMatchObject({
        title: expect.stringMatching(/./),
        description: expect.stringMatching(/.{40}/),
        annotations: {},
        inputSchema: { type: 'object' },
        outputSchema: { type: 'object' },
      });
    }
    const called = await harness.mcp(key, { method: 'tools/call', params: { name: 'open_tunnel', arguments: {} } });
    expect(called.text).toContain('-32602');
  });

  it(row('Tools', 2), async () => {
    const tools = await listed();
    const where = (hint: 'readOnlyHint' | 'destructiveHint', is: boolean) =>
      tools.filter(({ annotations }) => annotations[hint] === is).map(({ name }) => name);
    expect(where('readOnlyHint', false)).toEqual(['close_tunnel', 'replay_request']);
    expect(where('destructiveHint', true)).toEqual(['close_tunnel', 'replay_request']);
  });

  it(row('Tools', 4, '/mcp'), async () => {
    const own = await openTunnel(harness, ann);
    const { tunnelId } = own.tunnel;
    await entryWhen(harness, ann, tunnelId);
    expect(await found('close_tunnel', { tunnel: tunnelId })).toEqual({ tunnel_id: tunnelId, closed: true });
    await entryWhen(harness, ann, tunnelId, ({ unregistered_at }) => unregistered_at !== null);
    const { tunnels, truncated } = await found('list_tunnels', { state: 'ended' });
    const ended = (tunnels as { tunnel_id: string }[]).find(({ tunnel_id }) => tunnel_id === tunnelId);
    expect([truncated, Object.keys(tunnelLogEntry.parse(ended)).sort()]).toEqual([
      false,
      Object.keys(ended ?? {}).sort(),
    ]);
  });

  it(row('Tools', 5), async () => {
    const [atEdge] = (await harness.server.tunnels(key)).filter(({ tunnel_id }) => tunnel_id === tunnel.tunnelId);
    const { tunnels, truncated } = await found('list_tunnels', { state: 'active', limit: 10 });
    const [one] = (tunnels as { tunnel_id: string }[]).filter(({ tunnel_id }) => tunnel_id === tunnel.tunnelId);
    expect([truncated, Object.keys(one ?? {}).sort()]).toEqual([false, Object.keys(atEdge ?? {}).sort()]);
    expect(await found('get_tunnel', { tunnel: tunnel.tunnelId })).toMatchObject({
      tunnel: { public_url: tunnel.publicUrl },
    });
  });

  it(row('Tools', 6), async () => {
    const list = await found('list_requests', { tunnel: tunnel.tunnelId, path_contains: '/first' });
    expect(Object.keys(list).sort()).toEqual(['requests', 'truncated', 'untrusted']);
    expect(list).toMatchObject({ truncated: false, untrusted: true });
    for (const one of list['requests'] as object[]) {
      expect(Object.keys(one)).toEqual(['id', 'method', 'path', 'status', 'duration_ms', 'time']);
    }
    const { request, untrusted } = await found('get_request', { tunnel: tunnel.tunnelId, request_id: first });
    expect(untrusted).toBe(true);
    expect(capturedRequest.parse(request)).toMatchObject({ id: first, method: 'GET', status: 200 });
    expect(JSON.stringify([list, request])).not.toContain('SECRET');
  });

  it(row('Tools', 7), async () => {
    const { request } = await found('replay_request', { tunnel: tunnel.tunnelId, request_id: first });
    expect(request).toEqual({ id: expect.any(String), status: 200, duration_ms: expect.any(Number) });
    expect(request).not.toMatchObject({ id: first });
    expect(visits.filter((path) => path === '/first')).toHaveLength(2);
  });

  it(row('Tools', 8), async () => {
    const wait = (args: object) => found('wait_for_request', { tunnel: tunnel.tunnelId, ...args });
    // Neither an earlier request nor a request to a different path counts.
    expect(await wait({ path_contains: '/first', timeout_secs: 1, method: 'DELETE' })).toMatchObject({ request: null });
    let isOver = false;
    const waiting = wait({ path_contains: '/second' }).finally(() => {
      isOver = true;
    });
    await eventually(
      async () => {
        await visitHttp(tunnel, '/second');
        expect(isOver).toBe(true);
      },
      { timeoutMs: PATIENCE_MS },
    );
    const { request, waited_ms } = await waiting;
    expect(request).toMatchObject({ id: expect.any(String), method: 'GET', path: '/second', status: 200 });
    expect(waited_ms).toEqual(expect.any(Number));
    for (const timeout_secs of [0, 301, 1.5]) {
      const { isError, content } = await harness.tool(key, 'wait_for_request', {
        tunnel: tunnel.tunnelId,
        timeout_secs,
      });
      expect([isError, content[0]?.text]).toEqual([true, expect.stringMatching(/timeout_secs.* Next: /)]);
    }
  });

  it(row('Tools', 9), async () => {
    const bob = (await harness.newKey(await harness.person())).token;
    const strangers = [
      ['get_tunnel', {}],
      ['list_requests', {}],
      ['get_request', { request_id: first }],
      ['replay_request', { request_id: first }],
      ['wait_for_request', { timeout_secs: 1 }],
      ['close_tunnel', {}],
    ] as const;
    for (const [name, args] of strangers) {
      const texts = await Promise.all(
        [tunnel.tunnelId, 'tun_00000000000000000000'].map(async (id) => {
          const { isError, content, structuredContent } = await harness.tool(bob, name, { tunnel: id, ...args });
          expect([name, isError, content.length, structuredContent]).toEqual([name, true, 1, undefined]);
          return (content[0]?.text ?? '').replaceAll(id, 'ID');
        }),
      );
      expect(texts).toEqual([texts[0], texts[0]]);
      expect(texts[0]).toMatch(/^TUNNEL_UNKNOWN: .+ Next: .+$/);
    }
    const others = await Promise.all(
      ['list_tunnels', 'list_pools', 'get_usage', 'get_status', 'list_keys'].map((name) => harness.tool(bob, name)),
    );
    expect(JSON.stringify(others)).not.toContain(tunnel.tunnelId);
    const complete = {
      ref: { type: 'ref/resource', uri: 'tunnel://tunnels/{tunnel}' },
      argument: { name: 'tunnel', value: '' },
    };
    const ask = async (bearer: string, method: string, params: object) =>
      (await harness.mcp(bearer, { method, params })).text;
    const uri = `tunnel://requests/${tunnel.tunnelId}/${first}`;
    for (const [method, params] of [
      ['completion/complete', complete],
      ['resources/read', { uri: 'tunnel://tunnels' }],
    ] as const) {
      expect(await ask(key, method, params)).toContain(tunnel.tunnelId);
      expect(await ask(bob, method, params)).not.toContain(tunnel.tunnelId);
    }
    for (const theirs of [`tunnel://tunnels/${tunnel.tunnelId}`, uri]) {
      expect(await ask(key, 'resources/read', { uri: theirs })).toContain('"contents"');
      expect(await ask(bob, 'resources/read', { uri: theirs })).toContain(`unknown resource \\"${theirs}\\"`);
    }
  });

  it(row('Tools', 10, '/mcp'), async () => {
    const texts = await Promise.all(
      ['resources/list', 'resources/templates/list', 'prompts/list'].map(
        async (method) => (await harness.mcp(key, { method })).text,
      ),
    );
    expect(texts.flatMap((text) => [...text.matchAll(/"uri(?:Template)?":"([^"]+)"/g)].map(([, uri]) => uri))).toEqual([
      'tunnel://tunnels',
      'tunnel://tunnels/{tunnel}',
      'tunnel://requests/{tunnel}/{request_id}',
      'tunnel://errors/{code}',
    ]);
    expect(texts[2]).toContain('"name":"debug_webhook"');
    expect(texts[2]).not.toMatch(/publish_app|diagnose/);
  });
};

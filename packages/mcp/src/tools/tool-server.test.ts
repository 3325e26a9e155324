import { Fault } from '@tunnel/errors';
import { afterEach, describe, expect, it } from 'vitest';
import type { ToolOutcome } from './call-tool.ts';
import { requestOf, ScriptedHost, type Served, serve, tunnelOf } from './scripted-host.fixture.ts';
import { SCOPES, type Scope, TOOLS } from './tool-facts.ts';
import type { ToolName } from './tool-host.ts';

const served: Served[] = [];

const start = async (...given: Parameters<typeof serve>): Promise<Served['client']> => {
  const one = await serve(...given);
  served.push(one);
  return one.client;
};

afterEach(async () => {
  for (const one of served.splice(0)) await one.close();
});

const names = async (client: Served['client']): Promise<string[]> =>
  (await client.listTools()).tools.map((tool) => tool.name);

/** Valid arguments for every tool. */
const GOOD: Readonly<Record<ToolName, Record<string, unknown>>> = {
  close_tunnel: { tunnel: 'web' },
  get_request: { tunnel: 'tun_1', request_id: 'req_1' },
  get_status: {},
  get_tunnel: { tunnel: 'tun_1' },
  get_usage: { days: 2 },
  list_keys: {},
  list_pools: {},
  list_requests: { tunnel: 'tun_1' },
  list_tunnels: { state: 'ended' },
  open_tunnel: { protocol: 'http', local_port: 3000 },
  replay_request: { tunnel: 'tun_1', request_id: 'req_1' },
  run_doctor: {},
  wait_for_request: { tunnel: 'tun_1' },
};

/** A host with an immediate answer to every wait. */
const readyHost = (): ScriptedHost => {
  const host = new ScriptedHost();
  host.waitForRequest = async () => requestOf();
  return host;
};

describe('the tool list', () => {
  it('has every tool sorted by name, with title, description, both schemas and annotations', async () => {
    const client = await start(new ScriptedHost());
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([...TOOLS.keys()]);
    expect(tools.map(({ name }) => name)).toEqual([...TOOLS.keys()].toSorted());
    for (const tool of tools) {
      expect(tool.title).toMatch(/\S/);
      expect((tool.description ?? '').length).toBeGreaterThan(100);
      expect(tool.inputSchema).toMatchObject({ type: 'object', additionalProperties: false });
      expect(tool.outputSchema).toMatchObject({ type: 'object' });
      expect(JSON.stringify(tool)).not.toContain('$ref');
    }
  });

  it('marks the tools that only read, that are destructive, and that reach the open world', async () => {
    const { tools } = await (await start(new ScriptedHost())).listTools();
    const withHint = (hint: 'readOnlyHint' | 'destructiveHint' | 'openWorldHint'): string[] =>
      tools.filter(({ annotations }) => annotations?.[hint]).map(({ name }) => name);
    expect(withHint('readOnlyHint')).toEqual(
      'get_request get_status get_tunnel get_usage list_keys list_pools list_requests list_tunnels run_doctor wait_for_request'.split(
        ' ',
      ),
    );
    expect(withHint('destructiveHint')).toEqual(['close_tunnel', 'replay_request']);
    expect(withHint('openWorldHint')).toEqual(['open_tunnel', 'replay_request']);
  });

  it('contains only tools that the host currently has', async () => {
    const host = new ScriptedHost();
    host.tools = new Set<ToolName>(['list_tunnels']);
    const client = await start(host);
    expect(await names(client)).toEqual(['list_tunnels']);
    host.tools = new Set<ToolName>(['list_tunnels', 'list_keys']);
    // Called directly, because the client may cache the tool list.
    expect((await client.callTool({ name: 'list_keys', arguments: {} })).isError).toBeFalsy();
  });

  it('is the same for clients of both eras', async () => {
    const host = new ScriptedHost();
    const modern = await start(host, 'modern');
    const old = await start(host, 'old');
    expect((await old.listTools()).tools).toEqual((await modern.listTools()).tools);
    expect((await old.listPrompts()).prompts).toEqual((await modern.listPrompts()).prompts);
    expect((await old.listResourceTemplates()).resourceTemplates).toEqual(
      (await modern.listResourceTemplates()).resourceTemplates,
    );
  });
});

describe("a tool outside of the caller's permissions", () => {
  it('is neither listed nor callable for a read-only caller', async () => {
    const host = new ScriptedHost();
    const client = await start(host, 'modern', { readOnly: true });
    expect(await names(client)).not.toContain('open_tunnel');
    for (const name of ['open_tunnel', 'close_tunnel', 'replay_request'] as const) {
      await expect(client.callTool({ name, arguments: GOOD[name] })).rejects.toThrow(`unknown tool "${name}"`);
    }
    expect([host.opened, host.closed, host.replayed]).toEqual([[], [], []]);
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(['debug_webhook', 'diagnose']);
  });

  it.each(SCOPES)('is unknown to a token with only the scope %s', async (scope) => {
    const client = await start(readyHost(), 'modern', { scopes: new Set<Scope>([scope]) });
    const expected = [...TOOLS.values()].filter((facts) => facts.scope === scope).map(({ name }) => name);
    expect(await names(client)).toEqual(expected);
    for (const { name } of TOOLS.values()) {
      const call = client.callTool({ name, arguments: GOOD[name] });
      if (expected.includes(name)) expect((await call).isError).toBeFalsy();
      else await expect(call).rejects.toThrow('unknown tool');
    }
  });

  it('is also missing from resources and completions', async () => {
    const client = await start(new ScriptedHost(), 'modern', { scopes: new Set<Scope>(['requests:read']) });
    expect((await client.listResources()).resources).toEqual([]);
    expect((await client.listResourceTemplates()).resourceTemplates.map(({ name }) => name)).toEqual([
      'request',
      'error',
    ]);
    await expect(client.readResource({ uri: 'tunnel://tunnels' })).rejects.toThrow('unknown resource');
    await expect(client.readResource({ uri: 'tunnel://tunnels/tun_1' })).rejects.toThrow('unknown resource');
    expect((await client.readResource({ uri: 'tunnel://requests/tun_1/req_1' })).contents).toHaveLength(1);
    const ref = { type: 'ref/resource', uri: 'tunnel://requests/{tunnel}/{request_id}' } as const;
    const { completion } = await client.complete({ ref, argument: { name: 'tunnel', value: '' } });
    expect(completion.values).toEqual([]);
  });
});

describe('a tool call', () => {
  it('returns the same to both eras: data that matches the schema, and the same data as text', async () => {
    const host = readyHost();
    const modern = await start(host, 'modern');
    const old = await start(host, 'old');
    // A client validates results against the schemas in the tool list.
    await Promise.all([modern.listTools(), old.listTools()]);
    for (const name of TOOLS.keys()) {
      const call = { name, arguments: GOOD[name] };
      const { content, structuredContent, isError } = await modern.callTool(call);
      expect([name, isError]).toEqual([name, undefined]);
      expect(structuredContent).toBeDefined();
      expect(content).toEqual([{ type: 'text', text: JSON.stringify(structuredContent) }]);
      const again = await old.callTool(call);
      expect({ content: again.content, structuredContent: again.structuredContent }).toEqual({
        content,
        structuredContent,
      });
    }
  });

  it('returns the data that the contract describes', async () => {
    const host = readyHost();
    host.requests = [requestOf(), requestOf({ id: 'req_0', method: 'GET', path: '/', status: 200 })];
    const client = await start(host);
    const dataOf = async (name: ToolName, given: object = {}): Promise<unknown> =>
      (await client.callTool({ name, arguments: { ...GOOD[name], ...given } })).structuredContent;
    expect(await dataOf('list_requests', { method: 'post' })).toEqual({
      requests: [
        {
          id: 'req_1',
          method: 'POST',
          path: '/webhook?attempt=1',
          status: 500,
          duration_ms: 12.5,
          time: requestOf().at,
        },
      ],
      truncated: false,
      untrusted: true,
    });
    expect(await dataOf('list_requests', { status: 200, path_contains: '/' })).toMatchObject({
      requests: [{ id: 'req_0' }],
    });
    expect(await dataOf('list_requests', { limit: 1 })).toMatchObject({ requests: [{ id: 'req_1' }], truncated: true });
    expect(await dataOf('get_request')).toEqual({ request: requestOf(), untrusted: true });
    expect(await dataOf('replay_request')).toEqual({ request: { id: 'req_2', status: 200, duration_ms: 12.5 } });
    expect(await dataOf('close_tunnel')).toEqual({ tunnel_id: 'tun_1', closed: true });
    expect(await dataOf('get_tunnel')).toEqual({ tunnel: tunnelOf() });
    expect(await dataOf('wait_for_request')).toEqual({ request: requestOf(), waited_ms: 0, untrusted: true });
    expect(JSON.stringify(await dataOf('list_keys'))).not.toContain('token_hash');
  });

  it('that fails returns one line of text, and is reported to the listener', async () => {
    const told: ToolOutcome[] = [];
    const host = new ScriptedHost();
    const client = await start(host, 'modern', { onCall: (outcome) => told.push(outcome) });
    const failed = await client.callTool({ name: 'get_tunnel', arguments: { tunnel: 'tun_of_another_account' } });
    expect(failed).toMatchObject({
      isError: true,
      content: [
        { type: 'text', text: 'TUNNEL_UNKNOWN: no such tunnel Next: Call list_tunnels to see the existing tunnels.' },
      ],
    });
    host.failure = new Error('a secret of the inside');
    const broken = await client.callTool({ name: 'get_tunnel', arguments: { tunnel: 'tun_1' } });
    expect(JSON.stringify(broken)).not.toContain('secret of the inside');
    expect(broken).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/^INTERNAL: .+ Next: .+\.$/) }],
    });
    host.failure = new Fault('EDGE_AWAY', { region: 'local' });
    await client.callTool({ name: 'get_tunnel', arguments: { tunnel: 'tun_1' } });
    host.failure = null;
    await client.callTool({ name: 'get_tunnel', arguments: { tunnel: 'tun_1' } });
    expect(told.map(({ tool, outcome, fault }) => [tool, outcome, fault?.code])).toEqual([
      ['get_tunnel', 'refused', 'TUNNEL_UNKNOWN'],
      ['get_tunnel', 'error', 'INTERNAL'],
      ['get_tunnel', 'error', 'EDGE_AWAY'],
      ['get_tunnel', 'ok', undefined],
    ]);
    expect(told[0]?.input).toEqual({ tunnel: 'tun_of_another_account' });
  });
});

describe('MCP resources', () => {
  it('contain the same data as the tools, and the error catalogue', async () => {
    const client = await start(new ScriptedHost());
    const read = async (uri: string): Promise<unknown> => {
      const { contents } = await client.readResource({ uri });
      const [content] = contents as { text: string; mimeType: string; uri: string }[];
      expect(content).toMatchObject({ uri, mimeType: 'application/json' });
      return JSON.parse(content?.text ?? '');
    };
    expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(['tunnel://tunnels']);
    expect(await read('tunnel://tunnels')).toEqual({ tunnels: [tunnelOf()], truncated: false });
    expect(await read('tunnel://tunnels/web')).toEqual({ tunnel: tunnelOf() });
    expect(await read('tunnel://requests/tun_1/req_1')).toEqual({ request: requestOf(), untrusted: true });
    expect(await read('tunnel://errors/TUNNEL_UNKNOWN')).toMatchObject({
      code: 'TUNNEL_UNKNOWN',
      status: 404,
      retryable: false,
    });
  });

  it('are refused with one line for any unknown or invalid address', async () => {
    const client = await start(new ScriptedHost());
    for (const uri of [
      'tunnel://tunnels/tun_of_another_account',
      'tunnel://tunnels/',
      'tunnel://tunnels/a/b',
      'tunnel://tunnels/%zz',
      'tunnel://requests/tun_1/req_none',
      'tunnel://errors/toString',
      'tunnel://errors/NO_SUCH_CODE',
      'file:///etc/passwd',
      'not an address',
      `tunnel://tunnels/${'x'.repeat(1_000_000)}`,
      'tunnel://tunnels/%00',
    ]) {
      const refusal = await client.readResource({ uri }).then(
        () => null,
        (error: Error) => error.message,
      );
      expect(refusal, uri.slice(0, 60)).toMatch(/^.{10,500}$/);
    }
  });
});

describe('MCP prompts', () => {
  it('insert their arguments as quoted words', async () => {
    const client = await start(new ScriptedHost());
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual([
      'debug_webhook',
      'diagnose',
      'publish_app',
    ]);
    const { messages } = await client.getPrompt({ name: 'publish_app', arguments: { port: '3000' } });
    expect(messages[0]?.content).toMatchObject({ type: 'text', text: expect.stringContaining('local port "3000"') });
    expect((await client.getPrompt({ name: 'diagnose' })).messages).toHaveLength(1);
    await expect(client.getPrompt({ name: 'publish_app' })).rejects.toThrow('port: is missing');
    await expect(client.getPrompt({ name: 'diagnose', arguments: { odd: '1' } })).rejects.toThrow(
      'unknown argument "odd"',
    );
    await expect(client.getPrompt({ name: 'none' })).rejects.toThrow('unknown prompt "none"');
    const long = await client.getPrompt({ name: 'publish_app', arguments: { port: 'x'.repeat(100_000) } });
    expect(JSON.stringify(long).length).toBeLessThan(3000);
  });

  it('are not listed if they need a missing tool', async () => {
    const host = new ScriptedHost();
    host.tools = new Set([...host.tools].filter((name) => name !== 'open_tunnel' && name !== 'run_doctor'));
    const client = await start(host);
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(['debug_webhook']);
  });
});

describe('MCP completion', () => {
  it('suggests tunnels by id and name, and error codes', async () => {
    const host = new ScriptedHost();
    host.tunnels = [tunnelOf(), tunnelOf({ tunnel_id: 'tun_2', name: 'shop' })];
    const client = await start(host);
    const ref = { type: 'ref/prompt', name: 'debug_webhook' } as const;
    const words = async (value: string): Promise<string[]> =>
      (await client.complete({ ref, argument: { name: 'tunnel', value } })).completion.values;
    expect(await words('')).toEqual(['tun_1', 'tun_2']);
    expect(await words('sh')).toEqual(['tun_2']);
    expect(await words('tun_1')).toEqual(['tun_1']);
    host.failure = new Fault('EDGE_AWAY', { region: 'local' });
    expect(await words('')).toEqual([]);
    const code = {
      ref: { type: 'ref/resource', uri: 'tunnel://errors/{code}' } as const,
      argument: { name: 'code', value: 'mcp_' },
    };
    expect((await client.complete(code)).completion.values).toContain('MCP_TUNNEL_LIMIT');
    const all = await client.complete({ ...code, argument: { name: 'code', value: '' } });
    expect(all.completion).toMatchObject({ hasMore: true });
    expect(all.completion.values).toHaveLength(100);
  });
});

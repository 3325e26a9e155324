import { SCOPES, type ToolHost, type ToolName } from '@tunnel/mcp/tools';
import { createLogger } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import type { McpCaller } from './mcp-caller.ts';
import { MCP_CALL_MAX_MS, MCP_OPEN_CALLS_MAX, McpEndpoint } from './mcp-endpoint.ts';

const CALLER: McpCaller = {
  actor: { kind: 'user', userId: 'usr_1' },
  scopes: new Set(SCOPES),
  access: { kind: 'api_key', key_id: 'key_1' },
  isStillIn: () => Promise.resolve(true),
};
const REVISION = '2026-07-28';
const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': REVISION,
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** Starts an endpoint with wait_for_request calls that end only when the caller disconnects. */
const open = () => {
  const clock = new FakeClock();
  /** Callbacks to run when the open calls end. */
  const overs: (() => void)[] = [];
  const finish = (): void => {
    for (const over of overs.splice(0)) over();
  };
  const waits: AbortSignal[] = [];
  const host = {
    tools: new Set<ToolName>(['wait_for_request']),
    waitForRequest: (_tunnel, _filter, _withinMs, { signal }) => {
      waits.push(signal);
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    },
  } as Partial<ToolHost> as ToolHost;
  const endpoint = new McpEndpoint({
    clock,
    logger: createLogger({ format: 'json', level: 'silent' }),
    version: '1.0.0',
    callsPerMinute: 1000,
    hostFor: () => host,
    onCall: () => {},
  });
  const ask = (method: string, params: object, { leaves = false } = {}): Promise<Response> => {
    const message = { jsonrpc: '2.0', id: 1, method, params };
    const headers: Record<string, string> = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...('_meta' in params && 'io.modelcontextprotocol/protocolVersion' in (params._meta as object)
        ? { 'mcp-protocol-version': REVISION, 'mcp-method': method, 'mcp-name': 'wait_for_request' }
        : {}),
    };
    const gone = new AbortController();
    if (leaves) gone.abort();
    const request = new Request('http://127.0.0.1/mcp', {
      // Placeholder: the endpoint gets the message already parsed.
      method: 'POST',
      headers,
      body: '{}',
      signal: gone.signal,
    });
    const onOver = (run: () => void): void => {
      if (leaves) run();
      else overs.push(run);
    };
    return endpoint.answer(CALLER, { request, message, header: (name) => headers[name], onOver, cut: finish });
  };
  return { ask, waits, clock, finish };
};

const WAIT = { name: 'wait_for_request', arguments: { tunnel: 'tun_1', timeout_secs: 300 } };

describe('/mcp with a caller that disconnected before processing', () => {
  it.each([
    ['of 2025', {}],
    ['of 2025 that asks for progress', { _meta: { progressToken: 1 } }],
    ['of 2026', { _meta: ENVELOPE }],
    ['of 2026 that asks for progress', { _meta: { ...ENVELOPE, progressToken: 1 } }],
  ])('leaves no pending work: a call %s', async (_, more) => {
    const { ask, waits } = open();
    const answer = await ask('tools/call', { ...WAIT, ...more }, { leaves: true });
    await answer.text();
    expect(waits.filter((signal) => !signal.aborted)).toEqual([]);
  });
});

describe('/mcp with an extremely nested message', () => {
  it.each([
    ['tools/list', {}],
    ['resources/list', {}],
    ['tools/list', { _meta: ENVELOPE }],
  ])('responds to %s or rejects it without an internal error', async (method, more) => {
    let nested: unknown = 1;
    for (let depth = 0; depth < 100_000; depth += 1) nested = [nested];
    const { ask } = open();
    const answer = await ask(method, { ...more, nested });
    expect(answer.status).toBeLessThan(500);
  });
});

describe('a long call to /mcp', () => {
  const LISTEN = { notifications: { toolsListChanged: true }, _meta: ENVELOPE };

  it('is cut after the maximum duration, because its token may have been revoked meanwhile', async () => {
    const { ask, clock } = open();
    for (let n = 0; n < MCP_OPEN_CALLS_MAX; n += 1) {
      expect((await ask('subscriptions/listen', LISTEN)).status).toBe(200);
    }
    await expect(ask('tools/list', {})).rejects.toMatchObject({ code: 'MCP_CALLS_OPEN' });
    await clock.advance(MCP_CALL_MAX_MS);
    expect((await ask('tools/list', {})).status).toBe(200);
  });

  it('leaves no timer if it ends in time', async () => {
    const { ask, clock, finish } = open();
    await ask('tools/list', {});
    finish();
    expect(clock.pendingTimers).toBe(0);
  });
});

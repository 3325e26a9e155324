// Tests of `tunnel mcp` as a real program with third-party clients: the session of a model with each protocol version, every way to end,
// and a stdout that carries only the protocol.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as Client2025 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Transport2025 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { isProcessAlive } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ROOT } from '../repo/checkout.fixture.ts';
import { Harness } from './in-process.fixture.ts';
import { type Stack, withoutOurEnvironment } from './stack.fixture.ts';
import { commandOf, TUNNEL_BIN } from './tunnel-program.fixture.ts';

const MCP = TUNNEL_BIN.endsWith('.mjs') ? commandOf([], join(ROOT, 'apps/cli/bin/tunnel-mcp.mjs')) : commandOf(['mcp']);
const PATIENCE = { timeoutMs: 20_000 };
const WHO = { name: 'test', version: '1' };

const shared = new Harness();
let stack: Stack;
let service: Server;
let port: number;
let visits: string[];
let home: string;
const children: ChildProcess[] = [];
const clients: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  stack = await shared.stack();
  service = createServer((request, response) => {
    visits.push(`${request.method} ${request.url}`);
    response.end('ok');
  }).listen(0, '127.0.0.1');
  await once(service, 'listening');
  port = (service.address() as AddressInfo).port;
});
afterAll(async () => {
  service.closeAllConnections();
  service.close();
  await shared.close();
});
beforeEach(async () => {
  visits = [];
  home = await shared.folder();
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

const args = (): string[] => [
  ...MCP.args,
  '--server',
  stack.control,
  '--api',
  stack.run.api_url,
  '--token-file',
  stack.tokenFile,
];
const environment = (): Record<string, string> =>
  Object.fromEntries(
    Object.entries({ ...withoutOurEnvironment(), HOME: home }).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    ),
  );
const command = () => ({
  command: MCP.command,
  args: args(),
  env: environment(),
  cwd: home,
  stderr: 'pipe' as const,
});

/** Sends a POST to a public URL, and resolves with the status. */
const visit = async (publicUrl: unknown, path: string): Promise<number> => {
  const { host, port: publicPort } = new URL(String(publicUrl));
  const options = { host: '127.0.0.1', port: publicPort, path, method: 'POST', headers: { host }, agent: false };
  const [response] = (await once(httpRequest(options).end(), 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
  return response.statusCode ?? 0;
};

type CallTool = (name: string, args?: Record<string, unknown>) => Promise<Record<string, unknown>>;

/** Runs the session of a model that receives a webhook. The client library is up to the caller. */
const session = async (call: CallTool): Promise<void> => {
  const tunnel = await call('open_tunnel', { protocol: 'http', local_port: port, name: 'web' });
  let isOver = false;
  const waiting = call('wait_for_request', { tunnel: 'web', path_contains: '/hook' }).finally(() => {
    isOver = true;
  });
  await eventually(async () => {
    await visit(tunnel['public_url'], '/hook');
    expect(isOver).toBe(true);
  }, PATIENCE);
  const { request } = (await waiting) as { request: { id: string; path: string } };
  expect(request.path).toBe('/hook');
  const read = await call('get_request', { tunnel: tunnel['tunnel_id'], request_id: request.id });
  expect(read).toMatchObject({ request: { method: 'POST', status: 200 }, untrusted: true });
  visits = [];
  expect(await call('replay_request', { tunnel: 'web', request_id: request.id })).toMatchObject({
    request: { status: 200 },
  });
  expect(visits).toEqual(['POST /hook']);
  expect(await call('close_tunnel', { tunnel: 'web' })).toEqual({ tunnel_id: tunnel['tunnel_id'], closed: true });
  // Leaves a tunnel open, to be closed by the end of the session.
  await call('open_tunnel', { protocol: 'tcp', local_port: port });
  await eventually(async () => expect(await stack.tunnels()).toHaveLength(1), PATIENCE);
};

describe('the session of a model over stdio', () => {
  it('with a 2026 client leaves no tunnel and no process', async () => {
    const transport = new StdioClientTransport(command());
    const client = new Client(WHO, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    clients.push(client);
    await client.connect(transport);
    const { pid } = transport;
    await session(async (name, given = {}) => {
      const result = await client.callTool({ name, arguments: given });
      expect(result.isError, JSON.stringify(result.content)).not.toBe(true);
      return result.structuredContent as Record<string, unknown>;
    });
    await client.close();
    await eventually(() => expect(isProcessAlive(pid ?? 0)).toBe(false), PATIENCE);
    await eventually(async () => expect(await stack.tunnels()).toEqual([]), PATIENCE);
  });

  it('with a 2025 client leaves no tunnel and no process', async () => {
    const transport = new Transport2025(command());
    const client = new Client2025(WHO);
    clients.push(client);
    await client.connect(transport);
    const { pid } = transport;
    await session(async (name, given = {}) => {
      const result = await client.callTool({ name, arguments: given });
      expect(result['isError'], JSON.stringify(result['content'])).not.toBe(true);
      return result['structuredContent'] as Record<string, unknown>;
    });
    await client.close();
    await eventually(() => expect(isProcessAlive(pid ?? 0)).toBe(false), PATIENCE);
    await eventually(async () => expect(await stack.tunnels()).toEqual([]), PATIENCE);
  });
});

const start = (): {
  child: ChildProcess;
  lines: () => string[];
  said: () => string;
  send: (message: object | string) => void;
} => {
  const child = spawn(MCP.command, args(), { env: environment(), cwd: home });
  children.push(child);
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  child.stderr.on('data', (chunk) => {
    err += chunk;
  });
  return {
    child,
    lines: () => out.split('\n').slice(0, -1),
    said: () => err,
    send: (message) =>
      child.stdin.write(`${typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message })}\n`),
  };
};

const OPEN = {
  id: 'open',
  method: 'tools/call',
  params: { name: 'open_tunnel', arguments: { protocol: 'http', local_port: 1024, name: 'web' } },
};

describe('`tunnel-mcp`', () => {
  it('prints only protocol messages on stdout despite invalid input, and exits with 0 at the end of stdin', async () => {
    const { child, lines, send } = start();
    send('no json at all');
    send('\u0000\u0001');
    send([] as object);
    send(OPEN);
    await eventually(async () => expect(await stack.tunnels()).toHaveLength(1), PATIENCE);
    const [tunnel] = await stack.tunnels();
    // No service listens on the local port: the visitor gets a 502, and stderr explains the problem to people.
    expect(await visit(tunnel?.public_url, '/')).toBe(502);
    send({
      id: 'big',
      method: 'tools/call',
      params: { name: 'get_tunnel', arguments: { tunnel: 'x'.repeat(1024 * 1024) } },
    });
    send({ id: 'last', method: 'ping' });
    const ids = (): unknown[] => lines().map((line) => (JSON.parse(line) as { id?: unknown }).id);
    await eventually(() => expect(ids()).toEqual(expect.arrayContaining(['open', 'big', 'last'])), PATIENCE);
    child.stdin?.end();
    expect((await once(child, 'exit'))[0]).toBe(0);
    const messages = lines().map((line) => JSON.parse(line) as { jsonrpc: string; error?: { code: number } });
    expect(messages.every(({ jsonrpc }) => jsonrpc === '2.0')).toBe(true);
    expect(messages.flatMap(({ error }) => error?.code ?? [])).toEqual([-32_700, -32_700, -32_600]);
    await eventually(async () => expect(await stack.tunnels()).toEqual([]), PATIENCE);
  });

  it('exits when the program that started it is killed', async () => {
    const host = spawn(
      process.execPath,
      [
        '-e',
        `const child = require('node:child_process').spawn(${JSON.stringify(MCP.command)}, ${JSON.stringify(args())}, { stdio: ['pipe', 'pipe', 'inherit'] });
         child.stdout.pipe(process.stdout);
         child.stdin.write(${JSON.stringify(`${JSON.stringify({ jsonrpc: '2.0', ...OPEN })}\n`)});
         process.stdout.write(child.pid + '\\n');
         setInterval(() => {}, 1000);`,
      ],
      { env: environment(), cwd: home, stdio: ['ignore', 'pipe', 'inherit'] },
    );
    children.push(host);
    let out = '';
    host.stdout.on('data', (chunk) => {
      out += chunk;
    });
    await eventually(() => expect(out).toContain('public_url'), PATIENCE);
    const pid = Number(/^(\d+)$/m.exec(out)?.[1]);
    expect(isProcessAlive(pid)).toBe(true);
    host.kill('SIGKILL');
    await eventually(() => expect(isProcessAlive(pid)).toBe(false), PATIENCE);
    await eventually(async () => expect(await stack.tunnels()).toEqual([]), PATIENCE);
  });

  it('goes also when a shell in between is killed, and the host keeps its end of the pipe', async () => {
    const shell = spawn('sh', ['-c', 'exec 3<&0; "$0" "$@" <&3 & echo $! >&2; wait', MCP.command, ...args()], {
      env: environment(),
      cwd: home,
    });
    children.push(shell);
    let err = '';
    shell.stderr.on('data', (chunk) => {
      err += chunk;
    });
    await eventually(() => expect(err).toMatch(/^\d+$/m), PATIENCE);
    const pid = Number(/^(\d+)$/m.exec(err)?.[1]);
    shell.kill('SIGKILL');
    await eventually(() => expect(isProcessAlive(pid)).toBe(false), PATIENCE);
  });
});

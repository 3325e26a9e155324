// Tests of `tunnel mcp-publish` as a user runs it: an edge over real sockets, clients of both protocol versions, and no server left at
// the end.
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { Readable } from 'node:stream';
import { Client as ClientOf2026, StreamableHTTPClientTransport as HttpOf2026 } from '@modelcontextprotocol/client';
import { Client as ClientOf2025 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as HttpOf2025 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { isProcessAlive } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, expect } from 'vitest';
import { handWrittenServer } from '../../packages/mcp/src/bridge/stdio-servers.fixture.ts';
import { Harness, it } from './in-process.fixture.ts';
import type { Stack } from './stack.fixture.ts';
import type { TunnelProgram } from './tunnel-program.fixture.ts';

const PATIENCE = { timeoutMs: 20_000 };

const shared = new Harness();
let stack: Stack;
beforeAll(async () => {
  stack = await shared.stack();
});
afterAll(() => shared.close());

/**
 * Fetches a URL of an edge on localhost like the web API. Systems do not resolve `*.localhost`, so the name is sent only in the Host
 * header.
 */
const fetchHere = (url: string | URL, init: RequestInit = {}): Promise<Response> =>
  new Promise((resolve, reject) => {
    const { host, port, pathname } = new URL(url);
    const { method = 'GET', signal = null } = init;
    const headers = { ...Object.fromEntries(new Headers(init.headers)), host };
    const where = { host: '127.0.0.1', port, path: pathname, method, headers, agent: false };
    const sent = httpRequest({ ...where, ...(signal === null ? {} : { signal }) }, (answer) => {
      answer.on('error', () => {});
      const { statusCode: status = 500 } = answer;
      const body = status === 202 ? null : (Readable.toWeb(answer) as never);
      resolve(new Response(body, { status, headers: answer.headers as Record<string, string> }));
    });
    sent.on('error', reject).end(init.body);
  });

interface Published {
  readonly program: TunnelProgram;
  readonly ready: Ready;
  readonly pid: number;
}

const publish = async (harness: Harness, server = handWrittenServer(), programs = false): Promise<Published> => {
  const { command, args } = server;
  const env = { TUNNEL_API_KEY: readFileSync(stack.tokenFile, 'utf8').trim() };
  const flags = ['--json', '--server', stack.control, '--drain-secs', '20'];
  const program = await harness.run(['mcp-publish', ...flags, '--', command, ...args], { env, programs });
  const ready = (await program.ready()) as unknown as Ready;
  // The pid of the server arrives over another pipe than the ready event.
  await eventually(() => expect(serverPids(program)).toHaveLength(1), PATIENCE);
  return { program, ready, pid: serverPids(program)[0] as number };
};

interface Ready {
  readonly mcp_url: string;
  readonly mcp_token: string;
}

const serverPids = (program: TunnelProgram): number[] =>
  program.stderr.flatMap((line) => {
    const pid = /^server: started (\d+)$/.exec(line)?.[1];
    return pid === undefined ? [] : [Number(pid)];
  });

const connectAs2026 = async ({ mcp_url: url, mcp_token: token }: Ready): Promise<ClientOf2026> => {
  const client = new ClientOf2026(
    { name: 'new', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new HttpOf2026(new URL(url), { fetch: fetchHere, requestInit }));
  return client;
};

const connectAs2025 = async ({ mcp_url: url, mcp_token: token }: Ready): Promise<ClientOf2025> => {
  const client = new ClientOf2025({ name: 'old', version: '1' });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new HttpOf2025(new URL(url), { fetch: fetchHere, requestInit }) as never);
  return client;
};

it('a published MCP server serves 2025 and 2026 clients alike, restarts after a kill, and ends with `tunnel mcp-publish`', async ({
  harness,
}) => {
  const { program, ready, pid } = await publish(harness);
  const modern = await connectAs2026(ready);
  const old = await connectAs2025(ready);
  const echo = { name: 'echo', arguments: { text: 'from far' } };
  const { structuredContent } = await modern.callTool(echo);
  expect(structuredContent).toEqual({ text: 'from far' });
  expect((await old.callTool(echo)).structuredContent).toEqual(structuredContent);
  const names = (tools: readonly { name: string }[]): string[] => tools.map(({ name }) => name);
  expect(names((await old.listTools()).tools)).toEqual(names((await modern.listTools()).tools));

  // Progress arrives during a call, and the server learns when a caller cancels.
  const steps: number[] = [];
  await modern.callTool({ name: 'steps', arguments: {} }, { onprogress: ({ progress }) => steps.push(progress) });
  expect(steps).toEqual([1, 2, 3]);
  const stop = new AbortController();
  const hanging = modern.callTool({ name: 'hang', arguments: {} }, { signal: stop.signal }).catch(() => 'given up');
  await eventually(() => expect(program.stderr).toContain('server: hanging'));
  stop.abort();
  expect(await hanging).toBe('given up');
  await eventually(() => expect(program.stderr).toContain('server: cancelled'));

  process.kill(pid, 'SIGKILL');
  const back = await eventually(
    async () => {
      expect(serverPids(program)).toHaveLength(2);
      expect(await old.callTool(echo)).toMatchObject({ structuredContent });
      return serverPids(program)[1] ?? 0;
    },
    { timeoutMs: 20_000 },
  );
  expect(program.stderr.join('\n')).toContain('the MCP server stopped: killed by SIGKILL; restarting in 1 s');

  program.signal('SIGTERM');
  expect(await program.exitCode()).toBe(0);
  // A dead process without a parent stays in the process table until it is reaped.
  await eventually(() => expect([pid, back].map(isProcessAlive)).toEqual([false, false]));
});

it('a killed `tunnel mcp-publish` leaves no server and no helper process, even if the server ignores signals and stdin', async ({
  harness,
}) => {
  const server = handWrittenServer();
  const script = `
    const server = require('node:child_process').spawn(process.execPath, ${JSON.stringify(server.args)}, { stdio: ['pipe', 'inherit', 'inherit'] });
    for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT']) process.on(signal, () => {});
    process.stdin.on('data', (bytes) => server.stdin.write(bytes));
    process.stderr.write('helped by ' + process.pid + '\\n');
    setInterval(() => {}, 1000);
  `;
  const { program, pid } = await publish(harness, { ...server, args: ['-e', script] }, true);
  const helper = Number(/^server: helped by (\d+)$/m.exec(program.stderr.join('\n'))?.[1]);
  expect([pid, helper].map(isProcessAlive)).toEqual([true, true]);
  await program.kill();
  await eventually(() => expect([pid, helper].map(isProcessAlive)).toEqual([false, false]));
});

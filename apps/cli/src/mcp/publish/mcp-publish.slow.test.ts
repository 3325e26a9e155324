// `tunnel mcp-publish` from the command line to the published server, through a real edge in the same process.
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import type { Edge } from '@tunnel/edge';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { handWrittenServer } from '../../../../../packages/mcp/src/bridge/stdio-servers.fixture.ts';
import { run } from '../../all-commands.ts';
import { makeTestIo, type TestIo, type TestIoOptions } from '../../io/io.fixture.ts';
import { startEdge } from '../../run/edge.fixture.ts';
import { Runs } from '../../run/runs.fixture.ts';

const API_KEY = 'admin';
const { command, args } = handWrittenServer();
const SERVER = ['--', command, ...args];

let edge: Edge;
let home: TemporaryDirectory;
const runs = new Runs();

beforeAll(async () => {
  edge = await startEdge();
});
afterAll(() => edge.stop({ drainMs: 0 }));
beforeEach(async () => {
  home = await temporaryDirectory();
});
afterEach(async () => {
  await runs.end();
  await home.close();
});

const start = (flags: string[], server = SERVER, options: Partial<TestIoOptions> = {}) => {
  const env = { NO_COLOR: '1', TUNNEL_API_KEY: API_KEY };
  const io = makeTestIo({ home: home.path, env, ...options });
  const where = ['--server', `127.0.0.1:${edge.addresses.control.port}`, '--drain-secs', '0'];
  return runs.start(['mcp-publish', ...where, ...flags, ...server], io);
};

interface Ready {
  readonly mcp_url: string;
  readonly mcp_token: string | null;
  readonly inspect_url: string | null;
  readonly tunnel_id: string;
}

const ready = (io: TestIo): Promise<Ready> =>
  eventually(
    () => {
      const found = io.events().find(({ event }) => event === 'ready');
      expect(found, io.err()).toBeDefined();
      return found as unknown as Ready;
    },
    { timeoutMs: 20_000 },
  );

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Sends a caller's request. Some systems do not resolve `*.localhost`, so the name is sent only in the Host header. */
const post = (url: string, message: object, headers: Record<string, string> = {}): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const { host, port, pathname } = new URL(url);
    const accept = 'application/json, text/event-stream';
    const all = { host, accept, 'content-type': 'application/json', ...headers };
    const sent = httpRequest(
      { host: '127.0.0.1', port, path: pathname, method: 'POST', headers: all, agent: false },
      (response) => {
        let text = '';
        response.on('data', (piece) => (text += String(piece)));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
      },
    );
    sent.on('error', reject).end(JSON.stringify(message));
  });

const callTool = (url: string, name: string, given: object, headers: Record<string, string> = {}): Promise<Answer> =>
  post(url, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given } }, headers);

const bearer = (token: string | null): Record<string, string> => ({ authorization: `Bearer ${token}` });

describe('`tunnel mcp-publish`', () => {
  it('publishes a server behind a new bearer token, and exits with 0 on SIGTERM', async () => {
    const { io, code } = start(['--json']);
    const { mcp_url: url, mcp_token: token, inspect_url: inspector, tunnel_id: id } = await ready(io);
    expect(url).toMatch(/^http:\/\/[a-z0-9-]+\.localhost:\d+\/mcp$/);
    expect(token).toMatch(/^mcp_[0-9A-Za-z]{32}$/);
    const answer = await callTool(url, 'echo', { text: 'through the tunnel' }, bearer(token));
    expect(answer).toMatchObject({ status: 200, text: expect.stringContaining('through the tunnel') as unknown });
    // The published server does not inherit the account's API key.
    expect((await callTool(url, 'variable', { name: 'TUNNEL_API_KEY' }, bearer(token))).text).toContain('(none)');

    const bare = await callTool(url, 'echo', { text: 'x' });
    expect([bare.status, bare.headers['www-authenticate']]).toEqual([401, 'Bearer']);
    const wrong = await callTool(url, 'echo', { text: 'x' }, bearer('mcp_wrong'));
    expect([wrong.status, wrong.headers['www-authenticate']]).toEqual([401, 'Bearer error="invalid_token"']);
    expect((await post(url.replace(/\/mcp$/, '/'), {}, bearer(token))).status).toBe(404);
    expect((await callTool(url, 'echo', { text: 'x'.repeat(2_000_000) }, bearer(token))).status).toBe(413);

    // Request bodies are stored neither in an inspector nor at the edge.
    expect(inspector).toBeNull();
    const api = `http://127.0.0.1:${edge.addresses.api.port}/api/tunnels/${id}/requests`;
    const kept = await fetch(api, { headers: { authorization: `Bearer ${API_KEY}` } });
    expect(await kept.text()).not.toContain('tools/call');

    io.signal('SIGTERM');
    expect(await code).toBe(0);
    expect(readdirSync(join(home.path, '.tunnel', 'run'))).toEqual([]);
    // The token appears only in the ready event.
    expect(io.out().split(String(token))).toHaveLength(2);
    expect(io.err()).not.toContain(String(token));
  });

  it("prints the URL, the token once and the server's log lines", async () => {
    const { io } = start(['--allow-tool', 'echo', '--allow-tool', 'missing', '--subdomain', 'notes']);
    const shown = await eventually(
      () => {
        const found = /^MCP server by-hand \(1 tool\): (\S+)\nBearer token, shown once: (\S+)$/m.exec(io.out());
        expect(found, io.out() + io.err()).not.toBeNull();
        return found as RegExpExecArray;
      },
      { timeoutMs: 20_000 },
    );
    const [, url = '', token = ''] = shown;
    expect(url).toMatch(/^http:\/\/notes\.localhost:\d+\/mcp$/);
    await eventually(() => expect(io.err()).toMatch(/^server: started \d+$/m), { timeoutMs: 20_000 });
    expect(io.err()).toContain('the MCP server has no tool missing (--allow-tool)');
    const list = await post(url, { jsonrpc: '2.0', id: 1, method: 'tools/list' }, bearer(token));
    expect(list.text).toContain('"echo"');
    expect(list.text).not.toContain('"crash"');
    expect((await callTool(url, 'crash', {}, bearer(token))).text).toContain('"code":-32602');

    const logs = makeTestIo({ home: home.path });
    expect(await run(['logs'], logs)).toBe(0);
    expect(logs.out()).toContain('server: started');
    expect(logs.out()).not.toContain(token);
  });

  it('takes the token from a file, and refuses the API key as the token', async () => {
    writeFileSync(join(home.path, 'token'), 'a-token-of-their-own-0123456789\n');
    const { io, code } = start(['--json', '--token-file', 'token']);
    const { mcp_url: url, mcp_token: token } = await ready(io);
    expect(token).toBeNull();
    const answer = await callTool(url, 'echo', { text: 'known' }, bearer('a-token-of-their-own-0123456789'));
    expect(answer.text).toContain('known');
    io.signal('SIGTERM');
    expect(await code).toBe(0);

    const key = 'a-key-of-the-account-0123456789';
    writeFileSync(join(home.path, 'key'), key);
    const mixedUp = start(['--token-file', 'key'], SERVER, { env: { TUNNEL_API_KEY: key } });
    expect(await mixedUp.code).toBe(2);
    expect(mixedUp.io.err()).toContain('is your API key');
    writeFileSync(join(home.path, 'short'), 'short');
    expect(await start(['--token-file', 'short']).code).toBe(2);
    expect(await start(['--token-file', 'key', '--no-auth']).code).toBe(2);
  });

  it('with --no-auth warns and serves every caller except pages of other origins', async () => {
    const { io } = start(['--json', '--no-auth']);
    const { mcp_url: url, mcp_token: token } = await ready(io);
    expect(token).toBeNull();
    expect(io.err()).toContain('anyone who knows or guesses the URL can call the tools of this server');
    expect((await callTool(url, 'echo', { text: 'open' })).text).toContain('open');
    expect((await callTool(url, 'echo', { text: 'x' }, { origin: 'https://evil.example.com' })).status).toBe(403);
    expect((await callTool(url, 'echo', { text: 'own page' }, { origin: new URL(url).origin })).status).toBe(200);
  });

  it('exits with 2 and the reason when the server does not start', async () => {
    const missing = start([], ['--', join(home.path, 'no-such-program')]);
    expect(await missing.code).toBe(2);
    expect(missing.io.err()).toContain(`did not start: program not found: ${join(home.path, 'no-such-program')}`);
    const brief = start([], ['--', process.execPath, '-e', 'process.stderr.write("oh no\\n"); process.exit(7)']);
    expect(await brief.code).toBe(2);
    expect(brief.io.err()).toContain('server: oh no\n');
    expect(brief.io.err()).toContain('did not start: exited with code 7');
  });

  it('exits with 0 on SIGINT while the server has not answered yet', async () => {
    const marker = join(home.path, 'running');
    const script = `require('node:fs').writeFileSync(${JSON.stringify(marker)}, ''); process.stdin.resume()`;
    const { io, code } = start(['--json'], ['--', process.execPath, '-e', script]);
    await eventually(() => expect(existsSync(marker)).toBe(true), { timeoutMs: 20_000 });
    io.signal('SIGINT');
    expect(await code).toBe(0);
    expect(io.events().map(({ event }) => event)).toEqual(['closed']);
  });
});

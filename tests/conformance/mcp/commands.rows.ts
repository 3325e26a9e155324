// The programs: `tunnel mcp` on standard input and output, `tunnel mcp-publish` at its URL, and the operator's commands.
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { handWrittenServer } from '../../../packages/mcp/src/bridge/stdio-servers.fixture.ts';
import { ROOT } from '../../repo/checkout.fixture.ts';
import { askHttp, endpointOf } from '../../system/http-tunnels.fixture.ts';
import { McpProgram } from '../../system/mcp-program.fixture.ts';
import { serverCommand, spawnedServerCommand } from '../../system/server-command.fixture.ts';
import { startService } from '../platform/tunnels.fixture.ts';
import type { McpHarness } from './mcp-harness.fixture.ts';
import { row } from './rows.fixture.ts';

const MCP_BIN = join(ROOT, 'apps/cli/bin/tunnel-mcp.mjs');

const namesOf = (listed: unknown): string[] => (listed as { name: string }[]).map(({ name }) => name);

export const commandRows = (harness: McpHarness): void => {
  let key: string;
  let local: McpProgram;
  let localPort: number;
  beforeAll(async () => {
    key = (await harness.newKey(await harness.person())).token;
    localPort = await startService(harness);
    const { control, run } = harness.server;
    const args = ['mcp', '--server', control, '--api', run.api_url];
    local = new McpProgram(await harness.run(args, { env: { TUNNEL_API_KEY: key } }));
  });

  it(row('Commands', 1), async () => {
    // The server address has no listener, and there is no API key.
    const program = await harness.run(['--server', '127.0.0.1:1'], { bin: MCP_BIN, programs: true });
    const alone = new McpProgram(program);
    expect(namesOf((await alone.ask('tools/list'))['tools'])).toContain('open_tunnel');
    expect(await alone.failure('list_tunnels', {})).toMatch(/^[A-Z_]+: .+ Next: .+$/);
    program.signal('SIGTERM');
    expect(await program.exitCode()).toBe(0);
  });

  it(row('Tools', 1, 'stdio'), async () => {
    const names =
      'close_tunnel get_request get_status get_tunnel list_pools list_requests list_tunnels open_tunnel replay_request run_doctor wait_for_request';
    expect(namesOf((await local.ask('tools/list'))['tools'])).toEqual(names.split(' '));
  });

  it(row('Tools', 10, 'stdio'), async () => {
    expect(namesOf((await local.ask('prompts/list'))['prompts']).sort()).toEqual([
      'debug_webhook',
      'diagnose',
      'publish_app',
    ]);
    const { contents } = await local.ask('resources/read', { uri: 'tunnel://errors/MCP_TUNNEL_LIMIT' });
    expect(JSON.stringify(contents)).toContain('MCP_TUNNEL_LIMIT');
  });

  it(`${row('Tools', 3)}; ${row('Tools', 4, 'stdio')}`, async () => {
    const p2p = { protocol: 'p2p', local_port: localPort, p2p_name: 'desk' };
    expect(await local.failure('open_tunnel', p2p)).toMatch(/^MCP_P2P_SECRET_MISSING: .+ Next: .+$/);
    for (const target of [{ local_port: 80 }, { local_port: 8080, local_host: '192.0.2.1' }]) {
      const said = await local.failure('open_tunnel', { protocol: 'http', ...target });
      expect(said).toMatch(/^MCP_TARGET_NOT_ALLOWED: .+ Next: .+$/s);
    }
    const { structuredContent } = await local.tool('open_tunnel', {
      protocol: 'http',
      local_port: localPort,
      name: 'web',
    });
    expect(structuredContent).toEqual({
      name: 'web',
      tunnel_id: expect.stringMatching(/^tun_/),
      protocol: 'http',
      local: `127.0.0.1:${localPort}`,
      public_url: expect.stringMatching(/^http:/),
      inspect_url: expect.anything(),
      warnings: [],
    });
    const more = await Promise.all(
      Array.from({ length: 10 }, () => local.tool('open_tunnel', { protocol: 'http', local_port: localPort })),
    );
    expect(more.flatMap(({ isError, content }) => (isError === true ? (content[0]?.text ?? '') : []))).toEqual([
      expect.stringMatching(/^MCP_TUNNEL_LIMIT: .+ Next: .+$/),
    ]);
    expect((await local.tool('close_tunnel', { tunnel: 'web' })).structuredContent).toEqual({
      tunnel_id: structuredContent?.['tunnel_id'],
      closed: true,
    });
    expect(await local.failure('close_tunnel', { tunnel: 'web' })).toMatch(/^TUNNEL_UNKNOWN: /);
  });

  it(row('Commands', 2), async () => {
    const { command, args } = handWrittenServer();
    const flags = ['--json', '--server', harness.server.control];
    const program = await harness.run(['mcp-publish', ...flags, '--', command, ...args], {
      env: { TUNNEL_API_KEY: key },
    });
    const ready = await program.ready();
    const token = String(ready['mcp_token']);
    expect([ready['mcp_url'], token]).toEqual([
      `${ready.public_url}/mcp`,
      expect.stringMatching(/^mcp_[0-9A-Za-z]{32}$/),
    ]);
    const ask = (bearer: Record<string, string>) =>
      askHttp(endpointOf(ready.public_url), {
        method: 'POST',
        path: '/mcp',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...bearer },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
      });
    for (const bearer of [{}, { authorization: `Bearer mcp_${'0'.repeat(32)}` }]) {
      const { status, headers } = await ask(bearer);
      expect([status, headers['www-authenticate']]).toEqual([401, expect.stringMatching(/^Bearer/)]);
    }
    expect((await ask({ authorization: `Bearer ${token}` })).status).toBe(200);
    program.signal('SIGTERM');
    expect(await program.exitCode()).toBe(0);
  });

  it(row('Commands', 3), async () => {
    const uri = 'https://ide.example.com/cb';
    const create = ['oauth-client', 'create', '--name', 'Acme IDE', '--redirect-uri', uri, 'http://127.0.0.1/cb'];
    const [clientId = ''] = await spawnedServerCommand(harness.server, ...create);
    const ask = () => harness.authorize(harness.asking({ client_id: clientId, redirect_uri: uri }).query);
    expect((await ask()).headers.get('location')).toMatch(/^\/app\/consent\?request=\w+$/);
    expect((await serverCommand(harness.server, 'oauth-client', 'list')).join('\n')).toContain(clientId);
    expect(await serverCommand(harness.server, 'oauth-client', 'revoke', clientId)).toEqual([
      `revoked: Acme IDE (${clientId}), 0 grants ended`,
    ]);
    const refused = await ask();
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('nor a registered client')]);
  });
};

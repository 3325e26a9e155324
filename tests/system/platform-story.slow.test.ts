// Tests of the first steps of a user: sign up, verify the address, sign in, create a key, open tunnels, and see them in usage and groups.
import type { ApiToken, CaptureList, UsageChartPoint } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { runTunnel } from './computer.fixture.ts';
import { type Answering, askHttp, endpointOf, startWeb } from './http-tunnels.fixture.ts';
import { McpProgram } from './mcp-program.fixture.ts';
import { call, it, memberFlags, openWith, Person } from './platform-test.fixture.ts';
import { serverCommand, spawnedServerCommand } from './server-command.fixture.ts';

const SOON = { timeoutMs: 15_000 };

const hello: Answering = (_, response) => {
  response.end('hello');
};

it('a new user can sign up, open a tunnel, and see the tunnel in usage, requests and keys', async ({
  harness,
  stack,
}) => {
  const email = 'first@example.com';
  const account = { email, password: 'correct horse battery' };
  expect((await call(stack, '/auth/register', { method: 'POST', body: account })).status).toBe(201);
  // An account cannot sign in before its address is verified.
  expect((await call(stack, '/auth/login', { method: 'POST', body: account })).status).toBe(403);

  const person = await Person.signUp(stack);
  const key = await person.newKey('desk');
  const web = harness.use(await startWeb(hello));
  const tunnel = await openWith(harness, stack, key, ['http', web.port, '--subdomain', 'story']);
  const ready = await tunnel.ready();
  // The live view shows the same data, which the platform sends through the edge to the client.
  expect(ready).toMatchObject({
    account: person.email,
    plan: 'free',
    region: { id: 'local', name: 'Local' },
    dashboard_url: expect.stringMatching(new RegExp(`^http://[^/]+/app/tunnels/${ready.tunnel_id}$`)),
  });
  expect((await askHttp(endpointOf(ready.public_url), { path: '/first?x=1' })).text).toBe('hello');

  const entry = await eventually(async () => {
    const [newest] = await person.log();
    expect(newest).toMatchObject({ request_count: 1, bytes_proxied: expect.any(Number) });
    return newest;
  }, SOON);
  expect(entry).toMatchObject({
    tunnel_id: ready.tunnel_id,
    protocol: 'http',
    label: 'story',
    region_id: 'local',
    unregistered_at: null,
  });
  expect(await person.usage()).toMatchObject({
    active_tunnels: 1,
    total_tunnels_30d: 1,
    total_requests_30d: 1,
    total_bytes_30d: entry?.bytes_proxied,
    plan: 'free',
    tunnel_limit: 3,
  });
  const chart = await person.get<UsageChartPoint[]>('/usage/chart?days=7');
  expect([chart.length, chart.at(-1)]).toEqual([7, expect.objectContaining({ tunnels: 1, requests: 1 })]);
  const { requests } = await person.get<CaptureList>(`/usage/tunnels/${ready.tunnel_id}/requests`);
  expect(requests).toMatchObject([{ method: 'GET', path: '/first?x=1', status: 200 }]);
  const [listed] = await person.get<ApiToken[]>('/keys');
  expect(listed).toMatchObject({ id: key.id, label: 'desk', tunnel_count: 1, status: 'active' });

  tunnel.signal('SIGTERM');
  expect(await tunnel.exitCode()).toBe(0);
  await eventually(async () => expect((await person.usage()).active_tunnels).toBe(0), SOON);
  expect((await person.entry(entry?.id ?? '')).unregistered_at).not.toBeNull();
});

it('after `tunnel login`, `tunnel http` needs no address and no key, and `tunnel logout --revoke-key` ends the tunnel', async ({
  harness,
  stack,
}) => {
  const person = await Person.signUp(stack, 'login');
  const home = await harness.folder();
  const tunnel = async (args: readonly string[], input = ''): Promise<string> => {
    const { code, out, err } = await runTunnel(home, args, input);
    expect([code, err]).toEqual([0, '']);
    return out;
  };
  const login = ['login', '--platform', stack.run.platform_url, '--email', person.email, '--password-stdin'];
  expect(await tunnel(login, 'correct horse battery\n')).toContain(`Server set to ${stack.control} (region local).`);
  expect(await tunnel(login, 'correct horse battery\n')).toContain('This computer already has an API key.');
  const keys = await person.get<ApiToken[]>('/keys');
  expect(keys.map(({ label }) => label)).toEqual(['test-computer']);

  const web = harness.use(await startWeb(hello));
  const program = await harness.run(['http', `localhost:${web.port}`, '--json'], { home });
  const { public_url: url } = await program.ready();
  expect((await askHttp(endpointOf(url))).text).toBe('hello');
  expect(await tunnel(['logout', '--revoke-key'])).toContain('API key revoked.');
  expect(await program.exitCode()).toBe(3);
  expect(await person.get<ApiToken[]>('/keys')).toEqual([]);
});

it('an account sees its live group of two members, and a second account sees no group', async ({ harness, stack }) => {
  const person = await Person.signUp(stack, 'pool');
  const other = await Person.signUp(stack, 'other');
  const key = await person.newKey();
  const web = harness.use(await startWeb(hello));
  const args = ['http', web.port, ...(await memberFlags(harness, 'pool'))];
  const members = [await openWith(harness, stack, key, args), await openWith(harness, stack, key, args)];
  for (const member of members) await member.ready();
  expect(await person.pools()).toMatchObject({
    groups: [{ name: 'pool', protocol: 'http', region_id: 'local', member_count: 2, healthy_count: 2 }],
    warnings: [],
  });
  expect((await other.pools()).groups).toEqual([]);
});

it('a revoked key closes its sessions within 2 s with exit code 3, and a second key of the account stays valid', async ({
  harness,
  stack,
}) => {
  const person = await Person.signUp(stack, 'revoker');
  const lost = await person.newKey('lost');
  const kept = await person.newKey('kept');
  const web = harness.use(await startWeb(hello));
  const closing = await openWith(harness, stack, lost, ['http', web.port]);
  const staying = await openWith(harness, stack, kept, ['http', web.port]);
  const endpoint = endpointOf((await staying.ready()).public_url);
  const gone = endpointOf((await closing.ready()).public_url);

  const begun = performance.now();
  expect((await person.call(`/keys/${lost.id}`, { method: 'DELETE' })).status).toBe(204);
  await eventually(async () => expect((await askHttp(gone)).status).toBe(404), { timeoutMs: 20_000 });
  const tookMs = performance.now() - begun;
  // The promise is two seconds on a quiet machine. Without a notification the edge would check the key again after a minute.
  expect(tookMs).toBeLessThan(15_000);
  expect(await closing.exitCode()).toBe(3);
  expect((await askHttp(endpoint)).text).toBe('hello');
  expect(staying.exit).toBeNull();

  const again = await openWith(harness, stack, lost, ['http', web.port]);
  expect(await again.exitCode()).toBe(3);
  expect((await person.get<ApiToken[]>('/keys')).map(({ id }) => id)).toEqual([kept.id]);
});

it('a suspended account loses its sessions with exit code 6, and can connect again once restored', async ({
  harness,
  stack,
}) => {
  const person = await Person.signUp(stack, 'suspended');
  const key = await person.newKey();
  const web = harness.use(await startWeb(hello));
  const tunnel = await openWith(harness, stack, key, ['http', web.port]);
  const endpoint = endpointOf((await tunnel.ready()).public_url);
  await serverCommand(stack, 'admin', 'suspend', person.email);
  expect(await tunnel.exitCode()).toBe(6);
  expect((await askHttp(endpoint)).status).toBe(404);
  await eventually(async () => expect((await person.call('/auth/me')).status).toBe(403), SOON);
  expect(await (await openWith(harness, stack, key, ['http', web.port])).exitCode()).toBe(6);

  await serverCommand(stack, 'admin', 'restore', person.email);
  const restored = await eventually(async () => {
    const program = await openWith(harness, stack, key, ['http', web.port]);
    await program.ready();
    return program;
  }, SOON);
  expect(restored.exit).toBeNull();
});

it('the fourth tunnel of a free account is refused with exit code 4 and the limit, until an open tunnel ends', async ({
  harness,
  stack,
}) => {
  const person = await Person.signUp(stack, 'limited');
  // The limit applies to the account, not to a single key.
  const keys = [await person.newKey('a'), await person.newKey('b')] as const;
  const web = harness.use(await startWeb(hello));
  const open = (number: number) => openWith(harness, stack, keys[number % 2 === 0 ? 0 : 1], ['http', web.port]);
  const programs = await Promise.all([0, 1, 2].map(open));
  for (const program of programs) await program.ready();
  const fourth = await open(3);
  expect(await fourth.exitCode()).toBe(4);
  expect([...fourth.stdout, ...fourth.stderr].join('\n')).toContain('tunnel limit of 3 reached');

  programs[0]?.signal('SIGTERM');
  expect(await programs[0]?.exitCode()).toBe(0);
  await (await open(4)).ready();
});

it('an account deleted by its owner loses its tunnels at once with exit code 6, and its email address is free again', async ({
  harness,
  stack,
}) => {
  const person = await Person.signUp(stack, 'leaver');
  const key = await person.newKey();
  const web = harness.use(await startWeb(hello));
  const tunnel = await openWith(harness, stack, key, ['http', web.port]);
  const endpoint = endpointOf((await tunnel.ready()).public_url);
  const gone = await person.call('/auth/me', { method: 'DELETE', body: { password: 'correct horse battery' } });
  expect(gone.status).toBe(204);
  // The promise is two seconds on a quiet machine. Without a notification the edge would check the key again after a minute.
  await eventually(async () => expect((await askHttp(endpoint)).status).toBe(404), { timeoutMs: 20_000 });
  expect(await tunnel.exitCode()).toBe(6);
  expect((await person.call('/auth/me')).status).toBe(401);
  expect(await (await openWith(harness, stack, key, ['http', web.port])).exitCode()).toBe(3);
  const again = { email: person.email, password: 'another good password' };
  expect((await call(stack, '/auth/register', { method: 'POST', body: again })).status).toBe(201);
});

it('an operator can invite a user to the running stack, and delete the account permanently', async ({ stack }) => {
  const email = 'invited@example.com';
  const [link = ''] = await spawnedServerCommand(stack, 'admin', 'invite', email);
  const invite = new URL(link).searchParams.get('invite') ?? '';
  const terms = await call(stack, `/auth/sign-up?invite=${invite}`);
  expect(terms.body).toEqual({ sign_up: 'open', invite_valid: true, invited_email: email });
  const account = { email, password: 'correct horse battery' };
  const registered = await call(stack, '/auth/register', { method: 'POST', body: { ...account, invite } });
  expect(registered.body).toMatchObject({ email_verified: true });
  expect((await call(stack, '/auth/login', { method: 'POST', body: account })).status).toBe(200);
  await expect(serverCommand(stack, 'admin', 'delete-user', email)).rejects.toThrow('Add --yes to confirm.');
  await serverCommand(stack, 'admin', 'delete-user', email, '--yes');
  expect((await call(stack, '/auth/login', { method: 'POST', body: account })).status).toBe(401);
});

it('MCP tools on a computer without access to the REST API of the edge work through the platform', async ({
  harness,
  stack,
}) => {
  const person = await Person.signUp(stack, 'laptop');
  const { token } = await person.newKey();
  const web = harness.use(await startWeb(hello));
  // Without --api the client expects the REST API at its usual port beside the control port, where no server listens.
  const args = ['mcp', '--server', stack.control];
  const mcp = new McpProgram(await harness.run(args, { env: { TUNNEL_API_KEY: token } }));
  const useTool = async (name: string, input: object) => {
    const { structuredContent, content } = await mcp.tool(name, input);
    return (structuredContent ?? content) as Readonly<Record<string, unknown>>;
  };
  const opened = await useTool('open_tunnel', { protocol: 'http', local_port: web.port, name: 'web' });
  let request: Readonly<Record<string, unknown>> | null = null;
  const waiting = useTool('wait_for_request', { tunnel: 'web', path_contains: 'hook' }).then((told) => {
    request = told['request'] as Readonly<Record<string, unknown>>;
  });
  await eventually(async () => {
    await askHttp(endpointOf(String(opened['public_url'])), { path: '/hook' });
    expect(request).toMatchObject({ path: '/hook', status: 200 });
  }, SOON);
  await waiting;
  const { id } = request as unknown as { id: string };
  expect(await useTool('get_request', { tunnel: 'web', request_id: id })).toMatchObject({ request: { id } });
  expect(await useTool('list_tunnels', {})).toMatchObject({ tunnels: [{ tunnel_id: opened['tunnel_id'] }] });
  expect(await useTool('close_tunnel', { tunnel: 'web' })).toMatchObject({ closed: true });
});

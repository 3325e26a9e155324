import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { loadServerConfig } from '@tunnel/config/server';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KEY_FRESH_MS } from '../backend/key-cache.ts';
import { CREDENTIAL, ScriptedPlatform, servePlatform } from '../backend/scripted-platform.fixture.ts';
import { echoMux, openCarrier } from '../control/raw-carrier.fixture.ts';
import { RawClient } from '../control/raw-client.fixture.ts';
import { createEdge } from '../edge.ts';
import type { Edge } from '../edge-interface.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
let root: TemporaryDirectory;
let platform: ScriptedPlatform;
const stops: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  root = await temporaryDirectory();
  platform = new ScriptedPlatform();
  platform.addKey('tnl_alice', 'alice', { tunnel_limit: 2 });
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
  await root.close();
});

const configOf = (server: object = {}) =>
  loadServerConfig({
    env: {},
    overrides: {
      data_dir: root.path,
      server: { control_port: 0, api_port: 0, metrics_port: 0, http_port: 0, domain: 'edge.test', ...server },
      limits: { tcp_port_range: [31_000, 31_900] },
    },
  });

const startInStack = async (): Promise<Edge> => {
  const server = await servePlatform(platform);
  stops.push(() => server.close());
  const edge = createEdge(configOf(), {
    clock: systemClock,
    logger,
    adminToken: new Secret('admin'),
    platform: { url: server.url, credential: new Secret(CREDENTIAL) },
  });
  return started(edge);
};

const startRemote = async (): Promise<Edge> => {
  const server = await servePlatform(platform);
  stops.push(() => server.close());
  const file = join(root.path, 'credential');
  writeFileSync(file, `${CREDENTIAL}\n`);
  const config = configOf({ platform_url: server.url, platform_credential_file: file });
  return started(createEdge(config, { clock: systemClock, logger, adminToken: new Secret('admin') }));
};

const started = async (edge: Edge): Promise<Edge> => {
  stops.push(() => edge.stop({ drainMs: 0 }));
  await edge.start();
  await eventually(() => expect(platform.heartbeats.at(-1)?.api_url).toMatch(/^http:/));
  return edge;
};

/** Connects a client with a local service that echoes. */
const publishEcho = async (edge: Edge, token: string) => {
  const { client, welcome } = await RawClient.enter(edge.addresses.control.port, token);
  const mux = echoMux();
  mux.addCarrier(await openCarrier(edge.addresses.control.port, welcome.carriers.tokens[0] as string));
  const tunnel = await client.registered();
  return { client, tunnelId: tunnel.tunnel_id, port: tunnel.assigned_port as number };
};

const sayThrough = async (port: number, text: string): Promise<void> => {
  const socket = connect(port, '127.0.0.1');
  socket.write(text);
  await once(socket, 'data');
  socket.end();
  await once(socket, 'close');
};

describe.each([
  ['of its stack', startInStack],
  ['elsewhere', startRemote],
])('an edge with a platform %s', (_, start) => {
  it('reports its tunnels, the bytes they carry, and the end of each tunnel', async () => {
    const edge = await start();
    const { client, tunnelId, port } = await publishEcho(edge, 'tnl_alice');
    await eventually(() => expect(platform.tunnels.get(tunnelId)).toMatchObject({ isOpen: true, label: String(port) }));
    await sayThrough(port, 'x'.repeat(1000));
    await sayThrough(port, 'y'.repeat(500));
    client.send({ type: 'ShuttingDown', reason: 'done', drain_secs: 0 });
    await eventually(() =>
      expect(platform.tunnels.get(tunnelId)).toMatchObject({ isOpen: false, requests: 2, bytes: 3000 }),
    );
  });

  it('sends a client its account, plan, region and dashboard, but not to the operator', async () => {
    const edge = await start();
    const { welcome } = await RawClient.enter(edge.addresses.control.port, 'tnl_alice');
    expect(welcome).toMatchObject({
      account: 'alice@example.com',
      plan: 'free',
      region: { id: welcome.region_id, name: expect.any(String) },
      dashboard_url: 'https://platform.example/app',
    });
    const { welcome: operators } = await RawClient.enter(edge.addresses.control.port, 'admin');
    for (const field of ['account', 'plan', 'region', 'dashboard_url']) expect(operators).not.toHaveProperty(field);
  });

  it('serves a verified domain only for its account, even while the platform is away, until the domain is removed', async () => {
    platform.addKey('tnl_bob', 'bob');
    platform.verify('shop.example.org', 'alice');
    const edge = await start();
    const web = { protocol: 'http', domain: 'shop.example.org' };
    const { client } = await RawClient.enter(edge.addresses.control.port, 'tnl_alice');
    const { tunnel_id, label } = await client.registered(web);
    expect(label).toBe('shop.example.org');
    await eventually(() =>
      expect(platform.stored).toMatchObject([{ kind: 'opened', domain: 'shop.example.org', label }]),
    );
    const bob = await RawClient.enter(edge.addresses.control.port, 'tnl_bob');
    expect(await bob.client.refused(web)).toMatchObject({ code: 'TUNNEL_DOMAIN_UNVERIFIED', retryable: false });
    platform.goAway();
    expect((await bob.client.refused(web)).code).toBe('TUNNEL_DOMAIN_UNVERIFIED');
    expect((await bob.client.refused({ ...web, domain: 'new.example.org' })).code).toBe('NAMES_AWAY');
    platform.state = 'here';
    await eventually(() => expect(platform.openLines).toBe(1), { timeoutMs: 15_000 });
    const before = performance.now();
    platform.verify('shop.example.org', null);
    expect(await client.next('TunnelError')).toMatchObject({
      tunnel_id,
      code: 'TUNNEL_DOMAIN_UNVERIFIED',
      message: "domain 'shop.example.org' is not verified for this account",
      retryable: false,
    });
    expect(performance.now() - before).toBeLessThan(2000);
    expect(await client.refused(web)).toMatchObject({ code: 'TUNNEL_DOMAIN_UNVERIFIED', retryable: false });
  });

  it('ends the sessions of a revoked key at once', async () => {
    const edge = await start();
    const { client, tunnelId } = await publishEcho(edge, 'tnl_alice');
    await eventually(() => expect(platform.openLines).toBe(1));
    const before = performance.now();
    platform.revokeKey('tnl_alice');
    await client.closed;
    // The session ends within 2 seconds on a quiet machine. An edge that checked keys only periodically would notice after a minute.
    expect(performance.now() - before).toBeLessThan(KEY_FRESH_MS / 4);
    await eventually(() => expect(platform.tunnels.get(tunnelId)?.isOpen).toBe(false));
    const again = await RawClient.connect(edge.addresses.control.port);
    again.auth('tnl_alice');
    expect(await again.next('AuthError')).toMatchObject({ code: 'AUTH_TOKEN_REVOKED' });
  });

  it('applies the tunnel limit of an account across all its clients', async () => {
    const edge = await start();
    const one = await RawClient.enter(edge.addresses.control.port, 'tnl_alice');
    const two = await RawClient.enter(edge.addresses.control.port, 'tnl_alice');
    await one.client.registered();
    const { tunnel_id } = await two.client.registered();
    expect(await one.client.refused()).toMatchObject({
      code: 'TUNNEL_PLAN_LIMIT',
      message: 'tunnel limit of 2 reached',
      retryable: false,
    });
    two.client.send({ type: 'UnregisterTunnel', request_id: 'u', tunnel_id });
    await two.client.next('TunnelUnregistered');
    expect((await one.client.registered()).tunnel_id).toMatch(/^tun_/);
  });

  it("reports nothing about the operator's tunnels", async () => {
    const edge = await start();
    const { port } = await publishEcho(edge, 'admin');
    await sayThrough(port, 'hello');
    await edge.stop({ drainMs: 0 });
    expect([platform.tunnels.size, platform.stored]).toEqual([0, []]);
  });

  it('answers the platform as the account that the platform names', async () => {
    const edge = await start();
    const { tunnelId } = await publishEcho(edge, 'tnl_alice');
    await publishEcho(edge, 'admin');
    const { api_secret, api_url } = platform.heartbeats.at(-1) as { api_secret: string; api_url: string };
    const headers = { authorization: `Bearer ${api_secret}`, 'x-tunnel-account': 'alice' };
    const { control, http, stackApi } = edge.addresses;
    const urls = [api_url, ...(stackApi === null ? [] : [`http://${stackApi.host}:${stackApi.port}`])];
    for (const url of urls) {
      const answer = await fetch(`${url}/api/tunnels`, { headers });
      expect(await answer.json()).toMatchObject([{ tunnel_id: tunnelId }]);
    }
    const reach = {
      control: `127.0.0.1:${control.port}`,
      control_tls: false,
      http_url: `http://edge.test:${http.port}`,
    };
    await eventually(() => expect(platform.heartbeats.at(-1)).toMatchObject({ reach }), { timeoutMs: 10_000 });
  });

  it('continues while the platform is away, and reports everything when it is back', async () => {
    const edge = await start();
    const { client, tunnelId, port } = await publishEcho(edge, 'tnl_alice');
    await eventually(() => expect(platform.tunnels.get(tunnelId)?.label).toBe(String(port)));
    platform.goAway();
    await sayThrough(port, 'z'.repeat(2000));
    const { tunnel_id } = await client.registered();
    expect(await client.refused()).toMatchObject({ code: 'TUNNEL_PLAN_LIMIT' });
    platform.state = 'here';
    await edge.stop({ drainMs: 0 });
    expect(platform.tunnels.get(tunnelId)).toMatchObject({ isOpen: false, requests: 1, bytes: 4000 });
    expect(platform.tunnels.get(tunnel_id)).toMatchObject({ isOpen: false });
  });
});

it('a credential file that cannot be read is a config error, reported before any port opens', () => {
  const config = configOf({ platform_url: 'https://platform.test', platform_credential_file: '/nowhere/credential' });
  expect(() => createEdge(config, { clock: systemClock, logger, adminToken: new Secret('admin') })).toThrow(
    /cannot read \/nowhere\/credential/,
  );
});

describe('the front page of the domain', () => {
  const ask = async (edge: Edge, request: string): Promise<string> => {
    const socket = connect(edge.addresses.http.port, '127.0.0.1');
    socket.end(`${request}\r\nAccept: text/html\r\nConnection: close\r\n\r\n`);
    const parts: Buffer[] = [];
    for await (const part of socket) parts.push(part as Buffer);
    const [status = '', ...fields] = Buffer.concat(parts).toString('latin1').split('\r\n\r\n')[0]?.split('\r\n') ?? [];
    const location = fields.find((field) => field.startsWith('location: '))?.slice('location: '.length);
    return [status.split(' ')[1], location].filter(Boolean).join(' ');
  };

  it('redirects browsers to the pages of the platform, and other hosts and paths get an error', async () => {
    platform.pages = { public_url: 'https://console.example.net' };
    const edge = await startRemote();
    const pages = '302 https://console.example.net/';
    await eventually(async () => expect(await ask(edge, 'GET / HTTP/1.1\r\nHost: edge.test')).toBe(pages));
    const asked = {
      'HEAD / HTTP/1.0\r\nHost: EDGE.TEST:1234': pages,
      'GET http://edge.test/ HTTP/1.1\r\nHost: evil.example': pages,
      'GET http://evil.example/ HTTP/1.1\r\nHost: edge.test': '404',
      'GET / HTTP/1.1\r\nHost: evil.example': '404',
      'GET / HTTP/1.1\r\nHost: edge.test.evil.example': '404',
      'GET / HTTP/1.1\r\nHost: x.edge.test': '404',
      'GET / HTTP/1.1\r\nHost: edge.test@evil.example': '400',
      'GET / HTTP/1.0': '404',
      'GET / HTTP/1.1\r\nHost: 127.0.0.1': '404',
      'GET //evil.example HTTP/1.1\r\nHost: edge.test': '404',
      'POST / HTTP/1.1\r\nHost: edge.test\r\nContent-Length: 0': '404',
    };
    for (const [request, answer] of Object.entries(asked))
      expect([request, await ask(edge, request)]).toEqual([request, answer]);
  });

  it.each([{}, { public_url: 'javascript:alert(1)' }, { public_url: 'nothing' }])(
    'is a 404 while the platform names no valid pages: %j',
    async (pages) => {
      platform.pages = pages;
      const edge = await startRemote();
      expect(await ask(edge, 'GET / HTTP/1.1\r\nHost: edge.test')).toBe('404');
    },
  );
});

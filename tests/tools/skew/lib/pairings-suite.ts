// Every pairing of an old and a new client, edge and platform, with traffic of every kind and with the bill of the whole traffic.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import type { CaptureList } from '@tunnel/contract';
import {
  companyCertificate,
  deterministicBytes,
  eventually,
  hashOf,
  startEchoServer,
  startUdpEcho,
} from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { ask as askDatabase } from '../../../system/embedded-database.fixture.ts';
import { echoSockets, startWeb, type WebService } from '../../../system/http-tunnels.fixture.ts';
import { echo, startTlsService } from '../../../system/tls-service.fixture.ts';
import { UdpVisitor } from '../../../system/udp-visitor.fixture.ts';
import { ask } from '../../../system/visitor.fixture.ts';
import { BUILDS, type Build, SHOP, SOON, World } from './world.ts';

const TWO: readonly Build[] = [BUILDS.previous, BUILDS.current];
const SERVERS = TWO.flatMap((edge) =>
  TWO.map((platform) => [edge.version, platform.version, { edge, platform }] as const),
);
const CLIENTS = TWO.map((client) => [client.version, client] as const);
const PEERS = TWO.map((publisher) => {
  const subscriber = publisher === BUILDS.previous ? BUILDS.current : BUILDS.previous;
  return [publisher.version, subscriber.version, { publisher, subscriber }] as const;
});
const BYTES = deterministicBytes(2_000_000, 3);
const GROUP_KEY = 'the key of the group';
const SECRET = 'what both ends share, and no other program';

describe.each(SERVERS)('edge %s with platform %s', (_edge, _platform, { edge, platform }) => {
  let world: World;
  /** Requests that reached a local service, by tunnel. */
  const served = new Map<string, number>();
  beforeAll(async () => {
    world = await World.open({ edge, platform });
    await world.addDomain(SHOP);
  }, 300_000);
  afterAll(() => world?.close());

  const service = async (text: string): Promise<WebService & { requests: number }> => {
    const counted = { requests: 0 };
    const web = await startWeb((request, response) => {
      counted.requests += 1;
      if (request.method === 'POST') request.pipe(response);
      else response.end(`${text} ${String(request.headers['x-tunnel-user'] ?? '')}`.trim());
    });
    return world.harness.use(Object.assign(counted, web));
  };

  const count = (tunnelId: string, requests: number): void => void served.set(tunnelId, requests);

  describe.each(CLIENTS)('client %s', (_, client) => {
    it('http: requests, a body of 2 MB both ways, a WebSocket', async () => {
      const web = await service('hello');
      echoSockets(web).on('connection', () => void (web.requests += 1));
      const program = await world.run(client, ['http', web.port]);
      const { public_url: url, tunnel_id: id } = await program.ready();
      expect((await world.ask(url)).text).toBe('hello');
      const posted = await world.ask(url, { method: 'POST', body: Buffer.from(BYTES) });
      expect(hashOf(posted.body)).toBe(hashOf(BYTES));
      const { host, hostname } = new URL(url);
      const socket = new WebSocket(`ws://${host}/`, { createConnection: () => world.outside.dial(hostname) });
      const heard = once(socket, 'message');
      await once(socket, 'open');
      socket.send('over TLS');
      expect(String((await heard)[0])).toBe('over TLS');
      socket.close();
      await once(socket, 'close');
      count(id, web.requests);
    });

    it('tcp: an echo of 2 MB', async () => {
      const server = world.harness.use(await startEchoServer());
      const { assigned_port: port } = await (await world.run(client, ['tcp', server.port])).ready();
      const socket = connect({ host: '127.0.0.1', port });
      socket.write(BYTES);
      let bytes = Buffer.alloc(0);
      for await (const piece of socket) {
        bytes = Buffer.concat([bytes, piece as Buffer]);
        if (bytes.length >= BYTES.length) break;
      }
      expect(hashOf(bytes)).toBe(hashOf(BYTES));
    });

    it('tls: the visitor sees the certificate of the local service', async () => {
      const server = world.harness.use(await startTlsService(echo));
      const name = `tls-${client.version.replaceAll('.', '-')}`;
      const program = await world.run(client, ['tls', server.port, '--subdomain', name]);
      const { public_url: url, assigned_port: port } = await program.ready();
      const { hostname: servername } = new URL(url.replace('tls:', 'https:'));
      const ca = companyCertificate().cert;
      const socket = connectTls({ host: '127.0.0.1', port, servername, ca, checkServerIdentity: () => undefined });
      await once(socket, 'secureConnect');
      expect(await ask(socket, 'through TLS')).toBe('through TLS');
      socket.destroy();
    });

    it('udp: datagrams both ways', async () => {
      const server = world.harness.use(await startUdpEcho());
      const { assigned_port: port } = await (await world.run(client, ['udp', server.port])).ready();
      const visitor = world.harness.use(await UdpVisitor.of(port));
      expect(String(await visitor.askUntilAnswered('hello'))).toBe('hello');
      // The first datagram may have been sent more than once, so its echoes can come before the next one.
      await eventually(() => {
        visitor.say('again');
        expect(visitor.heard.map(String)).toContain('again');
      }, SOON);
    });

    it('captures: the platform shows the request, with its header', async () => {
      const web = await service('captured');
      const { public_url: url, tunnel_id: id } = await (await world.run(client, ['http', web.port])).ready();
      await world.ask(url, { path: '/captured?x=1' });
      await eventually(async () => {
        const { requests } = await world.person.get<CaptureList>(`/usage/tunnels/${id}/requests`);
        expect(requests).toMatchObject([{ method: 'GET', path: '/captured?x=1', status: 200 }]);
      }, SOON);
      count(id, web.requests);
    });

    it('policies: a password, a rule that denies, and a route to a second service', async () => {
      const web = await service('own');
      const api = await service('api');
      const rules = '- match: { path: /closed/** }\n  deny: 403\n- match: { path: /api/** }\n  route: api\n';
      const flags = ['--basic-auth-file', 'users', '--policy', 'rules.yml', '--service', `api=${api.port}`];
      const files = { users: 'anna:correct horse\n', 'rules.yml': rules };
      const program = await world.run(client, ['http', web.port, '--no-inspect', ...flags], files);
      const { public_url: url } = await program.ready();
      const headers = { authorization: `Basic ${Buffer.from('anna:correct horse').toString('base64')}` };
      expect((await world.ask(url)).status).toBe(401);
      expect((await world.ask(url, { headers })).text).toBe('own anna');
      expect((await world.ask(url, { headers, path: '/api/x' })).text).toContain('api');
      expect((await world.ask(url, { headers, path: '/closed/x' })).status).toBe(403);
      expect([web.requests, api.requests]).toEqual([1, 1]);
    });

    it('own domains: visitors get the certificate of the domain', async () => {
      const web = await service('shop');
      const program = await world.run(client, ['http', web.port, '--domain', SHOP]);
      const { public_url: url, tunnel_id: id } = await program.ready();
      expect(url).toBe(`https://${SHOP}:${world.outside.ports.https}`);
      expect((await world.ask(url)).text).toBe('shop');
      count(id, web.requests);
      program.signal('SIGTERM');
      expect(await program.exitCode()).toBe(0);
    });
  });

  it.each(PEERS)('p2p: publisher %s, subscriber %s', async (_publisher, _subscriber, { publisher, subscriber }) => {
    const server = world.harness.use(await startEchoServer());
    const name = `peer-${publisher.version.replaceAll('.', '-')}`;
    const files = { secret: `${SECRET}\n` };
    const flags = ['--secret-file', 'secret'];
    await (await world.run(publisher, ['p2p', 'publish', name, server.port, ...flags], files)).ready();
    const args = ['p2p', 'connect', name, '--listen', 0, ...flags];
    const program = await world.run(subscriber, args, files);
    const { listen } = await program.ready();
    const socket = connect({ host: '127.0.0.1', port: Number(String(listen).split(':').at(-1)) });
    expect(await ask(socket, 'between peers')).toBe('between peers');
    await eventually(() => expect(program.events('path').at(-1)).toMatchObject({ path: 'direct' }), SOON);
    expect(await ask(socket, 'directly')).toBe('directly');
    socket.destroy();
  });

  it('groups: an old and a new member share visitors, and the second member serves after a kill of the first', async () => {
    const members = await Promise.all(
      TWO.map(async (build) => {
        const web = await service(build.version);
        const flags = ['--group', 'both', '--group-key-file', 'group-key', '--subdomain', 'both', '--health', 'http:/'];
        const program = await world.run(build, ['http', web.port, ...flags], { 'group-key': GROUP_KEY });
        return { web, program, ready: await program.ready() };
      }),
    );
    const url = members[0]?.ready.public_url ?? '';
    const seen = new Set<string>();
    await eventually(async () => {
      seen.add((await world.ask(url)).text);
      expect([...seen].toSorted()).toEqual(TWO.map(({ version }) => version));
    }, SOON);
    await members[0]?.program.kill();
    await eventually(async () => expect((await world.ask(url)).text).toBe(TWO[1]?.version), SOON);
    for (let n = 0; n < 20; n += 1) expect((await world.ask(url)).status).toBe(200);
  });

  it('usage: each request is billed exactly once', async () => {
    const url = world.platform.databaseUrl;
    if (url === null) throw new Error('the platform has no database');
    const rows = async (query: string): Promise<unknown> => JSON.parse(String(await askDatabase(url, query)));
    expect(served.size).toBe(6);
    await eventually(
      async () => {
        const billed = await rows('select json_object_agg(tunnel_id, request_count)::text from tunnel_log');
        expect(billed).toMatchObject(Object.fromEntries(served));
      },
      { timeoutMs: 60_000, intervalMs: 500 },
    );
    // A second delivery would come with one of the next reports, which are five seconds apart.
    await pause(12_000);
    expect(await rows('select json_object_agg(tunnel_id, request_count)::text from tunnel_log')).toMatchObject(
      Object.fromEntries(served),
    );
    const sum = (column: string, table: string): string => `(select coalesce(sum(${column}), 0)::int8 from ${table})`;
    const sums = [
      sum('requests', 'usage_daily'),
      sum('request_count', 'tunnel_log'),
      sum('bytes', 'usage_daily'),
      sum('bytes_proxied', 'tunnel_log'),
    ];
    const [requests, logged, bytes, loggedBytes] = (await rows(
      `select json_build_array(${sums.join()})::text`,
    )) as number[];
    expect([requests, bytes]).toEqual([logged, loggedBytes]);
  });
});

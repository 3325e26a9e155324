// Rules in front of groups, named services and upgrades, and the counting of addresses before rules run.
import { createHmac } from 'node:crypto';
import * as net from 'node:net';
import type { Rule } from '@tunnel/policy';
import type { StreamHead } from '@tunnel/protocol';
import { eventually, hashOf } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { HeldBodies } from '../../policy/held-bodies.ts';
import { basicAuth, holderOf, policyOfRules, testGate } from '../../policy/policy.fixture.ts';
import { openGate } from '../gate.fixture.ts';
import { startGroupStand } from './group.fixture.ts';
import { dialLocal, talk } from './http.fixture.ts';
import { startHttpsPort, visitHttp2 } from './https.fixture.ts';
import { askHttp2, type PolicyStand, startPolicyStand, VERSIONS, visitHttp1 } from './policy-stand.fixture.ts';
import { startRecordingH2c, startRecordingService } from './service.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const kept = <T extends { stop(): unknown }>(stand: T): T => {
  cleanups.push(() => stand.stop());
  return stand;
};

const SECRET = 'whsec of the sender';
const HEADERS = { host: 'web.edge.test' };

it('a group without a healthy member runs its rules first: an unauthenticated visitor gets 401, not 502', async () => {
  const stand = kept(await startGroupStand([{}, {}, {}], { policies: testGate(), policy: holderOf(basicAuth) }));
  for (const member of stand.members) member.setHealthy(false);
  const answer = await visitHttp1(stand.port, '/', { headers: HEADERS });
  expect([answer.status, answer.headers['x-tunnel-error']]).toEqual([401, 'POLICY_UNAUTHENTICATED']);
});

it('a rejected request to a group reaches and counts for no member, and each member captures it', async () => {
  const services = await Promise.all(['a', 'b', 'c'].map((name) => startRecordingService(name)));
  cleanups.push(...services.map((service) => () => service.close()));
  const policy = holderOf({ match: { path: ['/admin/**'] }, deny: 403 });
  const members = services.map(({ port }) => ({ localPort: port }));
  const stand = kept(await startGroupStand(members, { policies: testGate(), policy, domain: 'localhost' }));
  const https = { port: await startHttpsPort(stand.ingress) };
  cleanups.push(() => https.port.stop());
  const session = visitHttp2(https);
  cleanups.push(() => session.destroy());
  for (let n = 0; n < 5; n += 1) {
    expect((await visitHttp1(stand.port, '/admin/x')).status).toBe(403);
    expect((await askHttp2(session, '/admin/y')).status).toBe(403);
  }
  stand.members[0]?.die();
  expect((await visitHttp1(stand.port, '/admin/x')).status).toBe(403);
  expect(services.flatMap(({ asked }) => asked)).toEqual([]);
  for (const member of stand.members.slice(1)) {
    const { requests, bytes, openConnections } = member.tunnel.counters;
    expect([member.offered, requests, bytes, openConnections]).toEqual([0, 0, 0, 0]);
    expect(stand.captured(member).map(({ status, policy: rules }) => [status, rules?.answered_by?.action])).toEqual(
      Array.from({ length: 11 }, () => [403, 'deny']),
    );
  }
  expect((await visitHttp1(stand.port, '/open')).status).toBe(200);
});

it('a held body goes whole to the next member when the first member refuses it', async () => {
  const services = await Promise.all(['a', 'b'].map((name) => startRecordingService(name)));
  cleanups.push(...services.map((service) => () => service.close()));
  const heldBodies = new HeldBodies();
  const policy = holderOf({ verify_webhook: { provider: 'github', secrets: [SECRET], max_bytes: 1024 * 1024 } });
  const members = services.map(({ port }) => ({ localPort: port }));
  const stand = kept(await startGroupStand(members, { policies: testGate(), policy, heldBodies }));
  stand.members[0]?.refuse();
  const body = 'webhook '.repeat(100_000);
  const signature = createHmac('sha256', SECRET).update(body).digest('hex');
  for (let n = 0; n < 6; n += 1) {
    const headers = { ...HEADERS, 'x-hub-signature-256': `sha256=${signature}` };
    expect((await visitHttp1(stand.port, '/', { method: 'POST', body, headers })).status).toBe(200);
  }
  expect(new Set(services[1]?.asked.map(({ bodyHash }) => bodyHash))).toEqual(new Set([hashOf(Buffer.from(body))]));
  expect([services[0]?.asked, services[1]?.asked.length, heldBodies.bytes]).toEqual([[], 6, 0]);
});

it('a replaced policy applies to the next request on an open connection', async () => {
  const stand = kept(await startPolicyStand([{ deny: 403 }]));
  const session = visitHttp2(stand.https);
  cleanups.push(() => session.destroy());
  expect((await askHttp2(session, '/')).status).toBe(403);
  stand.policy.current = policyOfRules([{ allow: true }]);
  expect((await askHttp2(session, '/')).status).toBe(200);
});

it('requests to sign-in paths are not captured, and no spelling hides other paths this way', async () => {
  const login = { provider: 'company', session_secs: 3600, trusted_origins: [] };
  const rules: Rule[] = [{ match: { path: ['/deny/**'] }, deny: 403 }];
  const stand = kept(await startPolicyStand([]));
  stand.policy.current = policyOfRules(rules, { login });
  const hidden = ['/.tunnel/x', '/.tunnel/deny?code=1'];
  const shown = [
    '/.tunnel/../deny/x',
    '/.tunnel/..;/open',
    '/.tunnel/%2e%2e/deny',
    '/.tunnel/..%2fopen',
    '/.tunnel/..\\open',
  ];
  for (const path of [...hidden, ...shown]) await talk(stand.http.port, rawGet(path));
  const { recorders } = stand.captures.list('tun_1', 10);
  expect(recorders.map(({ askedPath }) => askedPath ?? '').toSorted()).toEqual(shown.toSorted());
});

const rawGet = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: web.localhost\r\nConnection: close\r\n\r\n`;

// ---- services ----

const routed: readonly Rule[] = [{ match: { path: ['/api/**'] }, route: 'api' }];

it.each(VERSIONS)(
  '%s: OPEN names the service that a rule chose, and each service has separate idle streams',
  async (version) => {
    const own = await startRecordingService('own');
    const api = await startRecordingService('api');
    cleanups.push(
      () => own.close(),
      () => api.close(),
    );
    const heads: StreamHead[] = [];
    const stand = kept(
      await startPolicyStand(routed, {
        onStream: (stream, head) => {
          heads.push(head);
          dialLocal(stream, head.service === 'api' ? api.port : own.port);
        },
      }),
    );
    for (const path of ['/', '/api/x', '/', '/api/y']) {
      const answer = await stand.visit(version, path);
      expect(answer.body).toBe(path === '/' ? 'own' : 'api');
      await eventually(() => expect(stand.http.tunnel.counters.openConnections).toBe(0));
    }
    expect(heads.map(({ service }) => service)).toEqual([undefined, 'api']);
  },
);

it('a named HTTP/2 service has separate connections', async () => {
  const own = await startRecordingH2c('own');
  const api = await startRecordingH2c('api');
  cleanups.push(
    () => own.close(),
    () => api.close(),
  );
  const heads: StreamHead[] = [];
  const stand = kept(
    await startPolicyStand(routed, {
      http: { localProtocol: 'h2c' },
      onStream: (stream, head) => {
        heads.push(head);
        dialLocal(stream, head.service === 'api' ? api.port : own.port);
      },
    }),
  );
  for (const path of ['/', '/api/x', '/', '/api/y']) {
    expect((await stand.visit('HTTP/1.1', path)).body).toBe(path === '/' ? 'own' : 'api');
  }
  expect(heads.map(({ service }) => service)).toEqual([undefined, 'api']);
});

it('a member with a client that does not know policies gets no request for a named service', async () => {
  const own = await startRecordingService('own');
  const api = await startRecordingService('api');
  cleanups.push(
    () => own.close(),
    () => api.close(),
  );
  const members = [{ localPort: own.port, capabilities: [] }, { localPort: api.port }];
  const stand = kept(await startGroupStand(members, { policies: testGate(), policy: holderOf(...routed) }));
  const ask = (path: string) => visitHttp1(stand.port, path, { headers: HEADERS });
  const bodies = [];
  for (let n = 0; n < 20; n += 1) bodies.push((await ask('/api/x')).body);
  expect(new Set(bodies)).toEqual(new Set(['api']));
  stand.members[1]?.setHealthy(false);
  expect((await ask('/api/x')).status).toBe(502);
  expect((await ask('/')).body).toBe('own');
  expect(own.asked.map(({ url }) => url)).toEqual(['/']);
});

// ---- upgrades ----

const UPGRADE = ['GET /ws HTTP/1.1', 'Host: web.localhost', 'Connection: Upgrade', 'Upgrade: websocket'];

const startUpgrading = async (rules: readonly Rule[], heads: string[]): Promise<PolicyStand> => {
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (head: Buffer) => {
      heads.push(head.toString('latin1'));
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
      socket.on('data', (chunk: Buffer) => socket.write(chunk));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => server.close());
  const { port } = server.address() as net.AddressInfo;
  return kept(await startPolicyStand(rules, { onStream: (stream) => dialLocal(stream, port) }));
};

it('an upgrade runs through the rules like any request, and then carries bytes in both directions', async () => {
  const heads: string[] = [];
  const stand = await startUpgrading(
    [{ request_headers: { set: { 'x-by': 'rule' } } }, { response_headers: { set: { 'x-note': 'yes' } } }],
    heads,
  );
  const socket = net.connect({ port: stand.http.port, host: '127.0.0.1' });
  cleanups.push(() => socket.destroy());
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  socket.write([...UPGRADE, '', ''].join('\r\n'));
  await eventually(() => expect(text).toMatch(/^HTTP\/1\.1 101 [^]*\r\n\r\n$/));
  expect(text).toMatch(/x-note: yes/i);
  expect(heads[0]).toMatch(/x-by: rule/i);
  socket.write('ping');
  await eventually(() => expect(text).toMatch(/ping$/));
});

it('an upgrade that a rule rejects reaches no service', async () => {
  const heads: string[] = [];
  const stand = await startUpgrading([basicAuth], heads);
  const answer = await talk(stand.http.port, [...UPGRADE, '', ''].join('\r\n'), '\r\n\r\n');
  expect(answer).toMatch(/^HTTP\/1\.1 401 /);
  expect([heads, stand.http.dials]).toEqual([[], 0]);
});

// ---- counting ----

it('through a trusted proxy, requests that rules reject give back the place of their address', async () => {
  const gate = openGate({ perNetwork: 2, trustedProxies: ['127.0.0.1'] });
  const asked: string[] = [];
  const stand = kept(
    await startPolicyStand([{ allow_addresses: ['192.0.2.0/24'] }], { gate, trustedProxies: ['127.0.0.1'] }),
  );
  for (let n = 0; n < 6; n += 1) {
    const answer = await stand.visit('HTTP/1.1', '/', { headers: { 'x-forwarded-for': '198.51.100.9' } });
    asked.push(String(answer.headers['x-tunnel-error']));
  }
  expect(asked).toEqual(Array.from({ length: 6 }, () => 'POLICY_DENIED'));
  expect((await stand.visit('HTTP/1.1', '/', { headers: { 'x-forwarded-for': '192.0.2.9' } })).status).toBe(200);
});

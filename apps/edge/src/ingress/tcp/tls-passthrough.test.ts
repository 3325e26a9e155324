// Visitors with a ClientHello that the edge has already read. The relay carries them like TCP visitors, with the bytes already read
// first.
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { MUX_LIMITS, type MuxStream } from '@tunnel/mux';
import { hostPort } from '@tunnel/rules/net';
import { deterministicBytes, eventually, hashOf, startEchoServer } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { EDGE_LIMITS } from '../../limits.ts';
import { holderOf, testGate } from '../../policy/policy.fixture.ts';
import type { Registry, Route } from '../../routing/registry.ts';
import {
  dialling,
  echoing,
  endOf,
  expectOver,
  type Member,
  type MemberOptions,
  newGroup,
  type OnStream,
  RelayStage,
  refusing,
} from './relay.fixture.ts';
import { TlsPassthrough } from './tls-passthrough.ts';

const stage = new RelayStage();
afterEach(() => stage.clear());

const tlsMember = async (onStream: OnStream, options?: MemberOptions): Promise<Member> => {
  const member = await stage.startMember(onStream, options);
  Object.assign(member.tunnel, { protocol: 'tls', label: 'db.edge.test', publicUrl: 'tls://db.edge.test:443' });
  return member;
};

const tlsGroup = () => Object.assign(newGroup(), { protocol: 'tls' as const });

const pass = (route: Route, options: Parameters<RelayStage['startRelay']>[1] = {}) =>
  stage.startRelay(route, { ...options, isPassed: true });

describe('a host in a ClientHello', () => {
  const passthroughTo = (routes: Readonly<Record<string, object>>) =>
    new TlsPassthrough({
      domain: 'edge.test',
      platform: { isAt: (host) => host === 'console.test' },
      tunnels: {
        at: (endpoint) => {
          const name = 'name' in endpoint ? endpoint.name : '';
          const key = endpoint.kind === 'domain' ? `own ${name}` : name;
          return routes[key] as Route | undefined;
        },
      } as Registry,
      names: {
        isHeld: ({ name }) => name === 'away.pool' || name === 'away-tls' || name === '*.away.test',
        isHeldForTls: ({ name }) => name === 'away-tls' || name === '*.away.test',
      },
      reserved: { isReserved: () => false, accountOfDomain: (domain) => (domain === 'own.other.test' ? 'bob' : null) },
      relay: { carry: () => {}, turnAwayFrom: () => {} },
    });

  it('is passed through only if a TLS tunnel or group has its name', () => {
    const tunnel = { protocol: 'tls' };
    const group = { protocol: 'tls', members: 2 };
    const passthrough = passthroughTo({
      db: tunnel,
      pool: group,
      web: { protocol: 'http' },
      app: { protocol: 'https' },
    });
    expect(passthrough.routeFor('db.edge.test')).toBe(tunnel);
    expect(passthrough.routeFor('pool.edge.test')).toBe(group);
    const nested = passthroughTo({ '*.pool': group, 'web.pool': { protocol: 'http' } });
    expect(nested.routeFor('any.pool.edge.test')).toBe(group);
    for (const host of ['web.pool.edge.test', 'away.pool.edge.test', 'pool.edge.test', 'a.b.pool.edge.test']) {
      expect(nested.routeFor(host)).toBeUndefined();
    }
    for (const host of ['web.edge.test', 'app.edge.test', 'edge.test', 'db.other.test', 'a.db.edge.test', 'db', '']) {
      expect(passthrough.routeFor(host)).toBeUndefined();
    }
  });

  it('on a custom domain is passed through, except a wildcard over a domain of another account', () => {
    const tunnel = { protocol: 'tls' };
    const wildcard = { protocol: 'tls', label: '*' };
    const passthrough = passthroughTo({ 'own db.other.test': tunnel, 'own *.other.test': wildcard });
    expect(passthrough.routeFor('db.other.test')).toBe(tunnel);
    expect(passthrough.routeFor('any.other.test')).toBe(wildcard);
    for (const host of ['own.other.test', 'other.test', 'a.b.other.test']) {
      expect(passthrough.routeFor(host)).toBeUndefined();
    }
  });

  it('of the operator ends at the edge, even if a wildcard tunnel covers it', () => {
    const passthrough = passthroughTo({ 'own *.test': { protocol: 'tls' } });
    expect(passthrough.routeFor('any.test')).toBeDefined();
    for (const host of ['edge.test', 'edge.test.', 'console.test', '*.test']) {
      expect([host, passthrough.routeFor(host)]).toEqual([host, undefined]);
    }
  });

  it('of a TLS tunnel with an absent client is still passed through: the edge does not end TLS for it', () => {
    const passthrough = passthroughTo({});
    expect(passthrough.routeFor('away-tls.edge.test')).toBe('away');
    expect(passthrough.routeFor('any.away.test')).toBe('away');
    expect(passthrough.routeFor('away.pool.edge.test')).toBeUndefined();
  });
});

describe('a TLS passthrough connection', () => {
  it('carries the bytes already read and all later bytes unchanged, and counts them once', async () => {
    const echo = stage.kept(await startEchoServer());
    const member = await tlsMember(dialling(echo.port));
    const stand = await pass(member.tunnel);
    const sent = deterministicBytes(1_000_003, 7);
    const visitor = stand.visit();
    visitor.write(sent.subarray(0, 517));
    await once(visitor, 'connect');
    visitor.end(sent.subarray(517));
    const chunks: Buffer[] = [];
    for await (const chunk of visitor) chunks.push(chunk as Buffer);
    expect(hashOf(Buffer.concat(chunks))).toBe(hashOf(sent));
    await expectOver(stand, [member]);
    expect(member.tunnel.counters).toMatchObject({ requests: 1, bytes: 2 * sent.length });
    expect(stand.relay.totals).toMatchObject({ requests: 1, bytesToClient: sent.length });
  });

  it('buffers about 64 KiB until the local dial, and then carries all bytes and the half-close', async () => {
    let offer: OnStream = () => {};
    const offered = new Promise<MuxStream>((resolve) => {
      offer = resolve;
    });
    const member = await tlsMember(offer);
    const stand = await pass(member.tunnel);
    const sent = deterministicBytes(4 * 1024 * 1024, 3);
    const visitor = stand.visit();
    visitor.write(sent.subarray(0, 517));
    const stream = await offered;
    visitor.end(sent.subarray(517));
    // The edge reads at most one scratch buffer beyond the limit.
    const most = EDGE_LIMITS.PRECONNECT_BUFFER_BYTES + MUX_LIMITS.SOCKET_SCRATCH_BYTES;
    await eventually(() => expect(stand.bytesRead()).toBeGreaterThanOrEqual(EDGE_LIMITS.PRECONNECT_BUFFER_BYTES));
    expect(stand.bytesRead()).toBeLessThanOrEqual(most);
    const echo = stage.kept(await startEchoServer());
    dialling(echo.port)(stream);
    const chunks: Buffer[] = [];
    for await (const chunk of visitor) chunks.push(chunk as Buffer);
    expect(hashOf(Buffer.concat(chunks))).toBe(hashOf(sent));
    await expectOver(stand, [member]);
  });

  it('moves to the next member with all bytes read so far when the first member refuses', async () => {
    const group = tlsGroup();
    const down = await tlsMember(refusing, { group, tunnelId: 'tun_1' });
    const up = await tlsMember(echoing, { group, tunnelId: 'tun_2' });
    const stand = await pass(group);
    const visitor = stand.visit();
    visitor.end('a hello');
    expect(await text(visitor)).toBe('a hello');
    expect([down.heads.length, up.heads.length]).toEqual([1, 1]);
    await expectOver(stand, [down, up]);
  });

  it('without a service is reset at once instead of getting an HTTP error', async () => {
    const member = await tlsMember(refusing);
    const stand = await pass(member.tunnel);
    const visitor = stand.visit();
    visitor.write('GET / HTTP/1.1\r\nHost: db.edge.test\r\n\r\n');
    // The clock stands still, so that the reset cannot depend on a timer.
    expect(await endOf(visitor)).toBe('ECONNRESET');
    expect(stand.relay.totals.refused.get('dial-refused')).toBe(1);
    await expectOver(stand, [member]);
  });

  it('to a group without a healthy member is reset', async () => {
    const group = tlsGroup();
    const member = await tlsMember(echoing, { group, healthy: false });
    const stand = await pass(group);
    const visitor = stand.visit();
    visitor.write('a hello');
    expect(await endOf(visitor)).toBe('ECONNRESET');
    expect([stand.relay.totals.refused.get('no-healthy'), member.heads]).toEqual([1, []]);
    await expectOver(stand, [member]);
  });

  it('passes the policy and the connection limit of the tunnel before a client gets it', async () => {
    const member = await tlsMember(echoing);
    Object.assign(member.tunnel, { policy: holderOf({ allow_addresses: ['192.0.2.0/24'] }) });
    const stand = await pass(member.tunnel, { policies: testGate() });
    const visitor = stand.visit();
    visitor.write('a hello');
    expect(await endOf(visitor)).toBe('ECONNRESET');
    expect([stand.relay.totals.refused.get('policy'), member.heads]).toEqual([1, []]);
    const full = await tlsMember(echoing, { tunnelId: 'tun_2' });
    const bounded = await pass(full.tunnel, { limits: { perTunnel: 1, perAddress: 100 } });
    bounded.visit().write('a hello');
    await eventually(() => expect(full.heads).toHaveLength(1));
    const second = bounded.visit();
    second.write('a hello');
    expect(await endOf(second)).toBe('ECONNRESET');
    expect(bounded.relay.totals.refused.get('tunnel-limit')).toBe(1);
  });

  it('is cleaned up completely when its visitor leaves before the dial is answered', async () => {
    const offered: MuxStream[] = [];
    const member = await tlsMember((stream) => void offered.push(stream));
    const stand = await pass(member.tunnel);
    const visitor = stand.visit();
    visitor.write('a hello');
    await eventually(() => expect(offered).toHaveLength(1));
    visitor.resetAndDestroy();
    await expectOver(stand, [member]);
  });

  it('has the public address in OPEN if the client writes the PROXY protocol', async () => {
    const member = await tlsMember(echoing, { proxyProtocol: 'v2' });
    const stand = await pass(member.tunnel);
    stand.visit().write('a hello');
    await eventually(() => expect(member.heads).toHaveLength(1));
    expect(member.heads[0]).toMatchObject({
      visitor: hostPort('127.0.0.1', stand.visitorPorts[0] ?? 0),
      publicAddress: hostPort('127.0.0.1', stand.port),
    });
  });
});

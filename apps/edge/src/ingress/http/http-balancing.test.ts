import * as http from 'node:http';
import * as net from 'node:net';
import { InFlight } from '@tunnel/rules/rate';
import { eventually } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { EDGE_LIMITS } from '../../limits.ts';
import { openGate } from '../gate.fixture.ts';
import { type GroupStand, type StandMember, startGroupStand } from './group.fixture.ts';
import { type IngressOptions, talk } from './http.fixture.ts';
import { startRecordingService } from './service.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Makes the balancer choose members in the order of their names. */
const inOrder = (): number => 0;

const startStand = async (names: readonly string[], options: Partial<IngressOptions> = {}): Promise<GroupStand> => {
  const services = await Promise.all(names.map((name) => startRecordingService(name)));
  for (const service of services) cleanups.push(() => service.close());
  const stand = await startGroupStand(
    services.map(({ port }, at) => ({ localPort: port, accountId: names[at] ?? '' })),
    { random: inOrder, ...options },
  );
  cleanups.push(() => stand.stop());
  return stand;
};

/** Returns a function for sending requests over a single connection. */
const keepVisiting = (stand: GroupStand): (() => Promise<{ status: number; body: string; error: unknown }>) => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  cleanups.push(() => agent.destroy());
  return () =>
    new Promise((resolve, reject) => {
      const headers = { host: 'web.edge.test', accept: 'application/json' };
      const request = http.get({ port: stand.port, host: '127.0.0.1', agent, headers }, (response) => {
        let body = '';
        response.setEncoding('latin1').on('data', (text: string) => {
          body += text;
        });
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, body, error: response.headers['x-tunnel-error'] }),
        );
      });
      request.on('error', reject);
    });
};

const dispatchesOf = ({ group }: GroupStand, accountId?: string): number =>
  group.tally(accountId === undefined ? { kind: 'operator' } : { kind: 'account', accountId }).totalDispatches;

const openOf = (...members: (StandMember | undefined)[]): (number | undefined)[] =>
  members.map((member) => member?.tunnel.counters.openConnections);

const GET = 'GET / HTTP/1.1\r\nHost: web.edge.test\r\nConnection: close\r\n\r\n';

describe('a connection to a group', () => {
  it('stays with its first member and counts as one dispatch', async () => {
    const stand = await startStand(['one', 'two'], { random: Math.random });
    const visit = keepVisiting(stand);
    const first = (await visit()).body;
    for (let i = 0; i < 20; i += 1) expect((await visit()).body).toBe(first);
    expect(dispatchesOf(stand)).toBe(1);
    expect(dispatchesOf(stand, first)).toBe(1);
    expect(stand.ingress.connections).toBe(1);
  });

  it('goes to a random member, so that 60 connections reach all three members', async () => {
    const stand = await startStand(['one', 'two', 'three'], { random: Math.random });
    const served = new Set<string>();
    for (let i = 0; i < 60; i += 1) served.add((await talk(stand.port, GET)).split('\r\n\r\n')[1] ?? '');
    expect([...served].sort()).toEqual(['one', 'three', 'two']);
    expect(dispatchesOf(stand)).toBe(60);
  });

  it('moves with its next request when its member is unhealthy, and then counts as a second dispatch', async () => {
    const counts = new InFlight({ perKey: 10 });
    const stand = await startStand(['one', 'two'], { counts });
    const [one, two] = stand.members;
    const visit = keepVisiting(stand);
    expect((await visit()).body).toBe('one');
    one?.setHealthy(false);
    expect((await visit()).body).toBe('two');
    expect([dispatchesOf(stand), dispatchesOf(stand, 'one'), dispatchesOf(stand, 'two')]).toEqual([2, 1, 1]);
    expect(openOf(one, two)).toEqual([0, 1]);
    expect([counts.of('tun_1'), counts.of('tun_2')]).toEqual([0, 1]);
    one?.setHealthy(true);
    expect((await visit()).body).toBe('two');
    expect(stand.ingress.totals.requests).toBe(3);
    expect([one?.tunnel.counters.requests, two?.tunnel.counters.requests]).toEqual([1, 2]);
  });

  it('moves to another member when its member has left', async () => {
    const stand = await startStand(['one', 'two']);
    const visit = keepVisiting(stand);
    expect((await visit()).body).toBe('one');
    stand.members[0]?.die();
    expect((await visit()).body).toBe('two');
    expect([dispatchesOf(stand, 'one'), dispatchesOf(stand, 'two')]).toEqual([1, 1]);
  });

  it('moves to a member with carriers, and waits for carriers only if no other member has any', async () => {
    const stand = await startStand(['one', 'two']);
    const [one, two] = stand.members;
    const visit = keepVisiting(stand);
    expect((await visit()).body).toBe('one');
    await one?.loseCarriers();
    expect((await visit()).body).toBe('two');
    two?.die();
    const waiting = visit();
    await eventually(() => expect(stand.ingress.totals.requests).toBe(3));
    one?.pair.edge.tick(Number.POSITIVE_INFINITY);
    expect(await waiting).toMatchObject({ status: 502, error: 'TUNNEL_AWAY' });
  });

  it('gets 502 while no member is healthy, and is served again once a member is healthy', async () => {
    const stand = await startStand(['one', 'two']);
    const [one, two] = stand.members;
    const visit = keepVisiting(stand);
    await visit();
    one?.setHealthy(false);
    two?.setHealthy(false);
    const refused = await visit();
    expect(refused).toMatchObject({ status: 502, error: 'GROUP_UNHEALTHY' });
    expect(JSON.parse(refused.body)).toMatchObject({ code: 'GROUP_UNHEALTHY' });
    const page = await talk(stand.port, GET);
    expect(page).toMatch(/^HTTP\/1\.1 502 /);
    expect(page).toMatch(/x-tunnel-error: GROUP_UNHEALTHY\r\n/);
    expect(page).toContain('<!doctype html>');
    expect(openOf(one, two)).toEqual([0, 0]);
    expect(stand.ingress.totals.requests).toBe(1);
    two?.setHealthy(true);
    expect((await visit()).body).toBe('two');
  });

  it('skips members at their connection limit, and gets 503 when all members are at the limit', async () => {
    const counts = new InFlight({ perKey: 1 });
    const stand = await startStand(['one', 'two'], { counts });
    expect((await keepVisiting(stand)()).body).toBe('one');
    expect((await keepVisiting(stand)()).body).toBe('two');
    expect(await talk(stand.port, GET)).toMatch(/^HTTP\/1\.1 503 .*x-tunnel-error: CONNECTIONS_PER_TUNNEL/s);
    expect(dispatchesOf(stand)).toBe(2);
  });

  it("gets 429 at once when the visitor's address has reached the connection limit", async () => {
    const stand = await startStand(['one', 'two'], { gate: openGate({ perNetwork: 1 }) });
    expect((await keepVisiting(stand)()).body).toBe('one');
    expect(await talk(stand.port, GET)).toMatch(/^HTTP\/1\.1 429 .*x-tunnel-error: CONNECTIONS_PER_ADDRESS/s);
  });
});

it('idle streams of a member are kept until the member leaves its group', async () => {
  const stand = await startStand(['one']);
  const [one] = stand.members;
  await talk(stand.port, GET);
  await eventually(() => expect(one?.pair.edge.liveStreams).toBe(1));
  await stand.clock.advance(EDGE_LIMITS.SESSION_TICK_MS);
  expect(one?.pair.edge.liveStreams).toBe(1);
  if (one !== undefined) stand.group.transition({ kind: 'member-left', member: one.tunnel }, 0);
  await stand.clock.advance(EDGE_LIMITS.SESSION_TICK_MS);
  expect(one?.pair.edge.liveStreams).toBe(0);
});

it('a visitor that leaves is no longer counted', async () => {
  const counts = new InFlight({ perKey: 10 });
  const stand = await startStand(['one', 'two'], { counts });
  const socket = net.connect({ port: stand.port, host: '127.0.0.1' });
  socket.write('GET / HTTP/1.1\r\nHost: web.edge.test\r\n\r\n');
  await eventually(() => expect(counts.total).toBe(1));
  socket.destroy();
  await eventually(() => expect(counts.total).toBe(0));
  expect(openOf(...stand.members)).toEqual([0, 0]);
});

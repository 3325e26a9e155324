// A group behind a TCP port: the order and number of tries, the bytes at each end, and the counters of the members.

import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { MUX_LIMITS, type MuxStream } from '@tunnel/mux';
import { deterministicBytes, eventually, hashOf, startEchoServer, startSinkServer } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { EDGE_LIMITS } from '../../limits.ts';
import { MEMBER_TRIES_MS } from '../../routing/balancer.ts';
import {
  dialling,
  echoing,
  endOf,
  expectOver,
  type Member,
  newGroup,
  type OnStream,
  type PathLimits,
  passSilence,
  RelayStage,
  refusing,
} from './relay.fixture.ts';

const stage = new RelayStage();
afterEach(() => stage.clear());
const kept = <T extends { close(): unknown }>(thing: T): T => stage.kept(thing);

/** A client that does not answer a stream until the test does. */
const silent: OnStream = () => {};

const startGroup = async (clients: readonly OnStream[], limits?: PathLimits) => {
  const group = newGroup();
  const members: Member[] = [];
  for (const [index, onStream] of clients.entries()) {
    members.push(await stage.startMember(onStream, { tunnelId: `tun_${index + 1}`, group }));
  }
  const stand = await stage.startRelay(group, limits === undefined ? {} : { limits });
  return { ...stand, group, members };
};

const asked = (members: readonly Member[]): number[] => members.map(({ heads }) => heads.length);
const served = (members: readonly Member[]): number[] => members.map(({ tunnel }) => tunnel.counters.requests);
const open = (members: readonly Member[]): number[] => members.map(({ tunnel }) => tunnel.counters.openConnections);
const dispatches = ({ group }: { group: ReturnType<typeof newGroup> }): number =>
  group.tally({ kind: 'operator' }).totalDispatches;

const sendAll = async (visitor: Socket, bytes: Buffer): Promise<Buffer> => {
  visitor.end(bytes);
  const chunks: Buffer[] = [];
  for await (const chunk of visitor) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
};

it('a visitor is reset without further members when the tries so far took too long', async () => {
  const held: MuxStream[] = [];
  const path = await startGroup([refusing, (stream) => void held.push(stream), silent]);
  const visitor = path.visit();
  const end = endOf(visitor);
  await eventually(() => expect(held).toHaveLength(1));
  await path.clock.advance(MEMBER_TRIES_MS);
  held[0]?.refuse({ code: 'dial-timeout', text: 'ETIMEDOUT' });
  await passSilence(path);
  expect(await end).toBe('ECONNRESET');
  await expectOver(path, path.members);
  expect(asked(path.members)).toEqual([1, 1, 0]);
});

describe('the next member gets the connection with all buffered bytes', () => {
  it('when the first member could not dial', async () => {
    const echo = kept(await startEchoServer());
    const path = await startGroup([refusing, refusing, dialling(echo.port)]);
    const sent = deterministicBytes(EDGE_LIMITS.PRECONNECT_BUFFER_BYTES * 3 + 17, 1);
    expect(hashOf(await sendAll(path.visit(), sent))).toBe(hashOf(sent));
    await expectOver(path, path.members);
    expect([asked(path.members), served(path.members)]).toEqual([
      [1, 1, 1],
      [0, 0, 1],
    ]);
    expect(path.members.map(({ tunnel }) => tunnel.counters.bytes)).toEqual([0, 0, 2 * sent.length]);
    expect([path.relay.totals.requests, path.relay.totals.refused.size, dispatches(path)]).toEqual([1, 0, 1]);
  });

  it('when the bytes and the half-close came before any answer', async () => {
    const echo = kept(await startEchoServer());
    const offered: MuxStream[] = [];
    const path = await startGroup([(stream) => offered.push(stream), dialling(echo.port)]);
    const visitor = path.visit();
    visitor.end('hello');
    await eventually(() => expect([offered.length, open(path.members)]).toEqual([1, [1, 0]]));
    for (const stream of offered) refusing(stream);
    expect(await text(visitor)).toBe('hello');
    await expectOver(path, path.members);
    expect(served(path.members)).toEqual([0, 1]);
  });

  it('when the session of the first member ends before its answer', async () => {
    const echo = kept(await startEchoServer());
    const path = await startGroup([silent, dialling(echo.port)]);
    const visitor = path.visit();
    visitor.write('one ');
    await eventually(() => expect(asked(path.members)).toEqual([1, 0]));
    path.members[0]?.pair.edge.close({ code: 'carrier-lost', text: 'gone' });
    await eventually(() => expect(open(path.members)).toEqual([0, 1]));
    visitor.end('two');
    expect(await text(visitor)).toBe('one two');
    await expectOver(path, path.members);
    expect([served(path.members), dispatches(path)]).toEqual([[0, 1], 1]);
  });

  it('when the carrier of the first member is cut, and when its client is away', async () => {
    const echo = kept(await startEchoServer());
    const path = await startGroup([silent, dialling(echo.port)]);
    const [first] = path.members;
    const visitor = path.visit();
    await eventually(() => expect(asked(path.members)).toEqual([1, 0]));
    first?.pair.carriers[0]?.destroy('cut');
    visitor.end('cut');
    expect(await text(visitor)).toBe('cut');
    if (first !== undefined) first.upstream.mux = null;
    expect((await sendAll(path.visit(), Buffer.from('away'))).toString()).toBe('away');
    await expectOver(path, path.members);
    expect([asked(path.members), served(path.members), dispatches(path)]).toEqual([[1, 2], [0, 2], 2]);
  });

  it('when the first member does not answer in time', async () => {
    const echo = kept(await startEchoServer());
    const path = await startGroup([silent, dialling(echo.port)]);
    const visitor = path.visit();
    visitor.end('late');
    await eventually(() => expect(asked(path.members)).toEqual([1, 0]));
    path.members[0]?.pair.edge.tick(performance.now() + MUX_LIMITS.STREAM_OPEN_TIMEOUT_MS + 1000);
    expect(await text(visitor)).toBe('late');
    await expectOver(path, path.members);
  });

  it('even if the member answers within the same event loop turn', async () => {
    const path = await startGroup([refusing, echoing]);
    expect((await sendAll(path.visit(), Buffer.from('x'))).toString()).toBe('x');
    await expectOver(path, path.members);
  });
});

describe('no other member is tried', () => {
  it('after a client has reported an open local connection', async () => {
    const sink = kept(await startSinkServer());
    const echo = kept(await startEchoServer());
    const path = await startGroup([dialling(sink.port), dialling(echo.port)]);
    const visitor = path.visit();
    visitor.write('hello');
    await eventually(() => expect(sink.totalBytes()).toBe(5));
    const ended = endOf(visitor);
    path.members[0]?.pair.edge.close({ code: 'carrier-lost', text: 'gone' });
    expect(await ended).toBe('ECONNRESET');
    await expectOver(path, path.members);
    expect([asked(path.members), served(path.members)]).toEqual([
      [1, 0],
      [1, 0],
    ]);
  });

  it('after the visitor has left', async () => {
    const offered: MuxStream[] = [];
    const path = await startGroup([(stream) => offered.push(stream), refusing]);
    const visitor = path.visit();
    await eventually(() => expect(offered).toHaveLength(1));
    visitor.resetAndDestroy();
    await expectOver(path, path.members);
    for (const stream of offered) refusing(stream);
    await expectOver(path, path.members);
    expect([asked(path.members), served(path.members), path.relay.totals.refused.size]).toEqual([[1, 0], [0, 0], 0]);
  });

  it('after each member has refused once; then the visitor is reset', async () => {
    const path = await startGroup([refusing, refusing, refusing]);
    const visitor = path.visit();
    const ended = endOf(visitor);
    visitor.write('SSH-2.0-OpenSSH_9.6\r\n');
    expect(await ended).toBe('ECONNRESET');
    await expectOver(path, path.members);
    expect([asked(path.members), served(path.members), dispatches(path)]).toEqual([[1, 1, 1], [0, 0, 0], 1]);
    expect([...path.relay.totals.refused]).toEqual([['dial-refused', 1]]);
  });

  it('while the edge shuts down; then pending connections are reset with the others', async () => {
    const path = await startGroup([refusing, silent]);
    const ended = endOf(path.visit());
    await eventually(() => expect(asked(path.members)).toEqual([1, 1]));
    path.relay.resetAll();
    expect(await ended).toBe('ECONNRESET');
    await expectOver(path, path.members);
  });
});

it('a dispatch counts for the owner of the member that served it', async () => {
  const group = newGroup();
  const alice = { kind: 'account', accountId: 'alice' } as const;
  const bob = { kind: 'account', accountId: 'bob' } as const;
  const members = [
    await stage.startMember(refusing, { group, tunnelId: 'tun_1', owner: alice }),
    await stage.startMember(echoing, { group, tunnelId: 'tun_2', owner: bob }),
  ];
  const path = await stage.startRelay(group);
  expect((await sendAll(path.visit(), Buffer.from('x'))).toString()).toBe('x');
  const seenBy = [alice, bob].map((viewer) => group.tally(viewer).totalDispatches);
  expect([seenBy, served(members)]).toEqual([
    [0, 1],
    [0, 1],
  ]);
});

describe('connection limits in a group', () => {
  it('a full member leaves visitors to other members; when all are full, the visitor is reset', async () => {
    const sink = kept(await startSinkServer());
    const path = await startGroup([dialling(sink.port), dialling(sink.port)], { perTunnel: 2, perAddress: 100 });
    for (let n = 0; n < 4; n++) path.visit().write('x');
    await eventually(() => expect([served(path.members), open(path.members)]).toEqual(Array(2).fill([2, 2])));
    expect(await endOf(path.visit())).toBe('ECONNRESET');
    expect([...path.relay.totals.refused]).toEqual([['tunnel-limit', 1]]);
    expect(dispatches(path)).toBe(4);
  });

  it('a connection does not move to a full member', async () => {
    const sink = kept(await startSinkServer());
    const offered: MuxStream[] = [];
    const first: OnStream = (stream) => offered.push(stream);
    const path = await startGroup([first, dialling(sink.port)], { perTunnel: 1, perAddress: 100 });
    const mover = path.visit();
    await eventually(() => expect(asked(path.members)).toEqual([1, 0]));
    path.visit().write('x');
    await eventually(() => expect(served(path.members)).toEqual([0, 1]));
    const ended = endOf(mover);
    for (const stream of offered) refusing(stream);
    await passSilence(path);
    expect(await ended).toBe('ECONNRESET');
    expect([asked(path.members), open(path.members), path.counts.total]).toEqual([[1, 1], [0, 1], 1]);
  });

  it('a visitor without a service counts for its address while it waits', async () => {
    const path = await startGroup([refusing], { perTunnel: 100, perAddress: 2 });
    const ends = [endOf(path.visit()), endOf(path.visit())];
    await eventually(() => expect(path.clock.pendingTimers).toBe(2));
    expect([path.relay.connections, path.counts.of('grp_1'), open(path.members)]).toEqual([2, 2, [0]]);
    expect(await endOf(path.visit())).toBe('ECONNRESET');
    expect(path.gate.admission.refusals.get('address-limit')).toBe(1);
    await passSilence(path);
    expect(await Promise.all(ends)).toEqual(['ECONNRESET', 'ECONNRESET']);
    await expectOver(path, path.members);
  });
});

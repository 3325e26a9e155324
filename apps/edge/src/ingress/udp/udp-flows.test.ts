// Datagrams through a port of the edge, a real session and a client: datagrams that pass, datagrams dropped under each reason, and the
// life of a flow.

import type { DatagramStream } from '@tunnel/mux';
import { eventually, rethrow } from '@tunnel/testkit';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { echoing, refusing, UdpStage, type UdpStand } from './udp.fixture.ts';
import { UDP_DECIDING_DATAGRAMS } from './udp-flow.ts';

const stage = new UdpStage();
afterEach(() => stage.clear());

/** The value of FLOWS_OPENING_MAX in the edge. */
const OPENING_MAX = 128;

/** Creates a client that accepts flows and sends no replies. */
const silent = (streams: DatagramStream[], got: string[] = []) => ({
  onFlow: (stream: DatagramStream): void => {
    streams.push(stream);
    stream.accept();
    stream.read({
      onDatagram: (bytes, start, end) => void got.push(bytes.toString('latin1', start, end)),
      onReset: () => {},
      abandon: rethrow,
    });
  },
});

const expectNothingLeft = ({ listeners, counts, tunnel, totals, pair }: UdpStand): Promise<void> =>
  eventually(() => {
    expect([listeners.connections, totals.flows, counts.total, tunnel.counters.openConnections]).toEqual([0, 0, 0, 0]);
    expect(pair.edge.liveStreams).toBe(0);
  });

describe('a UDP flow', () => {
  it('carries whole datagrams in both directions from the port of the tunnel, and counts once with its payload', async () => {
    const stand = await stage.start();
    const port = await stand.open();
    const visitor = await stand.visitor(port);
    for (const text of ['a', '', 'b'.repeat(1400), 'c'.repeat(60_000)]) await visitor.echo(text);
    expect(new Set(visitor.from)).toEqual(new Set([`127.0.0.1:${port}`]));
    expect(stand.heads).toEqual([expect.objectContaining({ tunnelId: 'tun_1', visitor: visitor.name })]);
    expect([stand.tunnel.counters.requests, stand.tunnel.counters.bytes]).toEqual([1, 2 * 61_401]);
    expect(stand.totals).toMatchObject({ requests: 1, flows: 1, datagramsIn: 4, datagramsOut: 4 });
    const [flow] = stand.listeners.at(port)?.flows(10) ?? [];
    expect(flow).toMatchObject({
      isConfirmed: true,
      datagramsIn: 4,
      datagramsOut: 4,
      bytesIn: 61_401,
      bytesOut: 61_401,
    });
    expect(stand.dropped()).toEqual({});
  });

  it('never gets replies to another flow', async () => {
    const stand = await stage.start();
    const port = await stand.open();
    const visitors = await Promise.all(Array.from({ length: 20 }, () => stand.visitor(port)));
    for (let round = 0; round < 5; round += 1) {
      for (const [n, visitor] of visitors.entries()) visitor.say(`${n} in ${round}`);
    }
    // If the machine stands still for a moment, some datagrams are late and dropped. Every datagram that did not arrive must be counted.
    const sum = (counts: Iterable<number>): number => [...counts].reduce((all, one) => all + one, 0);
    const lost = (): number => sum(Object.values(stand.dropped()));
    await eventually(() => expect(sum(visitors.map(({ heard }) => heard.length)) + lost()).toBe(100));
    for (const [n, { heard }] of visitors.entries()) {
      const said = [0, 1, 2, 3, 4].map((round) => `${n} in ${round}`);
      expect(heard).toEqual(said.filter((text) => heard.includes(text)));
    }
    expect(lost()).toBeLessThan(50);
    expect(stand.listeners.connections).toBe(stand.tunnel.counters.requests);
  });

  it('ends after its idle time, and sooner after a single answered question', async () => {
    const stand = await stage.start();
    const port = await stand.open();
    const asked = await stand.visitor(port);
    const talked = await stand.visitor(port);
    await asked.echo('one question');
    await talked.echo('one');
    await talked.echo('two');
    await stand.clock.advance(12_000);
    expect(stand.listeners.at(port)?.flowCount).toBe(1);
    await stand.clock.advance(50_000);
    await expectNothingLeft(stand);
    expect(stand.ended.count).toBe(2);
    await talked.echo('three');
    expect(stand.tunnel.counters.requests).toBe(3);
  });

  it('uses the idle time that its tunnel requested', async () => {
    const stand = await stage.start({ onFlow: silent([]).onFlow });
    const port = await stand.open();
    stand.routes.set(port, { ...stand.tunnel, flowIdleSecs: 5 });
    (await stand.visitor(port)).say('hello');
    await eventually(() => expect(stand.totals.datagramsIn).toBe(1));
    await stand.clock.advance(4000);
    expect(stand.totals.flows).toBe(1);
    await stand.clock.advance(3000);
    await expectNothingLeft(stand);
  });

  it('survives its carrier: the next datagram opens a new stream, and the flow stays confirmed', async () => {
    const stand = await stage.start();
    const port = await stand.open();
    const visitor = await stand.visitor(port);
    await visitor.echo('before');
    await visitor.echo('confirmed');
    stand.lose();
    visitor.say('lost');
    await eventually(() => expect(stand.dropped()).toEqual({ away: 1 }));
    await stand.comeBack();
    await visitor.echo('after');
    expect(stand.heads).toHaveLength(2);
    expect([stand.tunnel.counters.requests, stand.totals.requests, stand.listeners.connections]).toEqual([1, 1, 1]);
    expect(stand.listeners.at(port)?.flows(1)).toEqual([
      expect.objectContaining({ isConfirmed: true, datagramsIn: 3, dropped: 1 }),
    ]);
  });

  it('gets unsolicited replies as long as it lives, and none afterwards', async () => {
    const streams: DatagramStream[] = [];
    const stand = await stage.start(silent(streams));
    const visitor = await stand.visitor(await stand.open());
    visitor.say('hello');
    await eventually(() => expect(streams).toHaveLength(1));
    const [stream] = streams;
    stream?.send(Buffer.from('one'), 0, 3);
    await eventually(() => expect(visitor.heard).toEqual(['one']));
    await stand.clock.advance(12_000);
    await expectNothingLeft(stand);
    expect(stream?.send(Buffer.from('two'), 0, 3)).toBe('away');
  });
});

describe('a dropped datagram counts under one reason', () => {
  it('away: the client is not connected, and no flow is kept', async () => {
    const stand = await stage.start();
    const port = await stand.open();
    stand.lose();
    const visitor = await stand.visitor(port);
    for (let n = 0; n < 5; n += 1) visitor.say('hello');
    await eventually(() => expect(stand.dropped()).toEqual({ away: 5 }));
    expect(stand.totals.datagramsIn).toBe(0);
    expect([stand.tunnel.counters.requests, stand.tunnel.counters.bytes]).toEqual([0, 0]);
  });

  it('local: the client refuses the flow, which ends, and its earlier datagrams count as dropped', async () => {
    const stand = await stage.start({ onFlow: refusing });
    const visitor = await stand.visitor(await stand.open());
    visitor.say('hello');
    await eventually(() => expect(stand.dropped()).toEqual({ local: 1 }));
    await expectNothingLeft(stand);
    expect([stand.tunnel.counters.requests, stand.tunnel.counters.bytes, stand.totals.datagramsIn]).toEqual([0, 0, 0]);
  });

  it('unconfirmed: replies exceed the budget of a visitor that has not answered; its next datagram lifts the limit', async () => {
    const streams: DatagramStream[] = [];
    const stand = await stage.start({ ...silent(streams), rules: { unconfirmedReplyBytes: 3000 } });
    const visitor = await stand.visitor(await stand.open());
    visitor.say('hello');
    await eventually(() => expect(streams).toHaveLength(1));
    for (let n = 0; n < 5; n += 1) streams[0]?.send(Buffer.alloc(1000), 0, 1000);
    await eventually(() => expect(stand.dropped()).toEqual({ unconfirmed: 2 }));
    await eventually(() => expect(visitor.heard).toHaveLength(3));
    visitor.say('I am here');
    await eventually(() => expect(stand.totals.datagramsIn).toBe(2));
    streams[0]?.send(Buffer.alloc(1000), 0, 1000);
    await eventually(() => expect(visitor.heard).toHaveLength(4));
  });

  it('loop: the datagram comes from a port for UDP tunnels of the same machine', async () => {
    const range = { from: 0, to: 65_535 };
    const stand = await stage.start({ range });
    const visitor = await stand.visitor(await stand.open());
    visitor.say('hello');
    await eventually(() => expect(stand.dropped()).toEqual({ loop: 1 }));
    expect(stand.totals.flows).toBe(0);
  });

  it('rate: one network opens too many new flows', async () => {
    const stand = await stage.start({ rules: { newFlowsPerSecond: 2 } });
    const port = await stand.open();
    const visitors = await Promise.all(Array.from({ length: 6 }, () => stand.visitor(port)));
    for (const visitor of visitors) visitor.say('hello');
    await eventually(() => expect(stand.dropped()).toEqual({ rate: 2 }));
    await eventually(() => expect(stand.totals.requests).toBe(4));
  });

  it('limit: all flows of the tunnel are confirmed, so that a new visitor gets no flow', async () => {
    const stand = await stage.start({ perTunnel: 2 });
    const port = await stand.open();
    const first = await stand.visitor(port);
    const second = await stand.visitor(port);
    const third = await stand.visitor(port);
    for (const visitor of [first, second]) {
      await visitor.echo('one');
      await visitor.echo('two');
    }
    third.say('no room');
    await eventually(() => expect(stand.dropped()).toEqual({ limit: 1 }));
    await first.echo('three');
    expect(stand.totals.flows).toBe(2);
  });

  it('limit: too many new flows wait for an answer of the client; existing flows continue', async () => {
    let isBusy = false;
    const stand = await stage.start({
      onFlow: (stream, head) => (isBusy ? undefined : echoing(stream, head)),
      perTunnel: 1000,
      perAddress: 1000,
    });
    const port = await stand.open();
    const living = await stand.visitor(port);
    await living.echo('one');
    await living.echo('two');
    isBusy = true;
    // On a busy machine, the client would count as behind before too many flows wait for it.
    vi.spyOn(stand.pair.edge, 'takesFlows', 'get').mockReturnValue(true);
    const flood = await Promise.all(Array.from({ length: OPENING_MAX + 20 }, () => stand.visitor(port)));
    for (const visitor of flood) visitor.say('hello');
    // On a busy machine, the client can be behind, so that the first datagram of an accepted flow is dropped.
    await eventually(() => expect({ ...stand.dropped(), behind: 0 }).toEqual({ limit: 20, behind: 0 }));
    expect(stand.totals.flows).toBe(OPENING_MAX + 1);
    // Sends the datagram until a reply arrives, because a busy machine can drop some datagrams.
    await eventually(() => {
      living.say('three');
      expect(living.heard).toContain('three');
    });
  });

  it('share: no datagram is dropped when a full edge evicts flows of the account beyond its share', async () => {
    const stand = await stage.start({ flowsMax: 8, accountShare: 0.25 });
    // If the machine stands still for a moment, the client looks as if it were behind, and is offered no new flows.
    vi.spyOn(stand.pair.edge, 'takesFlows', 'get').mockReturnValue(true);
    const [greedy, modest] = ['greedy', 'modest'].map((accountId) => ({
      ...stand.tunnel,
      tunnelId: `tun_${accountId}`,
      owner: { kind: 'account' as const, accountId },
    }));
    const portOf = async (tunnel = stand.tunnel): Promise<number> => {
      const port = await stand.open(tunnel.tunnelId);
      stand.routes.set(port, tunnel);
      return port;
    };
    const first = await portOf(greedy);
    const second = await portOf(modest);
    const crowd = await Promise.all(Array.from({ length: 8 }, () => stand.visitor(first)));
    for (const visitor of crowd) await visitor.echo('one');
    for (const visitor of crowd.slice(1)) {
      await stand.clock.advance(10);
      await visitor.echo('two');
    }
    expect(stand.totals.flows).toBe(8);
    const own = [await stand.visitor(second), await stand.visitor(second)];
    for (const visitor of own) await visitor.echo('one');
    // The only unconfirmed flow was evicted first, then the confirmed flow that was silent longest.
    const left = stand.listeners
      .at(first)
      ?.flows(10)
      .map(({ port }) => port);
    const portsOf = crowd.slice(2).map(({ socket }) => socket.address().port);
    expect(new Set(left)).toEqual(new Set(portsOf));
    // From now on, a new flow of the account replaces an older flow of the same account.
    for (const visitor of crowd) await visitor.echo('three');
    for (const visitor of own) await visitor.echo('two');
    expect([stand.totals.flows, stand.listeners.at(second)?.flowCount, stand.dropped()]).toEqual([8, 2, {}]);
    expect(stand.heads.filter(({ tunnelId }) => tunnelId === 'tun_modest')).toHaveLength(2);
    stand.listeners.resetConnections();
    expect([stand.totals.flows, stand.counts.total]).toEqual([0, 0]);
  });

  it('share: the operator has all flows of the edge, so that a new visitor gets no flow', async () => {
    const stand = await stage.start({ flowsMax: 2, accountShare: 0.25 });
    const port = await stand.open();
    const visitors = [await stand.visitor(port), await stand.visitor(port), await stand.visitor(port)];
    for (const visitor of visitors) visitor.say('hello');
    await eventually(() => expect(stand.dropped()).toEqual({ share: 1 }));
    expect([stand.totals.flows, stand.counts.total]).toEqual([2, 2]);
  });

  it('behind: a client that falls behind is offered no new flows; confirmed flows continue', async () => {
    const stand = await stage.start();
    const port = await stand.open();
    const talking = await stand.visitor(port);
    const newcomer = await stand.visitor(port);
    await talking.echo('one');
    await talking.echo('two');
    const behind = vi.spyOn(stand.pair.edge, 'takesFlows', 'get').mockReturnValue(false);
    newcomer.say('is anybody there?');
    await eventually(() => expect(stand.dropped()).toEqual({ behind: 1 }));
    // The edge creates no flow for the new visitor, and evicts no other flow.
    expect([stand.heads.length, stand.totals.flows, stand.listeners.at(port)?.flowCount]).toEqual([1, 1, 1]);
    await talking.echo('three');
    behind.mockRestore();
    await newcomer.echo('now?');
    expect([stand.heads.length, stand.tunnel.counters.requests]).toEqual([2, 2]);
  });

  it('path: the datagram path refuses the datagram; the flow stays', async () => {
    const stand = await stage.start();
    const visitor = await stand.visitor(await stand.open());
    await visitor.echo('one');
    stand.pair.edge.datagramPath = { isUp: true, maxPayloadBytes: 1000, send: () => false };
    visitor.say('two');
    await eventually(() => expect(stand.dropped()).toEqual({ path: 1 }));
    stand.pair.edge.datagramPath = null;
    await visitor.echo('three');
    expect(stand.tunnel.counters.requests).toBe(1);
  });
});

describe('decide()', () => {
  it('is called once per flow; a refusal is remembered for a while', async () => {
    const asked: string[] = [];
    const stand = await stage.start({ decide: (visitor) => (asked.push(visitor), 'deny') });
    const visitor = await stand.visitor(await stand.open());
    for (let n = 0; n < 4; n += 1) visitor.say('hello');
    await eventually(() => expect(stand.dropped()).toEqual({ denied: 4 }));
    expect(asked).toEqual(['127.0.0.1']);
    expect([stand.totals.flows, stand.counts.total, stand.heads]).toEqual([0, 0, []]);
    await stand.clock.advance(11_000);
    visitor.say('again');
    await eventually(() => expect(stand.dropped()).toEqual({ denied: 5 }));
    expect(asked).toHaveLength(2);
  });

  it.each(['at once', 'later'])(
    'can refuse %s; a limited number of refusals is remembered, and other flows are decided again',
    async (when) => {
      const asked: string[] = [];
      const stand = await stage.start({
        deniedMax: 2,
        decide: (visitor) => (asked.push(visitor), when === 'later' ? Promise.resolve('deny') : 'deny'),
      });
      const port = await stand.open();
      const hosts = ['127.0.0.2', '127.0.0.3', '127.0.0.4'];
      const visitors = await Promise.all(hosts.map((host) => stand.visitor(port, host)));
      for (let n = 0; n < 9; n += 1) {
        visitors[n % 3]?.sayTo('127.0.0.1', 'hello');
        await eventually(() => expect(stand.dropped()).toEqual({ denied: n + 1 }));
      }
      expect(asked).toEqual([...hosts, '127.0.0.4', '127.0.0.4']);
      expect([stand.totals.denied, stand.listeners.at(port)?.flowCount]).toEqual([2, 2]);
      await stand.clock.advance(11_000);
      expect([stand.totals.denied, stand.totals.flows]).toEqual([0, 0]);
      visitors[2]?.sayTo('127.0.0.1', 'again');
      await eventually(() => expect(stand.totals.denied).toBe(1));
      await stand.listeners.close(port);
      stand.listeners.free(port);
      expect(stand.totals.denied).toBe(0);
    },
  );

  it('runs before the limit of the tunnel, so that a refused flow takes no place and reports no end', async () => {
    const stand = await stage.start({ perTunnel: 1, rules: { flowsPerTunnel: 10 }, decide: () => 'deny' });
    expect(stand.counts.begin(stand.tunnel.tunnelId)).toBe(true);
    const visitor = await stand.visitor(await stand.open());
    visitor.say('hello');
    await eventually(() => expect(stand.dropped()).toEqual({ denied: 1 }));
    expect([stand.totals.flows, stand.counts.total, stand.ended.count]).toEqual([0, 1, 0]);
  });

  it('can take time: eight datagrams wait in order, and more are dropped', async () => {
    let decide: (verdict: 'allow' | 'deny') => void = () => {};
    const [streams, got]: [DatagramStream[], string[]] = [[], []];
    const stand = await stage.start({
      ...silent(streams, got),
      decide: () => new Promise((resolve) => (decide = resolve)),
    });
    const visitor = await stand.visitor(await stand.open());
    for (let n = 0; n < 10; n += 1) visitor.say(String(n));
    await eventually(() => expect(stand.dropped()).toEqual({ limit: 2 }));
    expect(stand.heads).toEqual([]);
    decide('allow');
    await eventually(() => expect(got).toEqual(['0', '1', '2', '3', '4', '5', '6', '7']));
    expect(UDP_DECIDING_DATAGRAMS).toBe(8);
  });

  it('lets at most 16 KiB wait, and waiting datagrams of a refused flow count as denied', async () => {
    let decide: (verdict: 'allow' | 'deny') => void = () => {};
    const stand = await stage.start({ decide: () => new Promise((resolve) => (decide = resolve)) });
    const visitor = await stand.visitor(await stand.open());
    for (let n = 0; n < 3; n += 1) visitor.say(Buffer.alloc(7000));
    await eventually(() => expect(stand.dropped()).toEqual({ limit: 1 }));
    decide('deny');
    await eventually(() => expect(stand.dropped()).toEqual({ limit: 1, denied: 2 }));
    await expectNothingLeft(stand);
  });

  it('that fails ends the flow and is reported; the next datagram is decided again', async () => {
    let isBroken = true;
    const stand = await stage.start({
      decide: () => (isBroken ? Promise.reject(new Error('broken')) : 'allow'),
    });
    const visitor = await stand.visitor(await stand.open());
    visitor.say('hello');
    await eventually(() => expect(stand.reported).toEqual(['udp.decided']));
    await expectNothingLeft(stand);
    isBroken = false;
    await visitor.echo('again');
  });
});

it('in any order of events, every datagram is passed once or dropped under one reason', async () => {
  const stand = await stage.start({ perTunnel: 8, rules: { newFlowsPerSecond: 50 }, onFlow: echoing });
  const port = await stand.open();
  const visitors = await Promise.all(Array.from({ length: 20 }, () => stand.visitor(port)));
  let said = 0;
  for (let round = 0; round < 30; round += 1) {
    for (const [n, visitor] of visitors.entries()) {
      if ((n * 7 + round * 3) % 5 === 0) continue;
      visitor.say(`${n}`);
      said += 1;
    }
    if (round === 10) stand.lose();
    if (round === 20) await stand.comeBack();
    const expected = said;
    await eventually(() => {
      const dropped = Object.values(stand.listeners.dropped).reduce((sum, count) => sum + count, 0);
      expect(stand.totals.datagramsIn + dropped).toBe(expected);
    });
    await stand.clock.advance(500);
  }
  const { datagramsOut, bytesToClient, bytesToVisitor } = stand.totals;
  await eventually(() => expect(visitors.reduce((sum, { heard }) => sum + heard.length, 0)).toBe(datagramsOut));
  expect(stand.tunnel.counters.bytes).toBe(bytesToClient + bytesToVisitor);
});

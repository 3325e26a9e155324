// The public ports of UDP tunnels: opened, kept while their client is away, handed to the next tunnel, drained.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { DatagramStream } from '@tunnel/mux';
import type { Logger } from '@tunnel/runtime';
import { eventually, freePort } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { openGate } from '../gate.fixture.ts';
import { echoing, HOST, tunnelOn, UdpStage } from './udp.fixture.ts';

const stage = new UdpStage();
afterEach(() => stage.clear());

/** Returns a port in use by another program. */
const takenPort = async (): Promise<number> => {
  const socket = createSocket('udp4').bind(0, HOST);
  await once(socket, 'listening');
  stage.use(() => socket.close());
  return socket.address().port;
};

const isFree = async (port: number): Promise<boolean> => {
  const socket = createSocket('udp4').bind(port, HOST);
  const free = await once(socket, 'listening').then(
    () => true,
    () => false,
  );
  socket.close();
  return free;
};

describe('a UDP port', () => {
  it('that is already in use, by another program or by the edge, is reported as taken', async () => {
    const { listeners } = await stage.start();
    expect(await listeners.listen(await takenPort(), 'alice')).toBe('taken');
    const port = await freePort();
    expect(await Promise.all([listeners.listen(port, 'alice'), listeners.listen(port, 'alice')])).toEqual([
      'listening',
      'taken',
    ]);
  });

  it('on an address that does not belong to the machine is a fault that names the port range', async () => {
    const { listeners } = await stage.start({ host: '192.0.2.1' });
    await expect(listeners.listen(20_100, 'alice')).rejects.toMatchObject({
      code: 'CONFIG_PORT_DENIED',
      values: { key: '[limits] udp_port_range', reason: 'EADDRNOTAVAIL' },
    });
  });

  it('on `::` accepts IPv4 and IPv6 visitors and reports their plain addresses', async () => {
    const stand = await stage.start({ host: '::' });
    const port = await stand.open();
    const four = await stand.visitor(port);
    const six = await stand.visitor(port, '::1');
    await four.echo('over IPv4');
    await six.echo('over IPv6');
    expect(stand.heads.map(({ visitor }) => visitor)).toEqual([four.name, six.name]);
    expect(four.name).toMatch(/^127\.0\.0\.1:\d+$/);
  });

  it('counts for its account until it is freed, even while its client is away; a failed opening does not count', async () => {
    const stand = await stage.start();
    const { listeners, gate } = stand;
    for (let n = 0; n < gate.admission.portsPerAccount - 1; n += 1) gate.openPort('alice');
    expect(await listeners.listen(await takenPort(), 'alice')).toBe('taken');
    const port = await stand.open();
    await listeners.close(port);
    await expect(listeners.listen(await freePort(), 'alice')).rejects.toMatchObject({ code: 'TUNNEL_PORT_LIMIT' });
    listeners.free(port);
    await eventually(async () => expect(await listeners.listen(await freePort(), 'alice')).toBe('listening'));
    expect(openGate().admission.portsPerAccount).toBe(gate.admission.portsPerAccount);
  });

  it('logs the size of the receive buffer only once', async () => {
    const lines: object[] = [];
    const nothing = (): void => {};
    const logger = { debug: nothing, warn: nothing, error: nothing, info: (fields: object) => void lines.push(fields) };
    const stand = await stage.start({ logger: logger as unknown as Logger });
    await stand.open();
    await stand.open();
    expect(lines).toEqual([{ asked_bytes: 4 * 1024 * 1024, given_bytes: expect.any(Number) }]);
  });
});

describe('a UDP port with an absent client', () => {
  it('stays bound, drops datagrams and starts no flow', async () => {
    const stand = await stage.start();
    const port = await stand.open();
    await stand.listeners.close(port);
    stand.routes.delete(port);
    const visitor = await stand.visitor(port);
    for (let n = 0; n < 3; n += 1) visitor.say('hello');
    await eventually(() => expect(stand.dropped()).toEqual({ away: 3 }));
    expect([stand.listeners.at(port)?.flowCount, await isFree(port)]).toEqual([0, false]);
  });

  it('continues its flows when the same tunnel is back', async () => {
    const stand = await stage.start();
    const port = await stand.open();
    const visitor = await stand.visitor(port);
    await visitor.echo('one');
    await visitor.echo('two');
    await stand.listeners.close(port);
    stand.routes.delete(port);
    stand.lose();
    visitor.say('lost');
    await eventually(() => expect(stand.dropped()).toEqual({ away: 1 }));
    await stand.comeBack();
    expect(await stand.listeners.listen(port, 'alice')).toBe('listening');
    stand.routes.set(port, stand.tunnel);
    await visitor.echo('three');
    expect([stand.tunnel.counters.requests, stand.totals.flows]).toEqual([1, 1]);
    expect(stand.listeners.at(port)?.dropped.away).toBe(1);
  });

  it('ends its flows and starts new counts when another tunnel gets the port', async () => {
    const stand = await stage.start();
    const port = await stand.open('alice');
    const visitor = await stand.visitor(port);
    await visitor.echo('to the first');
    await stand.listeners.close(port);
    visitor.say('lost');
    await eventually(() => expect(stand.dropped()).toEqual({ away: 1 }));
    expect(await stand.listeners.listen(port, 'bob')).toBe('listening');
    const next = tunnelOn(stand.upstream, 'tun_2');
    stand.routes.set(port, next);
    await visitor.echo('to the second');
    expect([stand.tunnel.counters.requests, next.counters.requests, stand.totals.flows]).toEqual([1, 1, 1]);
    expect(stand.heads.map(({ tunnelId }) => tunnelId)).toEqual(['tun_1', 'tun_2']);
    expect([stand.listeners.at(port)?.dropped.away, stand.listeners.dropped.away]).toEqual([0, 1]);
  });

  it('ends all flows of the previous account as soon as another account gets the port', async () => {
    const streams: DatagramStream[] = [];
    const stand = await stage.start({
      onFlow: (stream, head) => {
        streams.push(stream);
        echoing(stream, head);
      },
    });
    const port = await stand.open('alice');
    const visitor = await stand.visitor(port);
    await visitor.echo('to the first');
    await stand.listeners.close(port);
    expect(await stand.listeners.listen(port, 'bob')).toBe('listening');
    const on = stand.listeners.at(port);
    expect([on?.flows(10), on?.flowCount, stand.totals.flows]).toEqual([[], 0, 0]);
    await eventually(() => expect(streams[0]?.state).toBe('closed'));
    stand.routes.set(port, tunnelOn(stand.upstream, 'tun_2'));
    await visitor.echo('to the second');
    expect(visitor.heard).toEqual(['to the first', 'to the second']);
  });

  it('is unbound and ends its flows once it is no longer kept for the client', async () => {
    const stand = await stage.start();
    const port = await stand.open();
    await (await stand.visitor(port)).echo('hello');
    stand.listeners.free(port);
    expect(stand.totals.flows).toBe(1);
    await stand.listeners.close(port);
    stand.listeners.free(port);
    expect([stand.totals.flows, stand.counts.total]).toEqual([0, 0]);
    await eventually(async () => expect(await isFree(port)).toBe(true));
    expect(stand.clock.pendingTimers).toBe(0);
    expect(await stand.listeners.listen(port, 'alice')).toBe('listening');
  });
});

describe('the shutdown of the edge', () => {
  it('lets no UDP flow begin, and existing flows continue until they are reset', async () => {
    const stand = await stage.start();
    const port = await stand.open();
    const living = await stand.visitor(port);
    const late = await stand.visitor(port);
    await living.echo('one');
    await stand.listeners.closeAll();
    late.say('too late');
    await eventually(() => expect(stand.dropped()).toEqual({ away: 1 }));
    await living.echo('two');
    let isIdle = false;
    void stand.listeners.whenIdle().then(() => (isIdle = true));
    expect(stand.listeners.connections).toBe(1);
    stand.listeners.resetConnections();
    await eventually(() => expect(isIdle).toBe(true));
    await eventually(async () => expect(await isFree(port)).toBe(true));
  });

  it('does not wait for UDP flows to a client that is away or leaves meanwhile', async () => {
    const stand = await stage.start();
    const away = await stand.open();
    const going = await stand.open();
    for (const port of [away, going]) await (await stand.visitor(port)).echo('hello');
    await stand.listeners.close(away);
    await stand.listeners.closeAll();
    expect(stand.listeners.connections).toBe(1);
    const idle = stand.listeners.whenIdle();
    await stand.listeners.close(going);
    await idle;
    expect(stand.listeners.connections).toBe(0);
  });

  it('is complete when the last UDP flow has been silent for its idle time', async () => {
    const stand = await stage.start();
    const port = await stand.open();
    await (await stand.visitor(port)).echo('one question');
    await stand.listeners.closeAll();
    const idle = stand.listeners.whenIdle();
    await stand.clock.advance(12_000);
    await idle;
    expect(stand.listeners.connections).toBe(0);
  });
});

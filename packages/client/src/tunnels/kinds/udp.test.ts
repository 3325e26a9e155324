import type { DatagramReader, DatagramStream } from '@tunnel/mux';
import { CAPABILITIES, type StreamReason } from '@tunnel/protocol';
import {
  eventually,
  FakeClock,
  rethrow,
  type SessionPair,
  sessionPair,
  startUdpEcho,
  startUdpService,
  type UdpService,
} from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OpenFlows } from '../../local/open-flows.ts';
import type { StatusEvent } from '../../status.ts';
import { LOCAL_DIAL_NOTICE_EVERY_MS, StreamHandler } from '../stream-handler.ts';
import { TunnelEntry } from '../tunnel.ts';
import { specOfTunnel, type TunnelOptions } from '../tunnel-spec.ts';

let pair: SessionPair;
let handler: StreamHandler;
let clock: FakeClock;
let tunnels: Map<string, TunnelEntry>;
let events: StatusEvent[];
let echo: UdpService;
let arrived: number;
let isExpecting: boolean;
const services: UdpService[] = [];

beforeEach(async () => {
  clock = new FakeClock();
  tunnels = new Map();
  events = [];
  arrived = 0;
  isExpecting = false;
  handler = new StreamHandler({
    clock,
    find: (tunnelId) => tunnels.get(tunnelId),
    expectsTunnels: () => isExpecting,
    checkTarget: () => null,
    checkLater: () => Promise.resolve(),
    emit: (event) => events.push(event),
    report: rethrow,
    tap: (visitor) => visitor,
    flows: new OpenFlows(() => 32),
  });
  pair = await sessionPair({
    kind: 'plain',
    carriers: 2,
    capabilities: CAPABILITIES,
    client: {
      onStream: (stream, head) => handler.onStream(stream, head),
      onDatagramStream: (stream, head) => {
        arrived += 1;
        handler.onDatagramStream(stream, head);
      },
    },
  });
  echo = await serve(startUdpEcho());
});
afterEach(async () => {
  pair.close();
  await eventually(() => expect(handler.served).toBe(0));
  await Promise.all(services.splice(0).map((service) => service.close().catch(() => {})));
});

const serve = async (starting: Promise<UdpService>): Promise<UdpService> => {
  const service = await starting;
  services.push(service);
  return service;
};

const openTunnel = (localPort: number, more: Partial<TunnelOptions> = {}): TunnelEntry => {
  const deps = { backoff: { connected: () => {} } as never, owner: undefined as never };
  const tunnel = new TunnelEntry(specOfTunnel({ protocol: 'udp', localPort, ...more }), deps);
  const tunnelId = `tun_${tunnels.size + 1}`;
  tunnel.registered({
    type: 'TunnelRegistered',
    request_id: 'r',
    tunnel_id: tunnelId,
    name: 'udp',
    protocol: tunnel.protocol,
    label: '20153',
    public_url: 'udp://192.0.2.1:20153',
    assigned_port: 20_153,
    warnings: [],
  });
  tunnels.set(tunnelId, tunnel);
  return tunnel;
};

/** A visitor as seen by the edge's ingress: a flow, with datagrams even before the flow is accepted. */
class Visitor implements DatagramReader {
  readonly heard: Buffer[] = [];
  refused: StreamReason | null = null;
  reset: StreamReason | null = null;
  readonly stream: DatagramStream;

  constructor({ tunnelId }: { readonly tunnelId: string }, visitor = '203.0.113.9:50000') {
    const stream = pair.edge.openDatagrams(
      { tunnelId, visitor },
      {
        onOpened: () => {},
        onRefused: (reason) => {
          this.refused = reason;
        },
        abandon: rethrow,
      },
    );
    if (stream === null) throw new Error('there is no carrier');
    stream.read(this);
    this.stream = stream;
  }

  say(given: string | Buffer): string {
    const bytes = Buffer.from(given);
    return this.stream.send(bytes, 0, bytes.length);
  }

  get texts(): string[] {
    return this.heard.map(String);
  }

  onDatagram(bytes: Buffer, start: number, end: number): void {
    this.heard.push(Buffer.from(bytes.subarray(start, end)));
  }

  onReset(reason: StreamReason): void {
    this.reset = reason;
  }

  abandon(error: unknown): void {
    rethrow(error);
  }
}

const faults = (): StatusEvent[] => events.filter((event) => event.type === 'local-error');

describe('a visitor of a udp tunnel', () => {
  it('reaches the local service with the first datagram, and is counted', async () => {
    const tunnel = openTunnel(echo.port);
    const visitor = new Visitor(tunnel);
    expect(visitor.say('hello')).toBe('sent');
    await eventually(() => expect(visitor.texts).toEqual(['hello']));
    expect(tunnel.counts).toEqual({ connections: 1, open: 1, requests: 0, edgeAnswered: 0, bytesIn: 5, bytesOut: 5 });
    expect(handler.served).toBe(1);
    visitor.stream.reset({ code: 'cancelled', text: 'idle' });
    await eventually(() => expect(handler.served).toBe(0));
    expect(tunnel.counts).toEqual({ connections: 1, open: 0, requests: 0, edgeAnswered: 0, bytesIn: 5, bytesOut: 5 });
    expect(tunnel.dropped).toEqual({});
  });

  it('has a separate socket, so that no visitor gets the responses of another', async () => {
    const tunnel = openTunnel(echo.port);
    const visitors = Array.from({ length: 20 }, () => new Visitor(tunnel));
    for (const [index, visitor] of visitors.entries()) for (const n of [0, 1, 2]) visitor.say(`${index}-${n}`);
    for (const [index, visitor] of visitors.entries()) {
      await eventually(() => expect(visitor.texts).toEqual([`${index}-0`, `${index}-1`, `${index}-2`]));
    }
    expect(new Set(echo.received.map(({ from }) => from)).size).toBe(20);
  });

  it('gets datagrams of 0 to 65,507 bytes whole and once', async () => {
    const visitor = new Visitor(openTunnel(echo.port));
    const lengths = [0, 1, 1200, 9000, 65_507];
    for (const [index, length] of lengths.entries()) {
      visitor.say(Buffer.alloc(length, length % 251));
      await eventually(() => expect(visitor.heard).toHaveLength(index + 1));
      expect(visitor.heard[index]?.equals(Buffer.alloc(length, length % 251))).toBe(true);
    }
    expect(echo.received.map(({ bytes }) => bytes.length)).toEqual(lengths);
  });

  it('gets datagrams that the service sends unasked', async () => {
    const visitor = new Visitor(openTunnel(echo.port));
    visitor.say('here I am');
    await eventually(() => expect(visitor.heard).toHaveLength(1));
    echo.send('news', echo.received[0]?.from ?? 0);
    await eventually(() => expect(visitor.texts).toEqual(['here I am', 'news']));
  });

  it('that arrives before the registration response waits, and loses no datagram', async () => {
    isExpecting = true;
    const visitor = new Visitor({ tunnelId: 'tun_1' });
    visitor.say('early');
    await eventually(() => expect(arrived).toBe(1));
    expect(handler.served).toBe(0);
    openTunnel(echo.port);
    handler.recheck();
    await eventually(() => expect(visitor.texts).toEqual(['early']));
  });

  it('beyond the flow limit is refused and reported, and the next one is admitted when a flow ends', async () => {
    const tunnel = openTunnel(echo.port);
    const visitors = Array.from({ length: 25 }, () => new Visitor(tunnel));
    const [first] = visitors;
    const over = visitors.at(-1);
    await eventually(() => expect(over?.refused).toMatchObject({ code: 'limit' }));
    expect(faults()).toMatchObject([
      { fault: { code: 'CLIENT_FLOW_LIMIT', message: 'limit of 24 UDP flows reached for this client' } },
    ]);
    expect(handler.served).toBe(24);
    first?.stream.reset({ code: 'cancelled', text: 'idle' });
    await eventually(() => expect(handler.served).toBe(23));
    const next = new Visitor(tunnel);
    next.say('let in');
    await eventually(() => expect(next.texts).toEqual(['let in']));
  });

  it('is refused when tunnel and stream are of different kinds', async () => {
    const flow = new Visitor(openTunnel(echo.port, { protocol: 'tcp' }));
    await eventually(() => expect(flow.refused?.code).toBe('unknown-tunnel'));
    const refusals: StreamReason[] = [];
    pair.edge.open(
      { tunnelId: openTunnel(echo.port).tunnelId, visitor: '' },
      { onOpened: () => {}, onRefused: (reason) => refusals.push(reason), abandon: rethrow },
    );
    await eventually(() => expect(refusals).toMatchObject([{ code: 'unknown-tunnel' }]));
  });
});

describe('the local service of a udp tunnel', () => {
  it('is reported as unreachable once per interval, and the flow works once the service starts', async () => {
    await echo.close();
    const visitor = new Visitor(openTunnel(echo.port));
    visitor.say('lost');
    await eventually(() => expect(faults()).toHaveLength(1));
    expect(faults()[0]).toMatchObject({
      fault: { code: 'CLIENT_LOCAL_DIAL', message: `cannot connect to 127.0.0.1:${echo.port}: connection refused` },
    });
    await clock.advance(LOCAL_DIAL_NOTICE_EVERY_MS - 1);
    for (let n = 0; n < 20; n += 1) visitor.say('lost, and not told');
    await clock.advance(1);
    await eventually(() => {
      visitor.say('lost');
      expect(faults()).toHaveLength(2);
    });
    const back = await serve(startUdpEcho({ port: echo.port }));
    await eventually(() => {
      visitor.say('back');
      expect(visitor.texts).toContain('back');
    });
    expect(back.received.length).toBeGreaterThan(0);
    expect(faults()).toHaveLength(2);
    expect([visitor.refused, visitor.reset]).toEqual([null, null]);
  });

  it('counts each datagram once as dropped while the service is down', async () => {
    await echo.close();
    const tunnel = openTunnel(echo.port);
    const visitor = new Visitor(tunnel, '198.51.100.7:4242');
    for (let n = 1; n <= 5; n += 1) {
      visitor.say('alone');
      await eventually(() => expect(tunnel.dropped).toEqual({ local: n }));
    }
    for (let n = 0; n < 20; n += 1) visitor.say('together');
    await eventually(() => expect(tunnel.dropped).toEqual({ local: 25 }));
    expect(tunnel.unreported.take()).toEqual([
      { visitor: '198.51.100.7:4242', direction: 'in', reason: 'local', datagrams: 25 },
    ]);
    expect(tunnel.unreported.take()).toEqual([]);
  });

  it('loses no datagram when the client was busy for a moment', async () => {
    const service = await serve(startUdpService(() => null));
    const visitor = new Visitor(openTunnel(service.port));
    visitor.say('hello');
    await eventually(() => expect(service.received).toHaveLength(1));
    // Sends 150 datagrams within one turn, while the client cannot read. The default socket buffer is too small for 150 datagrams; the
    // larger buffer requested by the client is granted by every Linux.
    for (let n = 0; n < 150; n += 1) service.send(Buffer.alloc(1200, n), service.received[0]?.from ?? 0);
    await eventually(() =>
      expect(visitor.heard.map(([first]) => first)).toEqual(Array.from({ length: 150 }, (_, n) => n)),
    );
  });

  it('can listen on IPv6', async () => {
    const service = await serve(startUdpEcho({ host: '::1' }));
    const visitor = new Visitor(openTunnel(service.port, { localHost: '::1' }));
    visitor.say('six');
    await eventually(() => expect(visitor.texts).toEqual(['six']));
  });

  it('is found by host name even if it listens on only one of the addresses', async () => {
    const tunnel = openTunnel(echo.port, { localHost: 'localhost' });
    // If localhost resolves to ::1 first, the first flow finds the port closed there and is reset; the next flow uses the other address.
    const visitors: Visitor[] = [];
    await eventually(() => {
      if (visitors.at(-1)?.reset !== null) visitors.push(new Visitor(tunnel));
      visitors.at(-1)?.say('by name');
      expect(visitors.at(-1)?.texts).toContain('by name');
    });
    expect(visitors.length).toBeLessThanOrEqual(2);
  });

  it('with an unknown host name refuses the visitor and reports the reason', async () => {
    const visitor = new Visitor(openTunnel(echo.port, { localHost: 'no-such-host.invalid' }));
    await eventually(() => expect(visitor.refused?.code).toBe('dial-refused'));
    expect(faults()).toMatchObject([{ fault: { code: 'CLIENT_LOCAL_DIAL' } }]);
    expect(handler.served).toBe(0);
  });
});

describe('the PROXY header of a flow', () => {
  const HEADER_BYTES = 28;

  it('precedes only the first datagram', async () => {
    const service = await serve(startUdpService(() => Buffer.from('ok')));
    const tunnel = openTunnel(service.port, { proxyProtocol: 'v2' });
    for (const from of ['198.51.100.1:4660', '198.51.100.2:4660']) {
      const visitor = new Visitor(tunnel, from);
      visitor.say('one');
      visitor.say('two');
      await eventually(() => expect(visitor.texts).toEqual(['ok', 'ok']));
    }
    // A PROXY v2 header in hex: signature, version 2, command PROXY, DGRAM over IPv4, 12 bytes; then the visitor, 192.0.2.1, and the
    // ports 4660 and 20153.
    const header = (host: string): string => `0d0a0d0a000d0a515549540a2112000c${host}c00002011234${'4eb9'}`;
    const text = (hex: string): string => Buffer.from(hex).toString('hex');
    expect(service.received.map(({ bytes }) => bytes.toString('hex'))).toEqual([
      header('c6336401') + text('one'),
      text('two'),
      header('c6336402') + text('one'),
      text('two'),
    ]);
    expect(tunnel.counts.bytesIn).toBe(12);
  });

  it('that leaves no room drops the datagram, and precedes the next one', async () => {
    const service = await serve(startUdpService(() => null));
    const tunnel = openTunnel(service.port, { proxyProtocol: 'v2' });
    const visitor = new Visitor(tunnel);
    visitor.say(Buffer.alloc(65_507 - HEADER_BYTES + 1));
    visitor.say(Buffer.alloc(65_507 - HEADER_BYTES));
    await eventually(() => expect(service.received.map(({ bytes }) => bytes.length)).toEqual([65_507]));
    expect(tunnel.dropped).toEqual({ 'too-large': 1 });
  });
});

describe('the end of a UDP flow', () => {
  const tickFor = (seconds: number): void => {
    for (let second = 0; second < seconds; second += 1) handler.tick((ticks += 1000));
  };
  let ticks = 0;

  beforeEach(() => {
    ticks = 0;
  });

  it('comes from the client once the edge has forgotten the flow, and not earlier', async () => {
    const tunnel = openTunnel(echo.port, { idleSecs: 5 });
    const visitor = new Visitor(tunnel);
    visitor.say('hello');
    await eventually(() => expect(visitor.heard).toHaveLength(1));
    tickFor(35);
    expect(tunnel.counts.open).toBe(1);
    visitor.say('again');
    await eventually(() => expect(visitor.heard).toHaveLength(2));
    tickFor(35);
    expect(tunnel.counts.open).toBe(1);
    tickFor(10);
    await eventually(() => expect(visitor.reset?.code).toBe('timeout'));
    expect(tunnel.counts.open).toBe(0);
  });

  it('delays the end of the client only while datagrams flow', async () => {
    const tunnel = openTunnel(echo.port);
    const silent = new Visitor(tunnel);
    const busy = new Visitor(tunnel);
    silent.say('a');
    busy.say('a');
    await eventually(() => expect([silent.heard.length, busy.heard.length]).toEqual([1, 1]));
    let isIdle = false;
    void handler.whenIdle().then(() => {
      isIdle = true;
    });
    for (let second = 1; second <= 4; second += 1) {
      busy.say('b');
      await eventually(() => expect(busy.heard).toHaveLength(1 + second));
      tickFor(1);
    }
    await eventually(() => expect(silent.reset).not.toBeNull());
    expect([busy.reset, isIdle]).toEqual([null, false]);
    tickFor(3);
    await eventually(() => expect([busy.reset?.code, isIdle]).toEqual(['timeout', true]));
  });

  it('follows the loss of its carrier', async () => {
    const tunnel = openTunnel(echo.port);
    const visitor = new Visitor(tunnel);
    visitor.say('hello');
    await eventually(() => expect(visitor.heard).toHaveLength(1));
    for (const carrier of pair.carriers) carrier.destroy('cut');
    await eventually(() => expect(handler.served).toBe(0));
    expect(tunnel.counts.open).toBe(0);
  });
});

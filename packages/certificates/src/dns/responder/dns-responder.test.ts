import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { connect, type Socket } from 'node:net';
import type { networkInterfaces } from 'node:os';
import { systemClock } from '@tunnel/runtime';
import { type DnsServer, eventually, FakeClock, startDnsServer } from '@tunnel/testkit';
import packet from 'dns-packet';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { challengesConformance } from '../dns-challenges.conformance.ts';
import { untilSeen } from '../dns-challenges.ts';
import { DnsLookups } from '../lookups.ts';
import { DnsResponder } from './dns-responder.ts';
import { addressesFor } from './own-addresses.ts';

const DOMAIN = 'tunnels.test';
const ORIGIN = `_acme-challenge.${DOMAIN}`;
const host = '127.0.0.1';

const lookupsAt = (dns: DnsServer): DnsLookups => new DnsLookups({ resolvers: [dns.address], clock: systemClock });

describe('challenges set in the built-in DNS responder', () => {
  challengesConformance(async () => {
    const dns = await startDnsServer();
    const lookups = lookupsAt(dns);
    const responder = new DnsResponder({ domain: DOMAIN, host, port: 0, lookups, clock: systemClock });
    await responder.start();
    dns.delegate(ORIGIN, { host, port: responder.port });
    dns.set('_acme-challenge.shop.test', 'CNAME', ORIGIN);
    return {
      challenges: responder,
      name: ORIGIN,
      otherName: `token.${ORIGIN}`,
      alias: '_acme-challenge.shop.test',
      close: async () => {
        lookups.close();
        await Promise.all([responder.stop(), dns.close()]);
      },
    };
  });
});

describe('the DNS responder over its sockets', () => {
  let clock: FakeClock;
  let dns: DnsServer;
  let lookups: DnsLookups;
  let responder: DnsResponder;
  let resolver: Resolver;

  beforeEach(async () => {
    clock = new FakeClock();
    dns = await startDnsServer();
    lookups = lookupsAt(dns);
    responder = new DnsResponder({ domain: DOMAIN, host, port: 0, lookups, clock });
    await responder.start();
    resolver = new Resolver({ timeout: 1000, tries: 2 });
    resolver.setServers([`${host}:${responder.port}`]);
  });

  afterEach(async () => {
    resolver.cancel();
    lookups.close();
    await Promise.all([responder.stop(), dns.close()]);
    await eventually(() => expect(clock.pendingTimers).toBe(0));
  });

  const question = packet.encode({ type: 'query', id: 1, questions: [{ name: ORIGIN, type: 'TXT' }] });
  const framed = (bytes: Buffer): Buffer =>
    Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]);

  const dial = async (): Promise<{ socket: Socket; got: () => number; isClosed: () => boolean }> => {
    const socket = connect({ host, port: responder.port });
    let bytes = 0;
    let closed = false;
    socket
      .on('error', () => {})
      .on('close', () => (closed = true))
      .on('data', (chunk) => (bytes += chunk.length));
    await new Promise((resolve) => socket.once('connect', resolve));
    return { socket, got: () => bytes, isClosed: () => closed };
  };

  it('answers a resolver by UDP, long answers by TCP, and refuses names outside of its zone', async () => {
    await responder.set(ORIGIN, 'short');
    expect(await resolver.resolveTxt(ORIGIN)).toEqual([['short']]);
    for (let at = 0; at < 30; at += 1) await responder.set(ORIGIN, `${at}`.padStart(43, 'x'));
    expect(await resolver.resolveTxt(ORIGIN)).toHaveLength(31);
    expect(await resolver.resolveNs(ORIGIN)).toEqual([DOMAIN]);
    expect(await resolver.resolveSoa(ORIGIN)).toMatchObject({ nsname: DOMAIN, minttl: 1 });
    await expect(resolver.resolve4(ORIGIN)).rejects.toMatchObject({ code: 'ENODATA' });
    // An empty answer contains the SOA record of the zone, which does not make the queried name a zone.
    await expect(resolver.resolveSoa(`below.${ORIGIN}`)).rejects.toMatchObject({ code: 'ENODATA' });
    await expect(resolver.resolve4('example.com')).rejects.toMatchObject({ code: 'EREFUSED' });
    await expect(responder.set('elsewhere.test', 'v')).rejects.toMatchObject({ code: 'DNS_OUTSIDE_ZONE' });
  });

  it('answers spoofed queries of one network without amplification after the first 20', async () => {
    const socket = createSocket('udp4');
    const sizes: number[] = [];
    socket.on('message', ({ length }) => sizes.push(length));
    const empty = packet.encode({ type: 'query', id: 1, questions: [{ name: `none.${ORIGIN}`, type: 'TXT' }] });
    for (let sent = 1; sent <= 30; sent += 1) {
      await new Promise<void>((resolve) => socket.send(empty, responder.port, host, () => resolve()));
      await eventually(() => expect(sizes).toHaveLength(sent));
    }
    expect(sizes.slice(0, 20).every((size) => size > empty.length)).toBe(true);
    expect(new Set(sizes.slice(20))).toEqual(new Set([empty.length]));
    socket.close();
  });

  it('drops and counts malformed queries, and queries of one address above its rate', async () => {
    const socket = createSocket('udp4');
    let answers = 0;
    socket.on('message', () => (answers += 1));
    const send = (bytes: Buffer): Promise<void> =>
      new Promise((resolve) => socket.send(bytes, responder.port, host, () => resolve()));
    for (let at = 0; at < 20; at += 1) await send(Buffer.alloc(at, 0xff));
    await eventually(() => expect(responder.counts.malformed).toBe(20));
    // Queries are sent in small batches, because the system drops datagrams that do not fit in the socket's buffer.
    for (let sent = 10; sent <= 300; sent += 10) {
      for (let at = 0; at < 10; at += 1) await send(question);
      await eventually(() => expect(responder.counts.answered + responder.counts.overRate).toBe(sent));
    }
    expect(responder.counts).toMatchObject({ answered: 180, overRate: 120 });
    await eventually(() => expect(answers).toBe(180));
    await clock.advance(1000);
    await send(question);
    await eventually(() => expect(responder.counts.answered).toBe(181));
    socket.close();
  });

  it('reads queries over TCP in any fragments, and several on one connection', async () => {
    const { socket, got } = await dial();
    const stream = Buffer.concat([framed(question), framed(question), framed(question)]);
    for (const byte of stream) {
      await new Promise((resolve) => socket.write(Buffer.from([byte]), resolve));
    }
    await eventually(() => expect(responder.counts.answered).toBe(3));
    await eventually(() => expect(got()).toBeGreaterThan(3 * 40));
    socket.destroy();
  });

  it('closes TCP connections that announce 64 KiB, are silent for 10 s, or send garbage', async () => {
    const long = await dial();
    long.socket.write(Buffer.concat([Buffer.from([0xff, 0xff]), Buffer.alloc(65_535)]));
    await eventually(() => expect(long.isClosed()).toBe(true));
    expect(responder.counts.malformed).toBe(1);
    const garbage = await dial();
    garbage.socket.write(framed(Buffer.alloc(100, 0xff)));
    await eventually(() => expect(garbage.isClosed()).toBe(true));
    expect(responder.counts.malformed).toBe(2);
    const slow = await dial();
    slow.socket.write(framed(question).subarray(0, 5));
    await eventually(() => expect(clock.pendingTimers).toBe(1));
    await clock.advance(9999);
    expect(slow.isClosed()).toBe(false);
    await clock.advance(1);
    await eventually(() => expect(slow.isClosed()).toBe(true));
  });

  it('allows eight connections per address, and keeps answering over UDP', async () => {
    const held = await Promise.all(Array.from({ length: 20 }, dial));
    await eventually(() => expect(held.filter(({ isClosed }) => isClosed())).toHaveLength(12));
    expect(responder.counts.crowdedOut).toBe(12);
    expect(await resolver.resolveNs(ORIGIN)).toEqual([DOMAIN]);
    for (const { socket } of held) socket.destroy();
    await eventually(() => expect(clock.pendingTimers).toBe(0));
  });

  it('names the setting of a port that is already in use', async () => {
    const second = new DnsResponder({ domain: DOMAIN, host, port: responder.port, lookups, clock });
    await expect(second.start()).rejects.toMatchObject({
      message: `port ${responder.port} on ${host} is already in use ([dns] port)`,
    });
    await second.stop();
    expect(responder.addresses).toEqual([`${host}:${responder.port}`]);
  });

  it('listens on every non-loopback address of the machine for a wildcard address', async () => {
    const wide = new DnsResponder({ domain: DOMAIN, host: '0.0.0.0', port: 0, lookups, clock });
    await wide.start();
    const own = addressesFor('0.0.0.0');
    expect(wide.problems).toEqual([]);
    expect(wide.addresses).toEqual(own.map((address) => `${address}:${wide.port}`));
    await wide.stop();
    expect(wide.addresses).toEqual([]);
  });

  it('checks a record every 2 s until it is visible, for at most 120 s', async () => {
    dns.delegate(ORIGIN, { host, port: responder.port });
    const signal = new AbortController().signal;
    const record = { name: ORIGIN, value: 'v' };
    const seen: boolean[] = [];
    const challenges = {
      ...record,
      set: () => Promise.resolve(),
      clear: () => Promise.resolve(),
      isSeen: () => Promise.resolve(seen.push(false) === 4),
    };
    const first = untilSeen(challenges, record, { clock, signal });
    await clock.advance(6000);
    expect([await first, seen.length]).toEqual([true, 4]);
    const never = untilSeen(challenges, record, { clock, signal });
    await clock.advance(120_000);
    expect([await never, seen.length]).toEqual([false, 4 + 61]);
    const stopping = new AbortController();
    const stopped = untilSeen(challenges, record, { clock, signal: stopping.signal });
    await clock.advance(2000);
    stopping.abort();
    expect(await stopped).toBe(false);
  });
});

describe('a wildcard listening address', () => {
  const address = (text: string, internal = false) =>
    ({ address: text, internal, family: text.includes(':') ? 'IPv6' : 'IPv4' }) as never;
  const MACHINE: ReturnType<typeof networkInterfaces> = {
    lo: [address('127.0.0.1', true), address('::1', true)],
    eth0: [address('203.0.113.7'), address('2001:db8::7'), address('fe80::1')],
    wg0: [address('10.0.0.1')],
  };

  it("covers the machine's addresses, except for loopback and link-local addresses", () => {
    expect(addressesFor('0.0.0.0', MACHINE)).toEqual(['203.0.113.7', '10.0.0.1']);
    expect(addressesFor('::', MACHINE)).toEqual(['203.0.113.7', '2001:db8::7', '10.0.0.1']);
    expect(addressesFor('0.0.0.0', { lo: MACHINE['lo'] })).toEqual(['127.0.0.1']);
    expect(addressesFor('192.0.2.9', MACHINE)).toEqual(['192.0.2.9']);
  });
});

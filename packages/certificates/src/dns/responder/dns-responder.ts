// The built-in DNS responder for dns-01: serves only the challenge zone, over UDP and TCP. Makes no queries, and drops excess queries of a
// network.
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { Fault } from '@tunnel/errors';
import { prefixKeyOf } from '@tunnel/rules/flows';
import { SlidingWindows } from '@tunnel/rules/rate';
import type { Clock } from '@tunnel/runtime';
import { type DnsChallenges, isTextSeen } from '../dns-challenges.ts';
import type { DnsLookups } from '../lookups.ts';
import { answerQuery } from './answer-query.ts';
import { ChallengeZone } from './challenge-zone.ts';
import { addressesFor } from './own-addresses.ts';
import { TcpQueries } from './tcp-queries.ts';

export interface DnsResponderOptions {
  /** Domain of the edge: `[server] domain`. */
  readonly domain: string;
  /** Host to listen on. A wildcard address means every address of the machine except loopback. */
  readonly host: string;
  /** Port of the DNS responder. 0 picks a free port. */
  readonly port: number;
  readonly lookups: DnsLookups;
  readonly clock: Clock;
}

/** Counters of the DNS responder since the start. */
export interface ResponderCounts {
  readonly answered: number;
  readonly refused: number;
  readonly malformed: number;
  readonly overRate: number;
  /** TCP connections rejected or closed because all slots were taken. */
  readonly crowdedOut: number;
}

interface OpenSockets {
  readonly udp: readonly UdpSocket[];
  readonly tcp: readonly Server[];
  readonly port: number;
  readonly problems: readonly Fault[];
}

/** Attempts with port 0, because another program may use the port on the other transport or another address. */
const PORT_TRIES = 10;
/**
 * Query limit per network (IPv4 /24, IPv6 /56). Further queries are dropped.
 * @limit operator: DNS queries per second and network, built-in DNS responder | further queries are dropped
 */
const QUERIES = { perWindow: 200, windowMs: 1000, togetherMs: 1000, keys: 10_000 };
/** Beyond this limit, UDP answers omit the SOA record, so that answers to a forged address cannot flood a victim. */
const CALM_QUERIES = { ...QUERIES, perWindow: 20 };

export class DnsResponder implements DnsChallenges {
  readonly #options: DnsResponderOptions;
  readonly #zone: ChallengeZone;
  readonly #rates = new SlidingWindows(QUERIES);
  readonly #calm = new SlidingWindows(CALM_QUERIES);
  readonly #tcpQueries: TcpQueries;
  readonly #counts = { answered: 0, refused: 0, malformed: 0, overRate: 0, crowdedOut: 0 };
  #open: OpenSockets | null = null;

  constructor(options: DnsResponderOptions) {
    this.#options = options;
    const { clock, domain } = options;
    this.#zone = new ChallengeZone(domain, Math.floor(clock.now() / 1000));
    this.#tcpQueries = new TcpQueries({
      clock,
      answer: (bytes, address) => this.#answer(bytes, address, 'tcp'),
      onTooLong: () => {
        this.#counts.malformed += 1;
      },
      onCrowdedOut: () => {
        this.#counts.crowdedOut += 1;
      },
    });
  }

  get zone(): string {
    return this.#zone.origin;
  }

  /** Port of the DNS responder. 0 while not listening. */
  get port(): number {
    return this.#open?.port ?? 0;
  }

  /** Addresses on which the DNS responder listens, as text. */
  get addresses(): readonly string[] {
    return (this.#open?.tcp ?? []).map((server) => {
      const { address, port } = server.address() as AddressInfo;
      return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
    });
  }

  get counts(): ResponderCounts {
    return { ...this.#counts };
  }

  /** Why some addresses of the machine could not be opened, if the configured host is a wildcard address. */
  get problems(): readonly Fault[] {
    return this.#open?.problems ?? [];
  }

  /** Throws if no address could be opened. Single addresses may fail, for example if the bridge of a virtual machine has a DNS server. */
  async start(): Promise<void> {
    const { host, port } = this.#options;
    const addresses = addressesFor(host);
    for (let tries = 1; this.#open === null; tries += 1) {
      const open = await this.#openAll(addresses, port);
      const [problem] = open.problems;
      if (open.tcp.length > 0) this.#open = open;
      else if (problem !== undefined && (port !== 0 || tries >= PORT_TRIES)) throw problem;
    }
  }

  async stop(): Promise<void> {
    const open = this.#open;
    this.#open = null;
    this.#tcpQueries.close();
    if (open !== null) await closeAll(open);
  }

  set(name: string, value: string): Promise<void> {
    return new Promise((resolve) => resolve(this.#zone.set(name, value)));
  }

  clear(name: string, value: string): Promise<void> {
    this.#zone.clear(name, value);
    return Promise.resolve();
  }

  isSeen(name: string, value: string): Promise<boolean> {
    return isTextSeen(this.#options.lookups, name, value);
  }

  async #openAll(addresses: readonly string[], wanted: number): Promise<OpenSockets> {
    const open = { udp: [] as UdpSocket[], tcp: [] as Server[], problems: [] as Fault[], port: wanted };
    for (const host of addresses) {
      const server = createServer((socket) => this.#tcpQueries.accept(socket));
      const socket = createSocket({ type: host.includes(':') ? 'udp6' : 'udp4', ipv6Only: host.includes(':') });
      try {
        const port = await listening(server, host, open.port);
        await bound(socket, host, port);
        this.#receive(socket);
        open.port = port;
        open.tcp.push(server);
        open.udp.push(socket);
      } catch (error) {
        await closeAll({ udp: [socket], tcp: [server] });
        open.problems.push(Fault.from(error));
      }
    }
    return open;
  }

  #receive(socket: UdpSocket): void {
    // ICMP errors about clients that are gone are ignored.
    socket.on('error', () => {});
    socket.on('message', (bytes, from) => {
      const answer = this.#answer(bytes, from.address, 'udp');
      if (answer !== null) socket.send(answer, from.port, from.address, () => {});
    });
  }

  #answer(bytes: Buffer, address: string, over: 'udp' | 'tcp'): Buffer | null {
    const now = this.#options.clock.monotonic();
    const network = String(prefixKeyOf(address));
    if (this.#rates.take(network, now) > 0) {
      this.#counts.overRate += 1;
      return null;
    }
    const isShort = over === 'udp' && !this.#calm.hasRoom(network, now);
    if (!isShort) this.#calm.record(network, now);
    const outcome = answerQuery(bytes, this.#zone, over, isShort);
    this.#counts[outcome.kind] += 1;
    return outcome.kind === 'malformed' ? null : outcome.bytes;
  }
}

const KEY = '[dns] port';

const portFault = (error: unknown, host: string, port: number): Fault => {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return new Fault('CONFIG_PORT_TAKEN', { host, port, key: KEY });
  return new Fault('CONFIG_PORT_DENIED', { host, port, key: KEY, reason: code ?? message }, { cause: error });
};

const listening = async (server: Server, host: string, port: number): Promise<number> => {
  server.listen({ host, port, ipv6Only: true });
  try {
    await once(server, 'listening');
  } catch (error) {
    throw portFault(error, host, port);
  }
  // A failed accept only loses that connection. Without a listener the error would end the process.
  server.on('error', () => {});
  return (server.address() as AddressInfo).port;
};

const bound = async (socket: UdpSocket, host: string, port: number): Promise<void> => {
  socket.bind({ address: host, port, exclusive: true });
  try {
    await once(socket, 'listening');
  } catch (error) {
    throw portFault(error, host, port);
  }
};

const closeAll = async ({ udp, tcp }: Pick<OpenSockets, 'udp' | 'tcp'>): Promise<void> => {
  await Promise.all([
    ...udp.map((socket) => new Promise<void>((resolve) => socket.close(() => resolve()))),
    ...tcp.map((server) => new Promise<void>((resolve) => server.close(() => resolve()))),
  ]);
};

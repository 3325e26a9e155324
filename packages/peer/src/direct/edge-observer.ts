// Queries the edge's two UDP ports for the public address of a socket: sends sealed PINGs to each until both have answered or the time is
// up. All sockets of a client share the session's keys, and with them the packet counter.
import { randomBytes } from 'node:crypto';
import {
  type AnswerBudget,
  decodePong,
  encodePing,
  newAnswerBudget,
  type OpeningKey,
  readSealedKind,
  SEALED_KIND,
  SEALED_OVERHEAD_BYTES,
  type SealingKey,
} from '@tunnel/mux';
import type { Clock, Timer } from '@tunnel/runtime';
import type { PeerAddress } from '../transport/peer-transport.ts';
import { type AddressObserver, type AddressQuery, addressKey, type ObservedAddresses } from './candidates.ts';

/** Maximum number of PINGs that ask each of the edge's two UDP ports for the public address. */
export const PEER_OBSERVE_PINGS = 6;
/** Interval between PINGs. Six PINGs cover the round trip to a distant edge and leave time for hole punching within 3 s. */
export const PEER_OBSERVE_PING_EVERY_MS = 200;
/** Timeout of a query that has to wait because many sockets query at once. */
export const PEER_OBSERVE_MAX_MS = 10_000;

/** UDP ports and keys of the edge from the session's `DatagramPath`. Any socket of a client can use them to query its public address. */
export interface EdgeUdp {
  /** IP address of the edge, the same as for the control connection. */
  readonly host: string;
  readonly ports: readonly [number, number];
  readonly sealing: SealingKey;
  readonly opening: OpeningKey;
}

/**
 * Budgets per key, equal to the edge's answer limit and shared by all sockets. A socket that sent more PINGs would get no answers and
 * consider UDP blocked.
 */
const budgets = new WeakMap<SealingKey, AnswerBudget>();

const budgetOf = (key: SealingKey): AnswerBudget => {
  const budget = budgets.get(key) ?? newAnswerBudget();
  budgets.set(key, budget);
  return budget;
};

export const edgeObserver = (edge: EdgeUdp, clock: Clock): AddressObserver => ({
  ask: (send) => new EdgeQuery(edge, clock, send),
});

/** Classification by number of distinct addresses. A single address counts as consistent even if only one port answered. */
const PORTS_BY_COUNT = ['none', 'consistent', 'random'] as const;

class EdgeQuery implements AddressQuery {
  readonly result: Promise<ObservedAddresses>;
  readonly #edge: EdgeUdp;
  readonly #clock: Clock;
  readonly #send: (bytes: Buffer, to: PeerAddress) => void;
  /** Port of the edge to which each PING was sent, by the PING's token. */
  readonly #asked = new Map<string, number>();
  /** Public address of the socket as seen by the edge, by port of the edge. */
  readonly #seen = new Map<number, PeerAddress>();
  #resolve: (observed: ObservedAddresses) => void = () => {};
  #timer: Timer | null = null;
  #pingsLeft: number = PEER_OBSERVE_PINGS;
  readonly #budget: AnswerBudget;
  readonly #endsAt: number;

  constructor(edge: EdgeUdp, clock: Clock, send: (bytes: Buffer, to: PeerAddress) => void) {
    this.#edge = edge;
    this.#clock = clock;
    this.#send = send;
    this.#budget = budgetOf(edge.sealing);
    this.#endsAt = clock.monotonic() + PEER_OBSERVE_MAX_MS;
    this.result = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.#ping();
  }

  onDatagram(bytes: Buffer, from: PeerAddress): boolean {
    if (readSealedKind(bytes) !== SEALED_KIND.PONG || !this.#edge.ports.includes(from.port)) return false;
    const body = this.#edge.opening.open(bytes);
    const pong = typeof body === 'string' ? null : decodePong(body);
    // The PONG belongs to another path, or to another socket's query.
    if (pong === null) return false;
    const port = this.#asked.get(pong.token.toString('hex'));
    if (port === undefined) return true;
    this.#seen.set(port, { host: pong.address, port: pong.port });
    if (this.#seen.size === this.#edge.ports.length) this.stop();
    return true;
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
    const addresses = new Map([...this.#seen.values()].map((address) => [addressKey(address), address]));
    this.#resolve({ addresses: [...addresses.values()], ports: PORTS_BY_COUNT[addresses.size] ?? 'random' });
  }

  #ping(): void {
    const now = this.#clock.monotonic();
    if (this.#pingsLeft === 0 || now >= this.#endsAt) return this.stop();
    const isTurn = this.#edge.ports.every((port) => this.#seen.has(port) || this.#budget.take(now));
    if (isTurn) this.#pingBoth();
    this.#timer = this.#clock.setTimeout(() => this.#ping(), PEER_OBSERVE_PING_EVERY_MS);
  }

  #pingBoth(): void {
    this.#pingsLeft -= 1;
    for (const port of this.#edge.ports) {
      if (this.#seen.has(port)) continue;
      const token = randomBytes(8);
      const packet = sealedPacket(this.#edge.sealing, SEALED_KIND.PING, encodePing(token));
      if (packet === null) continue;
      this.#asked.set(token.toString('hex'), port);
      this.#send(packet, { host: this.#edge.host, port });
    }
  }
}

/** Returns a packet in newly allocated memory that a socket can keep. Returns null if the key is worn out. */
export const sealedPacket = (
  key: SealingKey,
  kind: (typeof SEALED_KIND)[keyof typeof SEALED_KIND],
  body: Buffer,
): Buffer | null => {
  const packet = Buffer.allocUnsafe(SEALED_OVERHEAD_BYTES + body.length);
  return key.seal(kind, body, packet, 0) < 0 ? null : packet;
};

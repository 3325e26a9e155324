// One round's datagrams between two peers under its keys: PROBE and PROBE_ACK to find a way, the same as pings on the way that was found, and
// datagrams of udp services. Only what opens counts, and an address that an authenticated probe came from is one to be tried.
import { randomBytes } from 'node:crypto';
import {
  type DatagramPathSlot,
  MUX_LIMITS,
  OpeningKey,
  type PathKeys,
  SEALED_KIND,
  SEALED_OVERHEAD_BYTES,
  SealingKey,
  sealedKindOf,
} from '@tunnel/mux';
import type { PeerAddress, PeerSocket } from '../transport/peer-transport.ts';
import { addressKey } from './candidates.ts';
import { sealedPacket } from './edge-observer.ts';

/** addresses that probes of one round go to: those offered, and those that probes came from */
export const PEER_PROBED_ADDRESSES_MAX = 16;
/** probes whose answers are still awaited; older ones would be answered too late to say anything */
const PEER_PROBES_UNANSWERED_MAX = 1024;
/** of send(): datagrams over it are dropped, since later they are worth less. 256 KiB of them */
const PEER_DATAGRAMS_QUEUED_MAX = 180;

const TOKEN_BYTES = 8;
/** Behind the token of a probe: what it is for. */
const PURPOSE_AT = TOKEN_BYTES;
const PROBE_BODY_BYTES = TOKEN_BYTES + 1;
const PURPOSE = { SEARCH: 0, IN_USE: 1 } as const;
const FLOW_BYTES = 4;

export interface ProbePathEvents {
  /** To a probe of ours: both directions work. Whatever else comes says less, and nothing that the other side's words do not. */
  onAnswered(): void;
  /** The other side pings from an address that was never tried: it has moved. */
  onMoved(): void;
  /** The memory is borrowed for the call. */
  onDatagram(flow: number, bytes: Buffer, start: number, end: number): void;
  /** A datagram leaves by this path. */
  onUsed(): void;
}

export class ProbePath implements DatagramPathSlot {
  readonly maxPayloadBytes = MUX_LIMITS.DATAGRAM_PATH_PAYLOAD_BYTES;
  /** Set by its owner, who knows whether both sides have it. */
  isUp = false;
  /** Datagrams of services, sealed, both ways. */
  datagramBytes = 0;
  /** Of the last answer. */
  rttMs: number | null = null;
  readonly #socket: PeerSocket;
  readonly #sealing: SealingKey;
  readonly #opening: OpeningKey;
  readonly #events: ProbePathEvents;
  readonly #now: () => number;
  readonly #addresses = new Map<string, PeerAddress>();
  /** By token, in the order they were sent: when. */
  readonly #unanswered = new Map<string, number>();
  /** Where the answer that opened the path came from. */
  #remote: PeerAddress | null = null;

  constructor(socket: PeerSocket, keys: PathKeys, events: ProbePathEvents, now: () => number) {
    this.#socket = socket;
    this.#sealing = new SealingKey(keys.id, keys.sealing);
    this.#opening = new OpeningKey(keys.id, keys.opening);
    this.#events = events;
    this.#now = now;
  }

  get remote(): PeerAddress | null {
    return this.#remote;
  }

  tryAt(addresses: readonly PeerAddress[]): void {
    for (const address of addresses) {
      if (this.#addresses.size < PEER_PROBED_ADDRESSES_MAX) this.#addresses.set(addressKey(address), address);
    }
  }

  /** To every address that it may be at. */
  probeAll(): void {
    for (const address of this.#addresses.values()) this.#probe(address, PURPOSE.SEARCH);
  }

  ping(): void {
    if (this.#remote !== null) this.#probe(this.#remote, PURPOSE.IN_USE);
  }

  /** From now on another answer may choose the address. */
  forgetRemote(): void {
    this.#remote = null;
  }

  send(flow: number, bytes: Buffer, start: number, end: number): boolean {
    const remote = this.#remote;
    if (remote === null || this.#socket.queuedDatagrams >= PEER_DATAGRAMS_QUEUED_MAX) return false;
    const body = Buffer.allocUnsafe(FLOW_BYTES + end - start);
    body.writeUInt32BE(flow, 0);
    bytes.copy(body, FLOW_BYTES, start, end);
    const packet = sealedPacket(this.#sealing, SEALED_KIND.DATAGRAM, body);
    if (packet === null) return false;
    this.datagramBytes += packet.length;
    this.#events.onUsed();
    this.#socket.send(packet, remote);
    return true;
  }

  /** false: not of this path. */
  receive(packet: Buffer, from: PeerAddress): boolean {
    const body = this.#opening.open(packet);
    if (typeof body === 'string') return false;
    switch (sealedKindOf(packet)) {
      case SEALED_KIND.PROBE:
        this.#onProbe(body, from);
        break;
      case SEALED_KIND.PROBE_ACK:
        this.#onAck(body, from);
        break;
      case SEALED_KIND.DATAGRAM:
        this.#onDatagram(body);
        break;
      default:
    }
    return true;
  }

  #onProbe(body: Buffer, from: PeerAddress): void {
    if (body.length !== PROBE_BODY_BYTES) return;
    this.#seal(SEALED_KIND.PROBE_ACK, body, from);
    const isNew = !this.#addresses.has(addressKey(from));
    if (isNew) this.tryAt([from]);
    // At once: the other side's NAT has this way open now, whatever ports it chooses.
    if (isNew && this.#remote === null) this.#probe(from, PURPOSE.SEARCH);
    // The two sides may use two ways, each of which both have tried; this one nobody has.
    if (isNew && this.isUp && body[PURPOSE_AT] === PURPOSE.IN_USE) this.#events.onMoved();
  }

  #onAck(body: Buffer, from: PeerAddress): void {
    const token = body.toString('hex', 0, TOKEN_BYTES);
    const sentAt = this.#unanswered.get(token);
    if (sentAt === undefined) return;
    this.#unanswered.delete(token);
    this.#remote ??= from;
    if (addressKey(this.#remote) === addressKey(from)) this.rttMs = this.#now() - sentAt;
    this.#events.onAnswered();
  }

  #onDatagram(body: Buffer): void {
    if (body.length < FLOW_BYTES) return;
    this.datagramBytes += SEALED_OVERHEAD_BYTES + body.length;
    this.#events.onDatagram(body.readUInt32BE(0), body, FLOW_BYTES, body.length);
  }

  #probe(to: PeerAddress, purpose: number): void {
    const body = Buffer.allocUnsafe(PROBE_BODY_BYTES);
    randomBytes(TOKEN_BYTES).copy(body);
    body[PURPOSE_AT] = purpose;
    if (this.#unanswered.size >= PEER_PROBES_UNANSWERED_MAX) {
      const [oldest] = this.#unanswered.keys();
      this.#unanswered.delete(oldest as string);
    }
    this.#unanswered.set(body.toString('hex', 0, TOKEN_BYTES), this.#now());
    this.#seal(SEALED_KIND.PROBE, body, to);
  }

  #seal(kind: typeof SEALED_KIND.PROBE | typeof SEALED_KIND.PROBE_ACK, body: Buffer, to: PeerAddress): void {
    const packet = sealedPacket(this.#sealing, kind, body);
    if (packet !== null) this.#socket.send(packet, to);
  }
}

// Datagrams of a round between two peers, sealed with its keys: PROBE and PROBE_ACK to find a path and to ping the path in use, and
// datagrams of UDP services. Only authenticated packets count. The source address of an authenticated probe is probed, too.
import { randomBytes } from 'node:crypto';
import {
  type DatagramPathSlot,
  MUX_LIMITS,
  OpeningKey,
  type PathKeys,
  readSealedKind,
  SEALED_KIND,
  SEALED_OVERHEAD_BYTES,
  SealingKey,
} from '@tunnel/mux';
import type { PeerAddress, PeerSocket } from '../transport/peer-transport.ts';
import { addressKey } from './candidates.ts';
import { sealedPacket } from './edge-observer.ts';

/** Maximum number of addresses probed in a round: offered addresses, and source addresses of received probes. */
export const PEER_PROBED_ADDRESSES_MAX = 16;
/** Maximum number of probes waiting for an answer. Answers to older probes would be too late. */
const PEER_PROBES_UNANSWERED_MAX = 1024;
/** Maximum number of datagrams queued in send(), about 256 KiB. Further datagrams are dropped, because late datagrams are worth less. */
const PEER_DATAGRAMS_QUEUED_MAX = 180;

const TOKEN_BYTES = 8;
/** Offset of the byte behind a probe's token that tells the probe's purpose. */
const PURPOSE_AT = TOKEN_BYTES;
const PROBE_BODY_BYTES = TOKEN_BYTES + 1;
const PURPOSE = { SEARCH: 0, IN_USE: 1 } as const;
const FLOW_BYTES = 4;

export interface ProbePathEvents {
  /** Called for an answer to our probe, which proves both directions. Other packets prove less and are not reported. */
  onAnswered(): void;
  /** Called when the other side pings from an unknown address, because it has moved. */
  onMoved(): void;
  /** Called with a datagram received on the direct path. The memory is valid only during the call. */
  onDatagram(flow: number, bytes: Buffer, start: number, end: number): void;
  /** Called when a datagram is sent on this direct path. */
  onUsed(): void;
}

export class ProbePath implements DatagramPathSlot {
  readonly maxPayloadBytes = MUX_LIMITS.DATAGRAM_PATH_PAYLOAD_BYTES;
  /** True while both sides use the direct path. Set by the owner. */
  isUp = false;
  /** Sealed bytes of service datagrams on this direct path, in both directions. */
  datagramBytes = 0;
  /** Round trip of the last probe that was answered. Null before the first answer. */
  rttMs: number | null = null;
  readonly #socket: PeerSocket;
  readonly #sealing: SealingKey;
  readonly #opening: OpeningKey;
  readonly #events: ProbePathEvents;
  readonly #now: () => number;
  readonly #addresses = new Map<string, PeerAddress>();
  /** Send times of unanswered probes by token, in the order they were sent. */
  readonly #unanswered = new Map<string, number>();
  /** Address of the other side: the source of the answer that opened the direct path. */
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

  /** Sends a probe to every candidate address of the other side. */
  probeAll(): void {
    for (const address of this.#addresses.values()) this.#probe(address, PURPOSE.SEARCH);
  }

  ping(): void {
    if (this.#remote !== null) this.#probe(this.#remote, PURPOSE.IN_USE);
  }

  /** Forgets the other side's address, so that the next answer chooses a new one. */
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

  /** Handles a received packet. Returns false if the packet does not belong to this direct path. */
  receive(packet: Buffer, from: PeerAddress): boolean {
    const body = this.#opening.open(packet);
    if (typeof body === 'string') return false;
    switch (readSealedKind(packet)) {
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
    // Probes immediately: the other side's NAT now has this mapping open, whichever port it chose.
    if (isNew && this.#remote === null) this.#probe(from, PURPOSE.SEARCH);
    // Both sides may use different paths if both were probed. A ping from an unprobed address means that the other side has moved.
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

// One end of a UDP path: opens what comes under its keys and hands it on, answers PINGs, sends datagrams and its own PINGs. Whether the path is
// used, and when it is pinged, is decided by core's path machine, which its owner drives.
import { randomBytes } from 'node:crypto';
import type { RemoteInfo } from 'node:dgram';
import { MUX_LIMITS } from './limits.ts';
import type { PacketSocket, PacketTarget } from './packet-socket.ts';
import { FLOW_ID_BYTES, kindOf, OpeningKey, SEALED_KIND, type SealedRefusal, SealingKey } from './sealed-datagram.ts';
import { decodePing, decodePong, encodePing, encodePong, type PingWord } from './sealed-ping.ts';

/** What both ends know of a path; each seals with the other's opening key. */
export interface PathKeys {
  readonly id: Buffer;
  readonly sealing: Buffer;
  readonly opening: Buffer;
}

/** Where packets go: a socket, and its peer unless it is connected. */
export interface PathRoute {
  readonly socket: PacketSocket;
  readonly to?: PacketTarget;
}

export interface UdpPathHandlers {
  /** Authenticated, of whatever kind: the only sign of life there is. */
  onHeard(): void;
  /** A PING of ours was answered: both directions work. */
  onAnswered(rttMs: number): void;
  /** The other end has left the path: it hears nothing of ours. */
  onLeft(): void;
  /** The memory is the callee's for the call alone. */
  onDatagram(flow: number, bytes: Buffer, start: number, end: number): void;
}

export interface UdpPathOptions {
  readonly keys: PathKeys;
  readonly now: () => number;
  readonly handlers: UdpPathHandlers;
}

export class UdpPath {
  /** As MuxSession's datagrams see it. Their owner says when. */
  isUp = false;
  readonly maxPayloadBytes = MUX_LIMITS.DATAGRAM_PATH_PAYLOAD_BYTES;
  /** null: nobody knows yet where the other end is. */
  route: PathRoute | null = null;
  /** When the last datagram went out: a path in use is looked at more often. */
  lastSentAt = Number.NEGATIVE_INFINITY;
  readonly sealing: SealingKey;
  readonly #opening: OpeningKey;
  readonly #now: () => number;
  readonly #handlers: UdpPathHandlers;
  readonly #answers: AnswerBudget;
  /** By token, in the order they were sent: when. */
  readonly #unanswered = new Map<string, number>();

  constructor({ keys, now, handlers }: UdpPathOptions) {
    this.sealing = new SealingKey(keys.id, keys.sealing);
    this.#opening = new OpeningKey(keys.id, keys.opening);
    this.#now = now;
    this.#handlers = handlers;
    this.#answers = new AnswerBudget(now());
  }

  /** Either key has been used so much that new ones should come. */
  get needsNewKeys(): boolean {
    return Math.max(this.sealing.sealed, this.#opening.highest) > MUX_LIMITS.SEALED_PACKETS_PER_KEY / 2;
  }

  /** false: dropped. */
  send(flow: number, bytes: Buffer, start: number, end: number): boolean {
    const { route } = this;
    if (route === null) return false;
    this.lastSentAt = this.#now();
    return route.socket.sendDatagram(this.sealing, flow, bytes, start, end, route.to);
  }

  ping(word: PingWord = 'none'): void {
    if (this.route === null) return;
    const token = randomBytes(8);
    if (this.#unanswered.size >= MUX_LIMITS.PATH_PINGS_UNANSWERED_MAX) {
      const [oldest] = this.#unanswered.keys();
      this.#unanswered.delete(oldest as string);
    }
    this.#unanswered.set(token.toString('hex'), this.#now());
    this.route.socket.send(this.sealing, SEALED_KIND.PING, encodePing(token, word), this.route.to);
  }

  /**
   * A packet with this path's id. null: it was one of the other end; else why it was dropped. `follow`: the other end is where its newest packet
   * came from, which is how it may roam.
   */
  receive(packet: Buffer, from: RemoteInfo, via: PacketSocket, follow: boolean): SealedRefusal | null {
    const before = this.#opening.highest;
    const body = this.#opening.open(packet);
    if (typeof body === 'string') return body;
    // One that others have overtaken says where the end was, not where it is.
    if (follow && this.#opening.highest > before) this.#follow(from, via);
    this.#handlers.onHeard();
    switch (kindOf(packet)) {
      case SEALED_KIND.DATAGRAM:
        return this.#onDatagram(body);
      case SEALED_KIND.PING:
        return this.#onPing(body, from, via, follow);
      case SEALED_KIND.PONG:
        return this.#onPong(body);
      default:
        return 'malformed';
    }
  }

  #follow(from: RemoteInfo, via: PacketSocket): void {
    const { route } = this;
    const isSame = route?.socket === via && route.to?.port === from.port && route.to.address === from.address;
    if (!isSame) this.route = { socket: via, to: { address: from.address, port: from.port } };
  }

  #onDatagram(body: Buffer): SealedRefusal | null {
    if (body.length < FLOW_ID_BYTES) return 'malformed';
    this.#handlers.onDatagram(body.readUInt32BE(0), body, FLOW_ID_BYTES, body.length);
    return null;
  }

  #onPing(body: Buffer, from: RemoteInfo, via: PacketSocket, isAddressed: boolean): SealedRefusal | null {
    const ping = decodePing(body);
    if (ping === null) return 'malformed';
    const pong = this.#answers.take(this.#now()) ? encodePong(ping.token, from.address, from.port) : null;
    if (pong !== null) via.send(this.sealing, SEALED_KIND.PONG, pong, isAddressed ? from : undefined);
    if (ping.word === 'left') this.#handlers.onLeft();
    return null;
  }

  #onPong(body: Buffer): SealedRefusal | null {
    const pong = decodePong(body);
    if (pong === null) return 'malformed';
    const token = pong.token.toString('hex');
    const sentAt = this.#unanswered.get(token);
    if (sentAt === undefined) return null;
    this.#unanswered.delete(token);
    this.#handlers.onAnswered(this.#now() - sentAt);
    return null;
  }
}

/** How many PINGs may be answered: so many a second, twice as many at once. */
export class AnswerBudget {
  #left = 2 * MUX_LIMITS.PATH_PINGS_ANSWERED_PER_SECOND;
  #atMs: number;

  constructor(nowMs: number) {
    this.#atMs = nowMs;
  }

  take(nowMs: number): boolean {
    const perSecond = MUX_LIMITS.PATH_PINGS_ANSWERED_PER_SECOND;
    this.#left = Math.min(2 * perSecond, this.#left + ((nowMs - this.#atMs) * perSecond) / 1000);
    this.#atMs = nowMs;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}

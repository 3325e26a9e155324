// An end of a UDP path: opens received packets, answers PINGs, sends datagrams, and drives the path machine, which decides when the path is
// used and pinged.
import { randomBytes } from 'node:crypto';
import type { RemoteInfo } from 'node:dgram';
import { TokenBucket, type TokenRate } from '@tunnel/rules/rate';
import { MUX_LIMITS } from '../limits.ts';
import type { Guarded, ReportInternalError } from '../loop/guard.ts';
import type { MuxClock, MuxTimer } from '../loop/mux-clock.ts';
import { DatagramBatch, readBatch } from './datagram-batch.ts';
import type { DatagramPathSlot } from './datagram-flows.ts';
import type { PacketSocket, PacketTarget } from './packet-socket.ts';
import {
  isPathUsed,
  PATH_OFF,
  type PathEffect,
  type PathEvent,
  type PathReason,
  type PathState,
  pathReasonOf,
  transitionPath,
  wantsUse,
} from './path-machine.rules.ts';
import {
  FLOW_ID_BYTES,
  OpeningKey,
  readKind,
  SEALED_KIND,
  type SealedKind,
  type SealedRefusal,
  SealingKey,
} from './sealed-datagram.ts';
import { decodePing, decodePong, encodePing, encodePong } from './sealed-ping.ts';

/** Id and keys of a path. Each end seals with the opening key of the opposite end. */
export interface PathKeys {
  readonly id: Buffer;
  readonly sealing: Buffer;
  readonly opening: Buffer;
}

/** Destination of packets: a socket, and the peer's address unless the socket is connected. */
export interface PathRoute {
  readonly socket: PacketSocket;
  readonly to?: PacketTarget;
}

export interface UdpPathOptions {
  readonly keys: PathKeys;
  /**
   * True on the edge: the peer's address is taken from its newest packet, so that clients can roam, and probing starts with the first
   * packet. False on the client, which begins with start().
   */
  readonly follows: boolean;
  /** Whether both ends agreed on packets with several datagrams (capability `datagram-batch`). */
  readonly batches?: boolean;
  readonly clock: MuxClock;
  /** Receives a datagram; the bytes are valid only during the call. */
  readonly onDatagram: (flow: number, bytes: Buffer, start: number, end: number) => void;
  /** Called when the path comes into use, goes out of use, or is unused for another reason. */
  readonly onChange?: () => void;
  /** Called when a path that was given up is tried again. A new socket may help. */
  readonly onRetry?: () => void;
  readonly report: ReportInternalError;
}

/** Transport of datagrams between client and edge, as shown in REST and events. The reason is empty for 'udp'. */
export interface DatagramWay {
  readonly path: 'udp' | 'carrier';
  readonly reason: '' | 'probing' | 'udp-blocked' | 'went-silent' | 'off';
}

/** Datagram transport of a session without a UDP path. */
export const DATAGRAMS_OFF: DatagramWay = { path: 'carrier', reason: 'off' };

/** Why a packet received on a UDP path was dropped. */
export type PathRefusal = SealedRefusal;

export class UdpPath implements DatagramPathSlot, Guarded {
  readonly maxPayloadBytes = MUX_LIMITS.DATAGRAM_PATH_PAYLOAD_BYTES;
  readonly sealing: SealingKey;
  readonly opening: OpeningKey;
  isUp = false;
  /** Where packets of this path are sent. Null until the other end's address is known. */
  route: PathRoute | null = null;
  readonly #options: UdpPathOptions;
  readonly #answers = newAnswerBudget();
  /** Datagrams of this event loop turn. Null if the other end takes only one datagram per packet. */
  readonly #batch: DatagramBatch | null;
  /** Tokens of PINGs on this path without a PONG, in the order sent. */
  readonly #unanswered = new Set<string>();
  #state: PathState = PATH_OFF;
  #wake: MuxTimer | null = null;
  #isOver = false;

  constructor(options: UdpPathOptions) {
    const { keys, batches = false } = options;
    this.sealing = new SealingKey(keys.id, keys.sealing);
    this.opening = new OpeningKey(keys.id, keys.opening, batches);
    this.#batch = batches ? new DatagramBatch((kind, body) => this.#sendBatch(kind, body)) : null;
    this.#options = options;
  }

  get way(): DatagramWay {
    return wayOf(pathReasonOf(this.#state));
  }

  /** True if a key has reached half of its packet limit and should be replaced. */
  get needsNewKeys(): boolean {
    return Math.max(this.sealing.sealed, this.opening.highest) > MUX_LIMITS.SEALED_PACKETS_PER_KEY / 2;
  }

  start(): void {
    if (!this.#isOver) this.#tell({ kind: 'started', beginAfterMs: 0 });
  }

  addressesChanged(): void {
    this.#tell({ kind: 'addresses-changed' });
  }

  /** Stops the UDP path permanently. Its keys are invalid from now on. */
  stop(): void {
    this.#batch?.flush();
    this.#isOver = true;
    this.#tell({ kind: 'switched-off' });
    this.route = null;
  }

  /** Sends a datagram on the UDP path. Returns false if the datagram was dropped. */
  send(flow: number, bytes: Buffer, start: number, end: number): boolean {
    const { route } = this;
    if (route === null || !route.socket.hasRoom || this.sealing.isWornOut) return false;
    if (wantsUse(this.#state)) this.#tell({ kind: 'used' });
    if (this.#batch === null) return route.socket.sendDatagram(this.sealing, flow, bytes, start, end, route.to);
    this.#batch.add(flow, bytes, start, end);
    return true;
  }

  /** The datagrams were accepted when there was room, so a queue that has filled since then does not drop them. */
  #sendBatch(kind: SealedKind, body: Buffer): void {
    this.route?.socket.sendAdmitted(this.sealing, kind, body, this.route.to);
  }

  /** Handles a packet with this path's id. Returns null if the packet was used, or the reason why it was dropped. */
  receive(packet: Buffer, from: RemoteInfo, via: PacketSocket): PathRefusal | null {
    if (this.#isOver) return 'forged';
    const before = this.opening.highest;
    const body = this.opening.open(packet);
    if (typeof body === 'string') return body;
    // A packet overtaken by newer packets shows an old address of the other end.
    if (this.#options.follows && this.opening.highest > before) this.#follow(from, via);
    // Any packet revives a path that was given up. A path in use relies on answers to its pings.
    if (this.#state.kind === 'down') this.#tell({ kind: 'heard', isAnswer: false });
    switch (readKind(packet)) {
      case SEALED_KIND.DATAGRAM:
        return this.#onDatagram(body);
      case SEALED_KIND.DATAGRAMS:
        return readBatch(body, this.#options.onDatagram) ? null : 'malformed';
      case SEALED_KIND.PING:
        return this.#onPing(body, from, via);
      case SEALED_KIND.PONG:
        return this.#onPong(body);
      default:
        return 'malformed';
    }
  }

  /** Stops this path after an internal error. No callback is called, because it could throw again. */
  abandon(error: unknown, where: string): void {
    this.#isOver = true;
    this.#state = PATH_OFF;
    this.isUp = false;
    this.#wake?.cancel();
    this.#options.report(error, where);
  }

  #follow(from: RemoteInfo, via: PacketSocket): void {
    const { route } = this;
    const isSame = route?.socket === via && route.to?.port === from.port && route.to.address === from.address;
    if (!isSame) this.route = { socket: via, to: { address: from.address, port: from.port } };
    if (this.#state.kind === 'off') this.start();
  }

  #onDatagram(body: Buffer): PathRefusal | null {
    if (body.length < FLOW_ID_BYTES) return 'malformed';
    this.#options.onDatagram(body.readUInt32BE(0), body, FLOW_ID_BYTES, body.length);
    return null;
  }

  #onPing(body: Buffer, from: RemoteInfo, via: PacketSocket): PathRefusal | null {
    const token = decodePing(body);
    if (token === null) return 'malformed';
    if (!this.#answers.take(this.#options.clock.monotonic())) return null;
    const pong = encodePong(token, from.address, from.port);
    // Sends the PONG without a target if the UDP socket is connected, because Node.js rejects a target there.
    if (pong !== null) via.send(this.sealing, SEALED_KIND.PONG, pong, this.#options.follows ? from : undefined);
    return null;
  }

  #onPong(body: Buffer): PathRefusal | null {
    const pong = decodePong(body);
    if (pong === null) return 'malformed';
    if (this.#unanswered.delete(pong.token.toString('hex'))) this.#tell({ kind: 'heard', isAnswer: true });
    return null;
  }

  #ping(): void {
    if (this.route === null) return;
    const token = randomBytes(8);
    if (this.#unanswered.size >= MUX_LIMITS.PATH_PINGS_UNANSWERED_MAX) {
      const [oldest] = this.#unanswered;
      this.#unanswered.delete(oldest as string);
    }
    this.#unanswered.add(token.toString('hex'));
    this.route.socket.send(this.sealing, SEALED_KIND.PING, encodePing(token), this.route.to);
  }

  // ---- the path machine ----

  #tell(event: PathEvent): void {
    const before = this.#state;
    const [state, effects] = transitionPath(before, event, this.#options.clock.monotonic());
    this.#state = state;
    this.isUp = isPathUsed(state);
    if (before.kind === 'down' && state.kind === 'probing') this.#options.onRetry?.();
    for (const effect of effects) this.#perform(effect);
    if (state.kind === 'off') this.#wake?.cancel();
    if (pathReasonOf(state) !== pathReasonOf(before)) this.#options.onChange?.();
  }

  #perform(effect: PathEffect): void {
    if (effect.kind === 'send-probe' || effect.kind === 'send-ping') this.#ping();
    if (effect.kind !== 'wake') return;
    this.#wake?.cancel();
    const { clock } = this.#options;
    this.#wake = clock.setTimeout(() => this.#tick(), effect.at - clock.monotonic());
  }

  #tick(): void {
    try {
      this.#tell({ kind: 'tick' });
    } catch (error) {
      this.abandon(error, 'udp-path.tick');
    }
  }
}

const wayOf = (reason: PathReason): DatagramWay => {
  if (reason === '') return { path: 'udp', reason };
  // The client reaches the edge over TCP, so missing answers over UDP mean that UDP is blocked.
  return { path: 'carrier', reason: reason === 'no-answer' ? 'udp-blocked' : reason };
};

/** Limits the PONGs sent per second, with bursts of twice the rate. */
export type AnswerBudget = Pick<TokenBucket, 'take'>;

const PINGS_ANSWERED: TokenRate = {
  perSecond: MUX_LIMITS.PATH_PINGS_ANSWERED_PER_SECOND,
  burst: 2 * MUX_LIMITS.PATH_PINGS_ANSWERED_PER_SECOND,
};

export const newAnswerBudget = (): AnswerBudget => new TokenBucket(PINGS_ANSWERED);

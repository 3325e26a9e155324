// The UDP paths of all sessions, at the edge's end: an id and keys for each connection of a client, whose packets each port brings, and what was
// dropped of them. They live as long as the mux they belong to, and not a moment longer: what a client had before it came back is dead.
import { randomBytes } from 'node:crypto';
import type { RemoteInfo } from 'node:dgram';
import {
  DATAGRAMS_OFF,
  type DatagramWay,
  decodePing,
  encodePong,
  type MuxSession,
  newAnswerBudget,
  OpeningKey,
  PATH_ID_BYTES,
  PATH_KEY_BYTES,
  type PacketSocket,
  type PathKeys,
  type PathRefusal,
  type ReportInternalError,
  SEALED_KIND,
  SEALED_OVERHEAD_BYTES,
  SealingKey,
  sealedKindOf,
  UdpPath,
} from '@tunnel/mux';
import { CAPABILITY, type MessageOf, type SealedPath } from '@tunnel/protocol';
import type { Clock } from '@tunnel/runtime';
import type { DatagramPorts } from './datagram-ports.ts';

export interface DatagramPathsOptions {
  readonly ports: DatagramPorts;
  readonly clock: Clock;
  readonly report: ReportInternalError;
  /** The keys of a client have served long enough, and others take their place. */
  readonly onRenewed: (mux: MuxSession) => void;
}

/** What opens packets of one id. */
interface PathEnd {
  receive(packet: Buffer, from: RemoteInfo, via: PacketSocket): PathRefusal | null;
}

/** One id with its keys. The end of it is made with the first packet: most clients never send one. */
interface Offer {
  readonly mux: MuxSession;
  readonly kind: 'path' | 'observe';
  readonly id: Buffer;
  readonly keyToEdge: Buffer;
  readonly keyToClient: Buffer;
  end: PathEnd | null;
}

type RefusalReason = Exclude<PathRefusal, 'unopened'> | 'unknown-path';

export class DatagramPaths {
  /** Packets of either port that came to nothing, by reason, since the start. */
  readonly refused: Record<RefusalReason, number> = {
    'unknown-path': 0,
    malformed: 0,
    replayed: 0,
    forged: 0,
  };
  /** Datagrams of true clients for a flow that is over, or not open yet. */
  unopened = 0;
  readonly #options: DatagramPathsOptions;
  readonly #byId = new Map<number, Offer>();
  readonly #ofMux = new Map<MuxSession, readonly Offer[]>();

  constructor(options: DatagramPathsOptions) {
    this.#options = options;
    options.ports.onPacket((packet, from, via) => this.#onPacket(packet, from, via));
  }

  /** A connection of a client begins. */
  open(mux: MuxSession): void {
    const { ports } = this.#options;
    if (ports.numbers.length === 0) return;
    const offers: Offer[] = [];
    if (ports.carriesDatagrams && mux.capabilities.includes(CAPABILITY.DATAGRAM)) offers.push(this.#offer(mux, 'path'));
    if (ports.observes && mux.capabilities.includes(CAPABILITY.P2P)) offers.push(this.#offer(mux, 'observe'));
    if (offers.length > 0) this.#ofMux.set(mux, offers);
  }

  /** It is over, or replaced: nothing is opened or sent under its keys any more. */
  end(mux: MuxSession): void {
    for (const { id, end } of this.#ofMux.get(mux) ?? []) {
      this.#byId.delete(keyOf(id, 0));
      if (end instanceof UdpPath) end.stop();
    }
    this.#ofMux.delete(mux);
    mux.datagramPath = null;
  }

  /** What its client is told; null: nothing is offered. */
  messageFor(mux: MuxSession): MessageOf<'DatagramPath'> | null {
    const offers = this.#ofMux.get(mux);
    const [first, second] = this.#options.ports.numbers;
    if (offers === undefined || first === undefined || second === undefined) return null;
    const of = (kind: Offer['kind']): SealedPath | null => {
      const offer = offers.find((each) => each.kind === kind);
      return offer === undefined ? null : shown(offer);
    };
    return { type: 'DatagramPath', ports: [first, second], path: of('path'), observe: of('observe') };
  }

  /** How datagrams go to the client of this mux; null: it is away. */
  wayOf(mux: MuxSession | null): DatagramWay {
    const { ports } = this.#options;
    if (!ports.carriesDatagrams || ports.numbers.length === 0) return DATAGRAMS_OFF;
    const end = mux === null ? null : this.#ofMux.get(mux)?.find(({ kind }) => kind === 'path')?.end;
    // It has not begun to try.
    return end instanceof UdpPath ? end.way : { path: 'carrier', reason: 'probing' };
  }

  #offer(mux: MuxSession, kind: Offer['kind']): Offer {
    const secrets = randomBytes(PATH_ID_BYTES + 2 * PATH_KEY_BYTES);
    const id = secrets.subarray(0, PATH_ID_BYTES);
    // The table goes by a part of the id; it is the edge that chooses, so the parts differ, too.
    if (this.#byId.has(keyOf(id, 0))) return this.#offer(mux, kind);
    const offer: Offer = {
      mux,
      kind,
      id,
      keyToEdge: secrets.subarray(PATH_ID_BYTES, PATH_ID_BYTES + PATH_KEY_BYTES),
      keyToClient: secrets.subarray(PATH_ID_BYTES + PATH_KEY_BYTES),
      end: null,
    };
    this.#byId.set(keyOf(id, 0), offer);
    return offer;
  }

  #onPacket(packet: Buffer, from: RemoteInfo, via: PacketSocket): void {
    const refusal = this.#receive(packet, from, via);
    if (refusal === 'unopened') this.unopened += 1;
    else if (refusal !== null) this.refused[refusal] += 1;
  }

  #receive(packet: Buffer, from: RemoteInfo, via: PacketSocket): RefusalReason | 'unopened' | null {
    if (packet.length < SEALED_OVERHEAD_BYTES || sealedKindOf(packet) === null) return 'malformed';
    const offer = this.#byId.get(keyOf(packet, 1));
    if (offer === undefined) return 'unknown-path';
    offer.end ??= this.#makeEnd(offer);
    const refusal = offer.end.receive(packet, from, via);
    if (offer.end instanceof UdpPath && offer.end.needsNewKeys) this.#renew(offer.mux);
    return refusal;
  }

  #makeEnd(offer: Offer): PathEnd {
    const { clock, report } = this.#options;
    const { mux, kind, id, keyToEdge, keyToClient } = offer;
    const keys: PathKeys = { id, sealing: keyToClient, opening: keyToEdge };
    if (kind === 'observe') return new ObservingEnd(keys, clock);
    const path = new UdpPath({
      keys,
      clock,
      report,
      follows: true,
      onDatagram: (flow, bytes, start, end) => mux.deliverDatagram(flow, bytes, start, end),
    });
    mux.datagramPath = path;
    return path;
  }

  #renew(mux: MuxSession): void {
    this.end(mux);
    this.open(mux);
    this.#options.onRenewed(mux);
  }
}

/** Answers PINGs from wherever they come with the address they came from, and knows nothing else. */
class ObservingEnd implements PathEnd {
  readonly #sealing: SealingKey;
  readonly #opening: OpeningKey;
  readonly #clock: Clock;
  readonly #answers = newAnswerBudget();

  constructor(keys: PathKeys, clock: Clock) {
    this.#sealing = new SealingKey(keys.id, keys.sealing);
    this.#opening = new OpeningKey(keys.id, keys.opening);
    this.#clock = clock;
  }

  receive(packet: Buffer, from: RemoteInfo, via: PacketSocket): PathRefusal | null {
    const body = this.#opening.open(packet);
    if (typeof body === 'string') return body;
    const token = sealedKindOf(packet) === SEALED_KIND.PING ? decodePing(body) : null;
    if (token === null) return 'malformed';
    const pong = this.#answers.take(this.#clock.monotonic()) ? encodePong(token, from.address, from.port) : null;
    if (pong !== null) via.send(this.#sealing, SEALED_KIND.PONG, pong, from);
    return null;
  }
}

/** Six bytes fit a number, which is found faster than text; the rest of the id is compared where the packet is opened. */
const keyOf = (bytes: Buffer, at: number): number => bytes.readUIntBE(at, 6);

const shown = ({ id, keyToEdge, keyToClient }: Offer): SealedPath => ({
  id: id.toString('hex'),
  key_to_edge: keyToEdge.toString('base64url'),
  key_to_client: keyToClient.toString('base64url'),
});

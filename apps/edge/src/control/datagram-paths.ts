// UDP paths of all sessions, on the edge's side. Creates an id and keys for each client connection, assigns packets to paths, and counts
// dropped packets. A path lives exactly as long as its mux; paths of a client's earlier connections are invalid.
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
  readSealedKind,
  SEALED_KIND,
  SEALED_OVERHEAD_BYTES,
  SealingKey,
  UdpPath,
} from '@tunnel/mux';
import { CAPABILITY, type MessageOf, type SealedPath } from '@tunnel/protocol';
import type { Clock } from '@tunnel/runtime';
import type { DatagramPorts } from './datagram-ports.ts';

export interface DatagramPathsOptions {
  readonly ports: DatagramPorts;
  readonly clock: Clock;
  readonly report: ReportInternalError;
  /** Called when the keys of a path have been replaced after their lifetime. */
  readonly onRenewed: (mux: MuxSession) => void;
}

/** Handler for the packets of a UDP path id, which decrypts them. */
interface PathEnd {
  receive(packet: Buffer, from: RemoteInfo, via: PacketSocket): PathRefusal | null;
}

/** Path id with its keys. `end` is created with the first packet. */
interface Offer {
  readonly mux: MuxSession;
  readonly kind: 'path' | 'observe';
  /** Path id, key of packets to the edge, and key of packets to the client. A single buffer, because most clients never send a packet. */
  readonly secrets: Buffer;
  end: PathEnd | null;
}

type RefusalReason = PathRefusal | 'unknown-path';

export class DatagramPaths {
  /** Packets rejected at both UDP ports since the start, by reason. */
  readonly refused: Record<RefusalReason, number> = {
    'unknown-path': 0,
    malformed: 0,
    replayed: 0,
    forged: 0,
  };
  /** Number of valid datagrams for a flow that is closed or not open yet. */
  unopened = 0;
  readonly #options: DatagramPathsOptions;
  readonly #byId = new Map<number, Offer>();
  readonly #ofMux = new Map<MuxSession, readonly Offer[]>();

  constructor(options: DatagramPathsOptions) {
    this.#options = options;
    options.ports.onPacket((packet, from, via) => this.#onPacket(packet, from, via));
  }

  /** Creates the UDP paths of a new client connection. */
  open(mux: MuxSession): void {
    const { ports } = this.#options;
    if (ports.numbers.length === 0) return;
    const offers: Offer[] = [];
    if (ports.carriesDatagrams && mux.capabilities.includes(CAPABILITY.DATAGRAM)) offers.push(this.#offer(mux, 'path'));
    if (ports.observes && mux.capabilities.includes(CAPABILITY.P2P)) offers.push(this.#offer(mux, 'observe'));
    if (offers.length > 0) this.#ofMux.set(mux, offers);
  }

  /** Ends the paths of a closed or replaced connection. Their keys are no longer used. */
  end(mux: MuxSession): void {
    for (const { secrets, end } of this.#ofMux.get(mux) ?? []) {
      this.#byId.delete(keyOf(secrets, 0));
      if (end instanceof UdpPath) end.stop();
    }
    this.#ofMux.delete(mux);
    mux.datagramPath = null;
  }

  /** Returns the message with the client's path ids and keys, or null if no path is offered. */
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

  /** Returns the datagram path to the client of a mux. `mux` is null while the client is disconnected. */
  wayOf(mux: MuxSession | null): DatagramWay {
    const { ports } = this.#options;
    if (!ports.carriesDatagrams || ports.numbers.length === 0) return DATAGRAMS_OFF;
    const end = mux === null ? null : this.#ofMux.get(mux)?.find(({ kind }) => kind === 'path')?.end;
    // The client has not sent a packet on its UDP path yet.
    return end instanceof UdpPath ? end.way : { path: 'carrier', reason: 'probing' };
  }

  #offer(mux: MuxSession, kind: Offer['kind']): Offer {
    const secrets = randomBytes(PATH_ID_BYTES + 2 * PATH_KEY_BYTES);
    // The map key is only a part of the id, so ids with an equal part are generated again.
    if (this.#byId.has(keyOf(secrets, 0))) return this.#offer(mux, kind);
    const offer: Offer = { mux, kind, secrets, end: null };
    this.#byId.set(keyOf(secrets, 0), offer);
    return offer;
  }

  #onPacket(packet: Buffer, from: RemoteInfo, via: PacketSocket): void {
    const refusal = this.#receive(packet, from, via);
    if (refusal !== null) this.refused[refusal] += 1;
  }

  #receive(packet: Buffer, from: RemoteInfo, via: PacketSocket): RefusalReason | null {
    if (packet.length < SEALED_OVERHEAD_BYTES || readSealedKind(packet) === null) return 'malformed';
    const offer = this.#byId.get(keyOf(packet, 1));
    if (offer === undefined) return 'unknown-path';
    offer.end ??= this.#makeEnd(offer);
    const refusal = offer.end.receive(packet, from, via);
    if (offer.end instanceof UdpPath && offer.end.needsNewKeys) this.#renew(offer.mux);
    return refusal;
  }

  #makeEnd(offer: Offer): PathEnd {
    const { clock, report } = this.#options;
    const { mux, kind } = offer;
    const { id, keyToEdge, keyToClient } = partsOf(offer);
    const keys: PathKeys = { id, sealing: keyToClient, opening: keyToEdge };
    if (kind === 'observe') return new ObservingEnd(keys, clock);
    const path = new UdpPath({
      keys,
      clock,
      report,
      follows: true,
      batches: mux.capabilities.includes(CAPABILITY.DATAGRAM_BATCH),
      onDatagram: (flow, bytes, start, end) => {
        if (!mux.deliverDatagram(flow, bytes, start, end)) this.unopened += 1;
      },
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

/** Answers PINGs from any address with the observed source address. */
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
    const token = readSealedKind(packet) === SEALED_KIND.PING ? decodePing(body) : null;
    if (token === null) return 'malformed';
    const pong = this.#answers.take(this.#clock.monotonic()) ? encodePong(token, from.address, from.port) : null;
    if (pong !== null) via.send(this.#sealing, SEALED_KIND.PONG, pong, from);
    return null;
  }
}

/**
 * Returns the map key of a path id: six bytes, which fit a number and are looked up faster than a string. The rest of the id is compared
 * when the packet is decrypted.
 */
const keyOf = (bytes: Buffer, at: number): number => bytes.readUIntBE(at, 6);

const partsOf = ({ secrets }: Offer): { id: Buffer; keyToEdge: Buffer; keyToClient: Buffer } => ({
  id: secrets.subarray(0, PATH_ID_BYTES),
  keyToEdge: secrets.subarray(PATH_ID_BYTES, PATH_ID_BYTES + PATH_KEY_BYTES),
  keyToClient: secrets.subarray(PATH_ID_BYTES + PATH_KEY_BYTES),
});

const shown = (offer: Offer): SealedPath => {
  const { id, keyToEdge, keyToClient } = partsOf(offer);
  return {
    id: id.toString('hex'),
    key_to_edge: keyToEdge.toString('base64url'),
    key_to_client: keyToClient.toString('base64url'),
  };
};

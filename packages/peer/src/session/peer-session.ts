// Session between two programs with a mux: streams use the best available path, direct before relay. The session outlives its carriers:
// losing a relay ends the streams on it, but not direct streams.
import {
  type DatagramAnswer,
  type DatagramStream,
  type MemoryBudget,
  type MuxHandlers,
  MuxSession,
  type MuxStream,
  type OpenAnswer,
  type PendingStream,
  type ReportInternalError,
} from '@tunnel/mux';
import type { StreamHead, StreamReason } from '@tunnel/protocol';
import type { Clock, Secret, Timer } from '@tunnel/runtime';
import { DirectLink } from '../direct/direct-link.ts';
import type { PeerNetwork } from '../direct/own-endpoint.ts';
import { encodeMessage, type PeerMessage, type PeerService } from '../direct/peer-messages.ts';
import type { DirectOutcome, RelayReason } from '../direct/relay-reason.ts';
import { derivePsk } from '../sealed/noise.ts';
import type { SealedCarrier } from '../sealed/sealed-carrier.ts';

/** Interval between checks for traffic on the direct path. Together with the path's doubt period, silence in use is detected within 5 s. */
export const PEER_LOOK_EVERY_MS = 500;

const RELAY_RANK = 0;
const DIRECT_RANK = 1;

/** Path that new connections of a peer session use: direct or through the relay. */
export interface PeerPath {
  readonly path: 'direct' | 'relay';
  /** Why the relay is used. Empty while the path is direct. */
  readonly reason: RelayReason | '';
  /** Round trip of the path in use. Null until measured. */
  readonly rttMs: number | null;
}

/** Settings of a peer session, for publisher and subscriber. */
export interface PeerSettings {
  readonly name: string;
  readonly secret: Secret;
  readonly service: PeerService;
  /** False to use only the relay and never attempt a direct path. */
  readonly direct: boolean;
  readonly network: PeerNetwork;
  readonly clock: Clock;
  /** Memory budget of the process for received data. Every peer session takes its share from the budget. */
  readonly budget: MemoryBudget;
  readonly report: ReportInternalError;
}

/** Sealed bytes between the two programs of a peer session, in both directions. */
export interface PeerBytes {
  readonly relayBytes: number;
  readonly directBytes: number;
}

export interface PeerSessionHandlers {
  /** Called when the subscriber opens a stream. Publisher only, because only subscribers open streams. */
  onStream?(stream: MuxStream, head: StreamHead): void;
  onDatagramStream?(stream: DatagramStream, head: StreamHead): void;
  /** Called when the path of the session's new streams changes, or the reason for the path. */
  onPath(path: PeerPath): void;
  /** Called when an attempt to connect the two peers directly has ended. */
  onAttempt?(outcome: DirectOutcome): void;
  /** Called when the relay's carrier closed or accepts no new streams. A direct path continues. */
  onRelayLost(reason: string): void;
}

export class PeerSession {
  readonly #role: 'subscriber' | 'publisher';
  readonly #settings: PeerSettings;
  readonly #handlers: PeerSessionHandlers;
  #mux: MuxSession;
  readonly #direct: DirectLink;
  readonly #timer: Timer;
  #relay: { readonly carrier: SealedCarrier; readonly id: number } | null = null;
  /** Open carriers of the peer session, by their id in the mux. */
  readonly #carriers = new Map<number, SealedCarrier>();
  #pastRelayBytes = 0;
  #told: PeerPath | null = null;
  #tickedAt = 0;

  constructor(role: 'subscriber' | 'publisher', settings: PeerSettings, handlers: PeerSessionHandlers) {
    this.#settings = settings;
    this.#handlers = handlers;
    this.#role = role;
    this.#mux = this.#newMux();
    const { clock, report } = settings;
    this.#direct = new DirectLink({
      role,
      network: settings.network,
      isAllowed: settings.direct,
      psk: derivePsk(settings.secret.reveal(), settings.name),
      clock,
      events: {
        send: (message) => this.#relay?.carrier.sendMessage(encodeMessage(message)),
        relayRttMs: () => this.#relayRttMs ?? 0,
        onCarrier: (carrier) => void this.#add(carrier, DIRECT_RANK),
        onDatagram: (flow, bytes, start, end) => void this.#mux.deliverDatagram(flow, bytes, start, end),
        onAttempt: (outcome) => handlers.onAttempt?.(outcome),
        onChange: () => this.#onChange(),
        abandon: report,
      },
    });
    this.#timer = clock.setInterval(() => this.#look(), PEER_LOOK_EVERY_MS);
  }

  get path(): PeerPath {
    if (this.#direct.isUp) return { path: 'direct', reason: '', rttMs: rounded(this.#direct.rttMs) };
    return { path: 'relay', reason: this.#direct.reason, rttMs: rounded(this.#relayRttMs) };
  }

  get hasRelay(): boolean {
    return this.#relay !== null;
  }

  /** True if any path to the other program exists. */
  get isConnected(): boolean {
    return this.hasRelay || this.#direct.isUp;
  }

  get bytes(): PeerBytes {
    return {
      relayBytes: this.#pastRelayBytes + (this.#relay === null ? 0 : bytesOf(this.#relay.carrier)),
      directBytes: this.#direct.bytes,
    };
  }

  open(head: StreamHead, answer: OpenAnswer): PendingStream | null {
    return this.#mux.open(head, answer);
  }

  openDatagrams(head: StreamHead, answer: DatagramAnswer): DatagramStream | null {
    return this.#mux.openDatagrams(head, answer);
  }

  /** Adds a relay proven to end at the other program. An earlier relay finishes its streams. */
  attachRelay(carrier: SealedCarrier): void {
    this.#forgetRelay();
    this.#relay = { carrier, id: this.#add(carrier, RELAY_RANK) };
    this.#direct.relayAttached(carrier.handshakeHash);
    this.#tell();
  }

  onMessage(message: PeerMessage): void {
    this.#direct.onMessage(message);
  }

  /** Closes every connection between the two programs. New relays can be attached afterwards. */
  disconnect(reason: string): void {
    this.#direct.forget();
    for (const carrier of [...this.#carriers.values()]) carrier.destroy(reason);
  }

  /** Closes the peer session permanently and notifies the other program on every path. */
  close(reason: StreamReason): void {
    this.#timer.cancel();
    for (const carrier of this.#carriers.values())
      carrier.sendMessage(encodeMessage({ type: 'bye', reason: reason.text }));
    // The carriers close after the message was sent. The direct link is closed last and sends no messages.
    this.#mux.close(reason);
    this.#direct.close();
  }

  #newMux(): MuxSession {
    const { onStream, onDatagramStream } = this.#handlers;
    const { clock, budget, report } = this.#settings;
    const handlers: MuxHandlers = {
      ...(onStream === undefined ? {} : { onStream: onStream.bind(this.#handlers) }),
      ...(onDatagramStream === undefined ? {} : { onDatagramStream: onDatagramStream.bind(this.#handlers) }),
      onCarrierLost: (loss) => this.#onCarrierLost(loss.carrierId, loss.reason, loss.protocolViolation),
      report,
    };
    // The dialing side has the client role in the mux: it opens odd streams and closes worn carriers.
    const role = this.#role === 'subscriber' ? 'client' : 'edge';
    return new MuxSession({ role, budget, clock, capabilities: ['datagram'], handlers });
  }

  get #relayRttMs(): number | null {
    const rttMs = this.#relay === null ? 0 : this.#mux.roundTripMs(this.#relay.id);
    return rttMs === 0 ? null : rttMs;
  }

  #add(carrier: SealedCarrier, rank: number): number {
    const id = this.#mux.addCarrier(carrier, rank);
    this.#carriers.set(id, carrier);
    return id;
  }

  #onCarrierLost(id: number, reason: string, isViolation: boolean): void {
    if (isViolation) return this.#beginAnew(reason);
    const carrier = this.#carriers.get(id);
    // Forgets the carrier now, because no event follows for a carrier that only finishes its streams.
    this.#carriers.delete(id);
    if (carrier === undefined) return;
    if (this.#relay?.id !== id) return this.#direct.carrierLost(carrier);
    this.#forgetRelay();
    this.#direct.relayLost();
    this.#handlers.onRelayLost(reason);
  }

  /** The other program violated the protocol, so the mux has closed all carriers. Later connections use a new mux. */
  #beginAnew(reason: string): void {
    this.#mux = this.#newMux();
    this.#carriers.clear();
    this.#forgetRelay();
    this.#direct.forget();
    this.#direct.relayLost();
    this.#handlers.onRelayLost(reason);
  }

  #forgetRelay(): void {
    if (this.#relay === null) return;
    this.#pastRelayBytes += bytesOf(this.#relay.carrier);
    this.#relay = null;
  }

  #onChange(): void {
    this.#mux.datagramPath = this.#direct.slot;
    this.#tell();
  }

  /** Reports a changed path to the owner. Reports nothing before the first relay, because no path exists yet. */
  #tell(): void {
    const { path } = this;
    if (this.#told === null && !this.hasRelay) return;
    if (this.#told?.path === path.path && this.#told.reason === path.reason) return;
    this.#told = path;
    this.#handlers.onPath(path);
  }

  #look(): void {
    try {
      const now = this.#settings.clock.monotonic();
      this.#direct.look(now);
      if (now - this.#tickedAt < 1000) return;
      this.#tickedAt = now;
      this.#mux.tick(now);
      // Closed carriers are forgotten here, because no event reports the end of a carrier that finished its last streams.
      for (const [id, carrier] of this.#carriers) if (carrier.isClosed) this.#carriers.delete(id);
    } catch (error) {
      this.#settings.report(error, 'peer.look');
    }
  }
}

const bytesOf = (carrier: SealedCarrier): number => carrier.bytesSent + carrier.bytesReceived;

const rounded = (ms: number | null): number | null => (ms === null ? null : Math.round(ms * 10) / 10);

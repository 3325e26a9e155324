// Two programs and the mux between them: streams on the best path that is up, the relay's carriers below, a direct one above. It outlives
// any of them: a lost relay costs what ran on it, and nothing that runs direct.
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
import { pskOf } from '../sealed/noise.ts';
import type { SealedCarrier } from '../sealed/sealed-carrier.ts';

/** between looks at what the direct path carries; with its doubt, silence in use costs under 5 s */
export const PEER_LOOK_EVERY_MS = 500;

const RELAY_RANK = 0;
const DIRECT_RANK = 1;

/** Where new connections go. */
export interface PeerPath {
  readonly path: 'direct' | 'relay';
  /** Empty while direct. */
  readonly reason: RelayReason | '';
  /** Of the path in use; null until it is known. */
  readonly rttMs: number | null;
}

/** Of both roles. */
export interface PeerSettings {
  readonly name: string;
  readonly secret: Secret;
  readonly service: PeerService;
  /** false: relay alone (`off`). */
  readonly direct: boolean;
  readonly network: PeerNetwork;
  readonly clock: Clock;
  /** The process's; every peer has its own share below it. */
  readonly budget: MemoryBudget;
  readonly report: ReportInternalError;
}

/** What passed between the two programs, both ways, sealed as it was. */
export interface PeerBytes {
  readonly relayBytes: number;
  readonly directBytes: number;
}

export interface PeerSessionHandlers {
  /** Of the publisher: only subscribers open streams. */
  onStream?(stream: MuxStream, head: StreamHead): void;
  onDatagramStream?(stream: DatagramStream, head: StreamHead): void;
  /** Where new streams go has changed, or why. */
  onPath(path: PeerPath): void;
  /** A try to go direct has ended. */
  onAttempt?(outcome: DirectOutcome): void;
  /** The relay's carrier is gone, or takes no new streams; a direct path goes on. */
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
  /** By number of the mux. */
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
      psk: pskOf(settings.secret.reveal(), settings.name),
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

  /** Whether there is any way to the other program now. */
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

  /** A relay that is proven to end at the other program. The one before, if there is one, finishes its streams. */
  attachRelay(carrier: SealedCarrier): void {
    this.#forgetRelay();
    this.#relay = { carrier, id: this.#add(carrier, RELAY_RANK) };
    this.#direct.relayAttached(carrier.handshakeHash);
    this.#tell();
  }

  onMessage(message: PeerMessage): void {
    this.#direct.onMessage(message);
  }

  /** Every connection between the two ends; others may come. */
  disconnect(reason: string): void {
    this.#direct.forget();
    for (const carrier of [...this.#carriers.values()]) carrier.destroy(reason);
  }

  /** For good: told to the other program on whatever way there is. */
  close(reason: StreamReason): void {
    this.#timer.cancel();
    for (const carrier of this.#carriers.values())
      carrier.sendMessage(encodeMessage({ type: 'bye', reason: reason.text }));
    // The carriers end behind what was said; the link behind them has nothing to say any more.
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
    // Whoever dials is the mux's client: it opens the odd streams, and closes carriers that are worn.
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
    // Of one that only finishes its streams the end is told to nobody.
    this.#carriers.delete(id);
    if (carrier === undefined) return;
    if (this.#relay?.id !== id) return this.#direct.carrierLost(carrier);
    this.#forgetRelay();
    this.#direct.relayLost();
    this.#handlers.onRelayLost(reason);
  }

  /** The other program broke the rules, so the mux has closed all that it had. Whoever comes next finds a fresh one. */
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

  /** Not before the first relay: nobody is there to go to. */
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
      // Of one that finished its last streams nobody tells.
      for (const [id, carrier] of this.#carriers) if (carrier.isClosed) this.#carriers.delete(id);
    } catch (error) {
      this.#settings.report(error, 'peer.look');
    }
  }
}

const bytesOf = (carrier: SealedCarrier): number => carrier.bytesSent + carrier.bytesReceived;

const rounded = (ms: number | null): number | null => (ms === null ? null : Math.round(ms * 10) / 10);

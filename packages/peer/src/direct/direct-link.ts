// The direct path of one peer session: rounds of offer, answer and probing, and on the way that was found the reliable connection with its
// handshake. The subscriber begins every round; the words go through the relay, sealed.
import { randomBytes, randomInt } from 'node:crypto';
import type { DatagramPathSlot, Guarded } from '@tunnel/mux';
import type { Clock, Timer } from '@tunnel/runtime';
import { SealedCarrier } from '../sealed/sealed-carrier.ts';
import type { PeerSocket } from '../transport/peer-transport.ts';
import { OwnEndpoint, type PeerNetwork } from './own-endpoint.ts';
import { PathDriver } from './path-driver.ts';
import type { Inability, PeerMessage, Reachability, RoundKeys } from './peer-messages.ts';
import { ProbePath } from './probe-path.ts';
import { type DirectOutcome, outcomeOf, type RelayReason, type RoundVerdict, relayReasonOf } from './relay-reason.ts';

/** between looks at the addresses of this machine */
export const PEER_ADDRESSES_LOOK_EVERY_MS = 10_000;
/** the pause after a direct connection that was lost or is worn while its path still answered */
export const PEER_LOST_RETRY_MS = 5_000;
/** the pause after a direct path on which the handshake failed: the secret is not tried more often */
export const PEER_HANDSHAKE_RETRY_MS = 30_000;
/** a direct path that is closed for good has this long for its last words; permission that ends is felt within 2 s */
export const PEER_GOODBYE_MS = 1_000;

type Offer = Extract<PeerMessage, { type: 'offer' }>;
type Answer = Extract<PeerMessage, { type: 'answer' }>;

export interface DirectLinkOptions {
  readonly role: 'subscriber' | 'publisher';
  readonly network: PeerNetwork;
  /** false: relay alone. */
  readonly isAllowed: boolean;
  readonly psk: Buffer;
  readonly clock: Clock;
  readonly events: DirectLinkEvents;
}

export interface DirectLinkEvents extends Guarded {
  /** Through the relay; lost when there is none. */
  send(message: PeerMessage): void;
  /** Of the relay: half of it is when the other side hears. */
  relayRttMs(): number;
  /** Proven by both: new streams may take it. */
  onCarrier(carrier: SealedCarrier): void;
  onDatagram(flow: number, bytes: Buffer, start: number, end: number): void;
  /** A round has ended, or cannot be. */
  onAttempt(outcome: DirectOutcome): void;
  /** Direct or not, or for another reason not. */
  onChange(): void;
}

/** What the two sides have for one attempt: fresh keys, a number for the connection, and the handshake of the relay they agreed through. */
interface Round {
  readonly number: number;
  readonly path: ProbePath;
  readonly socket: PeerSocket;
  readonly relayHash: Buffer;
  readonly ownConnection: number;
  readonly ownPorts: Reachability;
  theirConnection: number | null;
  isListening: boolean;
  /** How it ended was told. */
  isCounted: boolean;
  carrier: SealedCarrier | null;
}

export class DirectLink {
  readonly #options: DirectLinkOptions;
  readonly #isSubscriber: boolean;
  readonly #driver: PathDriver;
  readonly #endpoint: OwnEndpoint;
  #round: Round | null = null;
  #roundNumber = 0;
  /** Raised whenever what is under way has become pointless. */
  #generation = 0;
  /** null: there is no relay, and nothing can be said. */
  #relayHash: Buffer | null = null;
  #unable: Inability | null;
  #theyAreUnable: Inability | null = null;
  /** How the two were seen the last time. */
  #ports: readonly Reachability[] = [];
  #verdict: RoundVerdict = null;
  /** The one in use. */
  #carrier: SealedCarrier | null = null;
  /** Sealed bytes of carriers and rounds that are gone. */
  #pastBytes = 0;
  #lookedBytes = 0;
  #retry: Timer | null = null;
  #addressesSeenAt: number;
  #closed = false;

  constructor(options: DirectLinkOptions) {
    this.#options = options;
    this.#isSubscriber = options.role === 'subscriber';
    this.#unable = options.isAllowed ? null : 'off';
    this.#addressesSeenAt = options.clock.monotonic();
    const abandon = (error: unknown, where: string): void => options.events.abandon(error, where);
    this.#endpoint = new OwnEndpoint({
      network: options.network,
      isAllowed: options.isAllowed,
      onDatagram: (bytes, from) => this.#round?.path.receive(bytes, from),
      abandon,
    });
    this.#driver = new PathDriver(options.clock, {
      sendProbe: () => this.#round?.path.probeAll(),
      sendPing: () => this.#round?.path.ping(),
      use: () => this.#connect(),
      leave: () => this.#leave(),
      // The publisher waits for the next offer.
      retry: () => (this.#isSubscriber ? this.#begin() : this.#driver.close()),
      failed: () => this.#onFailed(),
      changed: () => this.#tell(),
      abandon,
    });
  }

  get isUp(): boolean {
    return this.#carrier !== null;
  }

  get rttMs(): number | null {
    return this.isUp ? (this.#round?.path.rttMs ?? null) : null;
  }

  /** Why connections do not go direct. */
  get reason(): RelayReason {
    const unable = this.#unable ?? this.#theyAreUnable;
    return relayReasonOf({ unable, ports: this.#ports, verdict: this.#verdict });
  }

  /** For datagrams of udp services, while it is up. */
  get slot(): DatagramPathSlot | null {
    return this.isUp ? (this.#round?.path ?? null) : null;
  }

  get bytes(): number {
    return this.#pastBytes + bytesOf(this.#carrier) + (this.#round?.path.datagramBytes ?? 0);
  }

  // ---- from the session ----

  /** There is a relay with this handshake, so words can be said. A direct path that lives goes on as it is. */
  relayAttached(handshakeHash: Buffer): void {
    this.#relayHash = handshakeHash;
    if (!this.isUp) this.#begin();
  }

  relayLost(): void {
    this.#relayHash = null;
    // A connection that has begun needs no more words; the other side may call it proven already.
    if ((this.#round?.carrier ?? null) === null) this.#abortRound();
  }

  /** The other program is another one than before. */
  forget(): void {
    this.#leave(null);
    this.#abortRound();
    this.#driver.close();
    this.#theyAreUnable = null;
    this.#ports = [];
    this.#verdict = null;
  }

  onMessage(message: PeerMessage): void {
    if (this.#closed) return;
    if (message.type === 'unable') {
      this.#theyAreUnable = message.reason;
      this.#abortRound();
      this.#tell();
      if (message.reason === 'no-transport') this.#options.events.onAttempt('no-transport');
    } else if (this.#isSubscriber) {
      if (message.type === 'answer') this.#onAnswer(message);
      else if (message.type === 'listening') this.#onListening(message.round);
      else if (message.type === 'again') this.#onMoved();
    } else if (message.type === 'offer') this.#guarded(this.#answer(message));
    else if (message.type === 'start' && this.#round?.number === message.round) {
      this.#driver.feed({ kind: 'started', beginAfterMs: 0 });
    }
  }

  /** Every PEER_LOOK_EVERY_MS: whether the path carries something, and whether this machine has moved. */
  look(nowMs: number): void {
    const sentBytes = this.#carrier?.bytesSent ?? 0;
    if (sentBytes !== this.#lookedBytes && this.#driver.wantsUse) this.#driver.feed({ kind: 'used' });
    this.#lookedBytes = sentBytes;
    if (nowMs - this.#addressesSeenAt < PEER_ADDRESSES_LOOK_EVERY_MS) return;
    this.#addressesSeenAt = nowMs;
    if (!this.#endpoint.hasMoved()) return;
    this.#driver.feed({ kind: 'addresses-changed' });
    if (!this.#isSubscriber && !this.isUp) this.#options.events.send({ type: 'again' });
  }

  /** The session has ended its carriers: what was said last on a direct one has a moment to arrive. */
  close(): void {
    this.#closed = true;
    this.#retry?.cancel();
    this.#driver.close();
    if (this.#carrier === null) this.#abortRound();
    this.#options.clock.setTimeout(() => this.#endpoint.close(), this.isUp ? PEER_GOODBYE_MS : 0);
  }

  // ---- rounds ----

  /** The subscriber asks for a round with fresh addresses. Until the answer comes, nobody probes. */
  #begin(): void {
    if (this.#isSubscriber && this.#relayHash !== null && !this.#closed) this.#guarded(this.#offer());
  }

  async #offer(): Promise<void> {
    const keys = { id: randomBytes(8), toPublisher: randomBytes(32), toSubscriber: randomBytes(32) };
    const begun = await this.#newRound(this.#roundNumber + 1, keys);
    if (begun === null) return;
    this.#roundNumber = begun.round.number;
    this.#options.events.send({ type: 'offer', keys, ...begun.said });
  }

  async #answer(offer: Offer): Promise<void> {
    this.#theyAreUnable = null;
    const begun = await this.#newRound(offer.round, offer.keys);
    if (begun === null) return;
    this.#learn(begun.round, offer);
    this.#options.events.send({ type: 'answer', ...begun.said });
  }

  #onAnswer(answer: Answer): void {
    const round = this.#round;
    if (round === null || round.number !== answer.round || round.theirConnection !== null) return;
    this.#theyAreUnable = null;
    this.#learn(round, answer);
    this.#options.events.send({ type: 'start', round: round.number });
    this.#driver.feed({ kind: 'started', beginAfterMs: this.#options.events.relayRttMs() / 2 });
  }

  #learn(round: Round, { connection, ports, candidates }: Offer | Answer): void {
    round.theirConnection = connection;
    round.path.tryAt(candidates);
    this.#ports = [round.ownPorts, ports];
    this.#tell();
  }

  #onFailed(): void {
    if (this.#round === null || this.#round.isCounted) return;
    this.#round.isCounted = true;
    this.#options.events.onAttempt(outcomeOf(this.reason));
  }

  /** One side is where nobody has looked: the reliable connection cannot follow it. */
  #onMoved(): void {
    if (!this.#isSubscriber) return this.#options.events.send({ type: 'again' });
    this.#leave();
    this.#begin();
  }

  /** null: it cannot be, which was told, or it is not wanted any more. */
  async #newRound(number: number, keys: RoundKeys): Promise<{ round: Round; said: Omit<Answer, 'type'> } | null> {
    // A side that asks for a round, or is asked for one, has no direct path any more.
    this.#leave();
    this.#abortRound();
    this.#retry?.cancel();
    const generation = this.#generation;
    const own = await this.#endpoint.gather(() => {
      this.#unable = null;
      this.#tell();
    });
    if (this.#closed || generation !== this.#generation || this.#relayHash === null) return null;
    if (typeof own === 'string') return this.#cannot(own);
    // Or it would not be started anew.
    if (this.#driver.isUsed) this.#driver.feed({ kind: 'switched-off' });
    const ownConnection = randomInt(1, 2 ** 32 - 1);
    const round: Round = {
      number,
      ownConnection,
      socket: own.socket,
      ownPorts: own.ports,
      relayHash: this.#relayHash,
      path: this.#newPath(own.socket, keys),
      theirConnection: null,
      isListening: false,
      isCounted: false,
      carrier: null,
    };
    this.#round = round;
    return { round, said: { round: number, connection: ownConnection, candidates: own.candidates, ports: own.ports } };
  }

  #newPath(socket: PeerSocket, { id, toPublisher, toSubscriber }: RoundKeys): ProbePath {
    const keys = this.#isSubscriber
      ? { id, sealing: toPublisher, opening: toSubscriber }
      : { id, sealing: toSubscriber, opening: toPublisher };
    const events = {
      onAnswered: () => this.#driver.feed({ kind: 'heard', isAnswer: true }),
      onMoved: () => this.#onMoved(),
      onDatagram: (flow: number, bytes: Buffer, start: number, end: number) =>
        this.#options.events.onDatagram(flow, bytes, start, end),
      onUsed: () => {
        if (this.#driver.wantsUse) this.#driver.feed({ kind: 'used' });
      },
    };
    return new ProbePath(socket, keys, events, () => this.#options.clock.monotonic());
  }

  #cannot(reason: Inability): null {
    this.#unable = reason;
    this.#options.events.send({ type: 'unable', reason });
    this.#tell();
    if (reason === 'no-transport') this.#options.events.onAttempt(reason);
    return null;
  }

  #abortRound(): void {
    this.#generation += 1;
    this.#endpoint.cancelQuery();
    const round = this.#round;
    this.#round = null;
    if (round === null) return;
    this.#pastBytes += round.path.datagramBytes;
    round.path.isUp = false;
    round.carrier?.destroy('another round');
  }

  // ---- the reliable connection ----

  #onListening(number: number): void {
    if (this.#round?.number !== number) return;
    this.#round.isListening = true;
    this.#connect();
  }

  /** The publisher is there first: a packet that finds nobody would be sent again only after a second. */
  #connect(): void {
    const round = this.#round;
    if (round === null || round.carrier !== null || !this.#driver.isUsed) return;
    const { remote } = round.path;
    if (remote === null || round.theirConnection === null || (this.#isSubscriber && !round.isListening)) return;
    const connection = round.socket.connect({ own: round.ownConnection, theirs: round.theirConnection }, remote);
    const { psk, clock } = this.#options;
    // Both paths end at the same two programs, or this one does not open: the relay's handshake stands before it.
    const sealed = { psk, clock, prologue: round.relayHash, hello: NOTHING };
    const role = this.#isSubscriber ? 'initiator' : 'responder';
    round.carrier = new SealedCarrier(
      connection,
      { role, ...sealed },
      {
        onProven: (carrier) => this.#onProven(carrier),
        // Nothing is said on a direct path: it must be heard without it, too.
        onMessage: () => {},
        onFailed: (carrier) => this.#lose(carrier, PEER_HANDSHAKE_RETRY_MS),
        abandon: (error, where) => this.#options.events.abandon(error, where),
      },
    );
    round.carrier.begin();
    if (!this.#isSubscriber) this.#options.events.send({ type: 'listening', round: round.number });
  }

  #onProven(carrier: SealedCarrier): void {
    if (this.#round === null || this.#closed) return carrier.destroy('another round');
    this.#carrier = carrier;
    this.#lookedBytes = 0;
    this.#verdict = null;
    this.#round.path.isUp = true;
    this.#options.events.onCarrier(carrier);
    this.#tell();
    this.#options.events.onAttempt('direct');
  }

  /** The session has lost it: the other side has left. Or it is worn and only finishes its streams. */
  carrierLost(carrier: SealedCarrier): void {
    // Of one that was left the end is no news.
    if (this.#carrier !== carrier || this.#round === null) return;
    if (carrier.isClosed) this.#lose(carrier, PEER_LOST_RETRY_MS);
    else {
      this.#pastBytes += bytesOf(carrier);
      this.#carrier = null;
      this.#round.carrier = null;
      this.#tell();
      this.#begin();
    }
  }

  #lose(carrier: SealedCarrier, retryAfterMs: number): void {
    if (this.#round?.carrier !== carrier || this.#closed) return;
    this.#verdict ??= 'no-answer';
    this.#leave();
    this.#abortRound();
    this.#driver.feed({ kind: 'switched-off' });
    this.#retry?.cancel();
    this.#retry = this.#options.clock.setTimeout(() => {
      if (!this.isUp) this.#begin();
    }, retryAfterMs);
  }

  #leave(verdict: RoundVerdict = 'went-silent'): void {
    const carrier = this.#carrier;
    if (carrier === null) return;
    if (this.#round !== null) this.#round.path.isUp = false;
    this.#carrier = null;
    this.#verdict = verdict;
    this.#pastBytes += bytesOf(carrier);
    carrier.destroy('no data on the direct path');
    this.#tell();
  }

  #tell(): void {
    if (this.#driver.reason === 'no-answer') this.#verdict = 'no-answer';
    if (!this.#closed) this.#options.events.onChange();
  }

  #guarded(work: Promise<void>): void {
    work.catch((error: unknown) => this.#options.events.abandon(error, 'peer.round'));
  }
}

const NOTHING = Buffer.alloc(0);

const bytesOf = (carrier: SealedCarrier | null): number =>
  carrier === null ? 0 : carrier.bytesSent + carrier.bytesReceived;

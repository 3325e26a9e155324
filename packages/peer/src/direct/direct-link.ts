// Direct path of a peer session: rounds of offer, answer and probing, then a reliable connection with handshake on the path found. The
// subscriber starts every round. Messages go through the relay, sealed.
import { randomBytes, randomInt } from 'node:crypto';
import type { DatagramPathSlot, Guarded } from '@tunnel/mux';
import type { Clock, Timer } from '@tunnel/runtime';
import { SealedCarrier } from '../sealed/sealed-carrier.ts';
import type { PeerSocket } from '../transport/peer-transport.ts';
import { OwnEndpoint, type PeerNetwork } from './own-endpoint.ts';
import { PathDriver } from './path-driver.ts';
import type { Inability, PeerMessage, Reachability, RoundKeys } from './peer-messages.ts';
import { ProbePath } from './probe-path.ts';
import {
  type DirectOutcome,
  outcomeForReason,
  type RelayReason,
  type RoundVerdict,
  relayReasonOf,
} from './relay-reason.ts';

/** Interval between checks whether this machine's IP addresses have changed. */
export const PEER_ADDRESSES_LOOK_EVERY_MS = 10_000;
/** Pause after a direct connection was lost or worn out while its path still answered. */
export const PEER_LOST_RETRY_MS = 5_000;
/** Pause after a failed handshake on a direct path, which also limits attempts to guess the secret. */
export const PEER_HANDSHAKE_RETRY_MS = 30_000;
/** Time for the last messages on a direct path that is closed permanently. A revoked permission takes effect within 2 s. */
export const PEER_GOODBYE_MS = 1_000;

type Offer = Extract<PeerMessage, { type: 'offer' }>;
type Answer = Extract<PeerMessage, { type: 'answer' }>;

export interface DirectLinkOptions {
  readonly role: 'subscriber' | 'publisher';
  readonly network: PeerNetwork;
  /** False to use only the relay, without attempts to connect directly. */
  readonly isAllowed: boolean;
  readonly psk: Buffer;
  readonly clock: Clock;
  readonly events: DirectLinkEvents;
}

export interface DirectLinkEvents extends Guarded {
  /** Sends a message through the relay. The message is lost if no relay is connected. */
  send(message: PeerMessage): void;
  /** Round trip of the relay. The other side receives a message after half of it. */
  relayRttMs(): number;
  /** Called when both sides have proven the connection: new streams can use it. */
  onCarrier(carrier: SealedCarrier): void;
  onDatagram(flow: number, bytes: Buffer, start: number, end: number): void;
  /** Called when an attempt to connect directly has ended, or cannot start. */
  onAttempt(outcome: DirectOutcome): void;
  /** Called when the path becomes direct or relayed, or the reason changes. */
  onChange(): void;
}

/** State of an attempt: fresh keys, connection numbers, and the handshake hash of the relay used for the messages. */
interface Round {
  readonly number: number;
  readonly path: ProbePath;
  readonly socket: PeerSocket;
  readonly relayHash: Buffer;
  readonly ownConnection: number;
  readonly ownPorts: Reachability;
  theirConnection: number | null;
  isListening: boolean;
  /** True after the outcome of this attempt was reported. */
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
  /** Incremented when pending work of an attempt to connect directly becomes obsolete. */
  #generation = 0;
  /** Handshake hash of the relay. Null without a relay, when no message can be sent. */
  #relayHash: Buffer | null = null;
  #unable: Inability | null;
  #theyAreUnable: Inability | null = null;
  /** Reachability of both sides by UDP in the last attempt. */
  #ports: readonly Reachability[] = [];
  #verdict: RoundVerdict = null;
  /** Carrier of the direct connection. Null while connections use the relay. */
  #carrier: SealedCarrier | null = null;
  /** Sealed bytes of earlier direct carriers and attempts. */
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
      // Only the subscriber retries the direct path; the publisher waits for the next offer.
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

  /** Why connections of this peer session use the relay. */
  get reason(): RelayReason {
    const unable = this.#unable ?? this.#theyAreUnable;
    return relayReasonOf({ unable, ports: this.#ports, verdict: this.#verdict });
  }

  /** Path for datagrams of UDP services. Null while the direct path is down. */
  get slot(): DatagramPathSlot | null {
    return this.isUp ? (this.#round?.path ?? null) : null;
  }

  get bytes(): number {
    return this.#pastBytes + bytesOf(this.#carrier) + (this.#round?.path.datagramBytes ?? 0);
  }

  // ---- from the session ----

  /** Called when a relay with this handshake hash is attached, so that messages can be sent. An existing direct path continues. */
  relayAttached(handshakeHash: Buffer): void {
    this.#relayHash = handshakeHash;
    if (!this.isUp) this.#begin();
  }

  relayLost(): void {
    this.#relayHash = null;
    // A connection in progress needs no more messages; the other side may already consider it proven.
    if ((this.#round?.carrier ?? null) === null) this.#abortRound();
  }

  /** Forgets the direct path. Called when another program has replaced the other side. */
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

  /** Called every PEER_LOOK_EVERY_MS: detects traffic on the path and address changes of this machine. */
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

  /** Closes the link after the session has closed its carriers. Last messages on a direct carrier get PEER_GOODBYE_MS to arrive. */
  close(): void {
    this.#closed = true;
    this.#retry?.cancel();
    this.#driver.close();
    if (this.#carrier === null) this.#abortRound();
    this.#options.clock.setTimeout(() => this.#endpoint.close(), this.isUp ? PEER_GOODBYE_MS : 0);
  }

  // ---- rounds ----

  /** Starts a round with fresh addresses (subscriber only). Probing starts with the answer. */
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
    this.#options.events.onAttempt(outcomeForReason(this.reason));
  }

  /** Called when a side has moved to an unprobed address. The reliable connection cannot follow, so a new round is needed. */
  #onMoved(): void {
    if (!this.#isSubscriber) return this.#options.events.send({ type: 'again' });
    this.#leave();
    this.#begin();
  }

  /** Returns null if a round is not possible, which is reported, or is no longer wanted. */
  async #newRound(number: number, keys: RoundKeys): Promise<{ round: Round; said: Omit<Answer, 'type'> } | null> {
    // A side that starts a round, or is asked to, has lost its direct path.
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
    // The path driver ignores 'started' while its path is in use, so the path is switched off first.
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

  /**
   * Connects after the path was found. The publisher must listen first: a packet without a listener would be retransmitted only after a
   * second.
   */
  #connect(): void {
    const round = this.#round;
    if (round === null || round.carrier !== null || !this.#driver.isUsed) return;
    const { remote } = round.path;
    if (remote === null || round.theirConnection === null || (this.#isSubscriber && !round.isListening)) return;
    const connection = round.socket.connect({ own: round.ownConnection, theirs: round.theirConnection }, remote);
    const { psk, clock } = this.#options;
    // The prologue contains the relay's handshake hash, so that the direct path opens only between the same two programs.
    const sealed = { psk, clock, prologue: round.relayHash, hello: NOTHING };
    const role = this.#isSubscriber ? 'initiator' : 'responder';
    round.carrier = new SealedCarrier(
      connection,
      { role, ...sealed },
      {
        onProven: (carrier) => this.#onProven(carrier),
        // Messages on the direct path are ignored; all messages go through the relay.
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

  /** Called when the session lost the carrier because the other side left, or when a worn carrier only finishes its streams. */
  carrierLost(carrier: SealedCarrier): void {
    // The end of a carrier that is no longer in use needs no handling.
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

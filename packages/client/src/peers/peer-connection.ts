// A connection to a tunnel published by another client: asks the edge to join, passes relay streams to the peer session, and reconnects.
// Direct paths do not need the edge and survive its loss.
import type { Duplex } from 'node:stream';
import { inspect } from 'node:util';
import { Fault } from '@tunnel/errors';
import { type MuxStream, type PendingStream, processBudget, type ReportInternalError } from '@tunnel/mux';
import type { PeerNetwork, PeerPath, PeerSubscriber } from '@tunnel/peer';
import { CAPABILITY, type ControlMessageInput, type MessageOf, type StreamReason } from '@tunnel/protocol';
import type { Clock, Secret, Timer } from '@tunnel/runtime';
import type { Session } from '../connection/session.ts';
import { CLIENT_LIMITS } from '../limits.ts';
import { Traffic, type TrafficCounts } from '../local/traffic.ts';
import { Backoff } from '../network/backoff.ts';
import { codeOf, reasonOf } from '../network/dial-faults.ts';
import { p2pSecretHash } from '../tunnels/kinds/p2p-secret.ts';
import type { PeerIdentity, PeerPackage } from './peer-network.ts';
import { PeerStream } from './peer-stream.ts';
import type { ListenAddress, PeerConnection, PeerConnectionState, PeerEvent } from './peer-types.ts';
import { type ListenerOptions, openTcpListener, type PeerListener, type StreamOpener } from './tcp-listener.ts';
import { openUdpListener } from './udp-listener.ts';

/** Time after which a subscriber gives up if its first join is refused (exit code 4), unless --wait is set. */
const FIRST_JOIN_TIMEOUT_MS = 30_000;
/** Minimum pause before the next attempt with a peer that could not prove the secret. */
const PROOF_RETRY_MS = 30_000;

export interface PeerConnectionOptions {
  readonly name: string;
  readonly identity: PeerIdentity;
  readonly secret: Secret;
  readonly listen: ListenAddress | null;
  /** If true, the first attempt to join a p2p tunnel is repeated without limit. */
  readonly wait: boolean;
  readonly network: PeerNetwork;
  readonly clock: Clock;
  readonly random: () => number;
  readonly report: ReportInternalError;
  readonly emit: (event: PeerEvent) => void;
  /** Counts a connection being served over the p2p tunnel. Returns a function that ends the count. */
  readonly beginServing: () => () => void;
  readonly newRequestId: () => string;
  readonly onClosed: (connection: PeerLink) => void;
}

type Phase =
  /** The client has no session with the edge, or only a relay from an earlier session. */
  | { readonly kind: 'offline' }
  | { readonly kind: 'asking'; readonly requestId: string; readonly timer: Timer }
  | { readonly kind: 'opening'; readonly pending: PendingStream | null }
  | { readonly kind: 'attached' }
  | { readonly kind: 'waiting'; readonly timer: Timer }
  | { readonly kind: 'over' };

const CLOSED: StreamReason = { code: 'cancelled', text: 'the connection was closed' };

export class PeerLink implements PeerConnection {
  readonly name: string;
  readonly p2pName: string;
  readonly service: 'tcp' | 'udp';
  readonly traffic = new Traffic();
  /** Resolves when the publisher is proven for the first time. Rejects with the reason if that is impossible. */
  readonly ready: Promise<PeerConnection>;
  readonly #options: PeerConnectionOptions;
  readonly #subscriber: PeerSubscriber;
  readonly #backoff: Backoff;
  readonly #pathListeners = new Set<(path: PeerPath) => void>();
  #listener: PeerListener | null = null;
  #phase: Phase = { kind: 'offline' };
  #session: Session | null = null;
  #peerId = '';
  #hasBeenReady = false;
  #deadline: Timer | null = null;
  #served = 0;
  /** Timer that cuts off p2p connections still running after the drain time. */
  #leaving: Timer | null = null;
  /** Earliest time of the next attempt after a failed proof. Applies to reconnects too. */
  #notBefore = 0;
  /** The last fault from the edge or the peer. Repeated faults are not reported again. */
  #lastFault: Fault | null = null;
  #resolveReady: (connection: PeerConnection) => void = () => {};
  #rejectReady: (fault: Fault) => void = () => {};

  constructor(loaded: PeerPackage, options: PeerConnectionOptions) {
    this.#options = options;
    const { identity, secret, network, clock, random, report } = options;
    this.name = options.name;
    this.p2pName = identity.p2pName;
    this.service = identity.service;
    this.#backoff = new Backoff(clock, random);
    this.ready = new Promise((resolve, reject) => {
      this.#resolveReady = resolve;
      this.#rejectReady = reject;
    });
    this.ready.catch(() => {});
    const { p2pName: name, service, direct } = identity;
    this.#subscriber = new loaded.PeerSubscriber(
      { name, secret, service, direct, network, clock, budget: processBudget(), report },
      {
        onReady: () => this.#onReady(),
        onPath: (path) => this.#onPath(path),
        onRelayLost: () => this.#onRelayLost(),
        onFailed: (fault) => this.#onFailed(fault),
      },
    );
  }

  get state(): PeerConnectionState {
    if (this.#phase.kind === 'over') return 'closed';
    if (!this.#hasBeenReady) return 'connecting';
    return this.#subscriber.isConnected ? 'connected' : 'away';
  }

  get peerId(): string {
    return this.#peerId;
  }

  get path(): PeerPath['path'] {
    return this.#subscriber.path.path;
  }

  get reason(): PeerPath['reason'] {
    return this.#subscriber.path.reason;
  }

  get rttMs(): number | null {
    return this.#subscriber.path.rttMs;
  }

  get listen(): ListenAddress | null {
    return this.#listener?.address ?? null;
  }

  get counts(): TrafficCounts {
    return this.traffic.counts();
  }

  /** Plain values of the p2p connection for printing, without internals. */
  toJSON(): object {
    const { name, p2pName, service, state, peerId, path, reason, rttMs, listen, counts } = this;
    return { name, p2pName, service, state, peerId, path, reason, rttMs, listen, counts };
  }

  [inspect.custom](): object {
    return this.toJSON();
  }

  onPath(listener: (path: PeerPath) => void): () => void {
    this.#pathListeners.add(listener);
    return () => void this.#pathListeners.delete(listener);
  }

  /** Opens the local port and asks the edge to join. Rejects with a Fault if the port is taken; then the edge is not asked. */
  async start(currentSession: () => Session | null): Promise<void> {
    const { listen, clock, wait, report } = this.#options;
    if (listen !== null) {
      const { traffic, service } = this;
      const beginServing = (): (() => void) => this.#beginServing();
      this.#listener = await openListener(listen, service, this.#subscriber, { clock, report, traffic, beginServing });
    }
    if (this.#phase.kind === 'over') return this.#listener?.close();
    if (!wait) this.#deadline = clock.setTimeout(() => this.#giveUp(), FIRST_JOIN_TIMEOUT_MS);
    // The session with the edge may have started while the local port was being opened.
    const session = currentSession();
    if (session !== null && this.#session !== session) this.sessionUp(session);
  }

  dial(): Promise<Duplex> {
    return new Promise((resolve, reject) => {
      const refuse = (text: string): void =>
        reject(new Fault('CLIENT_PEER_DIAL', { name: this.p2pName, reason: text }));
      if (this.service === 'udp')
        return reject(new Fault('CLIENT_USAGE', { reason: 'a udp service cannot be dialed: use listenPort' }));
      if (this.#phase.kind === 'over' || this.isLeaving) return refuse('the connection is closed');
      const done = this.#beginServing();
      const pending = this.#subscriber.open(
        { tunnelId: this.p2pName, visitor: '' },
        {
          onOpened: (stream: MuxStream) => resolve(new PeerStream(stream, done)),
          onRefused: ({ text }) => {
            done();
            refuse(text);
          },
          abandon: this.#options.report,
        },
      );
      if (pending !== null) return;
      done();
      refuse('too many connections are waiting for the peer');
    });
  }

  close({ drainMs = 0 }: { readonly drainMs?: number } = {}): Promise<void> {
    if (drainMs > 0 && this.#served > 0 && this.#phase.kind !== 'over') {
      this.drain();
      this.#leaving ??= this.#options.clock.setTimeout(() => this.end(), drainMs);
    } else this.end();
    return Promise.resolve();
  }

  /** True after close() while running connections finish. The connection is no longer listed by the client. */
  get isLeaving(): boolean {
    return this.#leaving !== null;
  }

  /** Stops accepting connections at the local port. Current connections may finish. */
  drain(): void {
    this.#listener?.close();
  }

  /** Counts a connection being served over the p2p tunnel. Returns a function that ends the count. */
  #beginServing(): () => void {
    const isOver = this.#options.beginServing();
    let isServed = true;
    this.#served += 1;
    return () => {
      isOver();
      if (isServed) this.#served -= 1;
      isServed = false;
      if (this.#served === 0 && this.#leaving !== null) this.end();
    };
  }

  // ---- the edge ----

  sessionUp(session: Session): void {
    if (this.#phase.kind === 'over') return;
    this.#session = session;
    this.#enter({ kind: 'offline' });
    const early = this.#notBefore - this.#options.clock.monotonic();
    if (early > 0) this.#wait(early);
    else this.#ask();
  }

  /** Handles the loss of the session. A relay on a carrier of the lost session continues, as do direct paths. */
  sessionDown(): void {
    this.#session = null;
    if (this.#phase.kind !== 'over') this.#enter({ kind: 'offline' });
  }

  /** Handles a message of the edge. Returns false if the message concerns another connection. */
  onMessage(message: MessageOf<'PeerConnected'> | MessageOf<'PeerError'>): boolean {
    const isAnswer = this.#phase.kind === 'asking' && this.#phase.requestId === message.request_id;
    if (message.type === 'PeerConnected') {
      if (isAnswer) this.#openRelay(message.peer_id);
      return isAnswer;
    }
    const fault = Fault.fromWire(message.code, message.message);
    if (isAnswer) {
      // The edge still holds this peer for a publisher that is briefly away. A request without the peer id would create a second peer.
      if (!message.retryable) this.#peerId = '';
      this.#refused(fault, { isLasting: !message.retryable });
      return true;
    }
    if (message.request_id !== undefined || message.peer_id !== this.#peerId || this.#peerId === '') return false;
    this.#onJoinEnded(fault);
    return true;
  }

  #ask(): void {
    const { clock, newRequestId, secret } = this.#options;
    const session = this.#session;
    if (session === null) return;
    if (!session.capabilities.includes(CAPABILITY.P2P)) {
      return this.#refused(new Fault('CLIENT_EDGE_TOO_OLD', { protocol: 'p2p' }), { isLasting: true });
    }
    const requestId = newRequestId();
    const timer = clock.setTimeout(() => {
      session.drop(new Fault('CONTROL_DEAD', { seconds: CLIENT_LIMITS.REGISTER_TIMEOUT_MS / 1000 }));
    }, CLIENT_LIMITS.REGISTER_TIMEOUT_MS);
    this.#enter({ kind: 'asking', requestId, timer });
    session.send({
      type: 'ConnectPeer',
      request_id: requestId,
      p2p_name: this.p2pName,
      p2p_secret_hash: p2pSecretHash(secret),
      service: this.service,
      ...(this.#peerId === '' ? {} : { peer_id: this.#peerId }),
    });
  }

  #openRelay(peerId: string): void {
    this.#peerId = peerId;
    const opening = { kind: 'opening', pending: null } as const;
    this.#enter(opening);
    const isStale = (): boolean => this.#phase.kind !== 'opening' || this.#peerId !== peerId;
    const pending =
      this.#session?.openStream(
        { tunnelId: peerId, visitor: '' },
        {
          onOpened: (stream) => {
            if (isStale()) return stream.reset(CLOSED);
            this.#enter({ kind: 'attached' });
            this.#subscriber.attachRelay(stream);
          },
          onRefused: () => {
            if (!isStale()) this.#refused(this.#awayFault(), { isLasting: false });
          },
          abandon: this.#options.report,
        },
      ) ?? null;
    if (this.#phase !== opening) return;
    if (pending === null) this.#refused(this.#awayFault(), { isLasting: false });
    else this.#phase = { kind: 'opening', pending };
  }

  /** Handles the end of the join by the edge. The permission has ended, unless the publisher is only briefly away. */
  #onJoinEnded(fault: Fault): void {
    this.#peerId = '';
    this.#refused(fault, { isLasting: false });
    if (fault.code !== 'P2P_AWAY') this.#subscriber.disconnect(fault.message);
  }

  // ---- the peer ----

  #onReady(): void {
    this.#lastFault = null;
    this.#backoff.connected();
    this.#deadline?.cancel();
    if (this.#hasBeenReady) return;
    this.#hasBeenReady = true;
    this.#options.emit({ type: 'peer-ready', connection: this });
    this.#onPath(this.#subscriber.path);
    this.#resolveReady(this);
  }

  #onPath(path: PeerPath): void {
    // The first path of a p2p connection is reported together with the ready event.
    if (!this.#hasBeenReady) return;
    this.#options.emit({ type: 'path', name: this.name, peerId: this.#peerId, ...path });
    for (const listener of this.#pathListeners) listener(path);
  }

  #onRelayLost(): void {
    if (this.#phase.kind !== 'attached') return;
    if (this.#hasBeenReady) this.#wait(0);
    else this.#refused(this.#awayFault(), { isLasting: false });
  }

  #onFailed(fault: Fault): void {
    if (this.#phase.kind === 'over') return;
    const isProof = fault.code === 'P2P_PROOF_FAILED';
    const atLeastMs = isProof ? PROOF_RETRY_MS : 0;
    this.#notBefore = this.#options.clock.monotonic() + atLeastMs;
    this.#refused(fault, { isLasting: !isProof, atLeastMs });
  }

  // ---- trying again, and the end ----

  #refused(fault: Fault, { isLasting, atLeastMs = 0 }: { isLasting: boolean; atLeastMs?: number }): void {
    const isNews = this.#lastFault?.message !== fault.message;
    this.#lastFault = fault;
    if (isLasting && !this.#hasBeenReady) return this.end(fault);
    this.#wait(atLeastMs);
    if (isNews) this.#options.emit({ type: 'peer-error', connection: this, fault, final: false });
  }

  #wait(atLeastMs: number): void {
    const { clock, wait } = this.#options;
    const backoffMs = this.#backoff.nextDelayMs();
    // If the first join of a p2p tunnel has a deadline, the pause is capped so that the client does not sleep past the deadline.
    const isShort = !this.#hasBeenReady && !wait;
    const delayMs = isShort ? Math.min(backoffMs, CLIENT_LIMITS.FIRST_CONNECT_RETRY_MAX_MS) : backoffMs;
    const timer = clock.setTimeout(
      () => {
        this.#phase = { kind: 'offline' };
        this.#ask();
      },
      Math.max(delayMs, atLeastMs),
    );
    this.#enter({ kind: 'waiting', timer });
  }

  #giveUp(): void {
    this.end(this.#lastFault ?? this.#awayFault());
  }

  #awayFault(): Fault {
    return new Fault('P2P_AWAY', { name: this.p2pName });
  }

  /** Ends the connection. Has a fault if the owner did not close it. */
  end(fault?: Fault): void {
    if (this.#phase.kind === 'over') return;
    this.#enter({ kind: 'over' });
    this.#deadline?.cancel();
    this.#leaving?.cancel();
    this.#listener?.close();
    const goodbye: ControlMessageInput | null =
      this.#peerId === '' ? null : { type: 'DisconnectPeer', peer_id: this.#peerId };
    if (goodbye !== null) this.#session?.send(goodbye);
    this.#subscriber.close(CLOSED);
    this.#rejectReady(fault ?? new Fault('CLIENT_CLOSED'));
    this.#options.onClosed(this);
    if (fault !== undefined) this.#options.emit({ type: 'peer-error', connection: this, fault, final: true });
  }

  #enter(phase: Phase): void {
    const before = this.#phase;
    if (before.kind === 'asking' || before.kind === 'waiting') before.timer.cancel();
    this.#phase = phase;
    if (before.kind === 'opening' && phase.kind !== 'attached') before.pending?.reset(CLOSED);
  }
}

/** Opens the local listener. Rejects with a Fault that names an unavailable port. */
const openListener = async (
  at: ListenAddress,
  service: 'tcp' | 'udp',
  opener: StreamOpener,
  deps: ListenerOptions,
): Promise<PeerListener> => {
  try {
    return await (service === 'udp' ? openUdpListener(at, opener, deps) : openTcpListener(at, opener, deps));
  } catch (error) {
    throw listenFault(at, error);
  }
};

const KEY = 'listen_port';

const listenFault = ({ host, port }: ListenAddress, error: unknown): Fault => {
  const values = { host, port, key: KEY };
  if (codeOf(error) === 'EADDRINUSE') return new Fault('CONFIG_PORT_TAKEN', values, { cause: error });
  return new Fault('CONFIG_PORT_DENIED', { ...values, reason: reasonOf(error) }, { cause: error });
};

// The tunnel client: as its user holds it, the door to it, and what is behind: one connection, the tunnels on it, the visitors in
// them, and what a restart needs.
import { Fault } from '@tunnel/errors';
import type { ControlMessage, StreamReason } from '@tunnel/protocol';
import { sha256Hex, type Timer } from '@tunnel/runtime';
import { Connection, type Wait } from './connection/connection.ts';
import { awaitClose } from './connection/control-link.ts';
import type { Session, SessionFacts } from './connection/session.ts';
import type { Inspector, InspectorOptions } from './inspector/inspector.ts';
import { CLIENT_LIMITS } from './limits.ts';
import { TargetGuard } from './local/target-guard.ts';
import { Backoff } from './network/backoff.ts';
import { reasonOf, unreachable } from './network/dial-faults.ts';
import { type ClientSettings, type ConnectOptions, checkOptions } from './options.ts';
import type { ConnectPeerOptions, PeerConnection } from './peers/peer-types.ts';
import { Peers } from './peers/peers.ts';
import type { RequestListener } from './requests/request-record.ts';
import { RequestReporter } from './requests/request-reporter.ts';
import { AssignedEndpoints } from './state/assigned-endpoints.ts';
import { type ResumeStore, takeSlot } from './state/resume-state.ts';
import { StatusEmitter, type StatusListener } from './status.ts';
import { StreamHandler } from './tunnels/stream-handler.ts';
import { type Tunnel, TunnelEntry } from './tunnels/tunnel.ts';
import { TunnelRegistry } from './tunnels/tunnel-registry.ts';
import { acceptTunnel, type ClientSpec, type TunnelOptions } from './tunnels/tunnel-spec.ts';

/**
 * at the first start the client gives up after this (exit code 5), unless --wait
 * @limit tunnels: First connection of `tunnel`, time to connect | `CLIENT_SERVER_UNREACHABLE` and exit code 5, unless `--wait` is given
 */
const FIRST_CONNECT_TIMEOUT_MS = 30_000;

export interface CloseOptions {
  /** How long visitors that are being served may take; 0, the default, cuts them off. */
  readonly drainMs?: number;
}

export interface OpenOptions {
  /** A tunnel that is closed: the public port or name that the edge chose for it is asked for again. */
  readonly endpointOf?: Tunnel | undefined;
}

export type ClientState = 'connecting' | 'connected' | 'reconnecting' | 'closing' | 'closed';

export interface Client {
  readonly state: ClientState;
  /** null while there is none. */
  readonly session: SessionFacts | null;
  readonly tunnels: readonly Tunnel[];
  /** Visitors being served now. */
  readonly openConnections: number;
  /** Settles with the edge's answer; rejects with its fault when it refuses. */
  open(tunnel: TunnelOptions | ClientSpec, options?: OpenOptions): Promise<Tunnel>;
  /** The one of this name; the first, when there are several. */
  find(name: string): Tunnel | undefined;
  /** Connections to what other clients publish. */
  readonly peerConnections: readonly PeerConnection[];
  /** To what another client publishes. Settles when it is proven over the relay; rejects with why it will not be. */
  connectPeer(options: ConnectPeerOptions): Promise<PeerConnection>;
  /** Returns what ends the listening. */
  onStatus(listener: StatusListener): () => void;
  /** Requests of http tunnels as they pass, on connections that begin from now on; looking costs a little. Returns what ends it. */
  onRequest(listener: RequestListener): () => void;
  /** A page on 127.0.0.1 with the last requests, to look at and to send again. null: no port of its range is free, or it could not be loaded. The options of the first call count. */
  openInspector(options?: InspectorOptions): Promise<Inspector | null>;
  /** Ends on purpose: no new visitors from now on; those that are there have `drainMs`. Calling it again only shortens that. */
  close(options?: CloseOptions): Promise<void>;
  /** Settles when the client is over; with a fault when it did not end by itself. */
  readonly closed: Promise<Fault | undefined>;
}

/** Settles when the edge has accepted the key and the first carrier is open; rejects with a Fault. */
export const connect = async (options: ConnectOptions): Promise<Client> => {
  const settings = checkOptions(options);
  const status = new StatusEmitter();
  if (options.onStatus !== undefined) status.on(options.onStatus);
  const client = new TunnelClient(settings, status);
  const cancel = (): void => void client.close();
  options.signal?.addEventListener('abort', cancel, { once: true });
  if (options.signal?.aborted === true) cancel();
  try {
    await client.start();
  } finally {
    options.signal?.removeEventListener('abort', cancel);
  }
  return client;
};

const TOUCH_EVERY_TICKS = 60;
/** Enough to tell the keys of one user apart. */
const KEY_HASH_CHARS = 16;
const STOPPING: StreamReason = { code: 'shutting-down', text: 'the client is stopping' };

class TunnelClient implements Client {
  readonly closed: Promise<Fault | undefined>;
  readonly #settings: ClientSettings;
  readonly #status: StatusEmitter;
  readonly #registry: TunnelRegistry;
  readonly #streams: StreamHandler;
  readonly #peers: Peers;
  readonly #requests: RequestReporter;
  #inspector: Promise<Inspector | null> | null = null;
  #inspectorPort: number | null = null;
  /** Of the last session, also while there is none. */
  #edgePorts: readonly number[] = [];
  readonly #endpoints: AssignedEndpoints | null;
  /** Of the last session; where the edge names no account, the key stands for it. */
  #account: string;
  readonly #connection: Connection;
  readonly #store: ResumeStore | null;
  readonly #ticker: Timer;
  #state: ClientState = 'connecting';
  #resume: { readonly sessionId: string; readonly secret: string } | null;
  #ticks = 0;
  #lastFault: Fault | null = null;
  /** Set from a reconnection until every tunnel has its answer. */
  #announce: { readonly resumed: boolean } | null = null;
  #cutDrain: () => void = () => {};
  #resolveClosed: (fault: Fault | undefined) => void = () => {};
  #onFirstUp: () => void = () => {};

  constructor(settings: ClientSettings, status: StatusEmitter) {
    this.#settings = settings;
    this.#status = status;
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    this.#requests = new RequestReporter(settings.clock);
    const { state, clock, logger, newNames } = settings;
    this.#endpoints =
      state === null ? null : new AssignedEndpoints({ dir: state.dir, clock, logger, isForgetful: newNames });
    this.#account = sha256Hex(settings.token.reveal()).slice(0, KEY_HASH_CHARS);
    this.#registry = this.#makeRegistry();
    this.#streams = this.#makeStreamHandler();
    this.#peers = this.#makePeers();
    this.#connection = this.#makeConnection();
    this.#store = settings.state === null ? null : takeSlot({ ...settings.state, logger: settings.logger });
    // A session of before would bring its names with it.
    const saved = settings.newNames ? null : (this.#store?.load() ?? null);
    this.#resume = saved;
    this.#registry.restore(saved?.tunnels ?? []);
    this.#ticker = settings.clock.setInterval(() => this.#tick(), CLIENT_LIMITS.CLIENT_TICK_MS);
  }

  get state(): ClientState {
    return this.#state;
  }

  get session(): SessionFacts | null {
    return this.#connection.session?.facts ?? null;
  }

  get tunnels(): readonly Tunnel[] {
    return this.#registry.tunnels;
  }

  get openConnections(): number {
    return this.#streams.served;
  }

  get peerConnections(): readonly PeerConnection[] {
    return this.#peers.connections;
  }

  onStatus(listener: StatusListener): () => void {
    return this.#status.on(listener);
  }

  onRequest(listener: RequestListener): () => void {
    return this.#requests.on(listener);
  }

  /** One per client: its requests are kept once. */
  openInspector(options: InspectorOptions = {}): Promise<Inspector | null> {
    this.#inspector ??= this.#startInspector(options);
    return this.#inspector;
  }

  /** Loaded now: most clients run without it. Its file may be gone after an update of the program, which costs no tunnel. */
  async #startInspector(options: InspectorOptions): Promise<Inspector | null> {
    const { clock, logger } = this.#settings;
    try {
      const { startInspector } = await import('./inspector/inspector.ts');
      const own = { requests: this.#requests, clock, logger, tunnels: () => this.tunnels };
      const inspector = await startInspector({ ...own, ...options });
      this.#inspectorPort = inspector === null ? null : Number(new URL(inspector.url).port);
      return inspector;
    } catch (error) {
      logger.warn({ reason: reasonOf(error) }, 'cannot start the inspector');
      return null;
    }
  }

  /** Settles with the first session; rejects with what made it impossible. */
  async start(): Promise<void> {
    const { clock, wait, endpoint } = this.#settings;
    const server = endpoint.address.text;
    const seconds = FIRST_CONNECT_TIMEOUT_MS / 1000;
    const deadline = wait
      ? null
      : clock.setTimeout(() => {
          this.#finish(this.#lastFault ?? unreachable(server, `no response within ${seconds} s`));
        }, FIRST_CONNECT_TIMEOUT_MS);
    this.#status.emit({ type: 'connecting', server });
    const up = new Promise<'up'>((resolve) => {
      this.#onFirstUp = () => resolve('up');
    });
    this.#connection.start();
    const first = await Promise.race([up, this.closed.then((fault) => fault ?? new Fault('CLIENT_CLOSED'))]);
    deadline?.cancel();
    if (first !== 'up') throw first;
  }

  find(name: string): Tunnel | undefined {
    return this.#registry.tunnels.find((tunnel) => tunnel.name === name);
  }

  async open(given: TunnelOptions | ClientSpec, { endpointOf }: OpenOptions = {}): Promise<Tunnel> {
    this.#refuseWhenEnding();
    const wanted = acceptTunnel(given);
    const { clock, random } = this.#settings;
    const previous = endpointOf instanceof TunnelEntry ? endpointOf.endpoint : {};
    const tunnel = new TunnelEntry(wanted, { backoff: new Backoff(clock, random), owner: this.#registry, previous });
    const checking = this.#registry.checkTarget(wanted);
    if (checking !== null) await this.#awaitCheck(checking, tunnel);
    if (tunnel.protocol === 'p2p' || wanted.policy !== undefined) {
      await (tunnel.protocol === 'p2p' ? this.#peers.publish(tunnel) : tunnel.makePolicy());
      // The end may have come while its parts were loaded, or its passwords hashed.
      if (this.#isEnding) tunnel.ended();
      this.#refuseWhenEnding();
    }
    this.#registry.add(tunnel);
    return tunnel.opened;
  }

  async connectPeer(options: ConnectPeerOptions): Promise<PeerConnection> {
    this.#refuseWhenEnding();
    const connection = await this.#peers.connect(options);
    if (this.#isEnding) connection.end();
    return connection.ready;
  }

  /** A refusal is reported as one by the edge is, so that a run with no other tunnel ends. Rejects with it. */
  async #awaitCheck(checking: Promise<void>, tunnel: TunnelEntry): Promise<void> {
    try {
      await checking;
    } catch (error) {
      this.#registry.refuse(tunnel, Fault.from(error));
      throw error;
    }
    if (this.#isEnding) tunnel.ended();
    this.#refuseWhenEnding();
  }

  get #isEnding(): boolean {
    return this.#state === 'closing' || this.#state === 'closed';
  }

  #refuseWhenEnding(): void {
    if (this.#isEnding) throw new Fault('CLIENT_CLOSED');
  }

  async close({ drainMs = 0 }: CloseOptions = {}): Promise<void> {
    if (this.#state === 'closed') return;
    if (this.#state !== 'closing') void this.#end(drainMs);
    else if (drainMs === 0) this.#cutDrain();
    await this.closed;
  }

  async #end(drainMs: number): Promise<void> {
    this.#state = 'closing';
    this.#status.emit({ type: 'closing' });
    this.#registry.reportDrops();
    this.#registry.closeVisited();
    this.#peers.drain();
    const session = this.#connection.stop();
    session?.leaveDatagramPath();
    const goodbye = { type: 'ShuttingDown', reason: STOPPING.text, drain_secs: Math.ceil(drainMs / 1000) } as const;
    // With it permission ends for peers, and so does what they have running.
    const hasPeers = this.#peers.isUsed;
    if (!hasPeers) session?.link.send(goodbye);
    await this.#drained(drainMs);
    this.#peers.close();
    this.#registry.closeAll();
    if (hasPeers) session?.link.send(goodbye);
    session?.close(STOPPING);
    if (session !== null) await awaitClose(session.link, this.#settings.clock);
    this.#finish();
  }

  async #drained(drainMs: number): Promise<void> {
    const { clock } = this.#settings;
    if (drainMs <= 0) return;
    const cut = new Promise<void>((resolve) => {
      const timer = clock.setTimeout(resolve, drainMs);
      this.#cutDrain = () => {
        timer.cancel();
        resolve();
      };
    });
    await Promise.race([this.#streams.whenIdle(), cut]);
    this.#cutDrain();
  }

  #finish(fault?: Fault): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#ticker.cancel();
    const session = this.#connection.stop();
    session?.close(STOPPING);
    this.#connection.closeRetired(STOPPING);
    this.#peers.sessionDown();
    this.#peers.close(fault);
    this.#registry.sessionDown();
    this.#registry.closeAll(fault);
    this.#streams.recheck();
    this.#endpoints?.close();
    this.#store?.release({ forget: fault === undefined });
    void this.#inspector?.then((inspector) => inspector?.close());
    this.#status.emit(fault === undefined ? { type: 'closed' } : { type: 'closed', fault });
    this.#resolveClosed(fault);
  }

  #tick(): void {
    const now = this.#settings.clock.monotonic();
    this.#connection.tick(now);
    this.#streams.tick(now);
    this.#peers.tick(now);
    this.#registry.reportDrops();
    this.#ticks += 1;
    if (this.#ticks % TOUCH_EVERY_TICKS === 0) this.#store?.touch();
  }

  #onUp(session: Session): void {
    const first = this.#state === 'connecting';
    this.#state = 'connected';
    this.#lastFault = null;
    this.#edgePorts = session.edgePorts;
    this.#account = session.facts.account ?? this.#account;
    if (first) this.#status.emit({ type: 'connected', sessionId: session.id, resumed: session.resumed });
    else this.#announce = { resumed: session.resumed };
    this.#registry.sessionUp(session);
    this.#peers.sessionUp(session);
    this.#announceIfSettled();
    this.#onFirstUp();
  }

  #onWaiting({ attempt, delayMs, fault, planned }: Wait): void {
    this.#lastFault = fault;
    if (this.#state === 'connected') this.#state = 'reconnecting';
    this.#status.emit({ type: 'reconnecting', attempt, delayMs, reason: fault.message, planned });
  }

  #onDown(): void {
    this.#announce = null;
    this.#registry.sessionDown();
    this.#peers.sessionDown();
    this.#streams.recheck();
  }

  #onMessage(message: ControlMessage): void {
    if (message.type === 'EdgeAnswered' || message.type === 'EdgeAnsweredMore') {
      const tunnel = this.#registry.find(message.tunnel_id);
      if (tunnel === undefined) return;
      if (message.type === 'EdgeAnswered') this.#requests.edgeAnswered(tunnel, message);
      else this.#requests.edgeAnsweredMore(tunnel, message.count);
    } else if (!this.#peers.onMessage(message)) this.#registry.onMessage(message);
  }

  #announceIfSettled(): void {
    if (this.#announce === null || this.#registry.hasPendingRegistrations) return;
    const { resumed } = this.#announce;
    this.#announce = null;
    this.#status.emit({ type: 'reconnected', resumed });
  }

  #save(): void {
    if (this.#resume !== null) this.#store?.save({ ...this.#resume, tunnels: this.#registry.saved() });
  }

  #makeRegistry(): TunnelRegistry {
    return new TunnelRegistry({
      settings: this.#settings,
      guard: this.#makeGuard(),
      endpoints: this.#endpoints,
      remembers: () => ({ server: this.#settings.endpoint.address.text, account: this.#account }),
      emit: (event) => this.#status.emit(event),
      onChanged: () => this.#save(),
      onAnswer: () => {
        this.#streams.recheck();
        this.#announceIfSettled();
      },
    });
  }

  #makeGuard(): TargetGuard {
    return new TargetGuard({
      clients: this.#settings.ownClients,
      inspectorPort: () => this.#inspectorPort,
      edgePorts: () => this.#edgePorts,
      clock: this.#settings.clock,
    });
  }

  #makeStreamHandler(): StreamHandler {
    return new StreamHandler({
      clock: this.#settings.clock,
      find: (tunnelId) => this.#registry.find(tunnelId),
      expectsTunnels: () => this.#registry.hasPendingRegistrations,
      checkTarget: (spec) => this.#registry.checkVisit(spec),
      checkLater: (spec) => this.#registry.checkLater(spec),
      tap: (visitor, tunnel, stream, service) => this.#requests.tap(visitor, tunnel, stream, service),
      report: this.#settings.report,
      emit: (event) => this.#status.emit(event),
    });
  }

  #makePeers(): Peers {
    return new Peers({
      settings: this.#settings,
      emit: (event) => this.#status.emit(event),
      findTunnel: (tunnelId) => this.#registry.find(tunnelId),
      serve: (stream, tunnel) => this.#streams.servePeer(stream, tunnel),
      serveFlow: (stream, head, tunnel) => this.#streams.servePeerFlow(stream, head, tunnel),
      beginServing: () => this.#streams.beginServing(),
    });
  }

  #makeConnection(): Connection {
    return new Connection(this.#settings, {
      resume: () => this.#resume,
      onAuthenticated: ({ id, secret, resumed }) => {
        this.#resume = { sessionId: id, secret };
        if (!resumed) this.#registry.forgetIds();
        this.#save();
      },
      onUp: (session) => this.#onUp(session),
      onDown: () => this.#onDown(),
      onWaiting: (wait) => this.#onWaiting(wait),
      onMessage: (message) => this.#onMessage(message),
      onStream: (stream, head) => this.#streams.onStream(stream, head),
      onDatagramStream: (stream, head) => this.#streams.onDatagramStream(stream, head),
      onDatagramWay: (way) => this.#registry.datagramsGo(way),
      onFatal: (fault) => this.#finish(fault),
    });
  }
}

// The tunnel client: the public interface, connect(), and the implementation with one connection, its tunnels and visitors, and the state
// saved for a restart.
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
 * Time limit of the first connection. Afterwards the client gives up with exit code 5, unless --wait is set.
 * @limit tunnels: First connection of `tunnel`, time to connect | `CLIENT_SERVER_UNREACHABLE` and exit code 5, unless `--wait` is given
 */
const FIRST_CONNECT_TIMEOUT_MS = 30_000;

export interface CloseOptions {
  /** Time for current visitors to finish. Default: 0, which cuts them off. */
  readonly drainMs?: number;
}

export interface OpenOptions {
  /** A closed tunnel. The public port or name assigned to it by the edge is requested again. */
  readonly endpointOf?: Tunnel | undefined;
}

export type ClientState = 'connecting' | 'connected' | 'reconnecting' | 'closing' | 'closed';

export interface Client {
  readonly state: ClientState;
  /** Facts about the session with the edge. Null while disconnected. */
  readonly session: SessionFacts | null;
  readonly tunnels: readonly Tunnel[];
  /** Number of visitors of all tunnels being served. */
  readonly openConnections: number;
  /** Resolves with the edge's response. Rejects with the edge's fault if the tunnel is refused. */
  open(tunnel: TunnelOptions | ClientSpec, options?: OpenOptions): Promise<Tunnel>;
  /** Returns the client's first tunnel with the name. */
  find(name: string): Tunnel | undefined;
  /** Connections of this client to p2p tunnels published by other clients. */
  readonly peerConnections: readonly PeerConnection[];
  /**
   * Connects to a tunnel published by another client. Resolves when the relay connection is proven; rejects with the reason of a failure.
   */
  connectPeer(options: ConnectPeerOptions): Promise<PeerConnection>;
  /** Subscribes to the client's status events. Returns a function that ends the subscription. */
  onStatus(listener: StatusListener): () => void;
  /**
   * Subscribes to requests of http tunnels, on connections opened from now on. Observing costs some performance. Returns a function that
   * ends the subscription.
   */
  onRequest(listener: RequestListener): () => void;
  /**
   * Opens a page on 127.0.0.1 with the latest requests, to view and replay them. Resolves with null if no port of the range is free, or if
   * the inspector cannot be loaded. Only the first call's options count.
   */
  openInspector(options?: InspectorOptions): Promise<Inspector | null>;
  /** Closes the client to new visitors. Current visitors have `drainMs` to finish. Another call can only shorten the time. */
  close(options?: CloseOptions): Promise<void>;
  /** Resolves when the client has closed; with a fault if your program did not close it. */
  readonly closed: Promise<Fault | undefined>;
}

/** Resolves when the edge has accepted the key and the first carrier is open. Rejects with a Fault. */
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
/** Length of a key hash, enough to tell the keys of one user apart. */
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
  /** REST and metrics ports of the edge in the last session, kept while disconnected. */
  #edgePorts: readonly number[] = [];
  readonly #endpoints: AssignedEndpoints | null;
  /** Account of the last session. If the edge names no account, a hash of the key. */
  #account: string;
  readonly #connection: Connection;
  readonly #store: ResumeStore | null;
  readonly #ticker: Timer;
  #state: ClientState = 'connecting';
  #resume: { readonly sessionId: string; readonly secret: string } | null;
  #ticks = 0;
  #lastFault: Fault | null = null;
  /** Announcement of a reconnect, set until the edge has answered for every tunnel. */
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
    // With the option for new names, the saved session is ignored, because it would restore the old names.
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

  /** Opens the inspector. A client has at most one inspector, so that requests are captured once. */
  openInspector(options: InspectorOptions = {}): Promise<Inspector | null> {
    this.#inspector ??= this.#startInspector(options);
    return this.#inspector;
  }

  /** Loads the inspector on demand, because some clients run without it. If its code cannot be loaded, only the inspector fails. */
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

  /** Resolves with the first session. Rejects with the fault that prevented a session. */
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
      // The client may have started to close while modules were loaded or passwords hashed.
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

  /**
   * Waits for the target check. A refusal is reported like a refusal by the edge, so that a run without other tunnels ends. Rejects with
   * the refusal.
   */
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
    // The goodbye ends the peers' permission and their running connections, so with peers it is sent after the drain.
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

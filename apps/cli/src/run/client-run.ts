// The tunnels of one run: requested once the client is connected, then opened, changed and removed while the client runs. Each tunnel has
// a state and a last error.
import type { Client, ClientSpec, ConnectPeerOptions, PeerConnection, StatusEvent, Tunnel } from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import type { ReloadOutcome } from '@tunnel/tunnel-spec';
import type { RunningTunnelState } from '../agent/answers.ts';
import type { TunnelSource } from '../agent/readiness.rules.ts';
import { faultOf, misuse } from '../io/problem-report.ts';
import type { Output, RemovedTunnel } from '../output/output.ts';
import { isTunnel, nameOf, type RunningClient, type RunningTunnel, type TunnelRun } from './hooks/running-client.ts';

export interface ClientRunOptions {
  readonly plan: TunnelRun;
  readonly since: number;
  readonly output: Output;
  readonly stop: () => void;
  /**
   * Starts observing requests before a tunnel is requested, so that the first request is seen. Resolves with the inspector's URL, or null
   * without an inspector.
   */
  readonly watchRequests: (client: Client, spec: ClientSpec) => Promise<string | null>;
}

export class ClientRun implements RunningClient {
  readonly plan: TunnelRun;
  readonly since: number;
  readonly reload: (() => Promise<ReloadOutcome>) | null;
  readonly #options: ClientRunOptions;
  readonly #entries = new Map<string, Entry>();
  /** Removed tunnels that still serve visitors. */
  readonly #closing = new Set<Entry>();
  #client: Client | null = null;
  #isStopping = false;
  #reloading: { readonly asked: Promise<ReloadOutcome>; readonly told: Promise<ReloadOutcome> } | null = null;
  #inspectUrl: string | null = null;

  constructor(options: ClientRunOptions) {
    this.#options = options;
    const { plan } = options;
    this.plan = plan;
    this.since = options.since;
    const { reload } = plan;
    this.reload = reload === undefined ? null : () => this.#reload(reload);
    // Tunnels are listed before they are requested, so that the status of a connecting client shows them.
    for (const wanted of [...plan.tunnels, ...(plan.peers ?? [])]) this.#add(new Entry(wanted, plan.source, true));
  }

  get client(): Client | null {
    return this.#client;
  }

  get state(): RunningClient['state'] {
    const state = this.#client?.state ?? 'connecting';
    return this.#isStopping || state === 'closed' ? 'closing' : state;
  }

  get inspectUrl(): string | null {
    return this.#inspectUrl;
  }

  get tunnels(): readonly RunningTunnel[] {
    for (const entry of this.#closing) if (entry.isOver) this.#closing.delete(entry);
    return [...this.#entries.values(), ...this.#closing];
  }

  /**
   * Requests the tunnels of the run. Called once, when the client has connected for the first time. Rejections are reported by status
   * events.
   */
  async connected(client: Client): Promise<void> {
    // The current entries, not the plan's, because the config file may have been read again while the client was connecting.
    const entries = [...this.#entries.values()];
    for (const { wanted } of entries) await this.#watchRequests(client, wanted);
    this.#client = client;
    for (const entry of this.#entries.values()) entry.asked = this.#ask(client, entry, null);
  }

  /** Opens the tunnel or peer connection of an entry. Errors are ignored here, because a status event reports a rejection. */
  async #ask(client: Client, entry: Entry, endpointOf: Tunnel | null): Promise<void> {
    try {
      await this.#openFor(client, entry, endpointOf);
    } catch {}
  }

  /**
   * Opens the tunnel or peer connection of an entry. The entry can be removed before the request is sent, and while code is loaded. A
   * removed tunnel must not be opened.
   */
  async #openFor(client: Client, entry: Entry, endpointOf: Tunnel | null): Promise<Tunnel | PeerConnection> {
    const { wanted } = entry;
    await this.#watchRequests(client, wanted);
    if (!this.#has(entry)) throw new Fault('TUNNEL_CLOSED');
    const opened = isTunnel(wanted)
      ? await client.open(wanted, { endpointOf: endpointOf ?? undefined })
      : await client.connectPeer(wanted);
    if (this.#has(entry)) return opened;
    await opened.close();
    throw new Fault('TUNNEL_CLOSED');
  }

  #has(entry: Entry): boolean {
    return this.#entries.get(entry.name) === entry;
  }

  async #watchRequests(client: Client, wanted: Entry['wanted']): Promise<void> {
    if (isTunnel(wanted)) this.#inspectUrl = await this.#options.watchRequests(client, wanted);
  }

  async open(spec: ClientSpec, source: TunnelSource): Promise<Tunnel> {
    return (await this.#openNew(new Entry(spec, source, false))) as Tunnel;
  }

  async connectPeer(options: ConnectPeerOptions, source: TunnelSource): Promise<PeerConnection> {
    return (await this.#openNew(new Entry(options, source, false))) as PeerConnection;
  }

  begin(wanted: ClientSpec | ConnectPeerOptions, endpointOf: Tunnel | null): void {
    const entry = new Entry(wanted, 'file', this.#client === null);
    this.#add(entry);
    if (this.#client !== null) entry.asked = this.#ask(this.#client, entry, endpointOf);
  }

  async retarget(spec: ClientSpec): Promise<void> {
    const entry = this.#entries.get(nameOf(spec));
    if (entry === undefined) return;
    entry.wanted = spec;
    await this.#client?.find(entry.name)?.retarget(spec);
  }

  async update(spec: ClientSpec): Promise<void> {
    const entry = this.#entries.get(nameOf(spec));
    if (entry === undefined) return;
    // A request with the previous options must be answered before the update is sent.
    await entry.asked;
    if (!this.#has(entry)) return;
    await this.#client?.find(entry.name)?.update(spec);
    entry.wanted = spec;
  }

  async release(name: string): Promise<Tunnel | null> {
    const entry = this.#entries.get(name);
    if (entry === undefined) return null;
    this.#entries.delete(name);
    await this.#close(entry);
    return entry.tunnel;
  }

  adopt(name: string): void {
    const entry = this.#entries.get(name);
    if (entry !== undefined) entry.source = 'file';
  }

  async remove(name: string, reason: RemovedTunnel['reason']): Promise<boolean> {
    const entry = this.#entries.get(name);
    if (entry === undefined) return false;
    this.#entries.delete(name);
    await this.#close(entry);
    this.#options.output.onRemoved({ name, tunnelId: entry.tunnel?.tunnelId ?? '', reason });
    return true;
  }

  notice(text: string, channel: 'stdout' | 'stderr'): void {
    this.#options.output.onNotice(text, channel);
  }

  stop(): void {
    this.#isStopping = true;
    this.#options.stop();
  }

  /** Applies a status event to the entries. Must be called before the outputs receive the event. */
  onStatus(event: StatusEvent): void {
    if (event.type === 'closing') this.#isStopping = true;
    if ('tunnel' in event) this.#entries.get(event.tunnel.name)?.onStatus(event);
    if ('connection' in event) this.#entries.get(event.connection.name)?.onStatus(event);
  }

  /**
   * Returns true if the end of the tunnel can end the run: the tunnel is one of the run's first tunnels. The rejection of a tunnel added
   * later is only reported to the command that added the tunnel.
   */
  endsRun(name: string): boolean {
    return this.#entries.get(name)?.isOfStart ?? false;
  }

  /**
   * Opens a tunnel or peer connection under a free name, or under the name of a rejected tunnel. If the new tunnel is rejected
   * immediately, the previous tunnel takes its place again.
   */
  async #openNew(entry: Entry): Promise<Tunnel | PeerConnection> {
    const refused = this.#entries.get(entry.name);
    if (refused !== undefined && refused.state !== 'refused') {
      throw misuse(`this client already has a tunnel '${entry.name}'. Choose another name.`);
    }
    this.#add(entry);
    try {
      return await this.#openFor(this.#connectedClient(), entry, null);
    } catch (error) {
      if (this.#has(entry)) {
        this.#entries.delete(entry.name);
        if (refused !== undefined) this.#add(refused);
      }
      throw error;
    }
  }

  #connectedClient(): Client {
    if (this.#client !== null) return this.#client;
    throw new Fault('CLIENT_SERVER_UNREACHABLE', { server: this.plan.settings.server, reason: 'not connected yet' });
  }

  #add(entry: Entry): void {
    this.#entries.set(entry.name, entry);
  }

  async #close(entry: Entry): Promise<void> {
    const found = entry.tunnel ?? this.#client?.find(entry.name);
    const connection = entry.connection ?? this.#client?.peerConnections.find(({ name }) => name === entry.name);
    this.#closing.add(entry);
    entry.isClosing = true;
    await (entry.isPeer ? connection?.close({ drainMs: this.plan.flags.drainSecs * 1000 }) : found?.close());
  }

  /** Reloads the config file. Callers that arrive while a reload waits to start share the reload, and its outcome is printed once. */
  #reload(reload: NonNullable<TunnelRun['reload']>): Promise<ReloadOutcome> {
    const asked = reload(this);
    if (this.#reloading?.asked !== asked) this.#reloading = { asked, told: this.#tellOfReload(asked) };
    return this.#reloading.told;
  }

  async #tellOfReload(asked: Promise<ReloadOutcome>): Promise<ReloadOutcome> {
    this.#options.output.onReloading();
    try {
      const outcome = await asked;
      this.#options.output.onReloaded(outcome);
      return outcome;
    } catch (error) {
      const fault = faultOf(error) ?? Fault.from(error);
      this.#options.output.onReloadRefused(fault);
      throw fault;
    }
  }
}

class Entry implements RunningTunnel {
  readonly name: string;
  readonly isOfStart: boolean;
  wanted: ClientSpec | ConnectPeerOptions;
  source: TunnelSource;
  isClosing = false;
  /** Resolves with the edge's first response, whether accepted or rejected. Already resolved until a request is sent. */
  asked: Promise<void> = Promise.resolve();
  tunnel: Tunnel | null = null;
  connection: PeerConnection | null = null;
  #lastError: Fault | null = null;
  /** Bytes that the local service had sent at the time of its last failure. Null if the last error has another cause. */
  #sentAtLocalError: number | null = null;
  #isRefused = false;

  constructor(wanted: ClientSpec | ConnectPeerOptions, source: TunnelSource, isOfStart: boolean) {
    this.name = nameOf(wanted);
    this.wanted = wanted;
    this.source = source;
    this.isOfStart = isOfStart;
  }

  get isPeer(): boolean {
    return !isTunnel(this.wanted);
  }

  /** The last error. An error of the local service is cleared once the service has sent more bytes, or its health check succeeds. */
  get lastError(): Fault | null {
    const hasRecovered =
      this.#sentAtLocalError !== null && (this.tunnel?.counts.bytesOut ?? 0) > this.#sentAtLocalError;
    return hasRecovered ? null : this.#lastError;
  }

  get state(): RunningTunnelState {
    if (this.isClosing) return 'closing';
    if (this.#isRefused) return 'refused';
    return this.tunnel?.state === 'open' || this.connection?.state === 'connected' ? 'open' : 'opening';
  }

  /** True once a closed tunnel has no visitors left. */
  get isOver(): boolean {
    return ((this.tunnel ?? this.connection)?.counts.open ?? 0) === 0;
  }

  onStatus(event: StatusEvent): void {
    if (event.type === 'tunnel-opened') this.tunnel = event.tunnel;
    if (event.type === 'peer-ready') this.connection = event.connection;
    if (event.type === 'tunnel-opened' || event.type === 'peer-ready') this.#lastError = null;
    if (event.type === 'health' && event.healthy && this.#sentAtLocalError !== null) this.#lastError = null;
    if (event.type === 'tunnel-error' || event.type === 'peer-error') this.#isRefused = event.final;
    if (!('fault' in event) || event.fault === undefined) return;
    this.#lastError = event.fault;
    this.#sentAtLocalError = event.type === 'local-error' ? event.tunnel.counts.bytesOut : null;
  }
}

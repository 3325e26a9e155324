// The tunnels of one run: asked for once the client is connected, opened, changed and removed while it runs, each with its state and last error.
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
  /** Before a tunnel is asked for: its requests are seen from the first one on. Settles with the inspector's address. */
  readonly watchRequests: (client: Client, spec: ClientSpec) => Promise<string | null>;
}

export class ClientRun implements RunningClient {
  readonly plan: TunnelRun;
  readonly since: number;
  readonly reload: (() => Promise<ReloadOutcome>) | null;
  readonly #options: ClientRunOptions;
  readonly #entries = new Map<string, Entry>();
  /** Removed, with visitors that are still served. */
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
    // Known before they are asked for: a client that is still connecting has tunnels, too.
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

  /** It is connected for the first time: what the run was started for is asked for. A refusal is told by its event. */
  async connected(client: Client): Promise<void> {
    // By now the file may have been read again.
    const entries = [...this.#entries.values()];
    for (const { wanted } of entries) await this.#watchRequests(client, wanted);
    this.#client = client;
    for (const entry of this.#entries.values()) entry.asked = this.#ask(client, entry, null);
  }

  /** A refusal is told by its event. */
  async #ask(client: Client, entry: Entry, endpointOf: Tunnel | null): Promise<void> {
    try {
      await this.#openFor(client, entry, endpointOf);
    } catch {}
  }

  /** A tunnel can be removed before the edge is asked for it, and while its code is loaded. Such a tunnel must not be opened. */
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
    // Asked for under the terms of before: those come first.
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

  /** Before outputs hear of it. */
  onStatus(event: StatusEvent): void {
    if (event.type === 'closing') this.#isStopping = true;
    if ('tunnel' in event) this.#entries.get(event.tunnel.name)?.onStatus(event);
    if ('connection' in event) this.#entries.get(event.connection.name)?.onStatus(event);
  }

  /** Whether the run ends with its last tunnel of this kind. A tunnel that was added later ends with an answer to its command. */
  endsRun(name: string): boolean {
    return this.#entries.get(name)?.isOfStart ?? false;
  }

  /** A tunnel that the edge refuses at once leaves nothing behind: the refused tunnel that it replaced takes its place again. */
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

  /** Who asks while one waits to begin shares it, and it is told of once. */
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
  /** Settles with the edge's first answer, whichever it is; at once before it was asked. */
  asked: Promise<void> = Promise.resolve();
  tunnel: Tunnel | null = null;
  connection: PeerConnection | null = null;
  #lastError: Fault | null = null;
  /** The bytes that the local service had sent when it last failed; null: the last error has another cause. */
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

  /** The error of a local service ends once the service has sent something again, or its probe succeeds. */
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

  /** Closed, and the last of its visitors is gone. */
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

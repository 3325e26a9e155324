// The tunnels of one client: asks the edge for them, keeps their answers, and asks again after every reconnection.
import { Fault } from '@tunnel/errors';
import { CAPABILITY, type ControlMessage, type ControlMessageInput, type MessageOf } from '@tunnel/protocol';
import type { Timer } from '@tunnel/runtime';
import { kindOf } from './forward/kinds.ts';
import { CLIENT_LIMITS } from './limits.ts';
import type { ClientSettings } from './options.ts';
import { HealthReporter } from './probes/health-reporter.ts';
import type { SavedTunnel } from './resume-state.ts';
import type { StatusEvent } from './status.ts';
import type { DatagramWay, TunnelEntry } from './tunnel.ts';
import { localAddress, registrationFields } from './tunnel-spec.ts';

/** The connection on which to ask. */
export interface RegistryLink {
  /** What client and edge have agreed on. */
  readonly capabilities: readonly string[];
  send(message: ControlMessageInput): void;
  /** The edge does not answer: the connection is worth nothing. */
  drop(fault: Fault): void;
  /** A tunnel of datagrams is there: bytes are not to stand in front of them. Any number of times. */
  reserveForDatagrams(): void;
}

export interface TunnelRegistryDeps {
  readonly settings: Pick<ClientSettings, 'clock' | 'random' | 'logger'>;
  readonly emit: (event: StatusEvent) => void;
  /** Ids, ports or names changed: worth saving. */
  readonly onChanged: () => void;
  /** A pending request was answered; streams that waited for it may find their tunnel now. */
  readonly onAnswer: () => void;
}

interface PendingRequest {
  readonly tunnel: TunnelEntry;
  readonly kind: 'register' | 'unregister';
  readonly timer: Timer;
  readonly onAnswer?: () => void;
}

export class TunnelRegistry {
  readonly #deps: TunnelRegistryDeps;
  readonly #tunnels = new Set<TunnelEntry>();
  readonly #byId = new Map<string, TunnelEntry>();
  readonly #pending = new Map<string, PendingRequest>();
  readonly #retries = new Map<TunnelEntry, Timer>();
  readonly #health: HealthReporter;
  /** Of an earlier run, and not opened in this one so far. */
  #unclaimed: SavedTunnel[] = [];
  #link: RegistryLink | null = null;
  #datagrams: DatagramWay = { path: 'carrier', reason: 'off' };
  #lastRequest = 0;

  constructor(deps: TunnelRegistryDeps) {
    this.#deps = deps;
    const { settings, emit } = deps;
    const tell = (tunnel: TunnelEntry, message: ControlMessageInput): void => {
      if (tunnel.state === 'open') this.#link?.send(message);
    };
    this.#health = new HealthReporter({ ...settings, emit, tell });
  }

  get tunnels(): readonly TunnelEntry[] {
    return [...this.#tunnels];
  }

  get hasPendingRegistrations(): boolean {
    return [...this.#pending.values()].some((request) => request.kind === 'register');
  }

  find(tunnelId: string): TunnelEntry | undefined {
    return this.#byId.get(tunnelId);
  }

  /** What an earlier run had. */
  restore(saved: readonly SavedTunnel[]): void {
    this.#unclaimed = [...saved];
  }

  /** What the next run may ask for, also of tunnels that this one has not opened yet. */
  saved(): SavedTunnel[] {
    const own = [...this.#tunnels].map((tunnel) => ({ key: tunnel.key, ...tunnel.assignment }));
    return [
      // The key alone is nothing to come back to.
      ...own.filter((tunnel) => Object.keys(tunnel).length > 1),
      ...this.#unclaimed,
    ];
  }

  add(tunnel: TunnelEntry): void {
    const index = this.#unclaimed.findIndex((saved) => saved.key === tunnel.key);
    const [saved] = index < 0 ? [] : this.#unclaimed.splice(index, 1);
    if (saved !== undefined) tunnel.restore(saved);
    this.#tunnels.add(tunnel);
    this.#register(tunnel);
  }

  /** The session is a new one: the edge knows nothing of ours, ids are void, ports and names only preferred. */
  forgetIds(): void {
    this.#byId.clear();
    this.#unclaimed = this.#unclaimed.map(({ tunnelId: _, ...saved }) => saved);
    for (const tunnel of this.#tunnels) tunnel.forgetId();
  }

  /** A session is up: everything is asked for again. */
  sessionUp(link: RegistryLink): void {
    this.#link = link;
    for (const tunnel of this.#tunnels) this.#register(tunnel);
  }

  sessionDown(): void {
    this.#link = null;
    for (const request of this.#pending.values()) {
      request.timer.cancel();
      request.onAnswer?.();
    }
    this.#pending.clear();
    for (const timer of this.#retries.values()) timer.cancel();
    this.#retries.clear();
    for (const tunnel of this.#tunnels) tunnel.lost();
  }

  /** Of the session as a whole; every tunnel of datagrams tells it. */
  datagramsGo(way: DatagramWay): void {
    this.#datagrams = way;
    for (const tunnel of this.#tunnels) if (tunnel.state === 'open') this.#tellDatagrams(tunnel);
  }

  #tellDatagrams(tunnel: TunnelEntry): void {
    if (tunnel.datagramsGo(this.#datagrams)) this.#deps.emit({ type: 'datagrams', tunnel, ...this.#datagrams });
  }

  /** What udp tunnels dropped here, for whoever looks at the edge. Every CLIENT_TICK_MS, and before the end. */
  reportDrops(): void {
    if (this.#link?.capabilities.includes(CAPABILITY.DATAGRAM_DROPS) !== true) return;
    for (const { protocol, state, tunnelId, unreported } of this.#tunnels) {
      const drops = protocol === 'udp' && state === 'open' ? unreported.take() : [];
      if (drops.length > 0) this.#link.send({ type: 'DatagramDrops', tunnel_id: tunnelId, drops });
    }
  }

  onMessage(message: ControlMessage): void {
    switch (message.type) {
      case 'TunnelRegistered':
        return this.#onRegistered(message);
      case 'TunnelError':
        return this.#onError(message);
      case 'Registered':
        return this.#deps.settings.logger.debug({ port: message.assigned_port }, 'the port of a group is bound');
      case 'TunnelUnregistered':
        this.#answered(message.request_id);
        return;
      default:
        return;
    }
  }

  /** Settles when the edge has confirmed it, or has no reason to. */
  async close(tunnel: TunnelEntry): Promise<void> {
    if (!this.#tunnels.has(tunnel)) return;
    const { tunnelId } = tunnel;
    const known = tunnel.state === 'open';
    this.#remove(tunnel);
    tunnel.ended();
    this.#deps.onChanged();
    if (known) await this.#unregister(tunnel, tunnelId);
  }

  /**
   * Requests go on over connections to the old service that the edge has kept: it lets go of them when it is asked for the tunnel again. Other
   * kinds have a stream for each visitor, and the edge is told nothing.
   */
  async retargeted(tunnel: TunnelEntry): Promise<void> {
    this.#health.retargeted(tunnel);
    this.#deps.onChanged();
    if (!kindOf(tunnel.protocol).carriesRequests) return;
    // One that is on its way may have said the old things.
    await tunnel.opened.catch(() => {});
    if (tunnel.state === 'open') await new Promise<void>((resolve) => this.#register(tunnel, resolve));
  }

  /** The whole client ends; nobody waits for answers any more. */
  closeAll(fault?: Fault): void {
    this.#closeThose([...this.#tunnels], fault);
  }

  /** Before the others: no new visitors. With its tunnel a peer loses its permission, so those of p2p stay until their peers are done. */
  closeVisited(): void {
    this.#closeThose([...this.#tunnels].filter(({ published }) => published === null));
  }

  #closeThose(tunnels: readonly TunnelEntry[], fault?: Fault): void {
    for (const tunnel of tunnels) {
      if (tunnel.state === 'open') void this.#unregister(tunnel, tunnel.tunnelId);
      this.#remove(tunnel);
      tunnel.ended(fault ?? new Fault('CLIENT_CLOSED'));
    }
  }

  #register(tunnel: TunnelEntry, onAnswer = (): void => {}): void {
    this.#retries.get(tunnel)?.cancel();
    this.#retries.delete(tunnel);
    if (this.#link === null) return onAnswer();
    const { capability } = kindOf(tunnel.protocol);
    // An older edge would read the registration as one of a kind that it knows, or refuse it in words of its own time.
    if (capability !== null && !this.#link.capabilities.includes(capability)) {
      this.#refused(tunnel, new Fault('CLIENT_EDGE_TOO_OLD', { protocol: tunnel.protocol }), true);
      onAnswer();
      return this.#deps.onAnswer();
    }
    this.#ask({ tunnel, kind: 'register', onAnswer }, (requestId) => ({
      type: 'RegisterTunnel',
      request_id: requestId,
      name: tunnel.name,
      protocol: tunnel.protocol,
      local_addr: localAddress(tunnel.spec),
      ...registrationFields(tunnel.spec, tunnel.assignment),
    }));
  }

  #unregister(tunnel: TunnelEntry, tunnelId: string): Promise<void> {
    return new Promise((resolve) => {
      this.#ask({ tunnel, kind: 'unregister', onAnswer: resolve }, (requestId) => ({
        type: 'UnregisterTunnel',
        request_id: requestId,
        tunnel_id: tunnelId,
      }));
      if (this.#link === null) resolve();
    });
  }

  #ask(request: Omit<PendingRequest, 'timer'>, message: (requestId: string) => ControlMessageInput): void {
    const link = this.#link;
    if (link === null) return;
    this.#lastRequest += 1;
    const requestId = `r${this.#lastRequest}`;
    const timer = this.#deps.settings.clock.setTimeout(() => {
      link.drop(new Fault('CONTROL_DEAD', { seconds: CLIENT_LIMITS.REGISTER_TIMEOUT_MS / 1000 }));
    }, CLIENT_LIMITS.REGISTER_TIMEOUT_MS);
    this.#pending.set(requestId, { ...request, timer });
    link.send(message(requestId));
  }

  #answered(requestId: string): PendingRequest | undefined {
    const request = this.#pending.get(requestId);
    this.#pending.delete(requestId);
    request?.timer.cancel();
    request?.onAnswer?.();
    return request;
  }

  #onRegistered(message: MessageOf<'TunnelRegistered'>): void {
    const tunnel = this.#answered(message.request_id)?.tunnel;
    if (tunnel === undefined) return;
    if (!this.#tunnels.has(tunnel)) {
      // Closed while the request was on its way.
      void this.#unregister(tunnel, message.tunnel_id);
      return;
    }
    const previousUrl = tunnel.publicUrl;
    this.#byId.delete(tunnel.tunnelId);
    const change = tunnel.registered(message);
    this.#byId.set(message.tunnel_id, tunnel);
    // Before anybody hears of it and closes it.
    this.#health.registered(tunnel);
    this.#deps.onChanged();
    if (change === 'opened') this.#deps.emit({ type: 'tunnel-opened', tunnel });
    if (change === 'moved') this.#deps.emit({ type: 'tunnel-moved', tunnel, previousUrl });
    // It may have something to say of the way they go, and of a tunnel that people have heard of.
    if (kindOf(tunnel.protocol).forwardFlow !== null) this.#link?.reserveForDatagrams();
    this.#tellDatagrams(tunnel);
    tunnel.published?.reportAll();
    this.#deps.onAnswer();
  }

  #onError(message: MessageOf<'TunnelError'>): void {
    const request = message.request_id === undefined ? undefined : this.#answered(message.request_id);
    const tunnel = request?.tunnel ?? this.#byId.get(message.tunnel_id ?? '');
    // An unregistration that fails has nothing left to end.
    if (tunnel !== undefined && request?.kind !== 'unregister') {
      const fault = Fault.fromWire(message.code, message.message);
      this.#refused(tunnel, fault, request === undefined || !message.retryable);
    }
    this.#deps.onAnswer();
  }

  /** At the first start a refusal is final; a tunnel that lived already waits for what may become free again. */
  #refused(tunnel: TunnelEntry, fault: Fault, isLasting: boolean): void {
    if (!this.#tunnels.has(tunnel)) return;
    // An edge that goes away refuses nothing of ours: its successor is asked.
    const leaving = fault.code === 'EDGE_SHUTTING_DOWN';
    const final = isLasting || (tunnel.state === 'opening' && !leaving);
    if (final) {
      this.#remove(tunnel);
      tunnel.ended(fault);
      this.#deps.onChanged();
    } else {
      const { clock } = this.#deps.settings;
      const timer = clock.setTimeout(() => this.#register(tunnel), tunnel.backoff.nextDelayMs());
      this.#retries.set(tunnel, timer);
    }
    if (!leaving) this.#deps.emit({ type: 'tunnel-error', tunnel, fault, final });
  }

  #remove(tunnel: TunnelEntry): void {
    this.#tunnels.delete(tunnel);
    this.#health.ended(tunnel);
    if (this.#byId.get(tunnel.tunnelId) === tunnel) this.#byId.delete(tunnel.tunnelId);
    this.#retries.get(tunnel)?.cancel();
    this.#retries.delete(tunnel);
  }
}

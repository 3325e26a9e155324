// The tunnels of one client: registers them at the edge, keeps the responses, and registers them again after every reconnect.
import { Fault, type FaultValues } from '@tunnel/errors';
import { CAPABILITY, type ControlMessage, type ControlMessageInput, type MessageOf } from '@tunnel/protocol';
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import { CLIENT_LIMITS } from '../limits.ts';
import type { TargetGuard } from '../local/target-guard.ts';
import { PasswordLines } from '../policy/password-hashes.ts';
import type { AssignedEndpoints } from '../state/assigned-endpoints.ts';
import type { SavedTunnel } from '../state/resume-state.ts';
import { HealthReporter } from './health-reporter.ts';
import { kindOf } from './kinds/kinds.ts';
import type { DatagramWay, NextTerms, TunnelEntry } from './tunnel.ts';
import type { TunnelEvent } from './tunnel-event.ts';
import { type ClientSpec, localAddress, registrationFields, rememberedKey } from './tunnel-spec.ts';

/** Maximum number of unanswered registrations. The edge reads twice as many ahead, so pings never wait behind registrations. */
const REGISTRATIONS_UNDER_WAY = 256;
/** Maximum size of unanswered registrations in characters. A single policy can have 64 Ki characters. */
const REGISTRATIONS_UNDER_WAY_CHARS = 128 * 1024;

/** The control connection that is used to register tunnels. */
export interface RegistryLink {
  /** Capabilities supported by both client and edge. */
  readonly capabilities: readonly string[];
  /** True if the edge knew the client's session and kept its tunnels. */
  readonly resumed: boolean;
  send(message: ControlMessageInput): void;
  /** Closes the control connection, because the edge does not respond on it. */
  drop(fault: Fault): void;
  /** Reserves capacity for datagrams, so that byte streams do not delay datagrams. Safe to call again. */
  reserveForDatagrams(): void;
}

export interface TunnelRegistryOptions {
  readonly settings: { readonly clock: Clock; readonly random: () => number; readonly logger: Logger };
  readonly guard: TargetGuard;
  /** Names and ports assigned in earlier runs. Null if none are remembered. */
  readonly endpoints: AssignedEndpoints | null;
  /** Server and account, the key under which assigned names and ports are remembered. */
  readonly remembers: () => { readonly server: string; readonly account: string };
  readonly emit: (event: TunnelEvent) => void;
  /** Called when ids, ports or names of tunnels have changed and should be saved. */
  readonly onChanged: () => void;
  /** Called when a registration was answered, because parked streams may now find their tunnel. */
  readonly onAnswer: () => void;
}

interface AskedRequest {
  readonly tunnel: TunnelEntry;
  readonly kind: 'register' | 'unregister';
  /** New terms of an open tunnel, applied once the edge accepts them. If the edge refuses, the tunnel keeps the old terms. */
  readonly next?: NextTerms;
  readonly onAnswer?: (fault?: Fault) => void;
}

interface PendingRequest extends AskedRequest {
  /** Timeout of the edge's response. Null until the request is sent. */
  timer: Timer | null;
  /** The request's share of the size limit for unanswered registrations. */
  readonly size: number;
  /** Resolves when the edge has answered the request, or when no response can arrive any more. */
  readonly over: Promise<void>;
  readonly settle: () => void;
}

interface UnsentRegistration {
  readonly requestId: string;
  readonly request: PendingRequest;
  readonly message: ControlMessageInput;
}

export class TunnelRegistry {
  /** Hashes every password once, so that a reconnect or a reload sends the same policy. */
  readonly passwords = new PasswordLines();
  readonly #options: TunnelRegistryOptions;
  readonly #tunnels = new Set<TunnelEntry>();
  readonly #byId = new Map<string, TunnelEntry>();
  readonly #pending = new Map<string, PendingRequest>();
  /** Registrations not sent yet, because too many are unanswered. */
  readonly #unsent: UnsentRegistration[] = [];
  /** Number and total size of registrations that the edge has not answered. */
  #underWay = 0;
  #underWaySize = 0;
  readonly #retries = new Map<TunnelEntry, Timer>();
  /** For tunnels with an endpoint chosen by the edge: the key under which the endpoint is remembered, and the requested endpoint. */
  readonly #remembered = new Map<TunnelEntry, { readonly key: string; readonly asked: string | null }>();
  /** Time of the edge's last response to a request, such as a registration. */
  #answeredAt = Number.NEGATIVE_INFINITY;
  /** For tunnels changed while disconnected: the previous terms, which the edge had accepted. */
  readonly #taken = new Map<TunnelEntry, NextTerms>();
  readonly #health: HealthReporter;
  /** Saved tunnels of an earlier run, not opened in this run so far. */
  #unclaimed: SavedTunnel[] = [];
  #link: RegistryLink | null = null;
  #datagrams: DatagramWay = { path: 'carrier', reason: 'off' };
  #lastRequest = 0;

  constructor(options: TunnelRegistryOptions) {
    this.#options = options;
    const { settings, emit } = options;
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

  /** Restores the tunnels saved by an earlier run of the client. */
  restore(saved: readonly SavedTunnel[]): void {
    this.#unclaimed = [...saved];
  }

  /** Returns the state for the next run, including restored tunnels not opened yet. */
  saved(): SavedTunnel[] {
    const own = [...this.#tunnels].map((tunnel) => ({ key: tunnel.key, ...tunnel.assignment }));
    return [
      // A tunnel to which the edge assigned nothing needs no saved state.
      ...own.filter((tunnel) => Object.keys(tunnel).length > 1),
      ...this.#unclaimed,
    ];
  }

  checkTarget(spec: ClientSpec): Promise<void> | null {
    return this.#options.guard.check(spec);
  }

  /** Checks a tunnel's target for a visitor. See TargetGuard.checkVisit. */
  checkVisit(spec: ClientSpec): Promise<void> | null {
    return this.#options.guard.checkVisit(spec);
  }

  /** Repeats the check of a tunnel's target soon. See TargetGuard.checkLater. */
  checkLater(spec: ClientSpec): Promise<void> {
    return this.#options.guard.checkLater(spec);
  }

  /** Ends a tunnel refused by the client itself, before the edge was asked. */
  refuse(tunnel: TunnelEntry, fault: Fault): void {
    tunnel.ended(fault);
    this.#options.emit({ type: 'tunnel-error', tunnel, fault, final: true });
  }

  add(tunnel: TunnelEntry): void {
    const index = this.#unclaimed.findIndex((saved) => saved.key === tunnel.key);
    const [saved] = index < 0 ? [] : this.#unclaimed.splice(index, 1);
    if (saved !== undefined) tunnel.restore(saved);
    this.#askAsBefore(tunnel);
    this.#tunnels.add(tunnel);
    this.#register(tunnel);
  }

  /**
   * Requests the endpoint remembered from an earlier run, unless the tunnel already has an endpoint from the saved session or from its
   * predecessor.
   */
  #askAsBefore(tunnel: TunnelEntry): void {
    const { endpoints, remembers } = this.#options;
    const key = rememberedKey(tunnel.asked, { ...remembers(), name: tunnel.name });
    if (endpoints === null || key === null) return;
    const asked = tunnel.endpointText === null ? endpoints.take(key, tunnel.name) : null;
    if (asked !== null) tunnel.prefer(asked);
    this.#remembered.set(tunnel, { key, asked });
  }

  #rememberEndpoint(tunnel: TunnelEntry): void {
    const remembered = this.#remembered.get(tunnel);
    const value = tunnel.endpointText;
    if (remembered === undefined || value === null) return;
    const { key, asked } = remembered;
    this.#options.endpoints?.given({ key, value, name: tunnel.name }, asked);
    this.#remembered.set(tunnel, { key, asked: value });
  }

  #forgetUse(tunnel: TunnelEntry): void {
    const { key, asked } = this.#remembered.get(tunnel) ?? {};
    this.#remembered.delete(tunnel);
    if (key !== undefined && asked != null) this.#options.endpoints?.released({ key, value: asked, name: tunnel.name });
  }

  /** Discards tunnel ids after a new session started. Ports and names are only preferences then. */
  forgetIds(): void {
    this.#byId.clear();
    this.#unclaimed = this.#unclaimed.map(({ tunnelId: _, ...saved }) => saved);
    for (const tunnel of this.#tunnels) tunnel.forgetId();
  }

  /** Registers all tunnels of the client on a new session. */
  sessionUp(link: RegistryLink): void {
    this.#link = link;
    for (const tunnel of this.#tunnels) this.#register(tunnel);
  }

  sessionDown(): void {
    this.#link = null;
    for (const request of this.#pending.values()) {
      request.timer?.cancel();
      request.settle();
      request.onAnswer?.(LOST());
    }
    this.#pending.clear();
    this.#unsent.length = 0;
    this.#underWay = 0;
    this.#underWaySize = 0;
    for (const timer of this.#retries.values()) timer.cancel();
    this.#retries.clear();
    for (const tunnel of this.#tunnels) tunnel.lost();
  }

  /** Reports the session's transport of datagrams on every tunnel with datagrams. */
  datagramsGo(way: DatagramWay): void {
    this.#datagrams = way;
    for (const tunnel of this.#tunnels) if (tunnel.state === 'open') this.#tellDatagrams(tunnel);
  }

  #tellDatagrams(tunnel: TunnelEntry): void {
    if (tunnel.datagramsGo(this.#datagrams)) this.#options.emit({ type: 'datagrams', tunnel, ...this.#datagrams });
  }

  /** Reports datagrams dropped by udp tunnels to the edge, every CLIENT_TICK_MS and before the end. */
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
        return this.#options.settings.logger.debug({ port: message.assigned_port }, 'group port is open');
      case 'TunnelUnregistered':
        return this.#answered(message.request_id)?.onAnswer?.();
      default:
        return;
    }
  }

  /** Closes a tunnel. Resolves when the edge has confirmed, or immediately if the edge does not know the tunnel. */
  async close(tunnel: TunnelEntry): Promise<void> {
    if (!this.#tunnels.has(tunnel)) return;
    const { tunnelId } = tunnel;
    const known = tunnel.state === 'open';
    this.#remove(tunnel);
    tunnel.ended();
    this.#options.onChanged();
    if (known) await this.#unregister(tunnel, tunnelId);
  }

  /**
   * Called after a tunnel's target has changed. For http tunnels the tunnel is registered again, so that the edge drops kept connections to
   * the old service. Other kinds use one stream per visitor, so the edge need not know.
   */
  async retargeted(tunnel: TunnelEntry): Promise<void> {
    this.#health.retargeted(tunnel);
    // The tunnel's previous options would lead to the old service again.
    this.#taken.delete(tunnel);
    this.#options.onChanged();
    if (!kindOf(tunnel.protocol).carriesRequests) return;
    // A registration already on its way may describe the tunnel's old target.
    await this.#whenAnswered(tunnel);
    if (tunnel.state === 'open') await new Promise<void>((resolve) => this.#register(tunnel, () => resolve()));
  }

  /** Changes the terms of a tunnel. A tunnel that is not open applies the new terms with its next registration. */
  async updated(tunnel: TunnelEntry, next: NextTerms): Promise<void> {
    // A registration already on its way carries the old terms, and is answered with the hash of the old policy.
    await this.#whenAnswered(tunnel);
    if (!this.#tunnels.has(tunnel)) throw new Fault('TUNNEL_CLOSED');
    if (tunnel.state !== 'open') {
      this.#becomeUnasked(tunnel, next);
      return this.#options.onChanged();
    }
    await new Promise<void>((resolve, reject) => {
      const onAnswer = (fault?: Fault): void => {
        if (fault !== undefined && !isLost(fault)) return reject(fault);
        // The edge may have accepted the new terms before the connection was lost. Keeping the old terms would put an older policy in force
        // again.
        if (fault !== undefined) this.#becomeUnasked(tunnel, next);
        resolve();
      };
      this.#register(tunnel, onAnswer, next);
    });
  }

  /** Resolves when the tunnel's first registration was answered and no further registration is pending. */
  async #whenAnswered(tunnel: TunnelEntry): Promise<void> {
    await tunnel.opened.catch(() => {});
    const onItsWay = (): PendingRequest | undefined =>
      [...this.#pending.values()].find((request) => request.tunnel === tunnel && request.kind === 'register');
    for (let request = onItsWay(); request !== undefined; request = onItsWay()) await request.over;
  }

  /** Ends all tunnels together with the client, without waiting for responses of the edge. */
  closeAll(fault?: Fault): void {
    this.#closeThose([...this.#tunnels], fault);
  }

  /**
   * Closes the tunnels with visitors first. A p2p tunnel stays until its peers have finished, because peers lose their permission with the
   * tunnel.
   */
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

  #register(tunnel: TunnelEntry, onAnswer: (fault?: Fault) => void = () => {}, next?: NextTerms): void {
    this.#retries.get(tunnel)?.cancel();
    this.#retries.delete(tunnel);
    const { spec, sent } = next ?? { spec: tunnel.asked, sent: tunnel.sentPolicy };
    if (this.#link === null) return onAnswer(LOST());
    const tooOld = refusalOfAge(tunnel, sent !== null, this.#link.capabilities);
    if (tooOld !== null) {
      if (next === undefined) this.#refused(tunnel, tooOld, true);
      onAnswer(tooOld);
      return this.#options.onAnswer();
    }
    this.#ask({ tunnel, kind: 'register', onAnswer, ...(next === undefined ? {} : { next }) }, (requestId) => ({
      type: 'RegisterTunnel',
      request_id: requestId,
      name: tunnel.name,
      protocol: tunnel.protocol,
      local_addr: localAddress(spec),
      ...registrationFields(spec, tunnel.assignment),
      ...(sent === null ? {} : { policy: sent.policy }),
    }));
  }

  #unregister(tunnel: TunnelEntry, tunnelId: string): Promise<void> {
    return new Promise((resolve) => {
      this.#ask({ tunnel, kind: 'unregister', onAnswer: () => resolve() }, (requestId) => ({
        type: 'UnregisterTunnel',
        request_id: requestId,
        tunnel_id: tunnelId,
      }));
      if (this.#link === null) resolve();
    });
  }

  #ask(request: AskedRequest, message: (requestId: string) => ControlMessageInput): void {
    const link = this.#link;
    if (link === null) return;
    this.#lastRequest += 1;
    const requestId = `r${this.#lastRequest}`;
    let settle = (): void => {};
    const over = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const asked = message(requestId);
    const pending: PendingRequest = { ...request, timer: null, size: sizeOf(asked), over, settle };
    this.#pending.set(requestId, pending);
    if (request.kind === 'register') {
      this.#unsent.push({ requestId, request: pending, message: asked });
      return this.#sendMore();
    }
    pending.timer = this.#awaitAnswer(requestId, link, CLIENT_LIMITS.REGISTER_TIMEOUT_MS);
    link.send(asked);
  }

  /**
   * Sends queued registrations up to the limit. Otherwise pings and health reports would wait behind thousands of registrations in the
   * socket.
   */
  #sendMore(): void {
    while (this.#link !== null && this.#hasRoom) {
      const next = this.#unsent.shift();
      if (next === undefined) return;
      const { requestId, request, message } = next;
      if (!this.#tunnels.has(request.tunnel)) {
        this.#pending.delete(requestId);
        request.settle();
        request.onAnswer?.(new Fault('TUNNEL_CLOSED'));
        continue;
      }
      this.#underWay += 1;
      this.#underWaySize += request.size;
      request.timer = this.#awaitAnswer(requestId, this.#link, CLIENT_LIMITS.REGISTER_TIMEOUT_MS);
      this.#link.send(message);
    }
  }

  get #hasRoom(): boolean {
    const count = REGISTRATIONS_UNDER_WAY;
    const size = REGISTRATIONS_UNDER_WAY_CHARS;
    return this.#underWay === 0 || (this.#underWay < count && this.#underWaySize < size);
  }

  /**
   * Starts the timeout of a request. The timeout is extended while the edge answers other requests, because a client with thousands of
   * tunnels waits longer for the last response.
   */
  #awaitAnswer(requestId: string, link: RegistryLink, ms: number): Timer {
    const { clock } = this.#options.settings;
    return clock.setTimeout(() => {
      const leftMs = CLIENT_LIMITS.REGISTER_TIMEOUT_MS - (clock.monotonic() - this.#answeredAt);
      const request = this.#pending.get(requestId);
      if (leftMs > 0 && request !== undefined) request.timer = this.#awaitAnswer(requestId, link, leftMs);
      else link.drop(new Fault('CONTROL_DEAD', { seconds: CLIENT_LIMITS.REGISTER_TIMEOUT_MS / 1000 }));
    }, ms);
  }

  #answered(requestId: string): PendingRequest | undefined {
    const request = this.#pending.get(requestId);
    if (request !== undefined) this.#answeredAt = this.#options.settings.clock.monotonic();
    this.#pending.delete(requestId);
    request?.timer?.cancel();
    request?.settle();
    if (request?.kind === 'register') {
      this.#underWay -= 1;
      this.#underWaySize -= request.size;
      this.#sendMore();
    }
    return request;
  }

  #onRegistered(message: MessageOf<'TunnelRegistered'>): void {
    const { tunnel, next, onAnswer } = this.#answered(message.request_id) ?? {};
    if (tunnel === undefined) return;
    if (!this.#tunnels.has(tunnel)) {
      // The tunnel was closed while its registration was on its way.
      void this.#unregister(tunnel, message.tunnel_id);
      return onAnswer?.();
    }
    const { sent } = next ?? { sent: tunnel.sentPolicy };
    const isBack = next === undefined && this.#link?.resumed === true;
    const unguarded = refusalOfHash(tunnel, sent?.hash, message.policy_hash, isBack);
    if (unguarded !== null) {
      // A tunnel with the wrong rules, or without rules, must not be published.
      void this.#unregister(tunnel, message.tunnel_id);
      this.#refused(tunnel, unguarded, true);
      onAnswer?.(unguarded);
      return this.#options.onAnswer();
    }
    if (next !== undefined) this.#become(tunnel, next);
    this.#taken.delete(tunnel);
    const previousUrl = tunnel.publicUrl;
    this.#byId.delete(tunnel.tunnelId);
    const change = tunnel.registered(message);
    this.#byId.set(message.tunnel_id, tunnel);
    // Starts health checks before listeners are notified, because a listener may close the tunnel.
    this.#health.registered(tunnel);
    this.#rememberEndpoint(tunnel);
    this.#options.onChanged();
    if (change === 'opened') this.#options.emit({ type: 'tunnel-opened', tunnel });
    if (change === 'moved') this.#options.emit({ type: 'tunnel-moved', tunnel, previousUrl });
    // The session may report the datagram transport of the tunnel, so listeners must know the tunnel first.
    if (kindOf(tunnel.protocol).forwardFlow !== null) this.#link?.reserveForDatagrams();
    this.#tellDatagrams(tunnel);
    tunnel.published?.reportAll();
    onAnswer?.();
    this.#options.onAnswer();
  }

  #become(tunnel: TunnelEntry, next: NextTerms): void {
    tunnel.become(next);
    if (next.isElsewhere) this.#health.retargeted(tunnel);
  }

  #becomeUnasked(tunnel: TunnelEntry, next: NextTerms): void {
    const { asked: spec, sentPolicy: sent } = tunnel;
    if (!this.#taken.has(tunnel)) this.#taken.set(tunnel, { spec, sent, isElsewhere: true });
    this.#become(tunnel, next);
  }

  /**
   * Restores the previous policy after the edge refused the new policy, as for an immediate refusal. Returns false if there was no previous
   * policy, because the tunnel would then be open to everyone against its owner's intent.
   */
  #goBack(tunnel: TunnelEntry, { code }: Fault): boolean {
    const before = this.#taken.get(tunnel);
    this.#taken.delete(tunnel);
    if (before === undefined || before.sent === null || code !== 'POLICY_INVALID') return false;
    this.#become(tunnel, before);
    return true;
  }

  #onError(message: MessageOf<'TunnelError'>): void {
    const request = message.request_id === undefined ? undefined : this.#answered(message.request_id);
    const tunnel = request?.tunnel ?? this.#byId.get(message.tunnel_id ?? '');
    const fault = Fault.fromWire(message.code, message.message, holderOf(message));
    request?.onAnswer?.(fault);
    // A failed unregistration needs no action. Refused new terms leave the tunnel unchanged.
    if (tunnel !== undefined && request?.kind !== 'unregister' && request?.next === undefined) {
      this.#refused(tunnel, fault, request === undefined || !message.retryable);
    }
    this.#options.onAnswer();
  }

  /**
   * Handles a refusal by the edge. Final at the first registration; later the tunnel waits and retries, because the conflict may resolve.
   */
  #refused(tunnel: TunnelEntry, fault: Fault, isLasting: boolean): void {
    if (!this.#tunnels.has(tunnel)) return;
    // A refusal by an edge that shuts down is not final: the client asks the next edge.
    const leaving = fault.code === 'EDGE_SHUTTING_DOWN';
    const final = (isLasting && !this.#goBack(tunnel, fault)) || (tunnel.state === 'opening' && !leaving);
    if (final) {
      this.#remove(tunnel);
      tunnel.ended(fault);
      this.#options.onChanged();
    } else {
      const { clock } = this.#options.settings;
      const timer = clock.setTimeout(() => this.#register(tunnel), tunnel.backoff.nextDelayMs());
      this.#retries.set(tunnel, timer);
    }
    if (!leaving) this.#options.emit({ type: 'tunnel-error', tunnel, fault, final });
  }

  #remove(tunnel: TunnelEntry): void {
    this.#tunnels.delete(tunnel);
    this.#taken.delete(tunnel);
    this.#forgetUse(tunnel);
    this.#health.ended(tunnel);
    if (this.#byId.get(tunnel.tunnelId) === tunnel) this.#byId.delete(tunnel.tunnelId);
    this.#retries.get(tunnel)?.cancel();
    this.#retries.delete(tunnel);
  }
}

/**
 * Values for the error message: the name of the tunnel in the same account that holds the requested name, and its computer, if the edge
 * sends them.
 */
const holderOf = ({ held_by: holder }: MessageOf<'TunnelError'>): FaultValues =>
  holder === undefined
    ? {}
    : { held_by: holder.name, ...(holder.client_name === undefined ? {} : { held_by_client: holder.client_name }) };

/** Estimates the size of a message in characters. A policy can be many times longer than the rest. */
const sizeOf = (message: ControlMessageInput): number =>
  USUAL_CHARS +
  (message.type === 'RegisterTunnel' && message.policy !== undefined ? JSON.stringify(message.policy).length : 0);

const USUAL_CHARS = 256;

const LOST = (): Fault => new Fault('CARRIER_LOST');
const isLost = ({ code }: Fault): boolean => code === LOST().code;

// ---- refused registrations and responses ----
// A tunnel with a policy is published with exactly this policy or not at all.

/** Refuses registrations that an older edge would misread: unknown kinds, or a policy that would be ignored. */
const refusalOfAge = (tunnel: TunnelEntry, hasPolicy: boolean, capabilities: readonly string[]): Fault | null => {
  const { capability } = kindOf(tunnel.protocol);
  if (capability !== null && !capabilities.includes(capability)) {
    return new Fault('CLIENT_EDGE_TOO_OLD', { protocol: tunnel.protocol });
  }
  // An older edge would ignore the tunnel's custom domain and assign a random name.
  if (tunnel.asked.domain !== undefined && !capabilities.includes(CAPABILITY.TLS)) {
    return new Fault('CLIENT_EDGE_TOO_OLD', { protocol: 'own-domain' });
  }
  if (!hasPolicy || capabilities.includes(CAPABILITY.POLICY)) return null;
  return new Fault('POLICY_UNSUPPORTED', { name: tunnel.name });
};

const HASH_SHOWN_CHARS = 8;

/**
 * Checks that the policy in force is the policy sent. A group member that returns with its session gets the group's policy, which may be
 * newer; then any policy is accepted, but not none.
 */
const refusalOfHash = (
  { name, group, tunnelId }: TunnelEntry,
  sent: string | undefined,
  inForce: string | undefined,
  isBack: boolean,
): Fault | null => {
  if (sent === undefined || sent === inForce) return null;
  if (inForce === undefined) return new Fault('POLICY_UNSUPPORTED', { name });
  if (group !== null && isBack && tunnelId !== '') return null;
  const [theirs, ours] = [inForce, sent].map((hash) => hash.slice(0, HASH_SHOWN_CHARS));
  return new Fault('POLICY_INVALID', {
    reason: `the edge has policy ${theirs} instead of ${ours}: tunnel '${name}' was not opened`,
  });
};

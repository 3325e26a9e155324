// The tunnels of one client: asks the edge for them, keeps their answers, and asks again after every reconnection.
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

/** registrations that were sent and are not answered: an edge reads twice as many ahead, so that pings never wait behind them */
const REGISTRATIONS_UNDER_WAY = 256;
/** the same by their characters; a policy can have 64 Ki of them */
const REGISTRATIONS_UNDER_WAY_CHARS = 128 * 1024;

/** The connection on which to ask. */
export interface RegistryLink {
  /** What client and edge have agreed on. */
  readonly capabilities: readonly string[];
  /** The edge knew the session, and has its tunnels. */
  readonly resumed: boolean;
  send(message: ControlMessageInput): void;
  /** The edge does not answer: the connection is worth nothing. */
  drop(fault: Fault): void;
  /** A tunnel of datagrams is there: bytes are not to stand in front of them. Any number of times. */
  reserveForDatagrams(): void;
}

export interface TunnelRegistryOptions {
  readonly settings: { readonly clock: Clock; readonly random: () => number; readonly logger: Logger };
  readonly guard: TargetGuard;
  /** Of earlier runs; null: nothing is remembered. */
  readonly endpoints: AssignedEndpoints | null;
  /** Whose tunnels these are, and where: what endpoints are remembered by. */
  readonly remembers: () => { readonly server: string; readonly account: string };
  readonly emit: (event: TunnelEvent) => void;
  /** Ids, ports or names changed: worth saving. */
  readonly onChanged: () => void;
  /** A pending request was answered; streams that waited for it may find their tunnel now. */
  readonly onAnswer: () => void;
}

interface AskedRequest {
  readonly tunnel: TunnelEntry;
  readonly kind: 'register' | 'unregister';
  /** Of a tunnel that lives: what it becomes when the edge takes it. A refusal then leaves it as it is. */
  readonly next?: NextTerms;
  readonly onAnswer?: (fault?: Fault) => void;
}

interface PendingRequest extends AskedRequest {
  /** null: it is not sent yet. */
  timer: Timer | null;
  /** What it takes of the room for registrations that are under way. */
  readonly size: number;
  /** Settles with the answer, or when there will be none. */
  readonly over: Promise<void>;
  readonly settle: () => void;
}

interface UnsentRegistration {
  readonly requestId: string;
  readonly request: PendingRequest;
  readonly message: ControlMessageInput;
}

export class TunnelRegistry {
  /** Hashed once, so that a reconnect or a reload sends the same policy. */
  readonly passwords = new PasswordLines();
  readonly #options: TunnelRegistryOptions;
  readonly #tunnels = new Set<TunnelEntry>();
  readonly #byId = new Map<string, TunnelEntry>();
  readonly #pending = new Map<string, PendingRequest>();
  /** Registrations that wait for the answers to others. */
  readonly #unsent: UnsentRegistration[] = [];
  /** Registrations that were sent and are not answered, and their sizes. */
  #underWay = 0;
  #underWaySize = 0;
  readonly #retries = new Map<TunnelEntry, Timer>();
  /** Of tunnels whose endpoint the edge chooses: what it is remembered by, and which one was asked for. */
  readonly #remembered = new Map<TunnelEntry, { readonly key: string; readonly asked: string | null }>();
  /** When the edge last answered a request. */
  #answeredAt = Number.NEGATIVE_INFINITY;
  /** Of tunnels whose terms changed while nobody could be asked: those that the edge has taken. */
  readonly #taken = new Map<TunnelEntry, NextTerms>();
  readonly #health: HealthReporter;
  /** Of an earlier run, and not opened in this one so far. */
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

  checkTarget(spec: ClientSpec): Promise<void> | null {
    return this.#options.guard.check(spec);
  }

  /** As TargetGuard.checkVisit. */
  checkVisit(spec: ClientSpec): Promise<void> | null {
    return this.#options.guard.checkVisit(spec);
  }

  /** As TargetGuard.checkLater. */
  checkLater(spec: ClientSpec): Promise<void> {
    return this.#options.guard.checkLater(spec);
  }

  /** Refused by this client before the edge was asked. */
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

  /** A client that was killed, and a tunnel that takes another's place, know their endpoint already. */
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

  /** Of the session as a whole; every tunnel of datagrams tells it. */
  datagramsGo(way: DatagramWay): void {
    this.#datagrams = way;
    for (const tunnel of this.#tunnels) if (tunnel.state === 'open') this.#tellDatagrams(tunnel);
  }

  #tellDatagrams(tunnel: TunnelEntry): void {
    if (tunnel.datagramsGo(this.#datagrams)) this.#options.emit({ type: 'datagrams', tunnel, ...this.#datagrams });
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
        return this.#options.settings.logger.debug({ port: message.assigned_port }, 'group port is open');
      case 'TunnelUnregistered':
        return this.#answered(message.request_id)?.onAnswer?.();
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
    this.#options.onChanged();
    if (known) await this.#unregister(tunnel, tunnelId);
  }

  /**
   * Requests go on over connections to the old service that the edge has kept: it lets go of them when it is asked for the tunnel again. Other
   * kinds have a stream for each visitor, and the edge is told nothing.
   */
  async retargeted(tunnel: TunnelEntry): Promise<void> {
    this.#health.retargeted(tunnel);
    // With those of before it would lead to the old service again.
    this.#taken.delete(tunnel);
    this.#options.onChanged();
    if (!kindOf(tunnel.protocol).carriesRequests) return;
    // One that is on its way may have said the old things.
    await this.#whenAnswered(tunnel);
    if (tunnel.state === 'open') await new Promise<void>((resolve) => this.#register(tunnel, () => resolve()));
  }

  /** One that the edge does not have just now brings the new terms when it is back. */
  async updated(tunnel: TunnelEntry, next: NextTerms): Promise<void> {
    // What is on its way brings the terms of before, and is answered with their hash.
    await this.#whenAnswered(tunnel);
    if (!this.#tunnels.has(tunnel)) throw new Fault('TUNNEL_CLOSED');
    if (tunnel.state !== 'open') {
      this.#becomeUnasked(tunnel, next);
      return this.#options.onChanged();
    }
    await new Promise<void>((resolve, reject) => {
      const onAnswer = (fault?: Fault): void => {
        if (fault !== undefined && !isLost(fault)) return reject(fault);
        // The edge may have taken them before it was lost: with those of before, an older policy would be in force again.
        if (fault !== undefined) this.#becomeUnasked(tunnel, next);
        resolve();
      };
      this.#register(tunnel, onAnswer, next);
    });
  }

  /** No registration of it is on its way, and its first one was answered. */
  async #whenAnswered(tunnel: TunnelEntry): Promise<void> {
    await tunnel.opened.catch(() => {});
    const onItsWay = (): PendingRequest | undefined =>
      [...this.#pending.values()].find((request) => request.tunnel === tunnel && request.kind === 'register');
    for (let request = onItsWay(); request !== undefined; request = onItsWay()) await request.over;
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

  /** Only so many registrations are under way: pings and health reports would else wait behind thousands of them in the socket. */
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

  /** An edge that answers other requests is alive and takes them in turn: a client of thousands of tunnels waits longer for the last answer. */
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
      // Closed while the request was on its way.
      void this.#unregister(tunnel, message.tunnel_id);
      return onAnswer?.();
    }
    const { sent } = next ?? { sent: tunnel.sentPolicy };
    const isBack = next === undefined && this.#link?.resumed === true;
    const unguarded = refusalOfHash(tunnel, sent?.hash, message.policy_hash, isBack);
    if (unguarded !== null) {
      // Rather no tunnel than one with other rules, or none.
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
    // Before anybody hears of it and closes it.
    this.#health.registered(tunnel);
    this.#rememberEndpoint(tunnel);
    this.#options.onChanged();
    if (change === 'opened') this.#options.emit({ type: 'tunnel-opened', tunnel });
    if (change === 'moved') this.#options.emit({ type: 'tunnel-moved', tunnel, previousUrl });
    // It may have something to say of the way they go, and of a tunnel that people have heard of.
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

  /** As when it is refused at once: the policy of before stays. Where there was none, that would open what its owner takes for guarded. */
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
    // An unregistration that fails has nothing left to end; other terms that are refused leave a tunnel as it was.
    if (tunnel !== undefined && request?.kind !== 'unregister' && request?.next === undefined) {
      this.#refused(tunnel, fault, request === undefined || !message.retryable);
    }
    this.#options.onAnswer();
  }

  /** At the first start a refusal is final; a tunnel that lived already waits for what may become free again. */
  #refused(tunnel: TunnelEntry, fault: Fault, isLasting: boolean): void {
    if (!this.#tunnels.has(tunnel)) return;
    // An edge that goes away refuses nothing of ours: its successor is asked.
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

/** Values of a refusal: which tunnel of the same account has the name, and on which computer, where the edge says so. */
const holderOf = ({ held_by: holder }: MessageOf<'TunnelError'>): FaultValues =>
  holder === undefined
    ? {}
    : { held_by: holder.name, ...(holder.client_name === undefined ? {} : { held_by_client: holder.client_name }) };

/** In characters, about: a policy can be many times as long as the rest. */
const sizeOf = (message: ControlMessageInput): number =>
  USUAL_CHARS +
  (message.type === 'RegisterTunnel' && message.policy !== undefined ? JSON.stringify(message.policy).length : 0);

const USUAL_CHARS = 256;

const LOST = (): Fault => new Fault('CARRIER_LOST');
const isLost = ({ code }: Fault): boolean => code === LOST().code;

// ---- registrations that are not sent, and answers that are not accepted ----
// A tunnel that has rules is published with them or not at all.

/** An older edge would read the registration as one of a kind that it knows, and publish without its rules what has rules. */
const refusalOfAge = (tunnel: TunnelEntry, hasPolicy: boolean, capabilities: readonly string[]): Fault | null => {
  const { capability } = kindOf(tunnel.protocol);
  if (capability !== null && !capabilities.includes(capability)) {
    return new Fault('CLIENT_EDGE_TOO_OLD', { protocol: tunnel.protocol });
  }
  // It would leave the domain out, and give the tunnel a name of its own choice.
  if (tunnel.asked.domain !== undefined && !capabilities.includes(CAPABILITY.TLS)) {
    return new Fault('CLIENT_EDGE_TOO_OLD', { protocol: 'own-domain' });
  }
  if (!hasPolicy || capabilities.includes(CAPABILITY.POLICY)) return null;
  return new Fault('POLICY_UNSUPPORTED', { name: tunnel.name });
};

const HASH_SHOWN_CHARS = 8;

/**
 * Whether what is in force is what was sent. A member of a group that comes back with its session is let in under the group's policy, which may be a
 * newer one: there any will do, but none.
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

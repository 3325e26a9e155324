// A tunnel: the interface for its owner, and the client's state across connections, with traffic counts.
import { inspect } from 'node:util';
import { Fault } from '@tunnel/errors';
import type { MuxStream } from '@tunnel/mux';
import type { PeerPath } from '@tunnel/peer';
import type { MessageOf, StreamReason, TunnelProtocol } from '@tunnel/protocol';
import { type HealthReport, type ProbedHealth } from '@tunnel/rules/tunnels';
import { hasOtherTarget, isRetarget, isUpdate, libraryTunnelOf } from '@tunnel/tunnel-spec';
import { LocalAddresses } from '../local/local-addresses.ts';
import { type LocalTarget, localLabel, localTargetOf, localText } from '../local/local-target.ts';
import { serviceTargets } from '../local/service-targets.ts';
import { type DropReason, Traffic, type TrafficCounts } from '../local/traffic.ts';
import { UnreportedDrops } from '../local/unreported-drops.ts';
import type { Backoff } from '../network/backoff.ts';
import type { PasswordLines } from '../policy/password-hashes.ts';
import type { SentPolicy } from '../policy/tunnel-policy.ts';
import { type Assignment } from '../state/resume-state.ts';
import { kindOf } from './kinds/kinds.ts';
import type { TunnelRegistry } from './tunnel-registry.ts';
import {
  acceptTunnel,
  type ClientSpec,
  concealSecrets,
  groupKeyOf,
  policyAbout,
  policyOf,
  specOfTunnel,
  type TunnelOptions,
  tunnelFields,
} from './tunnel-spec.ts';

/**
 * opening: requested, not answered yet · open: visitors are served · away: the connection is lost, or the edge has not restored the tunnel
 * yet; the client retries · closed: ended by its owner or by the edge.
 */
export type TunnelState = 'opening' | 'open' | 'away' | 'closed';

/** `none`: no health check. `unknown`: no success yet, and not enough consecutive failures. */
export type TunnelHealth = ProbedHealth | 'none';

/** Transport of datagrams between client and edge. `reason` says why datagrams use carriers; empty for `udp`. */
export interface DatagramWay {
  readonly path: 'udp' | 'carrier';
  readonly reason: string;
}

/** Policy and additional services of a tunnel. An update replaces all of them: an omitted option is removed from the tunnel. */
export type TunnelGuard = Pick<TunnelOptions, 'policy' | 'policyRevision' | 'services'>;

/** Local target of a tunnel. An update keeps all other options. */
export type TunnelTarget = Pick<
  TunnelOptions,
  | 'localHost'
  | 'localPort'
  | 'localSocket'
  | 'allowControlSocket'
  | 'files'
  | 'localProtocol'
  | 'localTlsVerify'
  | 'healthCheck'
>;

/** A subscriber of a p2p tunnel, as seen by the tunnel's owner. */
export interface PublishedPeer extends PeerPath {
  readonly peerId: string;
  /** Public address of the subscriber, reported by the edge. Empty until reported. */
  readonly clientAddr: string;
  /** Sealed bytes exchanged with the subscriber through the relay, in both directions. */
  readonly relayBytes: number;
  readonly directBytes: number;
}

/** The subscribers of one p2p tunnel. */
export interface TunnelPeers {
  readonly list: readonly PublishedPeer[];
  /** Accepts a relay stream to a subscriber, opened by the edge. */
  accept(stream: MuxStream, peerId: string): void;
  onMessage(message: MessageOf<'PeerJoined'> | MessageOf<'PeerGone'>): void;
  /** Sends all reports again after a new registration, because the edge may have lost them. */
  reportAll(): void;
  close(reason: StreamReason): void;
}

export interface Tunnel {
  readonly state: TunnelState;
  /** The tunnel's options with the current target. Secrets are concealed. */
  readonly spec: TunnelOptions;
  readonly name: string;
  readonly protocol: TunnelProtocol;
  /** Local target for display: `127.0.0.1:3000`, `unix:/run/app.sock`, `files:./dist`. */
  readonly local: string;
  /** Host of the local service. Null for a Unix socket or a folder, as is localPort. */
  readonly localHost: string | null;
  readonly localPort: number | null;
  /** Id of the tunnel at the edge. Empty until the edge has answered. Can change if the client reconnects late. */
  readonly tunnelId: string;
  readonly publicUrl: string;
  /** Public port of the tunnel. Null for a tunnel with a name instead of a port. */
  readonly assignedPort: number | null;
  /** Public address in short: the port, the subdomain or the custom domain. */
  readonly label: string;
  readonly warnings: readonly string[];
  /** Short description of the policy. Null without a policy: the tunnel is open to everyone. */
  readonly guard: string | null;
  /** The group that the tunnel joins. Null without a group. */
  readonly group: string | null;
  /** Health of the tunnel's local service, from the health check. */
  readonly health: TunnelHealth;
  readonly counts: TrafficCounts;
  /** Dropped datagrams by reason, for udp tunnels. */
  readonly dropped: Readonly<Partial<Record<DropReason, number>>>;
  /** Transport of the tunnel's datagrams. Null until the edge has answered, and for tunnels without datagrams. */
  readonly datagrams: DatagramWay | null;
  /** Protocol of the local service of a p2p tunnel. Null for other kinds. */
  readonly service: 'tcp' | 'udp' | null;
  /** The connected subscribers of a p2p tunnel. */
  readonly peers: readonly PublishedPeer[];
  /**
   * Forwards new visitors to another service. Current visitors stay with the old service. Throws a Fault for a change that needs a new
   * tunnel. Resolves when the edge no longer sends requests to the old service.
   */
  retarget(target: TunnelTarget | ClientSpec): Promise<void>;
  /**
   * Replaces policy, services and optionally the target. The tunnel keeps its id and its connections; the change applies from the next
   * request on. Rejects with the edge's reason if the edge refuses; then the tunnel stays unchanged.
   */
  update(guard: TunnelGuard, target?: TunnelTarget): Promise<void>;
  /** Replaces the tunnel's policy, services and target with those of another spec. */
  update(spec: ClientSpec): Promise<void>;
  /** Closes the tunnel to new visitors. Current visitors may finish. */
  close(): Promise<void>;
}

/** New settings of an open tunnel. */
export interface NextTerms {
  readonly spec: ClientSpec;
  /** New policy of the tunnel. Null without a policy. */
  readonly sent: SentPolicy | null;
  /** True if the tunnel's target changes too. */
  readonly isElsewhere: boolean;
}

type Answer = MessageOf<'TunnelRegistered'>;

/** Owner of a tunnel, which registers the tunnel and its changes at the edge. */
type Owner = Pick<TunnelRegistry, 'checkTarget' | 'close' | 'passwords' | 'retargeted' | 'updated'>;

export class TunnelEntry implements Tunnel {
  readonly name: string;
  readonly protocol: TunnelProtocol;
  readonly group: string | null;
  readonly traffic = new Traffic();
  readonly unreported = new UnreportedDrops();
  readonly backoff: Backoff;
  /** Resolves when the edge has registered the tunnel for the first time. */
  readonly opened: Promise<Tunnel>;
  lastLocalNoticeAt = Number.NEGATIVE_INFINITY;
  #spec: ClientSpec;
  /** Target of the tunnel's local service, shared by all visitors until the next change. */
  #target: LocalTarget;
  #addresses: LocalAddresses;
  #services: ReadonlyMap<string, LocalTarget>;
  /**
   * Services of terms not yet confirmed, because a visitor on a carrier can arrive before the edge's response on the control connection.
   */
  #nextServices: ReadonlyMap<string, LocalTarget> = new Map();
  #sent: SentPolicy | null = null;
  #published: TunnelPeers | null = null;
  #onUnpublished: () => void = () => {};
  #state: TunnelState = 'opening';
  #health: TunnelHealth;
  #datagrams: DatagramWay | null = null;
  #assignment: Assignment;
  #answer: Answer | undefined;
  readonly #owner: Owner;
  #resolveOpened: (tunnel: Tunnel) => void = () => {};
  #rejectOpened: (fault: Fault) => void = () => {};

  constructor(
    spec: ClientSpec,
    options: { readonly backoff: Backoff; readonly owner: Owner; readonly previous?: Assignment },
  ) {
    this.#spec = concealSecrets(spec);
    this.protocol = spec.proto;
    this.#target = targetOf(spec);
    this.#services = servicesOf(spec);
    this.#addresses = new LocalAddresses(this.localHost ?? '');
    this.name = spec.name ?? spec.p2p_publish ?? `${spec.proto}-${localLabel(spec)}`;
    this.group = spec.group ?? null;
    this.#health = spec.health_check?.type === undefined ? 'none' : 'unknown';
    this.backoff = options.backoff;
    this.#owner = options.owner;
    this.#assignment = options.previous ?? {};
    this.opened = new Promise((resolve, reject) => {
      this.#resolveOpened = resolve;
      this.#rejectOpened = reject;
    });
    // open() returns the promise later; an earlier rejection must not count as unhandled.
    this.opened.catch(() => {});
  }

  get state(): TunnelState {
    return this.#state;
  }

  get spec(): TunnelOptions {
    return libraryTunnelOf(this.#spec) as TunnelOptions;
  }

  /** Options of the tunnel, with the keys of config.yml. */
  get asked(): ClientSpec {
    return this.#spec;
  }

  get addresses(): LocalAddresses {
    return this.#addresses;
  }

  get health(): TunnelHealth {
    return this.#health;
  }

  /** Identifies the tunnel across runs. Contains the group, because an endpoint from one group must not be requested in another. */
  get key(): string {
    const own = `${this.protocol}|${this.name}|${this.local}`;
    return this.group === null ? own : `${own}|${this.group}`;
  }

  /** The current target of the tunnel's local service. */
  get target(): LocalTarget {
    return this.#target;
  }

  get local(): string {
    return localText(this.#spec);
  }

  get localHost(): string | null {
    return this.#target.kind === 'address' ? this.#target.host : null;
  }

  get localPort(): number | null {
    return this.#target.kind === 'address' ? this.#target.port : null;
  }

  get assignment(): Assignment {
    return this.#assignment;
  }

  /** Assigned name or port of the tunnel without its id, for a tunnel that replaces this one. */
  get endpoint(): Assignment {
    const { tunnelId: _, ...endpoint } = this.#assignment;
    return endpoint;
  }

  get tunnelId(): string {
    return this.#answer?.tunnel_id ?? '';
  }

  get publicUrl(): string {
    return this.#answer?.public_url ?? '';
  }

  get assignedPort(): number | null {
    return this.#answer?.assigned_port ?? null;
  }

  get label(): string {
    return this.#answer?.label ?? '';
  }

  get warnings(): readonly string[] {
    return [...(this.#answer?.warnings ?? []), ...this.#guardWarnings()];
  }

  get guard(): string | null {
    return policyOf(this.#spec)?.guard ?? null;
  }

  /** The tunnel's policy as sent to the edge. Null without a policy. */
  get sentPolicy(): SentPolicy | null {
    return this.#sent;
  }

  readonly serviceTarget = (name: string): LocalTarget | undefined =>
    this.#services.get(name) ?? this.#nextServices.get(name);

  #guardWarnings(): readonly string[] {
    const policy = policyOf(this.#spec);
    if (policy === null) return [];
    const inClear = policy.hasLogin && this.publicUrl.startsWith('http://');
    return [...policy.warnings(policyAbout(this.#spec)), ...(inClear ? [LOGIN_IN_CLEAR] : [])];
  }

  get counts(): TrafficCounts {
    return this.traffic.counts();
  }

  get dropped(): Tunnel['dropped'] {
    return this.traffic.drops();
  }

  get datagrams(): DatagramWay | null {
    return this.#datagrams;
  }

  get published(): TunnelPeers | null {
    return this.#published;
  }

  get service(): Tunnel['service'] {
    return this.protocol === 'p2p' ? (this.#spec.p2p_service ?? 'tcp') : null;
  }

  get peers(): readonly PublishedPeer[] {
    return this.#published?.list ?? [];
  }

  /** Plain values of the tunnel for printing, without internals. */
  toJSON(): object {
    const { name, protocol, state, publicUrl, local, tunnelId, label, assignedPort, group, health } = this;
    const { warnings, counts } = this;
    return { name, protocol, state, publicUrl, local, tunnelId, label, assignedPort, group, health, warnings, counts };
  }

  [inspect.custom](): object {
    return this.toJSON();
  }

  close(): Promise<void> {
    return this.#owner.close(this);
  }

  async retarget(target: TunnelTarget | ClientSpec): Promise<void> {
    const spec = 'proto' in target ? acceptTunnel(target) : this.#changed(null, target);
    const checking = this.#owner.checkTarget(spec);
    if (checking !== null) await checking;
    if (!isRetarget(tunnelFields(this.#spec), tunnelFields(spec))) {
      throw this.#mustReopen();
    }
    this.#target = targetOf(spec);
    // Additional local services use the TLS settings of the tunnel's main service.
    this.#services = servicesOf(spec);
    this.#spec = spec;
    this.#addresses = new LocalAddresses(this.localHost ?? '');
    await this.#owner.retargeted(this);
  }

  /**
   * Returns the spec with another guard or target in the library's names. A given guard or target replaces all its options. Throws a Fault.
   */
  #changed(guard: TunnelGuard | null, target: TunnelTarget | undefined): ClientSpec {
    const replaced = [...(guard === null ? [] : GUARD_KEYS), ...(target === undefined ? [] : LOCAL_KEYS)];
    const kept = Object.entries(this.#spec).filter(([key]) => !replaced.includes(key));
    const changed = specOfTunnel({ protocol: this.protocol, ...target, ...guard });
    return acceptTunnel({ ...Object.fromEntries(kept), ...changed });
  }

  #mustReopen(): Fault {
    return new Fault('CLIENT_USAGE', {
      reason: `this change needs the edge: close tunnel ${this.name} and open it again`,
    });
  }

  async update(guard: TunnelGuard | ClientSpec, target?: TunnelTarget): Promise<void> {
    const spec = 'proto' in guard ? acceptTunnel(guard) : this.#changed(guard, target);
    const checking = this.#owner.checkTarget(spec);
    if (checking !== null) await checking;
    const before = tunnelFields(this.#spec);
    const after = tunnelFields(spec);
    if (!isUpdate(before, after)) throw this.#mustReopen();
    const next = { spec, sent: await sentOf(spec, this.#owner.passwords), isElsewhere: hasOtherTarget(before, after) };
    this.#nextServices = servicesOf(spec);
    await this.#owner.updated(this, next).finally(() => {
      this.#nextServices = new Map();
    });
  }

  /** Prepares the tunnel's policy for sending, before the registration. */
  async makePolicy(): Promise<void> {
    this.#sent = await sentOf(this.#spec, this.#owner.passwords);
  }

  become({ spec, sent, isElsewhere }: NextTerms): void {
    this.#spec = spec;
    this.#sent = sent;
    this.#services = servicesOf(spec);
    if (!isElsewhere) return;
    this.#target = targetOf(spec);
    this.#addresses = new LocalAddresses(this.localHost ?? '');
  }

  /** Sets the receiver of a p2p tunnel's relay streams, before the registration. */
  publishes(published: TunnelPeers, onUnpublished: () => void): void {
    this.#published = published;
    this.#onUnpublished = onUnpublished;
  }

  restore(assignment: Assignment): void {
    this.#assignment = assignment;
  }

  /** Prefers a name or port assigned by the edge in an earlier run. */
  prefer(value: string): void {
    const isPort = this.protocol === 'tcp' || this.protocol === 'udp';
    this.#assignment = isPort ? { assignedPort: Number(value) } : { assignedSubdomain: value };
  }

  /** The tunnel's assigned name or port as a string for prefer(). Null if the edge assigned none. */
  get endpointText(): string | null {
    const { assignedPort, assignedSubdomain } = this.#assignment;
    return assignedPort === undefined ? (assignedSubdomain ?? null) : String(assignedPort);
  }

  /** Discards the tunnel id after the session was lost. The port or the name can still be requested. */
  forgetId(): void {
    this.#assignment = this.endpoint;
  }

  /** Stores the edge's response to the registration. Returns how it differs from the previous response. */
  registered(answer: Answer): 'opened' | 'back' | 'moved' {
    const before = this.#answer;
    this.#answer = answer;
    this.#state = 'open';
    this.#assignment = { tunnelId: answer.tunnel_id, ...kindOf(this.protocol).remember(answer, this.#spec) };
    this.backoff.connected();
    this.#resolveOpened(this);
    if (before === undefined) return 'opened';
    return before.public_url === answer.public_url ? 'back' : 'moved';
  }

  probed({ healthy }: HealthReport): void {
    this.#health = healthy ? 'healthy' : 'unhealthy';
  }

  /** Returns false if the transport has not changed, or if the tunnel has no datagrams. */
  datagramsGo(way: DatagramWay): boolean {
    const { path, reason } = this.#datagrams ?? {};
    if (kindOf(this.protocol).forwardFlow === null || (path === way.path && reason === way.reason)) return false;
    this.#datagrams = way;
    return true;
  }

  lost(): void {
    if (this.#state === 'open') this.#state = 'away';
  }

  ended(fault?: Fault): void {
    this.#state = 'closed';
    // Subscribers lose their permission when the tunnel ends, so direct p2p connections end too.
    this.#published?.close({ code: 'cancelled', text: fault?.message ?? 'the tunnel was closed' });
    this.#onUnpublished();
    this.#rejectOpened(fault ?? new Fault('TUNNEL_CLOSED'));
  }
}

const GUARD_KEYS: readonly string[] = ['policy', 'policy_revision', 'services'];

/** Includes the permission to publish a control socket, because it applies only to the old socket. */
const LOCAL_KEYS: readonly string[] = ['local_host', 'local_port', 'local_socket', 'allow_control_socket', 'files'];

const targetOf = (spec: ClientSpec): LocalTarget => localTargetOf(spec, kindOf(spec.proto).localTls(spec));

const servicesOf = (spec: ClientSpec): ReadonlyMap<string, LocalTarget> =>
  serviceTargets(spec.services ?? {}, kindOf(spec.proto).localTls(spec));

/** Returns the policy of any spec, checked or not, as it would be sent to the edge. Null without a policy. */
export const policyToSend = async (spec: ClientSpec): Promise<SentPolicy['policy'] | null> =>
  (await sentOf(concealSecrets(spec)))?.policy ?? null;

const sentOf = async (spec: ClientSpec, lines?: PasswordLines): Promise<SentPolicy | null> =>
  (await policyOf(spec)?.sent(groupKeyOf(spec), policyAbout(spec).services, lines)) ?? null;

const LOGIN_IN_CLEAR =
  'sign-in runs over plain http, so anyone on the network path can take over the session; set up a certificate on the edge';

// One tunnel as its owner sees it, and as the client holds it across connections, with its live counts.
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
 * opening: asked for, never answered yet · open: visitors are served · away: the connection is lost, or the edge
 * did not give it back yet; it is asked for again by itself · closed: over, on purpose or by the edge's word.
 */
export type TunnelState = 'opening' | 'open' | 'away' | 'closed';

/** `none`: nothing is probed. `unknown`: neither a success nor enough failures in a row so far. */
export type TunnelHealth = ProbedHealth | 'none';

/** How datagrams go between client and edge. `reason` says why they are on carriers; it is empty on the faster way. */
export interface DatagramWay {
  readonly path: 'udp' | 'carrier';
  readonly reason: string;
}

/** What guards it, and what requests may be sent to besides: as in a spec. What is left out is left out of the tunnel, too. */
export type TunnelGuard = Pick<TunnelOptions, 'policy' | 'policyRevision' | 'services'>;

/** Where visitors are taken to: as in a spec. What is left out of the rest of it stays as it was. */
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

/** A subscriber, as the owner of the tunnel sees it. */
export interface PublishedPeer extends PeerPath {
  readonly peerId: string;
  /** As the edge sees it; empty until it has said so. */
  readonly clientAddr: string;
  /** Both ways, sealed as they were. */
  readonly relayBytes: number;
  readonly directBytes: number;
}

/** The peers of one p2p tunnel, as the tunnel holds them. */
export interface TunnelPeers {
  readonly list: readonly PublishedPeer[];
  /** A relay stream that the edge has opened. */
  accept(stream: MuxStream, peerId: string): void;
  onMessage(message: MessageOf<'PeerJoined'> | MessageOf<'PeerGone'>): void;
  /** The edge has answered anew: what it was told before may be gone. */
  reportAll(): void;
  close(reason: StreamReason): void;
}

export interface Tunnel {
  readonly state: TunnelState;
  /** What it was asked to be, with its target of now; secrets are concealed. */
  readonly spec: TunnelOptions;
  readonly name: string;
  readonly protocol: TunnelProtocol;
  /** Where visitors are taken to, for people: `127.0.0.1:3000`, `unix:/run/app.sock`, `files:./dist`. */
  readonly local: string;
  /** null where it is a socket or a folder, the port too. */
  readonly localHost: string | null;
  readonly localPort: number | null;
  /** Empty until the edge has answered; may change when a client returns late. */
  readonly tunnelId: string;
  readonly publicUrl: string;
  /** null for a tunnel that has a name instead. */
  readonly assignedPort: number | null;
  /** The public port, subdomain or own domain. */
  readonly label: string;
  readonly warnings: readonly string[];
  /** What guards it, in a few words; null: it has no policy, and is open to everyone. */
  readonly guard: string | null;
  /** The group that it asks to join; null: it stands alone. */
  readonly group: string | null;
  /** Of the local service, by its health check. */
  readonly health: TunnelHealth;
  readonly counts: TrafficCounts;
  /** udp: datagrams that were not passed on, by reason. */
  readonly dropped: Readonly<Partial<Record<DropReason, number>>>;
  /** null until the edge has answered, and for a tunnel that carries no datagrams. */
  readonly datagrams: DatagramWay | null;
  /** p2p: what the local service speaks; null for every other kind. */
  readonly service: 'tcp' | 'udp' | null;
  /** p2p: the subscribers that are there. */
  readonly peers: readonly PublishedPeer[];
  /**
   * From now on visitors are taken to another service; those that are there stay where they are. Throws a Fault for what cannot be swapped in
   * place. Settles when the edge will send no request to the old service any more.
   */
  retarget(target: TunnelTarget | ClientSpec): Promise<void>;
  /**
   * Another policy, other services, and the target along with them: asked for again under its id, in force from the next request on. Connections
   * stay. Rejects with the edge's reason when it refuses: then all is as it was.
   */
  update(guard: TunnelGuard, target?: TunnelTarget): Promise<void>;
  /** The same with policy, services and target of another spec. */
  update(spec: ClientSpec): Promise<void>;
  /** No new visitors; those that are there may finish. */
  close(): Promise<void>;
}

/** What a tunnel is to be from some moment on. */
export interface NextTerms {
  readonly spec: ClientSpec;
  /** null: without a policy. */
  readonly sent: SentPolicy | null;
  /** Visitors are taken to another service, too. */
  readonly isElsewhere: boolean;
}

type Answer = MessageOf<'TunnelRegistered'>;

/** Who asks the edge for it, and for its changes. */
type Owner = Pick<TunnelRegistry, 'checkTarget' | 'close' | 'passwords' | 'retargeted' | 'updated'>;

export class TunnelEntry implements Tunnel {
  readonly name: string;
  readonly protocol: TunnelProtocol;
  readonly group: string | null;
  readonly traffic = new Traffic();
  readonly unreported = new UnreportedDrops();
  readonly backoff: Backoff;
  /** Settles with the edge's first answer. */
  readonly opened: Promise<Tunnel>;
  lastLocalNoticeAt = Number.NEGATIVE_INFINITY;
  #spec: ClientSpec;
  /** Made once for all visitors until the next change. */
  #target: LocalTarget;
  #addresses: LocalAddresses;
  #services: ReadonlyMap<string, LocalTarget>;
  /** Of terms that the edge is being asked for: a visitor may be quicker on a carrier than the answer on the control connection. */
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
    // open() hands the promise on; an end before that must not count as unhandled.
    this.opened.catch(() => {});
  }

  get state(): TunnelState {
    return this.#state;
  }

  get spec(): TunnelOptions {
    return libraryTunnelOf(this.#spec) as TunnelOptions;
  }

  /** `spec` by the keys of config.yml. */
  get asked(): ClientSpec {
    return this.#spec;
  }

  get addresses(): LocalAddresses {
    return this.#addresses;
  }

  get health(): TunnelHealth {
    return this.#health;
  }

  /** The same tunnel in an earlier run has the same key. What it had in another group is not to be asked for in this one. */
  get key(): string {
    const own = `${this.protocol}|${this.name}|${this.local}`;
    return this.group === null ? own : `${own}|${this.group}`;
  }

  /** Where visitors are taken to. */
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

  /** What a successor asks for: the id is its own. */
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

  /** As the edge was sent it; null: it has none. */
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

  /** What whoever prints it sees: plain, and nothing of the inside. */
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
    // They speak as the tunnel's own service does, and are trusted as it is.
    this.#services = servicesOf(spec);
    this.#spec = spec;
    this.#addresses = new LocalAddresses(this.localHost ?? '');
    await this.#owner.retargeted(this);
  }

  /** The spec with another guard or target by the library's names. A target or guard replaces all of its options. Throws a Fault. */
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

  /** Before it is asked for: its policy as it is sent. */
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

  /** p2p, before it is asked for: who takes its relay streams. */
  publishes(published: TunnelPeers, onUnpublished: () => void): void {
    this.#published = published;
    this.#onUnpublished = onUnpublished;
  }

  restore(assignment: Assignment): void {
    this.#assignment = assignment;
  }

  /** A name or a port that the edge chose in an earlier run, to be asked for unless it is known from elsewhere. */
  prefer(value: string): void {
    const isPort = this.protocol === 'tcp' || this.protocol === 'udp';
    this.#assignment = isPort ? { assignedPort: Number(value) } : { assignedSubdomain: value };
  }

  /** As prefer() takes it. */
  get endpointText(): string | null {
    const { assignedPort, assignedSubdomain } = this.#assignment;
    return assignedPort === undefined ? (assignedSubdomain ?? null) : String(assignedPort);
  }

  /** The session that knew the id is gone for good; the port or the name may still be asked for. */
  forgetId(): void {
    this.#assignment = this.endpoint;
  }

  /** Returns how the answer differs from the one before. */
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

  /** false: they go there already, or this tunnel carries none. */
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
    // With the tunnel permission ends, also for what runs direct.
    this.#published?.close({ code: 'cancelled', text: fault?.message ?? 'the tunnel was closed' });
    this.#onUnpublished();
    this.#rejectOpened(fault ?? new Fault('TUNNEL_CLOSED'));
  }
}

const GUARD_KEYS: readonly string[] = ['policy', 'policy_revision', 'services'];

/** Permission to publish a control socket goes with the socket that it was given for. */
const LOCAL_KEYS: readonly string[] = ['local_host', 'local_port', 'local_socket', 'allow_control_socket', 'files'];

const targetOf = (spec: ClientSpec): LocalTarget => localTargetOf(spec, kindOf(spec.proto).localTls(spec));

const servicesOf = (spec: ClientSpec): ReadonlyMap<string, LocalTarget> =>
  serviceTargets(spec.services ?? {}, kindOf(spec.proto).localTls(spec));

/** Of any spec, checked or not: its policy as the edge would be sent it. */
export const policyToSend = async (spec: ClientSpec): Promise<SentPolicy['policy'] | null> =>
  (await sentOf(concealSecrets(spec)))?.policy ?? null;

const sentOf = async (spec: ClientSpec, lines?: PasswordLines): Promise<SentPolicy | null> =>
  (await policyOf(spec)?.sent(groupKeyOf(spec), policyAbout(spec).services, lines)) ?? null;

const LOGIN_IN_CLEAR =
  'sign-in runs over plain http, so anyone on the network path can take over the session; set up a certificate on the edge';

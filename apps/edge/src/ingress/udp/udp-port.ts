// A public port of a udp tunnel: its socket and its flows. The flow table of the rules package decides about each datagram; this class
// carries out the decision.
import type { RemoteInfo } from 'node:dgram';
import { type Guarded, guard, type ReportInternalError, receiveDatagrams } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import {
  type DropReason,
  type Flow,
  type FlowAddresses,
  type FlowEnd,
  type FlowRules,
  FlowTable,
  type LoopFacts,
  type ReportedDrop,
} from '@tunnel/rules/flows';
import { plainAddress } from '@tunnel/rules/net';
import { tenantKey } from '@tunnel/rules/tunnels';
import type { Balancer } from '../../routing/balancer.ts';
import { isGroup, type Route } from '../../routing/registry.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import type { Upstream } from '../../upstream/upstream.ts';
import { type FlowAccounts } from './flow-accounts.rules.ts';
import { FlowOpenings } from './flow-openings.rules.ts';
import { UdpFlow } from './udp-flow.ts';
import type { UdpSocket } from './udp-socket.ts';
import { addDrops, type DropCounts, type UdpTotals } from './udp-totals.ts';

type FlowVerdict = 'allow' | 'deny';

/** Decides whether a flow is allowed, once before its first datagram is passed. `visitor` is the visitor's address. Used by policies. */
export type DecideFlow = (visitor: string, tunnel: Tunnel) => FlowVerdict | Promise<FlowVerdict>;

export interface UdpPortOptions {
  readonly routeOn: (port: number) => Route | undefined;
  /**
   * Balancer that counts UDP flows separately from connections: source addresses can be forged, and a flood must not use up the owner's
   * TCP connections.
   */
  readonly balancer: Balancer;
  /** The edge's rules for UDP flows. A tunnel can override the idle time. */
  readonly rules: FlowRules;
  /** UDP flows by visitor address, shared by all ports. */
  readonly addresses: FlowAddresses<UdpFlow>;
  /** UDP flows by account, shared by all ports. */
  readonly accounts: FlowAccounts<UdpFlow>;
  readonly loopFacts: () => LoopFacts;
  /** New UDP flows of each client that the client has not answered. */
  readonly openings: WeakMap<Upstream, FlowOpenings<UdpFlow>>;
  readonly decide: DecideFlow;
  /** Maximum denied UDP flows remembered, over all ports. */
  readonly deniedMax: number;
  readonly totals: UdpTotals;
  /** Returns the monotonic time in milliseconds, read once per turn of the event loop. */
  readonly now: () => number;
  readonly report: ReportInternalError;
  /** Called when a flow has ended and all its bytes are counted. */
  readonly onStreamEnd: () => void;
}

export interface UdpPortWatcher {
  onError(error: Error): void;
  onFlowOver(): void;
}

const OVER: Readonly<Record<FlowEnd, { readonly text: string; readonly unpassed: DropReason }>> = {
  idle: { text: 'the flow was idle for too long', unpassed: 'away' },
  evicted: { text: 'the flow was closed to make room for a new flow', unpassed: 'limit' },
  'taken-back': {
    text: 'the edge reached the limit of flows, and this account had more than a fair share',
    unpassed: 'share',
  },
  closed: { text: 'the flow has ended', unpassed: 'away' },
};

export class UdpPort implements Guarded {
  readonly #port: number;
  readonly #socket: UdpSocket;
  readonly #options: UdpPortOptions;
  readonly #watcher: UdpPortWatcher;
  /** State of the port. `held`: the client is disconnected and may come back. */
  #state: 'open' | 'held' | 'draining' | 'closed' = 'open';
  /** UDP flows of the port's current or last tunnel. */
  #table: FlowTable<UdpFlow>;
  /** Id of the port's current or last tunnel. Null before the first tunnel. */
  #tunnelId: string | null = null;
  /** Client of the port's tunnel. Null before the first tunnel. */
  #upstream: Upstream | null = null;
  #openings: FlowOpenings<UdpFlow> | null = null;
  /** Whether the tunnel was looked up since the port was opened. A reopened port may have another tunnel. */
  #isTunnelKnown = false;
  readonly #rules: { -readonly [K in keyof FlowRules]: FlowRules[K] };
  /** UDP flow of the datagram being processed. Closed if an error is thrown. */
  #working: Flow<UdpFlow> | null = null;

  constructor(port: number, socket: UdpSocket, options: UdpPortOptions, watcher: UdpPortWatcher) {
    this.#port = port;
    this.#socket = socket;
    this.#options = options;
    this.#watcher = watcher;
    this.#rules = { ...options.rules };
    this.#table = this.#newTable();
    receiveDatagrams(socket.socket, this, 'udp', (bytes, from) => this.#receive(bytes, from));
    guard.listen(socket.socket, 'error', this, 'udp', (error: Error) => watcher.onError(error));
  }

  /** True if a tunnel uses the UDP port. */
  get isOpen(): boolean {
    return this.#state === 'open' || this.#state === 'draining';
  }

  /** Dropped datagrams of the port's current tunnel, each counted under exactly one reason. */
  get dropped(): Readonly<DropCounts> {
    return this.#table.dropped;
  }

  /** Number of open and recently denied UDP flows of the port. */
  get flowCount(): number {
    return this.#table.size;
  }

  /** Returns the port's most recently active UDP flows, newest first. */
  flows(max: number): readonly Flow<UdpFlow>[] {
    return this.#table.list(max);
  }

  // ---- opening, holding and closing ----

  /** Opens the port for a tunnel. `isOthers`: the tunnel belongs to another account than before and must not see earlier flows. */
  open(isOthers: boolean): void {
    if (isOthers) this.#beginAnew();
    this.#state = 'open';
    this.#isTunnelKnown = false;
    this.#table.takesNew = true;
  }

  /** Holds the port while the client is disconnected: drops datagrams and starts no flows. */
  hold(): void {
    if (this.#state === 'closed') return;
    // An edge that is shutting down does not wait for clients to reconnect.
    if (this.#state === 'draining') this.#table.closeAll();
    this.#state = 'held';
    this.#table.takesNew = false;
  }

  /** Stops accepting new flows. Open flows continue, except if the client is disconnected. */
  drain(): void {
    if (this.#state === 'held') this.#table.closeAll();
    if (this.#state === 'open') this.#state = 'draining';
    this.#table.takesNew = false;
  }

  /** Ends all flows of the UDP port. Resolves when the port is free. */
  close(): Promise<void> {
    this.#state = 'closed';
    this.#retireTable();
    return this.#socket.close();
  }

  tick(nowMs: number): void {
    this.#table.expire(nowMs);
  }

  // ---- datagrams from visitors ----

  #receive(bytes: Buffer, { address, port }: RemoteInfo): void {
    const { now } = this.#options;
    if (!this.#isTunnelKnown && this.isOpen && !this.#knowTunnel()) return void this.#table.drop('away', null);
    const flow = this.#table.arrived(address, port, now());
    if (flow === null) return;
    if (this.#state === 'held') return void this.#table.drop('away', flow);
    this.#working = flow;
    const served = flow.context ?? this.#begin(flow);
    served?.send(bytes, 0, bytes.length);
    this.#working = null;
  }

  /**
   * Finds the tunnel once after each opening, because the lookup builds a string, which is too expensive per datagram. Returns false if no
   * tunnel is registered yet.
   */
  #knowTunnel(): boolean {
    const route = this.#options.routeOn(this.#port);
    if (route === undefined || isGroup(route)) return false;
    if (this.#tunnelId !== null && this.#tunnelId !== route.tunnelId) this.#beginAnew();
    this.#tunnelId = route.tunnelId;
    this.#isTunnelKnown = true;
    this.#upstream = route.upstream;
    this.#openings = this.#openingsOf(route);
    this.#takeRulesOf(route);
    return true;
  }

  /** Applies the tunnel's idle time for flows. A reconnecting client may have changed it. */
  #takeRulesOf({ flowIdleSecs }: Tunnel): void {
    this.#rules.idleMs = flowIdleSecs === null ? this.#options.rules.idleMs : flowIdleSecs * 1000;
  }

  /**
   * Decides whether a new flow is rejected, which stops most of a flood at low cost. A flood takes two resources from active visitors, so
   * there are two rules: room on a congested carrier, and the client's time. Without the first rule, active visitors lose several times as
   * many datagrams on a busy machine.
   */
  #refusesNew(now: number): DropReason | null {
    if (this.#upstream?.takesFlows === false) return 'behind';
    return this.#openings?.mayBegin(now) === false ? 'limit' : null;
  }

  /** Starts a flow. Returns null if the flow is not allowed; its datagram is then counted as dropped. */
  #begin(flow: Flow<UdpFlow>): UdpFlow | null {
    const { routeOn, balancer, accounts, totals } = this.#options;
    const route = routeOn(this.#port);
    if (route === undefined || isGroup(route)) return this.#refuse(flow, 'away');
    // The policy is checked before the flow is counted, so that denied flows take no room.
    const verdict = this.#options.decide(plainAddress(flow.address), route);
    if (verdict === 'deny') {
      this.#rememberDenied(flow);
      return this.#table.drop('denied', flow);
    }
    this.#takeRulesOf(route);
    const served = new UdpFlow(flow, route, this);
    if (balancer.acquire(served.lease, route) !== null) return this.#refuse(flow, 'limit');
    if (!accounts.enter(flow, tenantKey(route.owner, route.tunnelId))) {
      balancer.release(served.lease);
      return this.#refuse(flow, 'share');
    }
    totals.flows += 1;
    flow.context = served;
    if (verdict !== 'allow') this.#await(verdict, served);
    return served;
  }

  #refuse(flow: Flow<UdpFlow>, reason: DropReason): null {
    this.#table.drop(reason, flow);
    this.#table.close(flow);
    return null;
  }

  /** Queues datagrams until the decision. The flow is counted already, which limits the queues during a flood. */
  #await(verdict: Promise<FlowVerdict>, served: UdpFlow): void {
    served.holdBack();
    const decided = (answer: FlowVerdict): void => {
      try {
        if (answer === 'allow') served.letIn();
        else this.#deny(served);
      } catch (error) {
        served.abandon(error, 'udp.decided');
      }
    };
    verdict.then(decided, (error: unknown) => served.abandon(error, 'udp.decided'));
  }

  #deny(served: UdpFlow): void {
    if (served.flow.isEnded) return;
    this.#over(served, { code: 'cancelled', text: 'the flow was rejected' }, 'denied');
    this.#rememberDenied(served.flow);
  }

  /**
   * Remembers a denied flow for a while, so that a flood is checked only once. Limited in number, because sources can be forged and a
   * denied flow counts for no account.
   */
  #rememberDenied(flow: Flow<UdpFlow>): void {
    const { totals, deniedMax, now } = this.#options;
    if (flow.isEnded) return;
    if (totals.denied >= deniedMax) return this.#table.close(flow);
    totals.denied += 1;
    this.#table.deny(flow, now());
  }

  // ---- calls from flows ----

  /** Called when the client is asked to open the first local socket of a flow. onServed or onUnasked follows. */
  onAsked(served: UdpFlow): void {
    this.#openingsOf(served.tunnel).begun(served, this.#options.now());
  }

  /** Called when the client will not answer the opening of a UDP flow. */
  onUnasked(served: UdpFlow): void {
    this.#openingsOf(served.tunnel).gone(served);
  }

  #openingsOf({ upstream }: Tunnel): FlowOpenings<UdpFlow> {
    const { openings } = this.#options;
    const known = openings.get(upstream);
    if (known !== undefined) return known;
    const made = new FlowOpenings<UdpFlow>();
    openings.set(upstream, made);
    return made;
  }

  /** Called once per UDP flow, when the client has opened a local socket. */
  onServed(served: UdpFlow): void {
    const { tunnel } = served;
    this.#openingsOf(tunnel).answered(served, this.#options.now());
    tunnel.counters.addRequest();
    this.#options.totals.requests += 1;
  }

  /** Counts datagrams passed from the visitor to the client. */
  onPassed({ flow, tunnel }: UdpFlow, datagrams: number, bytes: number): void {
    const { totals } = this.#options;
    this.#table.passedIn(flow, bytes, datagrams);
    tunnel.counters.addBytes(bytes);
    totals.datagramsIn += datagrams;
    totals.bytesToClient += bytes;
  }

  onDropped({ flow }: UdpFlow, reason: DropReason, datagrams: number): void {
    this.#table.drop(reason, flow, datagrams);
  }

  /**
   * Records drops reported by the client. Ignored for tunnels that are no longer on the port. Metered bytes stay counted, because the
   * datagrams have crossed the edge.
   */
  reported(tunnelId: string, drops: readonly ReportedDrop[]): void {
    if (tunnelId !== this.#tunnelId) return;
    for (const drop of drops) this.#options.totals.takenBack += this.#table.reported(drop);
  }

  /** Sends a reply to the visitor. The memory is borrowed for the call. */
  onReply({ flow, tunnel }: UdpFlow, bytes: Buffer, start: number, end: number): void {
    const { totals, now } = this.#options;
    const size = end - start;
    if (!this.#table.mayReply(flow, size, now())) return;
    // The send queue is full. Counted as `path`, like drops between client and edge.
    if (!this.#socket.send(bytes, start, end, flow.port, flow.address)) return void this.#table.drop('path', flow);
    this.#table.passedOut(flow, size);
    tunnel.counters.addBytes(size);
    totals.datagramsOut += 1;
    totals.bytesToVisitor += size;
  }

  /** Closes a UDP flow that the client rejected. */
  onRefused({ flow }: UdpFlow): void {
    this.#table.close(flow);
  }

  /** Closes a UDP flow after an internal error. */
  onBroken({ flow }: UdpFlow, error: unknown, where: string): void {
    this.#options.report(error, where);
    this.#table.close(flow);
  }

  /** Closes the UDP flow of the datagram that caused an internal error. */
  abandon(error: unknown, where: string): void {
    const flow = this.#working;
    this.#working = null;
    this.#options.report(error, where);
    if (flow !== null) this.#table.close(flow);
  }

  // ---- ending flows ----

  #newTable(): FlowTable<UdpFlow> {
    const { addresses, loopFacts, totals, now } = this.#options;
    const onEnded = (flow: Flow<UdpFlow>, end: FlowEnd): void => {
      const { text, unpassed } = OVER[end];
      if (flow.deniedUntil !== 0) totals.denied -= 1;
      if (flow.context !== null) this.#over(flow.context, { code: 'cancelled', text }, unpassed);
    };
    const refusesNew = (at: number): DropReason | null => this.#refusesNew(at);
    return new FlowTable<UdpFlow>({ rules: this.#rules, addresses, loopFacts, refusesNew, onEnded }, now());
  }

  #over(served: UdpFlow, why: StreamReason, unpassed: DropReason): void {
    const { balancer, accounts, totals, onStreamEnd } = this.#options;
    served.flow.context = null;
    accounts.left(served.flow);
    totals.flows -= 1;
    try {
      served.end(why, unpassed);
    } finally {
      balancer.release(served.lease);
      onStreamEnd();
      this.#watcher.onFlowOver();
    }
  }

  #beginAnew(): void {
    this.#retireTable();
    this.#table = this.#newTable();
    this.#tunnelId = null;
  }

  /** Closes all UDP flows of the tunnel. The table's drop counts are kept in the totals. */
  #retireTable(): void {
    this.#table.closeAll();
    addDrops(this.#options.totals.droppedBefore, this.#table.dropped);
  }
}

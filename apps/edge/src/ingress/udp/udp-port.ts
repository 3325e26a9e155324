// One public port of a udp tunnel: its socket and its flows. The flow table of the rules package says what becomes of each datagram; here it is done.
import type { RemoteInfo } from 'node:dgram';
import { type Guarded, guard, type ReportInternalError } from '@tunnel/mux';
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

/** Whether a flow may come, asked once before its first datagram is passed; `visitor` is its address. The place of a policy. */
export type DecideFlow = (visitor: string, tunnel: Tunnel) => FlowVerdict | Promise<FlowVerdict>;

export interface UdpPortParts {
  readonly routeOn: (port: number) => Route | undefined;
  /** It counts flows apart from connections: a source can be forged, and must not shut out its owner's TCP. */
  readonly balancer: Balancer;
  /** Of the edge; a tunnel may have another time of idleness. */
  readonly rules: FlowRules;
  /** One for all ports. */
  readonly addresses: FlowAddresses<UdpFlow>;
  /** One for all ports. */
  readonly accounts: FlowAccounts<UdpFlow>;
  readonly loopFacts: () => LoopFacts;
  /** Of each client: those of its flows that it has not answered for. */
  readonly openings: WeakMap<Upstream, FlowOpenings<UdpFlow>>;
  readonly decide: DecideFlow;
  /** How many refused flows of all ports are remembered. */
  readonly deniedMax: number;
  readonly totals: UdpTotals;
  /** Monotonic, read once a turn. */
  readonly now: () => number;
  readonly report: ReportInternalError;
  /** A flow is over, and all its bytes are counted. */
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
  readonly #parts: UdpPortParts;
  readonly #watcher: UdpPortWatcher;
  /** `held`: its client is away, and may come back. */
  #state: 'open' | 'held' | 'draining' | 'closed' = 'open';
  /** Of the tunnel that is here, or was here last. */
  #table: FlowTable<UdpFlow>;
  /** Null: none has been seen yet. */
  #tunnelId: string | null = null;
  /** The tunnel's client, and its flows that it has not answered for. */
  #upstream: Upstream | null = null;
  #openings: FlowOpenings<UdpFlow> | null = null;
  /** After it was opened anew, the tunnel may be another than before. */
  #isTunnelKnown = false;
  readonly #rules: { -readonly [K in keyof FlowRules]: FlowRules[K] };
  /** What throws in this call costs it. */
  #working: Flow<UdpFlow> | null = null;

  constructor(port: number, socket: UdpSocket, parts: UdpPortParts, watcher: UdpPortWatcher) {
    this.#port = port;
    this.#socket = socket;
    this.#parts = parts;
    this.#watcher = watcher;
    this.#rules = { ...parts.rules };
    this.#table = this.#newTable();
    guard.listen(socket.socket, 'message', this, 'udp', (bytes: Buffer, from: RemoteInfo) =>
      this.#receive(bytes, from),
    );
    guard.listen(socket.socket, 'error', this, 'udp', (error: Error) => watcher.onError(error));
  }

  /** A tunnel has it. */
  get isOpen(): boolean {
    return this.#state === 'open' || this.#state === 'draining';
  }

  /** Of the tunnel that is here: each datagram that was not passed, under exactly one reason. */
  get dropped(): Readonly<DropCounts> {
    return this.#table.dropped;
  }

  /** Living ones, and those that were refused a moment ago. */
  get flowCount(): number {
    return this.#table.size;
  }

  /** The last active ones, newest first. */
  flows(max: number): readonly Flow<UdpFlow>[] {
    return this.#table.list(max);
  }

  // ---- its life ----

  /** The port has a tunnel again. `isOthers`: a tunnel of another account than before, which must not see earlier flows. */
  open(isOthers: boolean): void {
    if (isOthers) this.#beginAnew();
    this.#state = 'open';
    this.#isTunnelKnown = false;
    this.#table.takesNew = true;
  }

  /** Its client is away: datagrams are dropped, and no flow begins. */
  hold(): void {
    if (this.#state === 'closed') return;
    // An edge that is about to end takes no client back.
    if (this.#state === 'draining') this.#table.closeAll();
    this.#state = 'held';
    this.#table.takesNew = false;
  }

  /** No new flows; those that live go on, and of a client that is away none does. */
  drain(): void {
    if (this.#state === 'held') this.#table.closeAll();
    if (this.#state === 'open') this.#state = 'draining';
    this.#table.takesNew = false;
  }

  /** All flows end. The port is free when this settles. */
  close(): Promise<void> {
    this.#state = 'closed';
    this.#retireTable();
    return this.#socket.close();
  }

  tick(nowMs: number): void {
    this.#table.expire(nowMs);
  }

  // ---- datagrams of visitors ----

  #receive(bytes: Buffer, { address, port }: RemoteInfo): void {
    const { now } = this.#parts;
    if (!this.#isTunnelKnown && this.isOpen && !this.#knowTunnel()) return void this.#table.drop('away', null);
    const flow = this.#table.arrived(address, port, now());
    if (flow === null) return;
    if (this.#state === 'held') return void this.#table.drop('away', flow);
    this.#working = flow;
    const served = flow.context ?? this.#begin(flow);
    served?.send(bytes, 0, bytes.length);
    this.#working = null;
  }

  /** Once after each opening: looking it up takes a text that nobody wants to make for every datagram. false: none is registered yet. */
  #knowTunnel(): boolean {
    const route = this.#parts.routeOn(this.#port);
    if (route === undefined || isGroup(route)) return false;
    if (this.#tunnelId !== null && this.#tunnelId !== route.tunnelId) this.#beginAnew();
    this.#tunnelId = route.tunnelId;
    this.#isTunnelKnown = true;
    this.#upstream = route.upstream;
    this.#openings = this.#openingsOf(route);
    this.#takeRulesOf(route);
    return true;
  }

  /** A client that comes back may have changed its mind. */
  #takeRulesOf({ flowIdleSecs }: Tunnel): void {
    this.#rules.idleMs = flowIdleSecs === null ? this.#parts.rules.idleMs : flowIdleSecs * 1000;
  }

  /**
   * Most of a flood ends here, before it costs anything. Two rules, because a flood takes two things from those who talk: the room on a carrier
   * that is nearly behind, and the client's time. Without the first they lose several times as much on a busy machine.
   */
  #refusesNew(now: number): DropReason | null {
    if (this.#upstream?.takesFlows === false) return 'behind';
    return this.#openings?.mayBegin(now) === false ? 'limit' : null;
  }

  /** null: it may not begin, and its datagram is counted. */
  #begin(flow: Flow<UdpFlow>): UdpFlow | null {
    const { routeOn, balancer, accounts, totals } = this.#parts;
    const route = routeOn(this.#port);
    if (route === undefined || isGroup(route)) return this.#refuse(flow, 'away');
    // Before it counts for anybody: whoever is turned away takes the room of nobody.
    const verdict = this.#parts.decide(plainAddress(flow.address), route);
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

  /** What came of it waits, and so it counts: a flood must not wait without a bound. */
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

  /** For a while: a flood asks once. Sources can be forged and a refused flow counts for no account, so only so many are remembered. */
  #rememberDenied(flow: Flow<UdpFlow>): void {
    const { totals, deniedMax, now } = this.#parts;
    if (flow.isEnded) return;
    if (totals.denied >= deniedMax) return this.#table.close(flow);
    totals.denied += 1;
    this.#table.deny(flow, now());
  }

  // ---- from the flows ----

  /** The client is asked for the first local socket of this flow; onServed or onUnasked follows. */
  onAsked(served: UdpFlow): void {
    this.#openingsOf(served.tunnel).begun(served, this.#parts.now());
  }

  /** There will be no answer. */
  onUnasked(served: UdpFlow): void {
    this.#openingsOf(served.tunnel).gone(served);
  }

  #openingsOf({ upstream }: Tunnel): FlowOpenings<UdpFlow> {
    const { openings } = this.#parts;
    const known = openings.get(upstream);
    if (known !== undefined) return known;
    const made = new FlowOpenings<UdpFlow>();
    openings.set(upstream, made);
    return made;
  }

  /** The client has a local socket for it: once a flow. */
  onServed(served: UdpFlow): void {
    const { tunnel } = served;
    this.#openingsOf(tunnel).answered(served, this.#parts.now());
    tunnel.counters.addRequest();
    this.#parts.totals.requests += 1;
  }

  /** From the visitor, and passed. */
  onPassed({ flow, tunnel }: UdpFlow, datagrams: number, bytes: number): void {
    const { totals } = this.#parts;
    this.#table.passedIn(flow, bytes, datagrams);
    tunnel.counters.addBytes(bytes);
    totals.datagramsIn += datagrams;
    totals.bytesToClient += bytes;
  }

  onDropped({ flow }: UdpFlow, reason: DropReason, datagrams: number): void {
    this.#table.drop(reason, flow, datagrams);
  }

  /** By the tunnel's client; of a tunnel that is not here (any more) nothing is known. What was metered stays: it has crossed the edge. */
  reported(tunnelId: string, drops: readonly ReportedDrop[]): void {
    if (tunnelId !== this.#tunnelId) return;
    for (const drop of drops) this.#parts.totals.takenBack += this.#table.reported(drop);
  }

  /** The memory is borrowed for the call. */
  onReply({ flow, tunnel }: UdpFlow, bytes: Buffer, start: number, end: number): void {
    const { totals, now } = this.#parts;
    const size = end - start;
    if (!this.#table.mayReply(flow, size, now())) return;
    // Too much waits for the kernel, which is the same as on the path between client and edge.
    if (!this.#socket.send(bytes, start, end, flow.port, flow.address)) return void this.#table.drop('path', flow);
    this.#table.passedOut(flow, size);
    tunnel.counters.addBytes(size);
    totals.datagramsOut += 1;
    totals.bytesToVisitor += size;
  }

  /** The client does not take it. */
  onRefused({ flow }: UdpFlow): void {
    this.#table.close(flow);
  }

  /** Something of ours threw: the flow ends. */
  onBroken({ flow }: UdpFlow, error: unknown, where: string): void {
    this.#parts.report(error, where);
    this.#table.close(flow);
  }

  /** Costs the flow whose datagram it was. */
  abandon(error: unknown, where: string): void {
    const flow = this.#working;
    this.#working = null;
    this.#parts.report(error, where);
    if (flow !== null) this.#table.close(flow);
  }

  // ---- the end of flows ----

  #newTable(): FlowTable<UdpFlow> {
    const { addresses, loopFacts, totals, now } = this.#parts;
    const onEnded = (flow: Flow<UdpFlow>, end: FlowEnd): void => {
      const { text, unpassed } = OVER[end];
      if (flow.deniedUntil !== 0) totals.denied -= 1;
      if (flow.context !== null) this.#over(flow.context, { code: 'cancelled', text }, unpassed);
    };
    const refusesNew = (at: number): DropReason | null => this.#refusesNew(at);
    return new FlowTable<UdpFlow>({ rules: this.#rules, addresses, loopFacts, refusesNew, onEnded }, now());
  }

  #over(served: UdpFlow, why: StreamReason, unpassed: DropReason): void {
    const { balancer, accounts, totals, onStreamEnd } = this.#parts;
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

  /** What was dropped stays in the totals. */
  #retireTable(): void {
    this.#table.closeAll();
    addDrops(this.#parts.totals.droppedBefore, this.#table.dropped);
  }
}

// Flows of a UDP tunnel: which datagrams pass, which flows are evicted, how many bytes an unconfirmed visitor gets, and when flows expire.
// Only decides; the ingress sends. Mutates in place. A datagram of a known flow costs a single lookup. Time is an argument.
import { TokenBuckets } from '../rate/token-buckets.ts';
import { Flow, type FlowEnd } from './flow.ts';
import type { FlowAddresses } from './flow-addresses.ts';
import { type FlowKey, flowKeyOf, isLoop, type LoopFacts, prefixKeyOf } from './flow-key.ts';
import { FlowList } from './flow-list.ts';

/** Time during which a flow denied by a policy is not evaluated again. */
export const FLOW_DENIED_MS = 10_000;
/** Slots of the expiry wheel, one per second. A flow that expires later is examined again. */
export const FLOW_WHEEL_SLOTS = 64;

/** Reasons for dropping a datagram. Every dropped datagram is counted under exactly one reason. */
export const DROP_REASONS = [
  /** The carrier has a backlog, and late datagrams are worse than lost datagrams. */
  'behind',
  /** Drop reason: too many datagrams wait to be sent on the UDP path. */
  'path',
  /** The tunnel or address has reached its limit of flows, all of them confirmed. */
  'limit',
  /**
   * Drop reason: all flows of the edge are taken. The datagram belongs to a reclaimed flow, or to a new flow while no account exceeds its
   * share.
   */
  'share',
  /** Drop reason: the visitor's address prefix opens too many new flows per second. */
  'rate',
  /** Drop reason: the reply bytes allowed to an unconfirmed visitor are used up. */
  'unconfirmed',
  /** Drop reason: the datagram was sent by the edge itself, or from port 0. */
  'loop',
  /** Drop reason: the tunnel's client is disconnected. */
  'away',
  /** Drop reason: the local service did not accept the datagram. */
  'local',
  'too-large',
  /** Drop reason: the datagram belongs to a flow that is not open. */
  'unopened',
  /** Drop reason: a policy denied the flow. */
  'denied',
] as const;

export type DropReason = (typeof DROP_REASONS)[number];

export interface FlowRules {
  readonly flowsPerTunnel: number;
  readonly idleMs: number;
  /** Idle time of a flow that was answered and has not sent since; at most `idleMs`. */
  readonly answeredIdleMs: number;
  /** Maximum new UDP flows per second and address prefix. 0: no limit. */
  readonly newFlowsPerSecond: number;
  /** Maximum reply bytes to a visitor with an unconfirmed address. 0: no limit. */
  readonly unconfirmedReplyBytes: number;
}

/** Datagrams dropped by the client, from a visitor (`in`) or to a visitor (`out`). If the flow has ended, only the tunnel counts them. */
export interface ReportedDrop {
  readonly address: string;
  readonly port: number;
  readonly direction: 'in' | 'out';
  readonly reason: DropReason;
  readonly datagrams: number;
}

export interface FlowTableOptions<C> {
  readonly rules: FlowRules;
  /** Flow counts per visitor's address, shared by all tunnels of an edge. */
  readonly addresses: FlowAddresses<C>;
  /** Returns the machine's own addresses and ports. Queried for every new flow, because addresses can change. */
  readonly loopFacts: () => LoopFacts;
  /** Returns a drop reason if the client cannot take another flow now, otherwise null. Called before a flow is created or evicted. */
  readonly refusesNew?: (now: number) => DropReason | null;
  /** Called once when a flow has ended, possibly while another flow is being admitted. */
  readonly onEnded: (flow: Flow<C>, end: FlowEnd) => void;
}

/**
 * The burst is in seconds of [udp] new_flows_per_second. A flood from more prefixes than the table remembers cannot be distinguished from
 * visitors.
 */
const NEW_FLOWS = { burstSecs: 2, prefixes: 16_384 };

export class FlowTable<C> {
  readonly dropped: Readonly<Record<DropReason, number>>;
  /** False if only datagrams of existing flows are accepted: the client is disconnected, or the edge is shutting down. */
  takesNew = true;
  readonly #dropped: Record<DropReason, number>;
  /** Number of datagrams given to the client and not reported as dropped. */
  #given = 0;
  readonly #options: FlowTableOptions<C>;
  readonly #flows = new Map<FlowKey, Flow<C>>();
  readonly #unconfirmed = new FlowList<Flow<C>>();
  /** Denied flows, remembered to avoid another evaluation. They are evicted before admitted flows. */
  readonly #denied = new FlowList<Flow<C>>();
  /** Rate of new flows by prefix (/24, for IPv6 /56). Null without a limit. */
  readonly #newFlows: TokenBuckets<FlowKey> | null;
  readonly #wheel: ExpiryWheel<C>;
  /** Ends an evicted flow. Shared by all flows, so that flows need no separate closures. */
  readonly #evict = (flow: Flow<C>, end: FlowEnd): void => this.#end(flow, end);

  constructor(options: FlowTableOptions<C>, now: number) {
    this.#options = options;
    this.#dropped = Object.fromEntries(DROP_REASONS.map((reason) => [reason, 0])) as Record<DropReason, number>;
    this.dropped = this.#dropped;
    const perSecond = options.rules.newFlowsPerSecond;
    const rate = { perSecond, burst: NEW_FLOWS.burstSecs * perSecond, keys: NEW_FLOWS.prefixes };
    this.#newFlows = perSecond === 0 ? null : new TokenBuckets(rate);
    this.#wheel = new ExpiryWheel((flow) => this.#expiryOf(flow), now);
  }

  get size(): number {
    return this.#flows.size;
  }

  /**
   * Handles a visitor's datagram. Returns null if it is dropped and counted. Otherwise one `passedIn` or `drop` must follow; a flow without
   * context must be opened.
   */
  arrived(address: string, port: number, now: number): Flow<C> | null {
    const flow = this.#flows.get(flowKeyOf(address, port));
    if (flow === undefined) return this.takesNew ? this.#admit(address, port, now) : this.drop('away', null);
    if (flow.deniedUntil !== 0) {
      if (now < flow.deniedUntil) return this.drop('denied', flow);
      // The denial of the flow has expired, so the policy is evaluated again.
      this.#end(flow, 'idle');
      return this.arrived(address, port, now);
    }
    flow.activeAt = now;
    if (flow.isAnswered && !flow.isConfirmed) this.#confirm(flow);
    return flow;
  }

  /** Returns whether a reply may be sent. If false, the reply is dropped and counted; otherwise one `passedOut` or `drop` must follow. */
  mayReply(flow: Flow<C>, bytes: number, now: number): boolean {
    if (flow.isEnded || flow.deniedUntil !== 0) {
      this.drop('unopened', flow);
      return false;
    }
    if (!flow.isConfirmed) {
      const { unconfirmedReplyBytes: budget } = this.#options.rules;
      if (budget > 0 && flow.unconfirmedBytes + bytes > budget) {
        this.drop('unconfirmed', flow);
        return false;
      }
      flow.unconfirmedBytes += bytes;
    }
    flow.activeAt = now;
    if (!flow.isAnswered) {
      flow.isAnswered = true;
      // A flow that has been answered may expire earlier, so its expiry is scheduled again.
      if (!flow.isConfirmed) this.#wheel.schedule(flow);
    }
    return true;
  }

  passedIn(flow: Flow<C>, bytes: number, datagrams = 1): void {
    this.#given += datagrams;
    flow.datagramsIn += datagrams;
    flow.bytesIn += bytes;
  }

  passedOut(flow: Flow<C>, bytes: number): void {
    flow.datagramsOut += 1;
    flow.bytesOut += bytes;
  }

  /** Counts dropped datagrams. Returns null, so that callers can write `return table.drop(...)`. */
  drop(reason: DropReason, flow: Flow<C> | null, datagrams = 1): null {
    this.#dropped[reason] += datagrams;
    if (flow !== null) flow.dropped += datagrams;
    return null;
  }

  /**
   * Records drops reported by the client. Dropped datagrams from visitors were counted as passed and are subtracted, at most as many as the
   * client was given. Returns the subtracted number.
   */
  reported({ address, port, direction, reason, datagrams }: ReportedDrop): number {
    const flow = this.#flows.get(flowKeyOf(address, port)) ?? null;
    if (direction === 'out') {
      this.drop(reason, flow, datagrams);
      return 0;
    }
    const possible = Math.min(datagrams, this.#given);
    this.#given -= possible;
    this.drop(reason, flow, possible);
    if (flow !== null) flow.datagramsIn = Math.max(0, flow.datagramsIn - possible);
    return possible;
  }

  /** Marks a flow as denied by a policy. Its datagrams are dropped for a while without another evaluation. */
  deny(flow: Flow<C>, now: number): void {
    if (flow.isEnded) return;
    flow.deniedUntil = now + FLOW_DENIED_MS;
    flow.context = null;
    if (!flow.isConfirmed) this.#denied.append(flow.inTable);
    this.#wheel.schedule(flow);
  }

  close(flow: Flow<C>): void {
    this.#end(flow, 'closed');
  }

  closeAll(): void {
    for (const flow of this.#flows.values()) this.#end(flow, 'closed');
  }

  /** Ends idle flows of the table. Call about once per second while flows exist. */
  expire(now: number): void {
    this.#wheel.turn(now, (flow) => this.#end(flow, 'idle'));
  }

  /** Returns the table's most recently active flows, newest first. */
  list(max: number): Flow<C>[] {
    return [...this.#flows.values()].sort((a, b) => b.activeAt - a.activeAt).slice(0, max);
  }

  #admit(address: string, port: number, now: number): Flow<C> | null {
    const { addresses, loopFacts } = this.#options;
    if (isLoop(address, port, loopFacts())) return this.drop('loop', null);
    if ((this.#newFlows?.take(prefixKeyOf(address), now) ?? 0) > 0) return this.drop('rate', null);
    const refusal = this.#options.refusesNew?.(now) ?? null;
    if (refusal !== null) return this.drop(refusal, null);
    if (!this.#makeRoom(address)) return this.drop('limit', null);
    const flow = new Flow<C>(address, port, now, this.#evict);
    this.#flows.set(flow.key, flow);
    this.#unconfirmed.append(flow.inTable);
    addresses.opened(flow);
    this.#wheel.schedule(flow);
    return flow;
  }

  /**
   * Evicts the oldest unconfirmed flow of the address and of the tunnel, denied flows of the tunnel first. Returns false if only confirmed
   * flows are left.
   */
  #makeRoom(address: string): boolean {
    const { rules, addresses } = this.#options;
    const ofAddress = addresses.isFull(address) ? addresses.oldestUnconfirmed(address) : undefined;
    const isFull = this.#flows.size >= rules.flowsPerTunnel;
    // A flow evicted for its address may also free a slot in this table.
    const isRoomMade = ofAddress instanceof Flow && this.#flows.get(ofAddress.key) === ofAddress;
    const ofTable = isFull && !isRoomMade ? (this.#denied.first ?? this.#unconfirmed.first) : undefined;
    if (ofAddress === null || ofTable === null) return false;
    ofAddress?.evict(ofAddress, 'evicted');
    ofTable?.evict(ofTable, 'evicted');
    return true;
  }

  /** A confirmed flow can no longer be evicted for another flow of the same tunnel or address. */
  #confirm(flow: Flow<C>): void {
    flow.isConfirmed = true;
    flow.inTable.leave();
    flow.ofAddress.leave();
    flow.account?.confirmed(flow);
  }

  #expiryOf(flow: Flow<C>): number {
    const { idleMs, answeredIdleMs } = this.#options.rules;
    if (flow.deniedUntil !== 0) return flow.deniedUntil;
    const isOver = flow.isAnswered && !flow.isConfirmed;
    return flow.activeAt + (isOver ? Math.min(answeredIdleMs, idleMs) : idleMs);
  }

  #end(flow: Flow<C>, end: FlowEnd): void {
    if (flow.isEnded) return;
    flow.isEnded = true;
    this.#flows.delete(flow.key);
    flow.inWheel.leave();
    flow.inTable.leave();
    this.#options.addresses.ended(flow);
    this.#options.onEnded(flow, end);
  }
}

// ---- expiry: no timer per flow, and nothing to move with each datagram ----

const SLOT_MS = 1000;

/** A flow is in the slot of the second of its earliest expiry. When the slot is due, the flow expires or moves on. */
class ExpiryWheel<C> {
  readonly #expiryOf: (flow: Flow<C>) => number;
  readonly #slots = Array.from({ length: FLOW_WHEEL_SLOTS }, () => new FlowList<Flow<C>>());
  /** Last second for which the wheel has expired flows. */
  #second: number;

  constructor(expiryOf: (flow: Flow<C>) => number, now: number) {
    this.#expiryOf = expiryOf;
    this.#second = Math.floor(now / SLOT_MS);
  }

  schedule(flow: Flow<C>): void {
    const due = Math.ceil(this.#expiryOf(flow) / SLOT_MS);
    // A flow is put neither into the wheel's current slot nor into a slot a full turn ahead.
    const within = Math.min(Math.max(due, this.#second + 1), this.#second + this.#slots.length - 1);
    this.#slots[within % this.#slots.length]?.append(flow.inWheel);
  }

  turn(now: number, onOver: (flow: Flow<C>) => void): void {
    const until = Math.floor(now / SLOT_MS);
    // After a long pause the wheel turns only once, which covers every slot.
    if (until - this.#second > this.#slots.length) this.#second = until - this.#slots.length;
    while (this.#second < until) {
      this.#second += 1;
      const slot = this.#slots[this.#second % this.#slots.length];
      for (let flow = slot?.shift() ?? null; flow !== null; flow = slot?.shift() ?? null) {
        if (this.#expiryOf(flow) <= now) onOver(flow);
        else this.schedule(flow);
      }
    }
  }
}

// The flows of one udp tunnel: whose datagram is passed, who has to make room, how much goes to somebody who may not be there, and when a flow is
// over. It says; the ingress sends. Mutates in place, with no work but a lookup for a datagram of a flow that is known; time is an argument.
import { TokenBuckets } from '../rate/token-buckets.ts';
import { Flow, type FlowEnd } from './flow.ts';
import type { FlowAddresses } from './flow-addresses.ts';
import { type FlowKey, flowKeyOf, isLoop, type LoopFacts, prefixKeyOf } from './flow-key.ts';
import { FlowList } from './flow-list.ts';

/** how long a flow that a policy refused is not asked for again */
export const FLOW_DENIED_MS = 10_000;
/** seconds in the wheel of expiry; one that is over later is looked at once more */
export const FLOW_WHEEL_SLOTS = 64;

/** Why a datagram was not passed; each one that was not is counted under exactly one. */
export const DROP_REASONS = [
  /** the carrier was behind: late is worse than lost */
  'behind',
  /** too much waits to be sent on the UDP path */
  'path',
  /** the tunnel or the address holds its limit of flows, all of them confirmed */
  'limit',
  /** all flows of the edge are taken: it was of a flow that was taken back, or of a new one while no account holds more than its share */
  'share',
  /** too many new flows of one prefix */
  'rate',
  /** over what an unconfirmed flow may be sent */
  'unconfirmed',
  /** from ourselves, or from port 0 */
  'loop',
  /** the client is away */
  'away',
  /** the local service did not take it */
  'local',
  'too-large',
  /** for a flow that is not open */
  'unopened',
  /** refused by a policy */
  'denied',
] as const;

export type DropReason = (typeof DROP_REASONS)[number];

export interface FlowRules {
  readonly flowsPerTunnel: number;
  readonly idleMs: number;
  /** Of a flow that was answered and has not sent since; never longer than `idleMs`. */
  readonly answeredIdleMs: number;
  /** Per prefix; 0: no limit. */
  readonly newFlowsPerSecond: number;
  /** 0: no limit. */
  readonly unconfirmedReplyBytes: number;
}

/** Of the client: from a visitor (`in`), or to one. The flow may be over; then the tunnel alone counts it. */
export interface ReportedDrop {
  readonly address: string;
  readonly port: number;
  readonly direction: 'in' | 'out';
  readonly reason: DropReason;
  readonly datagrams: number;
}

export interface FlowTableOptions<C> {
  readonly rules: FlowRules;
  /** One for all tunnels of an edge. */
  readonly addresses: FlowAddresses<C>;
  /** Asked anew each time: addresses of a machine change. */
  readonly loopFacts: () => LoopFacts;
  /** Whether the client has time for one more; asked before anything is made or has to make room. null: it has, else why its datagram is dropped. */
  readonly refusesNew?: (now: number) => DropReason | null;
  /** Told once for each flow, also while another one is being let in. */
  readonly onEnded: (flow: Flow<C>, end: FlowEnd) => void;
}

/** The burst is in seconds of [udp] new_flows_per_second. A flood from more prefixes than are remembered is not told from visitors. */
const NEW_FLOWS = { burstSecs: 2, prefixes: 16_384 };

export class FlowTable<C> {
  readonly dropped: Readonly<Record<DropReason, number>>;
  /** false: only datagrams of flows that there are already are taken; the client is away, or the edge is about to end. */
  takesNew = true;
  readonly #dropped: Record<DropReason, number>;
  /** To the client, and not said to be dropped there. */
  #given = 0;
  readonly #options: FlowTableOptions<C>;
  readonly #flows = new Map<FlowKey, Flow<C>>();
  readonly #unconfirmed = new FlowList<Flow<C>>();
  /** Remembered only so that nobody is asked again: they make room before anybody who was let in. */
  readonly #denied = new FlowList<Flow<C>>();
  /** New flows by prefix (a /24, of IPv6 a /56); null: no limit. */
  readonly #newFlows: TokenBuckets<FlowKey> | null;
  readonly #wheel: ExpiryWheel<C>;
  /** The same for all flows: none has a function of its own. */
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

  /** A datagram of a visitor. null: it is dropped, and counted. Else it is owed one `passedIn` or `drop`; a flow without a context is to be opened. */
  arrived(address: string, port: number, now: number): Flow<C> | null {
    const flow = this.#flows.get(flowKeyOf(address, port));
    if (flow === undefined) return this.takesNew ? this.#admit(address, port, now) : this.drop('away', null);
    if (flow.deniedUntil !== 0) {
      if (now < flow.deniedUntil) return this.drop('denied', flow);
      // Asked again from the beginning.
      this.#end(flow, 'idle');
      return this.arrived(address, port, now);
    }
    flow.activeAt = now;
    if (flow.isAnswered && !flow.isConfirmed) this.#confirm(flow);
    return flow;
  }

  /** Whether a reply may go out. false: it is dropped, and counted. Else it is owed one `passedOut` or `drop`. */
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
      // It may be over sooner now.
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

  /** null: so that `return table.drop(...)` says it all. */
  drop(reason: DropReason, flow: Flow<C> | null, datagrams = 1): null {
    this.#dropped[reason] += datagrams;
    if (flow !== null) flow.dropped += datagrams;
    return null;
  }

  /**
   * The client says what it did not pass on. Of those from visitors it had been given every one, so they are passed no longer; more than it was
   * given it cannot have dropped. Returns how many that are.
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

  /** A policy refused it. What comes for a while is dropped without asking again. */
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

  /** Ends those that are idle. To be called every second or so while there are any. */
  expire(now: number): void {
    this.#wheel.turn(now, (flow) => this.#end(flow, 'idle'));
  }

  /** The last active ones, newest first. */
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

  /** The oldest unconfirmed flow goes, of the address and of the tunnel, here a refused one first. false: one of them has confirmed ones alone. */
  #makeRoom(address: string): boolean {
    const { rules, addresses } = this.#options;
    const ofAddress = addresses.isFull(address) ? addresses.oldestUnconfirmed(address) : undefined;
    const isFull = this.#flows.size >= rules.flowsPerTunnel;
    // One that goes for its address may make room in this table by it.
    const isRoomMade = ofAddress instanceof Flow && this.#flows.get(ofAddress.key) === ofAddress;
    const ofTable = isFull && !isRoomMade ? (this.#denied.first ?? this.#unconfirmed.first) : undefined;
    if (ofAddress === null || ofTable === null) return false;
    ofAddress?.evict(ofAddress, 'evicted');
    ofTable?.evict(ofTable, 'evicted');
    return true;
  }

  /** From now on no flow of the same tunnel or address takes its place. */
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

/** A flow stands in the slot of the second in which it may be over at the earliest; when that comes, it is looked at and may move on. */
class ExpiryWheel<C> {
  readonly #expiryOf: (flow: Flow<C>) => number;
  readonly #slots = Array.from({ length: FLOW_WHEEL_SLOTS }, () => new FlowList<Flow<C>>());
  /** The last second that was looked at. */
  #second: number;

  constructor(expiryOf: (flow: Flow<C>) => number, now: number) {
    this.#expiryOf = expiryOf;
    this.#second = Math.floor(now / SLOT_MS);
  }

  schedule(flow: Flow<C>): void {
    const due = Math.ceil(this.#expiryOf(flow) / SLOT_MS);
    // Never the slot that is being looked at, never one that has come round to it.
    const within = Math.min(Math.max(due, this.#second + 1), this.#second + this.#slots.length - 1);
    this.#slots[within % this.#slots.length]?.append(flow.inWheel);
  }

  turn(now: number, onOver: (flow: Flow<C>) => void): void {
    const until = Math.floor(now / SLOT_MS);
    // After a long pause once round is enough: every slot has been looked at.
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

// Random connections to an admission, compared after each step with a model that keeps a plain list and recounts it every time.

import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  Admission,
  type ConnectionKind,
  type HeldConnection,
  NETWORK_ALLOWANCE,
  REFUSALS_BEING_TOLD,
  shareOf,
  type Ticket,
} from './admission.ts';

const LIMITS = { visitors: 30, control: 20, api: 12 };
const PER_NETWORK = 25;
const NETWORKS = ['a', 'a', 'a', 'b', 'c', null] as const;
const FEW = NETWORK_ALLOWANCE;
const KINDS: readonly ConnectionKind[] = ['http', 'https', 'tcp', 'control', 'rest', 'metrics'];

interface Move {
  readonly do: 'enter' | 'leave' | 'leave-twice' | 'act' | 'identify' | 'request' | 'answer';
  readonly kind: number;
  readonly network: number;
  readonly at: number;
  readonly isIdle: boolean;
  readonly ms: number;
}

const move: fc.Arbitrary<Move> = fc.record({
  do: fc.constantFrom(
    ...['enter', 'enter', 'enter', 'enter', 'enter', 'enter', 'enter', 'enter'],
    ...['leave', 'leave-twice', 'act', 'act', 'identify', 'request', 'answer'],
  ) as fc.Arbitrary<Move['do']>,
  kind: fc.nat({ max: KINDS.length - 1 }),
  network: fc.nat({ max: NETWORKS.length - 1 }),
  at: fc.nat({ max: 100 }),
  isIdle: fc.boolean(),
  ms: fc.nat({ max: 3000 }),
});

class Held implements HeldConnection {
  isIdle: boolean;
  activeAtMs: number;

  constructor(isIdle: boolean, activeAtMs: number) {
    this.isIdle = isIdle;
    this.activeAtMs = activeAtMs;
  }

  describe(): { phase: string; waitsFor: string } {
    return { phase: 'test', waitsFor: 'nothing' };
  }

  close(): void {}
}

const isVisitor = ({ kind }: Ticket): boolean => kind === 'http' || kind === 'https' || kind === 'tcp';
const isControl = ({ kind }: Ticket): boolean => kind === 'control' || kind === 'carrier';
const isApi = (ticket: Ticket): boolean => !isVisitor(ticket) && !isControl(ticket);
const OF_SHARE = { visitors: isVisitor, control: isControl, api: isApi };

const countByNetwork = (tickets: readonly Ticket[]): Map<string | null, number> => {
  const counts = new Map<string | null, number>();
  for (const { network } of tickets) counts.set(network, (counts.get(network) ?? 0) + 1);
  return counts;
};

class Run {
  readonly admission = new Admission({ limits: LIMITS, perNetwork: PER_NETWORK });
  open: Ticket[] = [];
  told: Ticket[] = [];
  requests: string[] = [];
  now = 0;

  step({ do: what, kind, network, at, isIdle, ms }: Move): void {
    this.now += ms;
    const ticket = this.open[at % Math.max(1, this.open.length)];
    const name = NETWORKS[network] ?? null;
    if (what === 'enter') this.#enter(KINDS[kind] as ConnectionKind, name, isIdle);
    else if (what === 'request' && name !== null) {
      if (this.admission.requestBegins(name)) this.requests.push(name);
    } else if (what === 'answer' && this.requests.length > 0) {
      this.admission.requestOver(this.requests.splice(at % this.requests.length, 1)[0] as string);
    } else if (ticket === undefined) return;
    else if (what === 'act') ticket.held = new Held(isIdle, this.now);
    else if (what === 'identify' && isControl(ticket)) this.admission.identify(ticket, `of ${network}`, 'session');
    else if (what === 'leave' || what === 'leave-twice') {
      this.admission.leave(ticket);
      if (what === 'leave-twice') this.admission.leave(ticket);
      this.open = this.open.filter((other) => other !== ticket);
    }
    this.check();
  }

  #enter(kind: ConnectionKind, network: string | null, isIdle: boolean): void {
    const share = shareOf(kind);
    const before = this.open.filter(OF_SHARE[share]);
    const counts = countByNetwork(before);
    const entry = this.admission.enter(kind, network, this.now);
    if (entry.kind === 'refused') {
      if (entry.ticket !== null) this.told.push(entry.ticket);
      if (entry.reason !== 'visitors-full') return;
      // No network may be above an equal share while another network below it is refused. A trusted proxy speaks for many visitors, and
      // gives up only idle connections.
      const even = LIMITS[share] / (counts.size + (counts.has(network) ? 0 : 1));
      const isBelow = (counts.get(network) ?? 0) + 1 <= even;
      const above = [...counts].filter(([name, count]) => count > even && name !== null);
      const most = Math.max(...counts.values());
      if (isBelow && counts.get(null) !== most) expect(above).toEqual([]);
      return;
    }
    const { ticket, shed } = entry;
    if (shed !== null) {
      expect(before).toHaveLength(LIMITS[share]);
      this.open = this.open.filter((other) => other !== shed);
      expect(shed.isIn).toBe(false);
      if (share === 'control') expect(shed.account).toBeNull();
      else this.#checkShed(shed, share === 'visitors' ? before : this.#flooded(shed, before));
    }
    ticket.held = new Held(isIdle, this.now);
    this.open.push(ticket);
  }

  /** Callers of the API listener with the most connections. */
  #flooded({ kind }: Ticket, before: readonly Ticket[]): Ticket[] {
    const ofKind = before.filter((ticket) => ticket.kind === kind);
    expect(ofKind.length * 2).toBeGreaterThanOrEqual(before.length);
    return ofKind;
  }

  /**
   * Checks that the evicted connection belongs to the network with the most connections (unless every network has only a few), and has
   * been idle the longest.
   */
  #checkShed(shed: Ticket, before: readonly Ticket[]): void {
    const counts = countByNetwork(before);
    const most = Math.max(...counts.values());
    const largest = [...counts].filter(([, count]) => count === most).map(([network]) => network);
    const hasIdle = (name: string | null): boolean =>
      before.some(({ network, held }) => network === name && held?.isIdle);
    const isOfLargest = most > FEW && largest.every(hasIdle);
    if (isOfLargest) expect(counts.get(shed.network)).toBe(most);
    // If one of the largest networks has only busy connections, the longest-idle connection of any network is evicted.
    const peers = before.filter(({ network }) => (isOfLargest ? network === shed.network : true));
    if (most > FEW && !isOfLargest && counts.get(shed.network) === most) return;
    const idle = peers.filter(({ held }) => held?.isIdle);
    if (idle.length > 0) {
      expect(shed.held?.activeAtMs).toBe(Math.min(...idle.map(({ held }) => held?.activeAtMs ?? 0)));
    } else expect(counts.get(shed.network)).toBe(most);
  }

  check(): void {
    const { admission, open } = this;
    for (const share of ['visitors', 'control', 'api'] as const) {
      const held = open.filter(OF_SHARE[share]).length;
      expect(admission.used[share]).toBe(held);
      expect(held).toBeLessThanOrEqual(LIMITS[share]);
    }
    const listed = [...admission.tickets];
    expect(listed.length === open.length && listed.every((ticket, n) => ticket === open[n])).toBe(true);
    for (const network of NETWORKS) {
      if (network === null) continue;
      const visitors = open.filter((ticket) => isVisitor(ticket) && ticket.network === network).length;
      const count = visitors + this.requests.filter((name) => name === network).length;
      expect(admission.ofNetwork(network)).toBe(count);
      expect(count).toBeLessThanOrEqual(PER_NETWORK);
    }
    expect(this.told.filter(({ isIn }) => isIn).length).toBeLessThanOrEqual(REFUSALS_BEING_TOLD);
  }

  end(): void {
    for (const ticket of [...this.open, ...this.told]) this.admission.leave(ticket);
    for (const network of this.requests) this.admission.requestOver(network);
    this.open = [];
    this.requests = [];
    this.check();
    for (const network of NETWORKS) expect(this.admission.ofAccount(`of ${network}`)).toBe(0);
  }
}

it('in any order of events, each share keeps its limit, ticket counts balance, and no network below an equal share is refused while another is above', () => {
  fc.assert(
    fc.property(fc.array(move, { minLength: 50, maxLength: 200, size: 'max' }), (moves) => {
      const run = new Run();
      for (const step of moves) run.step(step);
      run.end();
    }),
    { numRuns: 40 },
  );
});

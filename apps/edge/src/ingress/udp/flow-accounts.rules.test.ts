import { Flow } from '@tunnel/rules/flows';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FLOWS_LOOKED_AT, FlowAccounts } from './flow-accounts.rules.ts';

/** Flows without a flow table. Each flow comes, is confirmed, becomes active and ends in the same way as in a table. */
class Visitors {
  readonly accounts: FlowAccounts<string>;
  readonly living = new Set<Flow<string>>();
  readonly takenBack: Flow<string>[] = [];
  /** Called with a flow before it is evicted. */
  onTakenBack: (flow: Flow<string>) => void = () => {};
  now = 0;
  #port = 0;

  constructor(limit: number, accountShare: number) {
    this.accounts = new FlowAccounts({ limit, accountShare });
  }

  /** Returns the new flow, or null if every account is within its share. */
  come(account: string): Flow<string> | null {
    this.#port += 1;
    const flow = new Flow<string>('192.0.2.1', this.#port, this.now, (evicted) => {
      this.onTakenBack(evicted);
      this.takenBack.push(evicted);
      this.end(evicted);
    });
    if (!this.accounts.enter(flow, account)) return null;
    this.living.add(flow);
    return flow;
  }

  confirm(flow: Flow<string>): void {
    flow.activeAt = this.now;
    if (flow.isConfirmed) return;
    flow.isConfirmed = true;
    flow.account?.confirmed(flow);
  }

  end(flow: Flow<string>): void {
    this.living.delete(flow);
    this.accounts.left(flow);
  }

  of(account: string): Flow<string>[] {
    return [...this.living].filter((flow) => flow.account?.name === account);
  }
}

const some = (visitors: Visitors, account: string, count: number): Flow<string>[] =>
  Array.from({ length: count }, () => visitors.come(account)).filter((flow) => flow !== null);

describe('a full edge', () => {
  it('evicts the oldest unconfirmed flow of the account furthest beyond its share', () => {
    const visitors = new Visitors(8, 0.25);
    const [first, second] = some(visitors, 'greedy', 8) as [Flow<string>, Flow<string>];
    visitors.confirm(first);
    expect(visitors.come('modest')).not.toBeNull();
    expect(visitors.takenBack).toEqual([second]);
    expect(['greedy', 'modest'].map((account) => visitors.accounts.of(account))).toEqual([7, 1]);
  });

  it('evicts the longest idle confirmed flow if the account has no unconfirmed flow', () => {
    const visitors = new Visitors(8, 0.25);
    const flows = some(visitors, 'greedy', 8);
    for (const flow of flows) visitors.confirm(flow);
    // A datagram of a confirmed flow does not move the flow in the order, but its time counts when a flow is evicted.
    for (const [nth, flow] of flows.entries()) flow.activeAt = [3, 0, 2, 9, 9, 9, 9, 9][nth] as number;
    for (const _ of [1, 2, 3]) visitors.come('modest');
    expect(visitors.takenBack).toEqual([flows[1], flows[2], flows[0]]);
    expect(['greedy', 'modest'].map((account) => visitors.accounts.of(account))).toEqual([5, 3]);
  });

  it('evicts no flow of the operator or of accounts within their share, and refuses the new flow', () => {
    const visitors = new Visitors(4, 0.25);
    for (const account of ['a', 'operator tun_1', 'operator tun_1', 'b']) visitors.come(account);
    expect(visitors.come('c')).toBeNull();
    expect([visitors.takenBack, visitors.accounts.of('c'), visitors.accounts.size]).toEqual([[], 0, 4]);
  });

  it('of a single account evicts the oldest flow of that account', () => {
    const visitors = new Visitors(4, 0.25);
    const [first] = some(visitors, 'alone', 4);
    expect(visitors.come('alone')).not.toBeNull();
    expect([visitors.takenBack, visitors.accounts.of('alone')]).toEqual([[first], 4]);
  });

  it('examines a limited number of flows when all of them were active', () => {
    const limit = 3 * FLOWS_LOOKED_AT;
    const looks = FLOWS_LOOKED_AT;
    const visitors = new Visitors(limit, 0.25);
    const flows = some(visitors, 'greedy', limit);
    for (const flow of flows) visitors.confirm(flow);
    for (const [nth, flow] of flows.entries()) flow.activeAt = 10 + nth;
    let moved = 0;
    visitors.onTakenBack = () => {
      moved = flows.filter(({ rank }) => rank !== 0).length;
    };
    expect(visitors.come('modest')).not.toBeNull();
    expect(moved).toBeLessThanOrEqual(looks);
    expect(moved).toBeGreaterThan(1);
  });
});

const move = fc.record({
  does: fc.constantFrom('come', 'come', 'come', 'come', 'confirm', 'confirm', 'active', 'end', 'vanish'),
  account: fc.constantFrom('a', 'a', 'a', 'b', 'b', 'c', 'operator tun_1'),
  pick: fc.nat(),
  elapsedMs: fc.nat({ max: 3 }),
});

it('in any order of events, only the account furthest beyond its share loses flows, and no flow leaks', () => {
  const LIMIT = 12;
  const LIMITED = ['a', 'b', 'c'];
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 6 }),
      fc.array(move, { maxLength: 150, size: 'max' }),
      (perAccount, moves) => {
        const visitors = new Visitors(LIMIT, perAccount / LIMIT);
        const held = (account: string): number => visitors.of(account).length;
        visitors.onTakenBack = (flow) => {
          const account = flow.account?.name ?? '';
          expect(visitors.living.size).toBe(LIMIT);
          expect(held(account)).toBeGreaterThan(perAccount);
          expect(held(account)).toBe(Math.max(...LIMITED.map(held)));
          const unconfirmed = visitors.of(account).filter(({ isConfirmed }) => !isConfirmed);
          if (unconfirmed.length > 0) expect(flow).toBe(unconfirmed[0]);
          else expect(flow.activeAt).toBe(Math.min(...visitors.of(account).map(({ activeAt }) => activeAt)));
        };
        for (const { does, account, pick, elapsedMs } of moves) {
          visitors.now += elapsedMs;
          const flow = visitors.of(account)[pick % Math.max(1, held(account))];
          if (does === 'come') {
            const before = visitors.living.size;
            const isAllWithin = LIMITED.every((name) => held(name) <= perAccount);
            expect(visitors.come(account) === null).toBe(before === LIMIT && isAllWithin);
            expect(visitors.living.size).toBe(Math.min(LIMIT, before + 1));
          } else if (does === 'vanish') {
            for (const living of visitors.of(account)) visitors.end(living);
          } else if (flow !== undefined) {
            if (does === 'confirm') visitors.confirm(flow);
            else if (does === 'active') flow.activeAt = visitors.now;
            else visitors.end(flow);
          }
          expect(visitors.accounts.size).toBe(visitors.living.size);
          for (const name of LIMITED) expect(visitors.accounts.of(name)).toBe(held(name));
        }
        for (const living of visitors.living) visitors.end(living);
        expect([visitors.accounts.size, ...LIMITED.map((name) => visitors.accounts.of(name))]).toEqual([0, 0, 0, 0]);
      },
    ),
    { numRuns: 40 },
  );
});

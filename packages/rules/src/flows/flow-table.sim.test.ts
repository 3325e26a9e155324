// Random visitors, replies, denials and pauses, compared with a slow and obvious model of the flow table.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Flow } from './flow.ts';
import { FlowAddresses } from './flow-addresses.ts';
import { type DropReason, type FlowRules, FlowTable } from './flow-table.ts';

const RULES: FlowRules = {
  flowsPerTunnel: 4,
  idleMs: 6000,
  answeredIdleMs: 2000,
  newFlowsPerSecond: 4,
  unconfirmedReplyBytes: 100,
};
const PER_ADDRESS = 2;
const DENIED_MS = 10_000;
const OWN = '10.0.0.1';
const ADDRESSES = ['192.0.2.1', '::ffff:192.0.2.1', '192.0.2.2', '198.51.100.1', '2001:db8::1', '2001:db8::2', OWN];
/** Removes the IPv4-mapped prefix: both spellings count as the same address. */
const plain = (address: string): string => address.replace('::ffff:', '');
const limitKeyOf = (address: string): string => (address.includes('2001') ? 'v6' : plain(address));
const prefixOf = (address: string): string => {
  if (address.includes('2001')) return 'v6';
  return plain(address).split('.').slice(0, 3).join('.');
};

interface Known {
  readonly name: string;
  readonly address: string;
  readonly born: number;
  activeAt: number;
  answered: boolean;
  confirmed: boolean;
  deniedUntil: number;
  /** Position in the order of denials; 0 if the flow is not denied. */
  refused: number;
  replied: number;
}

/** Model of the flow table: a plain list, searched from the beginning for every operation. */
class Model {
  flows: Known[] = [];
  readonly starts = new Map<string, { tokens: number; at: number }>();
  born = 0;
  refusals = 0;

  arrive(address: string, port: number, now: number): 'passed' | DropReason {
    const name = `${plain(address)} ${port}`;
    const known = this.flows.find((flow) => flow.name === name);
    if (known !== undefined && known.deniedUntil === 0) {
      known.activeAt = now;
      known.confirmed ||= known.answered;
      return 'passed';
    }
    if (known !== undefined && now < known.deniedUntil) return 'denied';
    this.flows = this.flows.filter((flow) => flow !== known);
    if (port === 0 || (plain(address) === OWN && port >= 20_100)) return 'loop';
    if (!this.#mayStart(prefixOf(address), now)) return 'rate';
    if (!this.#makeRoom(limitKeyOf(address))) return 'limit';
    this.born += 1;
    const fresh = { answered: false, confirmed: false, deniedUntil: 0, refused: 0, replied: 0 };
    this.flows.push({ name, address: limitKeyOf(address), born: this.born, activeAt: now, ...fresh });
    return 'passed';
  }

  deny(name: string, now: number): void {
    const flow = this.flows.find((known) => known.name === name);
    if (flow === undefined) return;
    this.refusals += 1;
    flow.deniedUntil = now + DENIED_MS;
    flow.refused = this.refusals;
  }

  reply(name: string, bytes: number, now: number): 'passed' | DropReason {
    const flow = this.flows.find((known) => known.name === name);
    if (flow === undefined || flow.deniedUntil !== 0) return 'unopened';
    if (!flow.confirmed && flow.replied + bytes > RULES.unconfirmedReplyBytes) return 'unconfirmed';
    if (!flow.confirmed) flow.replied += bytes;
    flow.answered = true;
    flow.activeAt = now;
    return 'passed';
  }

  /**
   * Removes expired flows. A flow never expires early, and must be gone once the next full second has begun. In between, the timer wheel
   * may or may not have removed the flow, so `isThere` decides.
   */
  expire(now: number, isThere: (name: string) => boolean): void {
    this.flows = this.flows.filter((flow) => {
      const idleMs = flow.answered && !flow.confirmed ? RULES.answeredIdleMs : RULES.idleMs;
      const over = flow.deniedUntil === 0 ? flow.activeAt + idleMs : flow.deniedUntil;
      if (now < over) return true;
      return Math.ceil(over / 1000) > Math.floor(now / 1000) && isThere(flow.name);
    });
  }

  #mayStart(prefix: string, now: number): boolean {
    const burst = RULES.newFlowsPerSecond * 2;
    const bucket = this.starts.get(prefix) ?? { tokens: burst, at: now };
    const tokens = Math.min(burst, bucket.tokens + ((now - bucket.at) * RULES.newFlowsPerSecond) / 1000);
    this.starts.set(prefix, { tokens: tokens < 1 ? tokens : tokens - 1, at: now });
    return tokens >= 1;
  }

  #makeRoom(address: string): boolean {
    const oldest = (among: Known[]): Known | undefined =>
      among.filter(({ confirmed }) => !confirmed).sort((a, b) => a.born - b.born)[0];
    const own = this.flows.filter((flow) => flow.address === address);
    let rest = this.flows;
    if (own.length >= PER_ADDRESS) {
      const leaving = oldest(own);
      if (leaving === undefined) return false;
      rest = rest.filter((flow) => flow !== leaving);
    }
    if (rest.length >= RULES.flowsPerTunnel) {
      // Denied flows are evicted first.
      const refused = rest.filter((flow) => flow.refused > 0 && !flow.confirmed).sort((a, b) => a.refused - b.refused);
      const leaving = refused[0] ?? oldest(rest);
      if (leaving === undefined) return false;
      rest = rest.filter((flow) => flow !== leaving);
    }
    this.flows = rest;
    return true;
  }
}

const move = fc.record({
  do: fc.constantFrom(
    'arrive',
    'arrive',
    'arrive',
    'converse',
    'converse',
    'reply',
    'reply',
    'deny',
    'close',
    'expire',
  ),
  address: fc.constantFrom(...ADDRESSES),
  port: fc.constantFrom(0, 1, 1, 2, 2, 3, 20_100),
  pick: fc.nat(),
  bytes: fc.nat({ max: 60 }),
  elapsedMs: fc.oneof({ weight: 5, arbitrary: fc.nat({ max: 60 }) }, { weight: 1, arbitrary: fc.nat({ max: 4000 }) }),
});

it('the flow table agrees with a plain list of flows after each step, and counts each datagram once', () => {
  fc.assert(
    fc.property(fc.array(move, { maxLength: 150, size: 'max' }), (moves) => {
      const living = new Set<Flow<string>>();
      /** Flows with at least one received datagram. Only these flows may get a reply. */
      const heard = new Set<string>();
      const everSeen: Flow<string>[] = [];
      const addresses = new FlowAddresses<string>({ perAddress: PER_ADDRESS });
      const table = new FlowTable<string>(
        {
          rules: RULES,
          addresses,
          loopFacts: () => ({ ownAddresses: new Set([OWN]), range: { from: 20_100, to: 20_199 }, pathPorts: [] }),
          onEnded: (flow, end) => {
            expect(living.delete(flow)).toBe(true);
            if (end === 'evicted') expect(flow.isConfirmed).toBe(false);
          },
        },
        0,
      );
      const model = new Model();
      const counted = { passed: 0, offered: 0 };
      const dropsOf = (reason: string): number => table.dropped[reason as DropReason];
      const nameOf = ({ address, port }: Flow<string>): string => `${plain(address)} ${port}`;
      let now = 0;
      const arrive = (address: string, port: number, bytes: number): Flow<string> | null => {
        counted.offered += 1;
        const expected = model.arrive(address, port, now);
        const before = expected === 'passed' ? 0 : dropsOf(expected);
        const found = table.arrived(address, port, now);
        expect(found !== null).toBe(expected === 'passed');
        if (expected !== 'passed') expect(dropsOf(expected)).toBe(before + 1);
        if (found === null) return null;
        if (!living.has(found)) everSeen.push(found);
        living.add(found);
        heard.add(nameOf(found));
        counted.passed += 1;
        table.passedIn(found, bytes);
        return found;
      };
      const reply = (flow: Flow<string>, bytes: number): void => {
        counted.offered += 1;
        // An ended flow can have a successor with the same name, which is a different flow.
        const expected = living.has(flow) ? model.reply(nameOf(flow), bytes, now) : 'unopened';
        expect(table.mayReply(flow, bytes, now)).toBe(expected === 'passed');
        if (expected !== 'passed') return;
        expect(heard.has(nameOf(flow))).toBe(true);
        counted.passed += 1;
        table.passedOut(flow, bytes);
      };
      for (const { do: what, address, port, pick, bytes, elapsedMs } of moves) {
        now += elapsedMs;
        // Picks one of the last six flows, most of which are still open.
        const flow = everSeen[everSeen.length - 1 - (pick % Math.max(1, Math.min(6, everSeen.length)))];
        if (what === 'arrive') arrive(address, port, bytes);
        else if (what === 'converse') {
          const found = arrive(address, port, bytes);
          if (found !== null) reply(found, 1);
          arrive(address, port, bytes);
        } else if (what === 'reply' && flow !== undefined) {
          reply(flow, bytes);
        } else if (what === 'deny' && flow !== undefined && living.has(flow)) {
          table.deny(flow, now);
          model.deny(nameOf(flow), now);
        } else if (what === 'close' && flow !== undefined && living.has(flow)) {
          table.close(flow);
          model.flows = model.flows.filter(({ name }) => name !== nameOf(flow));
        } else if (what === 'expire') {
          table.expire(now);
          const left = new Set(table.list(100).map(nameOf));
          model.expire(now, (name) => left.has(name));
        }
        expect(table.list(100).map(nameOf).sort()).toEqual(model.flows.map(({ name }) => name).sort());
        expect([table.size, living.size]).toEqual([model.flows.length, model.flows.length]);
        expect(addresses.size).toBe(new Set(model.flows.map((known) => known.address)).size);
        const dropped = Object.values(table.dropped).reduce((sum, count) => sum + count, 0);
        expect(counted.passed + dropped).toBe(counted.offered);
      }
    }),
    { numRuns: 40 },
  );
});

// Random use of a small port range, compared with a slow and obvious model.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { PortLeases, type WantedPort } from './port-leases.ts';

const FROM = 20000;
const TO = 20004;

interface Use {
  readonly owner: string | null;
  readonly until: number;
}

const wantedPort: fc.Arbitrary<WantedPort> = fc.oneof(
  fc.constant({ kind: 'any' } as const),
  fc.record({
    kind: fc.constantFrom('exact' as const, 'preferred' as const),
    port: fc.integer({ min: FROM - 1, max: TO + 1 }),
  }),
);

const chance = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true });

const move = fc.record({
  do: fc.constantFrom('lease', 'lease', 'hold', 'release', 'outside', 'reassign'),
  next: fc.constantFrom('a', 'b', 'c'),
  owner: fc.constantFrom('a', 'b', 'c'),
  port: fc.integer({ min: FROM, max: TO }),
  wanted: wantedPort,
  reserved: fc.subarray([FROM, FROM + 1, TO]),
  elapsedMs: fc.nat({ max: 50 }),
});

it('port leases agree with a plain map of owners after each step: a port has one owner', () => {
  fc.assert(
    fc.property(fc.array(move, { maxLength: 80, size: 'max' }), chance, (moves, random) => {
      const leases = new PortLeases({ from: FROM, to: TO }, () => random);
      const model = new Map<number, Use>();
      /** Time of the last use of each port; absent if the port was never used. */
      const usedAt = new Map<number, number>();
      let now = 0;
      for (const step of moves) {
        now += step.elapsedMs;
        for (const [port, use] of model) {
          if (now < use.until) continue;
          model.delete(port);
          usedAt.set(port, use.until);
        }
        expect(leases.freeCount(now)).toBe(TO - FROM + 1 - model.size);
        const isOwn = model.get(step.port)?.owner === step.owner;
        if (step.do === 'lease') {
          const isOthers = (port: number): boolean => step.reserved.includes(port);
          const answer = leases.lease(step.owner, step.wanted, now, { isOthers });
          expectLease({ model, usedAt, isOthers }, step.owner, step.wanted, answer);
          if (answer.kind === 'leased') model.set(answer.port, { owner: step.owner, until: Number.POSITIVE_INFINITY });
        } else if (step.do === 'release') {
          expect(leases.release(step.port, step.owner)).toBe(isOwn);
          if (isOwn) model.delete(step.port);
          if (isOwn) usedAt.set(step.port, now);
        } else if (step.do === 'reassign') {
          // reassign changes only the owner: the port stays in use, or held until the same time.
          expect(leases.reassign(step.port, step.owner, step.next)).toBe(isOwn);
          const use = model.get(step.port);
          if (isOwn && use !== undefined) model.set(step.port, { ...use, owner: step.next });
        } else {
          const until = now + 60;
          const done =
            step.do === 'hold'
              ? leases.hold(step.port, step.owner, until)
              : leases.markOutside(step.port, step.owner, until);
          expect(done).toBe(isOwn);
          if (isOwn) model.set(step.port, { owner: step.do === 'hold' ? step.owner : null, until });
        }
        expect(leases.freeCount(now)).toBe(TO - FROM + 1 - model.size);
      }
    }),
    { numRuns: 100 },
  );
});

interface Known {
  readonly model: ReadonlyMap<number, Use>;
  readonly usedAt: ReadonlyMap<number, number>;
  readonly isOthers: (port: number) => boolean;
}

const expectLease = (
  { model, usedAt, isOthers }: Known,
  owner: string,
  wanted: WantedPort,
  answer: { readonly kind: string; readonly port?: number },
): void => {
  const isInRange = wanted.kind !== 'any' && wanted.port >= FROM && wanted.port <= TO;
  const use = wanted.kind === 'any' ? undefined : model.get(wanted.port);
  const isFree =
    isInRange && !isOthers(wanted.port) && (use === undefined || use.owner === null || use.owner === owner);
  const all = Array.from({ length: TO - FROM + 1 }, (_, index) => FROM + index);
  const free = all.filter((port) => !model.has(port) && !isOthers(port));
  if (isFree) {
    expect(answer).toEqual({ kind: 'leased', port: wanted.port });
  } else if (wanted.kind === 'exact') {
    expect(answer.kind).toBe(isInRange ? 'in-use' : 'out-of-range');
  } else if (free.length === 0) {
    expect(answer.kind).toBe('exhausted');
  } else {
    expect(answer.kind).toBe('leased');
    const lastUse = (port: number): number => usedAt.get(port) ?? Number.NEGATIVE_INFINITY;
    expect(free).toContain(answer.port);
    expect(lastUse(answer.port as number)).toBe(Math.min(...free.map(lastUse)));
  }
};

it('an account above its share gets a port only while more than a quarter is free, an account below it while any is, and no port leaks', () => {
  const accountStep = fc.record({
    do: fc.constantFrom('lease', 'lease', 'lease', 'release', 'hold'),
    account: fc.constantFrom('a', 'b', 'c', null),
    at: fc.nat({ max: 99 }),
    ms: fc.nat({ max: 20 }),
  });
  fc.assert(
    fc.property(fc.array(accountStep, { minLength: 30, maxLength: 200, size: 'max' }), (steps) => {
      const size = 20;
      const share = 5;
      const leases = new PortLeases({ from: 1, to: size, accountShare: share / size }, () => 0);
      let held: { owner: string; account: string | null; port: number; until: number }[] = [];
      let now = 0;
      for (const [index, step] of steps.entries()) {
        now += step.ms;
        held = held.filter(({ until }) => until > now);
        const one = held[step.at % Math.max(1, held.length)];
        const free = size - held.length;
        if (step.do === 'lease') {
          const own = held.filter(({ account }) => account === step.account).length;
          const isWithin = step.account === null || own < share;
          const answer = leases.lease(`${index}`, { kind: 'any' }, now, { account: step.account });
          const leased = isWithin || free > size / 4 ? 'leased' : 'share';
          expect(answer.kind).toBe(free === 0 ? 'exhausted' : leased);
          if (answer.kind !== 'leased') continue;
          held.push({ owner: `${index}`, account: step.account, port: answer.port, until: Number.POSITIVE_INFINITY });
        } else if (one !== undefined && step.do === 'hold') {
          one.until = now + 50;
          leases.hold(one.port, one.owner, one.until);
        } else if (one !== undefined) {
          leases.release(one.port, one.owner);
          held = held.filter((other) => other !== one);
        }
        expect(leases.freeCount(now)).toBe(size - held.length);
      }
    }),
  );
});

// Random use of a small range against a model that is slow and obvious.
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

const move = fc.record({
  do: fc.constantFrom('lease', 'lease', 'hold', 'release', 'outside', 'reassign'),
  next: fc.constantFrom('a', 'b', 'c'),
  owner: fc.constantFrom('a', 'b', 'c'),
  port: fc.integer({ min: FROM, max: TO }),
  wanted: wantedPort,
  random: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
  elapsedMs: fc.nat({ max: 50 }),
});

it('agrees with a plain map of owners after each step: a port has one owner', () => {
  fc.assert(
    fc.property(fc.array(move, { maxLength: 80, size: 'max' }), (moves) => {
      const leases = new PortLeases({ from: FROM, to: TO });
      const model = new Map<number, Use>();
      let now = 0;
      for (const step of moves) {
        now += step.elapsedMs;
        for (const [port, use] of model) if (now >= use.until) model.delete(port);
        expect(leases.freeCount(now)).toBe(TO - FROM + 1 - model.size);
        const isOwn = model.get(step.port)?.owner === step.owner;
        if (step.do === 'lease') {
          const answer = leases.lease(step.owner, step.wanted, step.random, now);
          expectLease(model, step.owner, step.wanted, answer);
          if (answer.kind === 'leased') model.set(answer.port, { owner: step.owner, until: Number.POSITIVE_INFINITY });
        } else if (step.do === 'release') {
          expect(leases.release(step.port, step.owner)).toBe(isOwn);
          if (isOwn) model.delete(step.port);
        } else if (step.do === 'reassign') {
          // In use or held as it was, for as long as it was.
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

const expectLease = (
  model: ReadonlyMap<number, Use>,
  owner: string,
  wanted: WantedPort,
  answer: { readonly kind: string; readonly port?: number },
): void => {
  const isInRange = wanted.kind !== 'any' && wanted.port >= FROM && wanted.port <= TO;
  const use = wanted.kind === 'any' ? undefined : model.get(wanted.port);
  if (isInRange && (use === undefined || use.owner === null || use.owner === owner)) {
    expect(answer).toEqual({ kind: 'leased', port: wanted.port });
  } else if (wanted.kind === 'exact') {
    expect(answer.kind).toBe(isInRange ? 'in-use' : 'out-of-range');
  } else if (model.size === TO - FROM + 1) {
    expect(answer.kind).toBe('exhausted');
  } else {
    expect(answer.kind).toBe('leased');
    expect(model.has(answer.port as number)).toBe(false);
  }
};

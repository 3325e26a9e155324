// Random lives of one domain that four accounts want, compared with a ledger that sees only effects.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  type DomainEffect,
  type DomainEvent,
  holderOf,
  NO_DOMAINS,
  nextLookAt,
  type OwnDomains,
  transitionDomain,
} from './domain-life.rules.ts';
import { judgeProof } from './domain-proof.rules.ts';

const IDS = ['a', 'b', 'c', 'd'] as const;
const DAY = 24 * 60 * 60_000;
const id = fc.constantFrom(...IDS);

const event: fc.Arbitrary<DomainEvent> = fc.oneof(
  { weight: 2, arbitrary: id.map((one): DomainEvent => ({ kind: 'added', id: one, token: one })) },
  id.map((one): DomainEvent => ({ kind: 'removed', id: one })),
  id.map((one): DomainEvent => ({ kind: 'check-asked', id: one })),
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('looked' as const),
      ids: fc.subarray([...IDS]),
      findings: fc.record({ tokens: fc.subarray(['a', 'b', 'c', 'd', 'x']), complete: fc.boolean() }),
      problem: fc.constant('ESERVFAIL'),
    }),
  },
);
const elapsed = fc.oneof(fc.nat({ max: 60_000 }), fc.nat({ max: DAY }), fc.nat({ max: 8 * DAY }));

/** Owner of the name as the edges see it, derived only from effects, and the times of mails, which have a minimum interval. */
class Ledger {
  owner: string | null = null;
  readonly mails = new Map<string, number>();

  perform(effect: DomainEffect, now: number): void {
    switch (effect.kind) {
      case 'verified':
        expect(this.owner).toBeNull();
        this.owner = effect.id;
        return;
      case 'moved':
        expect([this.owner, effect.from === effect.to]).toEqual([effect.from, false]);
        this.owner = effect.to;
        return;
      case 'lapsed':
        expect(this.owner).toBe(effect.id);
        this.owner = null;
        return;
      case 'removed':
        expect(effect.wasVerified).toBe(this.owner === effect.id);
        if (effect.wasVerified) this.owner = null;
        for (const key of this.mails.keys()) if (key.startsWith(`${effect.id} `)) this.mails.delete(key);
        return;
      case 'failed':
        expect(this.owner).not.toBe(effect.id);
        return;
      case 'mail': {
        const key = `${effect.id} ${effect.mail}`;
        expect(now - (this.mails.get(key) ?? Number.NEGATIVE_INFINITY)).toBeGreaterThanOrEqual(DAY);
        this.mails.set(key, now);
      }
    }
  }
}

it('a custom domain has one owner at a time, and a DNS check without an answer changes nothing', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(event, elapsed), { maxLength: 80, size: 'max' }), (moves) => {
      const ledger = new Ledger();
      let domains: OwnDomains = NO_DOMAINS;
      let now = 0;
      for (const [what, elapsedMs] of moves) {
        now += elapsedMs;
        const before = domains;
        const [after, effects] = transitionDomain(before, what, now);
        for (const effect of effects) ledger.perform(effect, now);
        expect(after.filter(({ state }) => state === 'verified').length).toBeLessThanOrEqual(1);
        expect(holderOf(after)?.id ?? null).toBe(ledger.owner);
        expect(new Set(after.map((domain) => domain.id)).size).toBe(after.length);
        if (what.kind === 'looked') checkLook(before, after, what, now);
        // Apart from a removal, only a DNS check can change the owner of the name.
        else if (what.kind !== 'removed') expect(holderOf(after)?.id).toBe(holderOf(before)?.id);
        domains = after;
      }
    }),
    { numRuns: 200 },
  );
});

const checkLook = (
  before: OwnDomains,
  after: OwnDomains,
  { ids = IDS, findings }: Extract<DomainEvent, { kind: 'looked' }>,
  now: number,
): void => {
  const holder = holderOf(before);
  const stays = holder !== null && judgeProof(holder.token, findings) !== 'absent';
  if (stays) expect(holderOf(after)?.id).toBe(holder.id);
  // If the token of any account was found, the name belongs to an account with a found token.
  else if (findings.tokens.some((token) => before.some((domain) => domain.token === token))) {
    expect(findings.tokens).toContain(holderOf(after)?.token);
  }
  for (const [index, domain] of after.entries()) {
    const was = before[index] as (typeof before)[number];
    expect(domain.id).toBe(was.id);
    // An account that was not checked stays unchanged, unless the name has moved to or from the account.
    const isMoved = holderOf(after)?.id !== holder?.id && [holder?.id, holderOf(after)?.id].includes(domain.id);
    if (!ids.includes(domain.id) && !isMoved) {
      expect(domain).toBe(was);
      continue;
    }
    expect(domain.checkedAt).toBe(now);
    const proof = judgeProof(domain.token, findings);
    if (proof === 'no-answer') expect([domain.state, domain.absentSince]).toEqual([was.state, was.absentSince]);
    if (domain.state === 'verified' && was.state !== 'verified') expect(proof).toBe('found');
    if (domain.state === 'failed' && was.state !== 'failed') expect(now - was.since).toBeGreaterThanOrEqual(3 * DAY);
    // A verified domain lapses after a week of absence, or at once when the name moves to another account.
    if (domain.state === 'lapsed' && was.state === 'verified' && holderOf(after) === null) {
      expect(now - (was.absentSince ?? now)).toBeGreaterThanOrEqual(7 * DAY);
    }
    // Every domain that has not failed is checked again within a day, but never immediately.
    if (domain.state === 'failed') expect(domain.nextLookAt).toBeNull();
    else expect((domain.nextLookAt ?? 0) - now).toBeGreaterThan(0);
    expect((domain.nextLookAt ?? now) - now).toBeLessThanOrEqual(DAY);
  }
  const times = after.flatMap((domain) => (domain.nextLookAt === null ? [] : [domain.nextLookAt]));
  expect(nextLookAt(after)).toBe(times.length === 0 ? null : Math.min(...times));
};

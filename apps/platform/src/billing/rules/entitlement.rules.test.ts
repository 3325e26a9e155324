import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AccountFacts, entitlement, type OpenTunnel, tunnelsOver } from './entitlement.rules.ts';
import { monthOf, usageCents } from './rating.rules.ts';
import { PAST_DUE_GRACE_MS } from './subscription.rules.ts';

const NOON = Date.UTC(2030, 5, 15, 12);
const CENT = 100_000_000;
const PAYG = { tunnelLimit: null, allowCustomSubdomains: true, priceCentsPerGb: 10 };
const OPEN: AccountFacts = { status: 'active', plan: PAYG, usage: null, capCents: null, pastDueSince: null };

const codeAt = (facts: Partial<AccountFacts>, now = NOON) => entitlement({ ...OPEN, ...facts }, now).closed?.code;
const used = (cents: number, at = NOON) => ({ month: monthOf(at), bytes: cents * CENT });

describe('an account', () => {
  it('is closed for suspension first, then the spend cap, then an unpaid invoice', () => {
    const all = { capCents: 500, usage: used(500), pastDueSince: NOON - PAST_DUE_GRACE_MS };
    expect(codeAt({ ...all, status: 'suspended' })).toBe('ACCOUNT_SUSPENDED');
    expect(codeAt(all)).toBe('SPEND_CAP_REACHED');
    expect(codeAt({ ...all, usage: used(499) })).toBe('ACCOUNT_PAST_DUE');
    expect(codeAt({ ...all, usage: used(499), pastDueSince: null })).toBeUndefined();
  });

  it('is closed exactly seven days after a failed payment', () => {
    expect(codeAt({ pastDueSince: NOON }, NOON + PAST_DUE_GRACE_MS - 1)).toBeUndefined();
    expect(entitlement({ ...OPEN, pastDueSince: NOON }, NOON + PAST_DUE_GRACE_MS).closed).toEqual({
      code: 'ACCOUNT_PAST_DUE',
      values: { days: 7 },
    });
  });

  it('reaches its cap only by usage of the current month, and only on a plan with a price', () => {
    const capped = { capCents: 500, usage: used(500) };
    expect(entitlement({ ...OPEN, ...capped }, NOON).closed?.values).toEqual({ cap: '$5.00' });
    expect(codeAt(capped, Date.UTC(2030, 6, 1))).toBeUndefined();
    expect(codeAt({ ...capped, plan: { ...PAYG, priceCentsPerGb: 0 } })).toBeUndefined();
  });
});

const facts: fc.Arbitrary<AccountFacts> = fc.record({
  status: fc.constantFrom('active', 'suspended'),
  plan: fc.record({
    tunnelLimit: fc.option(fc.nat(20)),
    allowCustomSubdomains: fc.boolean(),
    priceCentsPerGb: fc.constantFrom(0, 10),
  }),
  usage: fc.option(fc.record({ month: fc.constantFrom('2030-05', '2030-06', '2030-07'), bytes: fc.nat(1000 * CENT) })),
  capCents: fc.option(fc.nat(1000)),
  pastDueSince: fc.option(fc.integer({ min: NOON - 30 * 86_400_000, max: NOON })),
});

it('any account is closed if and only if a suspension, a reached cap or a late payment applies', () => {
  fc.assert(
    fc.property(facts, fc.nat(30 * 86_400_000), (account, elapsedMs) => {
      const now = NOON + elapsedMs;
      const { closed, tunnelLimit } = entitlement(account, now);
      expect(tunnelLimit).toBe(account.plan.tunnelLimit);
      const isSuspended = account.status === 'suspended';
      const bytes = account.usage?.month === monthOf(now) ? account.usage.bytes : 0;
      const { priceCentsPerGb: price } = account.plan;
      const isOverCap = price > 0 && account.capCents !== null && usageCents(bytes, price) >= account.capCents;
      const isLate = account.pastDueSince !== null && now - account.pastDueSince >= PAST_DUE_GRACE_MS;
      expect(closed !== null).toBe(isSuspended || isOverCap || isLate);
      // Only the operator, the owner, a payment or a new month reopens an account; passing time does not end a late payment.
      if (closed?.code === 'ACCOUNT_PAST_DUE') expect(codeAt(account, now + 86_400_000)).toBeDefined();
    }),
    { numRuns: 2000 },
  );
});

const tunnels: fc.Arbitrary<OpenTunnel[]> = fc
  .array(fc.boolean(), { maxLength: 40 })
  .map((keys) => keys.map((unlimited, index) => ({ tunnelId: `tun_${index}`, unlimited })));

describe('tunnels over the limit', () => {
  it('are the newest tunnels, newest first', () => {
    const open = [1, 2, 3, 4, 5].map((n) => ({ tunnelId: `tun_${n}`, unlimited: false }));
    expect(tunnelsOver(3, open).map(({ tunnelId }) => tunnelId)).toEqual(['tun_5', 'tun_4']);
    expect(tunnelsOver(5, open)).toEqual([]);
    expect(tunnelsOver(null, open)).toEqual([]);
  });

  it('for any set: closing them meets the limit, spares unlimited keys, and leaves none over the limit', () => {
    fc.assert(
      fc.property(tunnels, fc.nat(20), (open, limit) => {
        const over = tunnelsOver(limit, open);
        const left = open.filter((tunnel) => !over.includes(tunnel));
        expect(over.every(({ unlimited }) => !unlimited)).toBe(true);
        expect(left.filter(({ unlimited }) => !unlimited).length).toBeLessThanOrEqual(limit);
        expect(tunnelsOver(limit, left)).toEqual([]);
        // Closed tunnels are listed newest first, and every limited tunnel left open is older.
        const indexes = over.map((tunnel) => open.indexOf(tunnel));
        expect(indexes).toEqual(indexes.toSorted((a, b) => b - a));
        const lastLeft = open.findLastIndex((tunnel) => left.includes(tunnel) && !tunnel.unlimited);
        expect(indexes.every((index) => index > lastLeft)).toBe(true);
        // A higher limit closes no more tunnels.
        expect(tunnelsOver(limit + 1, open).length).toBeLessThanOrEqual(over.length);
        // No tunnel is closed below the limit.
        if (over.length > 0) expect(left.length).toBeGreaterThanOrEqual(limit);
      }),
      { numRuns: 2000 },
    );
  });
});

import { PartField } from '@tunnel/http1';
import { limiterKeyOf } from '@tunnel/policy';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LIMITER_KEYS, LimiterBudget, type LimiterRates, RequestLimiter, SWEPT } from './request-limiter.rules.ts';

const TEN_A_MINUTE: LimiterRates = { requests: 10, perSecs: 60, burst: 3 };
const TENANT = 'account a';
/** A realistic time of a clock: whole milliseconds since 1970. */
const NOW = 1_800_000_000_000;

const limiterOf = (keysMax?: number, edgeMax?: number): { limiter: RequestLimiter; budget: LimiterBudget } => {
  const budget = new LimiterBudget(edgeMax);
  return { limiter: new RequestLimiter(budget, TENANT, keysMax), budget };
};

describe('a limiter', () => {
  it('allows the burst at once, then one request per share of the period', () => {
    const { limiter } = limiterOf();
    const take = (ms: number): number | null => limiter.take('a', TEN_A_MINUTE, NOW + ms);
    expect([take(0), take(0), take(0), take(0)]).toEqual([null, null, null, 6]);
    expect([take(5999), take(6000), take(6000)]).toEqual([1, null, 6]);
    expect([take(60_000), take(60_000), take(60_000), take(60_000)]).toEqual([null, null, null, 6]);
  });

  it('counts each key separately', () => {
    const { limiter } = limiterOf();
    const one = { requests: 1, perSecs: 3600, burst: 1 };
    expect(['a', 'b', 'a', 'b'].map((key) => limiter.take(key, one, NOW))).toEqual([null, null, 3600, 3600]);
  });

  it('does not count refused requests: a visitor that waits the given time is allowed', () => {
    const { limiter } = limiterOf();
    for (let count = 0; count < 100; count += 1) limiter.take('a', TEN_A_MINUTE, NOW);
    const wait = limiter.take('a', TEN_A_MINUTE, NOW) ?? 0;
    expect(limiter.take('a', TEN_A_MINUTE, NOW + wait * 1000)).toBeNull();
  });

  it('limits the wait to the time of a whole burst if the clock is set back', () => {
    const { limiter } = limiterOf();
    for (let count = 0; count < 3; count += 1) limiter.take('a', TEN_A_MINUTE, NOW);
    expect(limiter.take('a', TEN_A_MINUTE, NOW - 3_600_000)).toBeLessThanOrEqual(18);
  });

  it('allows exactly the burst at three requests per second', () => {
    const { limiter } = limiterOf();
    const rates = { requests: 3, perSecs: 1, burst: 1000 };
    const allowed = Array.from({ length: 1100 }, () => limiter.take('a', rates, NOW + 12_345)).filter(
      (wait) => wait === null,
    );
    expect(allowed).toHaveLength(1000);
  });

  it('allows exactly the burst at any fraction of a millisecond', () => {
    const burst = fc.integer({ min: 1, max: 200 });
    fc.assert(
      fc.property(burst, fc.integer({ min: 1, max: 50 }), fc.integer({ min: 0, max: 50_000 }), (most, requests, at) => {
        const { limiter } = limiterOf();
        limiter.take('first', { requests, perSecs: 7, burst: most }, 0);
        const take = (): boolean => limiter.take('a', { requests, perSecs: 7, burst: most }, at / 997) === null;
        return Array.from({ length: most + 3 }, take).filter(Boolean).length === most;
      }),
    );
  });

  const rates = fc.record({
    requests: fc.integer({ min: 1, max: 50 }),
    perSecs: fc.constantFrom(1, 7, 60),
    burst: fc.integer({ min: 1, max: 20 }),
  });
  const calls = fc.array(
    fc.record({ key: fc.constantFrom(...'abcdefg'), waitMs: fc.constantFrom(0, 0, 0, 1, 20, 300, 5000) }),
    {
      minLength: 1,
      maxLength: 120,
    },
  );

  it('never allows a key more than burst and rate in any window, even with a full table', () => {
    fc.assert(
      fc.property(rates, calls, fc.constantFrom(1, 2, 100), (rate, events, keysMax) => {
        const { limiter } = limiterOf(keysMax);
        const allowed = new Map<string, number[]>();
        let now = NOW;
        for (const { key, waitMs } of events) {
          now += waitMs;
          if (limiter.take(key, rate, now) === null) allowed.set(key, [...(allowed.get(key) ?? []), now]);
        }
        for (const times of allowed.values()) {
          times.forEach((from, first) => {
            times.slice(first).forEach((to, between) => {
              const most = rate.burst + (rate.requests * (to - from)) / (rate.perSecs * 1000);
              expect(between + 1).toBeLessThanOrEqual(most + 1e-9);
            });
          });
        }
      }),
      { numRuns: 500 },
    );
  });

  it('never refuses a key slower than the rate while there is room', () => {
    fc.assert(
      fc.property(rates, fc.integer({ min: 1, max: 100 }), (rate, count) => {
        const { limiter } = limiterOf();
        const everyMs = Math.ceil((rate.perSecs * 1000) / rate.requests);
        for (let index = 0; index < count; index += 1)
          expect(limiter.take('a', rate, NOW + index * everyMs)).toBeNull();
      }),
      { numRuns: 100 },
    );
  });
});

describe('a full table of limiter keys', () => {
  it('limits all new keys together in one shared bucket', () => {
    const { limiter } = limiterOf(10);
    const allowed = Array.from({ length: 1000 }, (_, index) => limiter.take(`key ${index}`, TEN_A_MINUTE, NOW)).filter(
      (wait) => wait === null,
    );
    expect(allowed).toHaveLength(10 + TEN_A_MINUTE.burst);
    expect(limiter.size).toBe(10);
  });

  it('keeps the buckets of known keys', () => {
    const { limiter } = limiterOf(10);
    limiter.take('known', TEN_A_MINUTE, NOW);
    for (let index = 0; index < 1000; index += 1) limiter.take(`key ${index}`, TEN_A_MINUTE, NOW);
    expect([limiter.take('known', TEN_A_MINUTE, NOW), limiter.take('known', TEN_A_MINUTE, NOW)]).toEqual([null, null]);
  });

  it('evicts keys with a full bucket', () => {
    const { limiter, budget } = limiterOf(10);
    for (let index = 0; index < 10; index += 1) limiter.take(`old ${index}`, TEN_A_MINUTE, NOW);
    const later = NOW + 6000;
    expect(limiter.take('new', TEN_A_MINUTE, later)).toBeNull();
    expect([limiter.size, budget.size]).toEqual([1, 1]);
  });

  it('does not grant a second burst to a key moved out of the shared bucket', () => {
    const { limiter } = limiterOf(1);
    const one = { requests: 1, perSecs: 10, burst: 2 };
    limiter.take('first', one, NOW);
    expect([limiter.take('a', one, NOW), limiter.take('a', one, NOW), limiter.take('a', one, NOW)]).toEqual([
      null,
      null,
      10,
    ]);
    // The key `first` has a full bucket again and is evicted.
    expect([limiter.take('a', one, NOW + 10_000), limiter.take('a', one, NOW + 10_000)]).toEqual([null, 10]);
  });

  it('is idle only once every bucket is full again, including the shared bucket', () => {
    const { limiter } = limiterOf(1);
    expect(limiter.isIdle(NOW)).toBe(true);
    for (const key of ['a', 'b', 'c', 'd']) limiter.take(key, TEN_A_MINUTE, NOW);
    limiter.sweep(NOW + 6000);
    expect([limiter.size, limiter.isIdle(NOW + 6000), limiter.isIdle(NOW + 18_000)]).toEqual([0, false, true]);
  });

  it('respects the edge’s limit for all limiters together, and closing a limiter frees room', () => {
    const budget = new LimiterBudget(20);
    const one = new RequestLimiter(budget, 'account a', 15);
    const other = new RequestLimiter(budget, 'account b', 15);
    for (let index = 0; index < 50; index += 1) {
      one.take(`key ${index}`, TEN_A_MINUTE, NOW);
      other.take(`key ${index}`, TEN_A_MINUTE, NOW);
    }
    // Both tenants have the same number of keys. The remaining room is kept for a smaller tenant.
    expect([one.size, other.size, budget.size]).toEqual([9, 9, 18]);
    const kept = other.size;
    one.close();
    expect(budget.size).toBe(kept);
    for (let index = 0; index < 50; index += 1) other.take(`key ${index}`, TEN_A_MINUTE, NOW + 60_000);
    expect([other.size, budget.size]).toEqual([15, 15]);
  });

  it('evicts idle keys of other rules', () => {
    const budget = new LimiterBudget(20);
    const one = new RequestLimiter(budget, TENANT);
    const other = new RequestLimiter(budget, TENANT);
    for (let index = 0; index < 20; index += 1) one.take(`key ${index}`, TEN_A_MINUTE, NOW);
    other.take('a', TEN_A_MINUTE, NOW + 60_000);
    expect(other.size).toBe(1);
  });

  it('is swept in bounded steps, which remove only idle keys', () => {
    const budget = new LimiterBudget();
    const limiters = Array.from({ length: 7 }, () => new RequestLimiter(budget, TENANT));
    for (const limiter of limiters)
      for (let index = 0; index < 3000; index += 1)
        limiter.take(`key ${index}`, TEN_A_MINUTE, NOW + (index % 2) * 60_000);
    expect(budget.size).toBe(21_000);
    const before = budget.size;
    budget.sweep(NOW + 60_000);
    expect(before - budget.size).toBeLessThanOrEqual(SWEPT.perLook);
    for (let count = 0; count < 10; count += 1) budget.sweep(NOW + 60_000);
    expect(budget.size).toBe(10_500);
    for (let count = 0; count < 10; count += 1) budget.sweep(NOW + 200_000);
    expect(budget.size).toBe(0);
  });
});

describe('a tenant with a flood of limiter keys', () => {
  const flood = (limiter: RequestLimiter, keys: number): void => {
    for (let index = 0; index < keys; index += 1) limiter.take(`flood ${index}`, TEN_A_MINUTE, NOW);
  };

  it('gets only its share of the edge’s keys, and new keys of another tenant have separate buckets', () => {
    const budget = new LimiterBudget();
    const floods = Array.from({ length: 30 }, () => new RequestLimiter(budget, 'account evil'));
    const neighbour = new RequestLimiter(budget, 'account shop');
    neighbour.take('known', TEN_A_MINUTE, NOW);
    for (const limiter of floods) flood(limiter, LIMITER_KEYS.perRule);
    expect(budget.size).toBe(LIMITER_KEYS.perHolder + 1);
    // The key `known` has kept its bucket, with one of three requests used.
    expect([1, 2, 3].map(() => neighbour.take('known', TEN_A_MINUTE, NOW))).toEqual([null, null, 6]);
    for (let index = 0; index < 5000; index += 1) {
      expect(neighbour.take(`new ${index}`, TEN_A_MINUTE, NOW)).toBeNull();
    }
    expect(neighbour.size).toBe(5001);
  });

  it('leaves room for a smaller tenant, even together with seven other tenants', () => {
    const budget = new LimiterBudget(1000, 250);
    const floods = Array.from({ length: 8 }, (_, at) => new RequestLimiter(budget, `account evil ${at}`));
    for (let index = 0; index < 1000; index += 1) {
      for (const limiter of floods) limiter.take(`flood ${index}`, TEN_A_MINUTE, NOW);
    }
    const neighbour = new RequestLimiter(budget, 'account shop');
    for (let index = 0; index < 50; index += 1) neighbour.take(`new ${index}`, TEN_A_MINUTE, NOW);
    expect([neighbour.size, budget.size <= 1000]).toEqual([50, true]);
  });

  it('can exceed the share as the operator, but leaves room for another tunnel', () => {
    const budget = new LimiterBudget(1000, 250);
    const limiter = new RequestLimiter(budget, 'operator tun_a');
    flood(limiter, 2000);
    expect(limiter.size).toBe(900);
    const neighbour = new RequestLimiter(budget, 'operator tun_b');
    for (let index = 0; index < 50; index += 1) neighbour.take(`new ${index}`, TEN_A_MINUTE, NOW);
    expect(neighbour.size).toBe(50);
  });

  it('has keys without room limited together in a shared bucket', () => {
    const limiter = new RequestLimiter(new LimiterBudget(1000, 10), TENANT);
    const allowed = Array.from({ length: 1000 }, (_, index) => limiter.take(`key ${index}`, TEN_A_MINUTE, NOW));
    expect(allowed.filter((wait) => wait === null)).toHaveLength(10 + TEN_A_MINUTE.burst);
  });
});

describe('the key of a request', () => {
  const sha256Hex = (text: string): string => `sha256 of ${text.length}`;
  const field = (name: string, value: string) => new PartField(name, value, 'ordinary');
  const keyOf = (
    by: string,
    subject: { address?: string; headers?: PartField[]; user?: string | null } = {},
  ): string => {
    const { address = '192.0.2.1', headers = [], user = null } = subject;
    return limiterKeyOf(by, { address, headers }, user, { sha256Hex });
  };

  it('is the address, or the /64 of an IPv6 address', () => {
    expect(keyOf('address')).toBe('192.0.2.1');
    expect(keyOf('address', { address: '2001:db8:1:2:3::4' })).toBe(
      keyOf('address', { address: '2001:db8:1:2:ffff::' }),
    );
    expect(keyOf('address', { address: '2001:db8:1:2::1' })).not.toBe(keyOf('address', { address: '2001:db8:1:3::1' }));
  });

  it('is the user, header or tunnel, or the address if the value is missing', () => {
    expect(keyOf('tunnel')).toBe(keyOf('tunnel', { address: '192.0.2.2' }));
    expect(keyOf('user', { user: 'ann' })).toBe(keyOf('user', { user: 'ann', address: '192.0.2.2' }));
    expect(keyOf('user')).toBe('192.0.2.1');
    const headers = [field('X-Key', 'k1')];
    expect(keyOf('header:x-key', { headers })).toBe(keyOf('header:x-key', { headers, address: '192.0.2.2' }));
    expect(keyOf('header:x-key')).toBe('192.0.2.1');
    expect(keyOf('header:x-key', { headers: [...headers, field('x-key', 'k2')] })).toBe('192.0.2.1');
  });

  it('is the same for every spelling of a host', () => {
    for (const host of ['a.example.com', 'A.example.com:1', 'a.example.com.']) {
      expect(keyOf('header:host', { headers: [field('Host', host)] })).toBe('tunnel');
    }
  });

  it('cannot collide with a key of another kind', () => {
    const headers = [field('x-key', '192.0.2.1')];
    const long = 'k'.repeat(65);
    const keys = [
      keyOf('address'),
      keyOf('tunnel'),
      keyOf('user', { user: '192.0.2.1' }),
      keyOf('header:x-key', { headers }),
      keyOf('header:x-key', { headers: [field('x-key', long)] }),
      keyOf('header:x-key', { headers: [field('x-key', sha256Hex(long))] }),
      keyOf('header:x-key', { headers: [field('x-key', '#sha256 of 65')] }),
    ];
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('contains the SHA-256 of a value over 64 characters', () => {
    expect(keyOf('header:x-key', { headers: [field('x-key', 'k'.repeat(64))] })).toContain('k'.repeat(64));
    expect(keyOf('header:x-key', { headers: [field('x-key', 'k'.repeat(65))] })).toContain('sha256 of 65');
    expect(keyOf('user', { user: 'u'.repeat(65) })).toContain('sha256 of 65');
  });
});

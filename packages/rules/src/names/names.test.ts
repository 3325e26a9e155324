import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NameLeases } from '../../../../apps/edge/src/routing/name-leases.rules.ts';
import { generateName, problemOfPlainName, problemOfSubdomain, subdomainOf, wildcardOver } from './names.ts';

describe('a subdomain', () => {
  it.each([
    ...['a', 'web', 'my-app-2', 'A', '0', 'x'.repeat(63)],
    ...['a.shop', '*.shop', 'A.Shop', 'www.shop', 'localhost.shop', `${'x'.repeat(63)}.${'y'.repeat(63)}`],
  ])('is valid: %s', (name) => {
    expect(problemOfSubdomain(name)).toBeNull();
  });

  it.each([
    ['', 'it is empty'],
    ['x'.repeat(64), 'it is longer than 63 characters'],
    ['-a', 'it begins or ends with a hyphen'],
    ['a-', 'it begins or ends with a hyphen'],
    ['a.b.c', 'it has more than two labels'],
    ['*.a.shop', 'it has more than two labels'],
    ['a.shop.', 'it has more than two labels'],
    ['.shop', 'it is empty'],
    ['shop.', 'it is empty'],
    ['*', 'only letters a-z, digits and hyphens are allowed'],
    ['*.*', 'only letters a-z, digits and hyphens are allowed'],
    ['a.*', 'only letters a-z, digits and hyphens are allowed'],
    ['a*.shop', 'only letters a-z, digits and hyphens are allowed'],
    ['-a.shop', 'it begins or ends with a hyphen'],
    [`${'x'.repeat(64)}.shop`, 'it is longer than 63 characters'],
    ['a.www', 'it is reserved'],
    ['*.API', 'it is reserved'],
    ['ä', 'only letters a-z, digits and hyphens are allowed'],
    ['\u212aey', 'only letters a-z, digits and hyphens are allowed'],
    ['a_b', 'only letters a-z, digits and hyphens are allowed'],
    ['API', 'it is reserved'],
    ['localhost', 'it is reserved'],
  ])('is invalid: %j: %s', (name, problem) => {
    expect(problemOfSubdomain(name)).toBe(problem);
  });

  it('of a peer must have one label', () => {
    expect(problemOfPlainName('shop')).toBeNull();
    for (const name of ['a.shop', '*.shop']) expect(problemOfPlainName(name)).toMatch(/^only letters/);
  });

  it.each([
    ['a.shop', '*.shop'],
    ['shop', null],
    ['.shop', null],
  ])('%j is covered by %j', (name, wildcard) => {
    expect(wildcardOver(name)).toBe(wildcard);
  });

  it('that the edge generates is valid and has two words and six random characters', () => {
    fc.assert(
      fc.property(fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })), (stream) => {
        const name = generateName(() => stream.next().value as number);
        expect(problemOfSubdomain(name)).toBeNull();
        expect(name).toMatch(/^[a-z]+-[a-z]+-[a-z0-9]{6}$/);
      }),
    );
  });
});

describe('the subdomain of a host', () => {
  it.each([
    ['web.localhost', 'localhost', 'web'],
    ['web.localhost.', 'localhost', 'web'],
    ['web.example.com', 'example.com', 'web'],
    ['localhost', 'localhost', null],
    ['.localhost', 'localhost', null],
    ['a.b.localhost', 'localhost', 'a.b'],
    ['a.b.localhost.', 'localhost', 'a.b'],
    ['a.b.c.localhost', 'localhost', null],
    ['.b.localhost', 'localhost', null],
    ['a..localhost', 'localhost', null],
    ['*.b.localhost', 'localhost', null],
    ['weblocalhost', 'localhost', null],
    ['web.example.org', 'example.com', null],
    ['', 'localhost', null],
    ['127.0.0.1', 'localhost', null],
  ])('%j below %j is %j', (host, domain, label) => {
    expect(subdomainOf(host, domain)).toBe(label);
  });
});

describe('name leases', () => {
  const name = fc.constantFrom('a', 'b');
  const owner = fc.constantFrom('x', 'y', 'z');
  const step = fc.oneof(
    fc.record({ do: fc.constant('lease' as const), name, owner }),
    fc.record({ do: fc.constant('hold' as const), name, owner, ms: fc.integer({ min: 1, max: 30 }) }),
    fc.record({ do: fc.constant('release' as const), name, owner }),
    fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 20 }) }),
  );

  it('have one owner at a time in any order of events', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
        const leases = new NameLeases();
        const owners = new Map<string, { owner: string; until: number }>();
        let now = 0;
        for (const one of steps) {
          if (one.do === 'wait') now += one.ms;
          for (const [key, { until }] of owners) if (now >= until) owners.delete(key);
          if (one.do === 'wait') continue;
          const known = owners.get(one.name);
          if (one.do === 'lease') {
            const isFree = known === undefined || known.owner === one.owner;
            expect(leases.lease(one.name, one.owner, now)).toBe(isFree);
            if (isFree) owners.set(one.name, { owner: one.owner, until: Number.POSITIVE_INFINITY });
          } else if (one.do === 'hold') {
            leases.hold(one.name, one.owner, now + one.ms, now);
            if (known?.owner === one.owner) owners.set(one.name, { owner: one.owner, until: now + one.ms });
          } else {
            leases.release(one.name, one.owner);
            if (known?.owner === one.owner) owners.delete(one.name);
          }
          const after = owners.get(one.name);
          const taken = after?.until === Number.POSITIVE_INFINITY ? 'leased' : 'held';
          expect(leases.useOf(one.name, now)).toBe(after === undefined ? 'free' : taken);
        }
      }),
    );
  });

  it('that have expired are forgotten, even without a lookup', () => {
    const leases = new NameLeases();
    for (let index = 0; index < 1000; index += 1) {
      leases.lease(`n${index}`, 'x', index);
      leases.hold(`n${index}`, 'x', index + 10, index);
    }
    expect(leases.size).toBeLessThanOrEqual(11);
  });
});

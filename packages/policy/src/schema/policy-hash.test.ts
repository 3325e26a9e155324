import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Policy } from '../policy.ts';
import { canonicalJson } from '../text/canonical-json.ts';
import { policyHash } from './policy-hash.ts';

const sha256Hex = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The example of docs/protocol.md, with a hash computed by other code. */
const EXAMPLE: Policy = {
  login: null,
  rules: [
    { name: 'office', match: { path: ['/admin/**'] }, allow_addresses: ['10.0.0.0/8'] },
    { match: { path: ['/api/**'] }, route: 'api' },
  ],
};
const EXAMPLE_HASH = 'dcc71c0611f7bf1246303d685aad3694201b105f238e49d813e665bf12e509fb';

/** Returns the value with reversed keys at every level. */
const turned = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(turned);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, inner]) => [key, turned(inner)] as const)
      .toReversed(),
  );
};

describe('canonical JSON', () => {
  it('sorts keys by code units, writes no whitespace, and formats text and numbers like JavaScript', () => {
    expect(canonicalJson({ b: [1, 1.5e300, -0, 'é\u0007"'], a: { '\u20ac': null, '\r': true, '1': [] } })).toBe(
      '{"a":{"\\r":true,"1":[],"€":null},"b":[1,1.5e+300,0,"é\\u0007\\""]}',
    );
  });

  it('leaves out keys without a value, like JSON', () => {
    expect(canonicalJson({ a: undefined, b: [undefined] })).toBe('{"b":[null]}');
  });

  it('is the same for equal values in any key order, and parses back to the value', () => {
    const json = fc.jsonValue({ maxDepth: 5 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown);
    fc.assert(
      fc.property(json, (value) => {
        const text = canonicalJson(value);
        expect(canonicalJson(turned(value))).toBe(text);
        expect(JSON.parse(text)).toEqual(value);
      }),
      { numRuns: 300 },
    );
  });
});

describe('the hash of a policy', () => {
  it('matches the golden example', () => {
    expect(policyHash(EXAMPLE, ['api'], sha256Hex)).toBe(EXAMPLE_HASH);
  });

  it('depends on the order of the rules, but not on the order of the services', () => {
    const { rules } = EXAMPLE;
    const hashes = [
      policyHash(EXAMPLE, ['api'], sha256Hex),
      policyHash({ ...EXAMPLE, rules: rules.toReversed() }, ['api'], sha256Hex),
      policyHash(EXAMPLE, ['api', 'b'], sha256Hex),
      policyHash(EXAMPLE, [], sha256Hex),
      policyHash(null, [], sha256Hex),
      policyHash(null, ['api'], sha256Hex),
    ];
    expect(new Set(hashes).size).toBe(hashes.length);
    expect(policyHash(EXAMPLE, ['b', 'api'], sha256Hex)).toBe(policyHash(EXAMPLE, ['api', 'b'], sha256Hex));
  });
});

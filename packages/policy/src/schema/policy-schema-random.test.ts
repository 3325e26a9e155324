// The schemas answer any input: random values similar to policies, and valid policies.
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RULES } from '../policies.fixture.ts';
import { ACTION_NAMES, actionOf } from '../policy.ts';
import type { FileRule } from './file-policy.ts';
import { problemsOfPolicy, warningsOfPolicy } from './policy-checks.ts';
import { policyHash } from './policy-hash.ts';
import { problemsOfIssues, problemText } from './policy-problems.ts';
import { filePolicySchema, wirePolicySchema } from './policy-schema.ts';
import { guardWords, summaryOf } from './rule-summary.ts';

const sha256Hex = (text: string): string => createHash('sha256').update(text).digest('hex');

const KEYS = [
  ...ACTION_NAMES,
  ...['rules', 'login', 'match', 'name', 'path', 'header', 'not', 'method', 'address', 'users', 'basic', 'tokens'],
  ...['set', 'add', 'remove', 'to', 'status', 'secrets', 'provider', 'origins', '__proto__', 'constructor'],
];

/** Random objects with the keys of policies and arbitrary values. */
const policyLike = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.constantFrom('/a/**', '10.0.0.0/8', 'GET', '*', '\ud800', '{user}')),
    fc.array(tie('value'), { maxLength: 3 }),
    fc
      .uniqueArray(fc.tuple(fc.constantFrom(...KEYS), tie('value')), { maxLength: 4, selector: ([key]) => key })
      .map(
        (entries) =>
          JSON.parse(
            `{${entries.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`,
          ) as unknown,
      ),
  ),
})).value;

describe('any value that looks like a policy', () => {
  it('is accepted or refused with a message, never with an exception', () => {
    const rules = fc.oneof(
      policyLike,
      fc.record({ rules: fc.array(policyLike, { maxLength: 3 }) }),
      fc.array(policyLike),
    );
    fc.assert(
      fc.property(rules, (value) => {
        for (const schema of [wirePolicySchema, filePolicySchema]) {
          const parsed = schema.safeParse(value);
          if (parsed.success) continue;
          for (const problem of problemsOfIssues(value, parsed.error.issues))
            expect(problemText(problem)).toMatch(/^policy.*: \S/);
        }
      }),
      { numRuns: 1000 },
    );
  });
});

describe('a valid policy', () => {
  const written: fc.Arbitrary<FileRule[]> = fc.array(fc.constantFrom(...RULES.map(([rule]) => rule)), {
    maxLength: 12,
  });

  it('survives the wire with the same hash, and has a summary', () => {
    fc.assert(
      fc.property(written, (rules) => {
        const sent = wirePolicySchema.parse(filePolicySchema.parse(rules));
        const received = wirePolicySchema.parse(JSON.parse(JSON.stringify(sent)));
        expect(received).toEqual(sent);
        expect(policyHash(received, [], sha256Hex)).toBe(policyHash(sent, [], sha256Hex));
        expect(received.rules.map(actionOf)).toHaveLength(rules.length);
        for (const rule of received.rules) expect(summaryOf(rule)).not.toBe('');
        expect(guardWords(received)).not.toBe('');
        const about = { protocol: 'http', services: ['api'] } as const;
        const needsLogin = received.rules.some((rule) => 'auth' in rule && rule.auth.login !== undefined);
        expect(problemsOfPolicy(received, about).length > 0).toBe(needsLogin);
        expect(warningsOfPolicy(received, about)).toBeInstanceOf(Array);
      }),
      { numRuns: 100 },
    );
  });
});

// Cost of an untrusted policy frame: the server looks at the size of the frame, and at the first error only.

import { Fault } from '@tunnel/errors';
import { describe, expect, it } from 'vitest';
import { judgePolicy } from '../../../../apps/edge/src/control/brought-policy.rules.ts';
import { POLICY_VALUES_MAX, wirePolicySchema } from '../schema/policy-schema.ts';

const many = <T>(length: number, item: (at: number) => T): T[] => Array.from({ length }, (_, at) => item(at));
const table = <T>(length: number, value: T): Record<string, T> =>
  Object.fromEntries(many(length, (at) => [`h${at}`, value]));
const policyOf = (...rules: unknown[]): unknown => ({ login: null, rules });
/** A list of 100 invalid rules, which counts how often a rule is read. */
const watched = (looks: { count: number }): unknown[] =>
  many(100, () => ({
    get match() {
      looks.count += 1;
      return { path: 1 };
    },
    deny: 403,
  }));

const judge = (policy: unknown): string => {
  const judged = judgePolicy({ policy }, { protocol: 'http', loginProviders: [] });
  return judged instanceof Fault ? judged.message : 'good';
};

describe('an untrusted policy', () => {
  it.each([
    ['21,000 empty rules', policyOf(...many(21_000, () => ({}))), 'a policy of at most 5000 values'],
    [
      '1000 empty rules',
      policyOf(...many(1000, () => ({}))),
      'rule 101: it must be left out: a policy has at most 100 rules',
    ],
    ['3000 globs', policyOf({ match: { path: many(3000, () => 'x') }, deny: 403 }), 'must be at most 100'],
    [
      '3000 users',
      policyOf({ auth: { basic: { users: table(3000, '') } } }),
      '`auth.basic.users` must be at most 100 users',
    ],
    ['3000 claims', policyOf({ auth: { login: { claims: table(3000, 1) } } }), 'must be at most 20 claims'],
    ['3000 headers', policyOf({ request_headers: { set: table(3000, 1) } }), 'must be at most 100 headers'],
  ])('with %s is refused for their number, before any of them is checked', (_, policy, words) => {
    expect(judge(policy)).toContain(words);
    expect(wirePolicySchema.safeParse(policy).error?.issues).toHaveLength(1);
  });

  it.each([
    ['globs', policyOf(...many(40, () => ({ match: { path: many(100, () => 'x') }, deny: 403 })))],
    ['methods', policyOf(...many(40, () => ({ match: { method: many(100, () => '') }, deny: 403 })))],
    ['networks', policyOf(...many(4, () => ({ allow_addresses: many(1000, () => 'x') })))],
    ['tokens', policyOf(...many(20, () => ({ auth: { tokens: many(100, () => 1) } })))],
    ['claims', policyOf(...many(20, () => ({ auth: { login: { claims: { a: many(100, () => 1) } } } })))],
  ])('with only invalid %s gets the first error, and the rest is not checked', (_, policy) => {
    expect(judge(policy)).toMatch(/policy rule 1: .*\[0\]` must be/);
    expect(wirePolicySchema.safeParse(policy).error?.issues.length).toBeLessThanOrEqual(2);
  });

  it('with only invalid rules has only the first rule checked', () => {
    const looks = { count: 0 };
    const rules = watched(looks);
    expect(judge({ login: null, rules })).toContain('policy rule 1');
    // The size check reads every rule once; the validation reads only the first rule.
    expect(looks.count).toBeLessThanOrEqual(rules.length + 5);
  });

  it('is accepted up to the limit on its number of values', () => {
    const rules = many(45, () => ({ match: { path: many(100, () => '/*') }, deny: 403 }));
    expect(judge({ login: null, rules })).toBe('good');
    expect(judge({ login: null, rules: [...rules, ...rules] })).toContain(String(POLICY_VALUES_MAX));
  });
});

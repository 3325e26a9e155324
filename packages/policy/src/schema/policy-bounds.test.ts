// Limits on the size of a policy, and invalid names and texts.

import { describe, expect, it } from 'vitest';
import { POLICY_BOUNDS } from '../limits.ts';
import { SCRYPT } from '../policies.fixture.ts';
import { problemsOfIssues, problemText } from './policy-problems.ts';
import { filePolicySchema, POLICY_NOT_DEPTH_MAX, POLICY_RULES_MAX, wirePolicySchema } from './policy-schema.ts';

/** Returns the first error in the words of the edge, or null if the policy is accepted. */
const refusalOf = (policy: unknown): string | null => {
  const parsed = wirePolicySchema.safeParse(policy);
  return parsed.success ? null : problemText(problemsOfIssues(policy, parsed.error.issues)[0]);
};

const ofRule = (rule: unknown): unknown => ({ login: null, rules: [rule] });

describe('the size of a policy', () => {
  it('is at most 100 rules, and 16 KiB per body, counted in bytes', () => {
    const most = POLICY_RULES_MAX;
    expect(refusalOf({ rules: Array.from({ length: most }, () => ({ deny: 403 })) })).toBeNull();
    expect(refusalOf({ rules: Array.from({ length: most + 1 }, () => ({ deny: 403 })) })).toBe(
      'policy rule 101: it must be left out: a policy has at most 100 rules',
    );
    const bytes = POLICY_BOUNDS.POLICY_BODY_MAX_BYTES;
    expect(refusalOf(ofRule({ error_page: { body: '€'.repeat(bytes / 3) } }))).toBeNull();
    expect(refusalOf(ofRule({ error_page: { body: '€'.repeat(bytes / 3 + 1) } }))).not.toBeNull();
    expect(refusalOf(ofRule({ respond: { status: 200, body: '😀'.repeat(bytes / 4) } }))).toBeNull();
    expect(refusalOf(ofRule({ respond: { status: 200, body: `${'😀'.repeat(bytes / 4)}a` } }))).not.toBeNull();
  });

  it('allows `not` within `not` at most 8 times', () => {
    const nested = (depth: number): object => (depth === 0 ? { path: ['/a'] } : { not: nested(depth - 1) });
    const most = POLICY_NOT_DEPTH_MAX;
    expect(refusalOf(ofRule({ match: nested(most), deny: 403 }))).toBeNull();
    expect(refusalOf(ofRule({ match: nested(most + 1), deny: 403 }))).toMatch(/`not` can be nested at most 8 times$/);
  });

  it('is checked without stack overflow: any nesting of 20,000 levels is refused', () => {
    const depth = 20_000;
    const open = ['{"not":', '[', '{"rules":['];
    const close = ['}', ']', ']}'];
    for (const [index, begin] of open.entries()) {
      const deep: unknown = JSON.parse(`${begin.repeat(depth)}1${(close[index] ?? '').repeat(depth)}`);
      for (const policy of [deep, ofRule({ match: deep, deny: 403 }), { login: deep, rules: [] }]) {
        expect(wirePolicySchema.safeParse(policy).success).toBe(false);
        expect(filePolicySchema.safeParse(policy).success).toBe(false);
        expect(refusalOf(policy)).toMatch(/^policy/);
      }
    }
  });

  it('is checked without an endless loop for a value that contains itself', () => {
    const loop: Record<string, unknown> = { deny: 403 };
    loop['match'] = { not: loop };
    expect(filePolicySchema.safeParse([loop]).success).toBe(false);
  });
});

describe('an invalid name or text', () => {
  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'such as %s is refused in every place for a name',
    (name) => {
      const policies = [
        `{"rules":[{"auth":{"basic":{"users":{"${name}":"${SCRYPT}"}}}}]}`,
        `{"rules":[{"match":{"header":{"${name}":true}},"allow":true}]}`,
        `{"rules":[{"request_headers":{"set":{"${name}":"x"}}}]}`,
        `{"rules":[{"auth":{"login":{"claims":{"${name}":["x"]}}}}]}`,
        `{"rules":[{"${name}":1,"deny":403}]}`,
        `{"rules":[],"${name}":{}}`,
      ];
      for (const text of policies) {
        expect([text, wirePolicySchema.safeParse(JSON.parse(text)).success]).toEqual([text, false]);
        expect([text, filePolicySchema.safeParse(JSON.parse(text)).success]).toEqual([text, false]);
      }
      expect(refusalOf(JSON.parse(policies[0] ?? ''))).toBe(
        `policy rule 1: \`auth.basic.users.${name}\` must be another name: this name is reserved`,
      );
    },
  );

  it('with half a surrogate pair is refused in every place', () => {
    for (const half of ['\ud800', 'a\udc00b']) {
      for (const rule of [
        { name: half, deny: 403 },
        { respond: { status: 200, body: half } },
        { auth: { basic: { users: { [half]: SCRYPT } } } },
        { match: { path: [`/${half}`] }, deny: 403 },
        { match: { header: { a: [half] } }, deny: 403 },
      ]) {
        expect([rule, refusalOf(ofRule(rule))]).not.toEqual([rule, null]);
      }
    }
    expect(refusalOf(ofRule({ respond: { status: 200, body: '😀' } }))).toBeNull();
  });
});

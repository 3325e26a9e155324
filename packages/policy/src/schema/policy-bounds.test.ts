// How much a policy may be, and names and texts that are none.

import { describe, expect, it } from 'vitest';
import { POLICY_BOUNDS } from '../limits.ts';
import { SCRYPT } from '../policies.fixture.ts';
import { problemsOfIssues, problemText } from './policy-problems.ts';
import { filePolicySchema, POLICY_NOT_DEPTH_MAX, POLICY_RULES_MAX, wirePolicySchema } from './policy-schema.ts';

/** The first refusal, as the edge says it; null: it is taken. */
const refusalOf = (policy: unknown): string | null => {
  const parsed = wirePolicySchema.safeParse(policy);
  return parsed.success ? null : problemText(problemsOfIssues(policy, parsed.error.issues)[0]);
};

const ofRule = (rule: unknown): unknown => ({ login: null, rules: [rule] });

describe('bounds of a policy', () => {
  it('has 100 rules, and 16 KiB in a body, counted in bytes', () => {
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

  it('has `not` in `not` eight times', () => {
    const nested = (depth: number): object => (depth === 0 ? { path: ['/a'] } : { not: nested(depth - 1) });
    const most = POLICY_NOT_DEPTH_MAX;
    expect(refusalOf(ofRule({ match: nested(most), deny: 403 }))).toBeNull();
    expect(refusalOf(ofRule({ match: nested(most + 1), deny: 403 }))).toMatch(/`not` can be nested at most 8 times$/);
  });

  it('is no matter of the stack: any depth is refused, whatever it is made of', () => {
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

  it('ends for a value that holds itself', () => {
    const loop: Record<string, unknown> = { deny: 403 };
    loop['match'] = { not: loop };
    expect(filePolicySchema.safeParse([loop]).success).toBe(false);
  });
});

describe('names and texts that are none', () => {
  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])('%s is no name of anything', (name) => {
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
  });

  it('half a character is refused, wherever it stands', () => {
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

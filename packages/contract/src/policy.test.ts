import { expect, it } from 'vitest';
import { capturePolicy, isOpenToEveryone, tunnelPolicy } from './policy.ts';

it.each([
  ['no policy', null, true],
  ['an edge of before', undefined, true],
  ['headers alone', { actions: ['request_headers', 'cors'] }, true],
  ['a rate limit alone', { actions: ['rate_limit'] }, true],
  ['a login', { actions: ['allow', 'auth'] }, false],
  ['an address list', { actions: ['allow_addresses'] }, false],
  ['a deny', { actions: ['deny'] }, false],
  ['signed webhooks', { actions: ['verify_webhook'] }, false],
])('%s: %j is open to everyone: %j', (_, policy, isOpen) => expect(isOpenToEveryone(policy)).toBe(isOpen));

it('a policy shows nothing that the contract does not name', () => {
  const rule = { index: 1, name: null, match: null, action: 'auth', summary: 'a login', matched: 3, answered: 1 };
  const shown = { revision: 2, hash_short: '1f3a9c02', login: { provider: 'company' }, rules: [rule], operator_rules: 1 };
  const more = { ...shown, secret: 'x', rules: [{ ...rule, users: { ann: '$scrypt$' } }], login: { provider: 'company', client_secret: 'x' } };
  expect(tunnelPolicy.parse(more)).toEqual(shown);
});

it('of a captured request rules count from 1', () => {
  expect(capturePolicy.safeParse({ answered_by: null, matched: [1, 2], user: null }).success).toBe(true);
  expect(capturePolicy.safeParse({ answered_by: null, matched: [0], user: null }).success).toBe(false);
});

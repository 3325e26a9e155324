import { expect, it } from 'vitest';
import { answeredText, appliedRules, isTurnedAway, loginText, operatorText } from './policy-text.ts';

const by = (action: string, name: string | null = null) => ({
  answered_by: { index: 2, name, action },
  matched: [1, 2],
  user: null,
});

it.each([
  ['no policy', { policy: null, status: 200 }, false, null],
  ['an edge of before', { status: 403 }, false, null],
  ['passed on', { policy: { answered_by: null, matched: [1], user: 'ann' }, status: 404 }, false, null],
  [
    'denied',
    { policy: by('deny', 'office'), status: 403 },
    true,
    'Rejected by rule 2 (office), deny. The request did not reach your service.',
  ],
  [
    'to the login',
    { policy: by('auth'), status: 302 },
    true,
    'Sent to sign in by rule 2. The request did not reach your service.',
  ],
  [
    'a wrong password',
    { policy: by('auth'), status: 401 },
    true,
    'Rejected by rule 2, auth. The request did not reach your service.',
  ],
  [
    'a redirect',
    { policy: by('redirect'), status: 301 },
    false,
    'Answered by rule 2, redirect. The request did not reach your service.',
  ],
  [
    'a preflight',
    { policy: by('cors'), status: 204 },
    false,
    'Answered by rule 2, cors. The request did not reach your service.',
  ],
  [
    'maintenance',
    { policy: by('respond'), status: 503 },
    true,
    'Rejected by rule 2, respond. The request did not reach your service.',
  ],
])('a request with %s, %j, is marked as rejected: %j', (_, request, isAway, text) => {
  expect(isTurnedAway(request)).toBe(isAway);
  expect(answeredText(request)).toBe(text);
});

it('a request rejected by an operator rule says so', () => {
  const policy = { answered_by: { index: 0, name: null, action: 'deny' }, matched: [], user: null };
  expect(answeredText({ policy, status: 403 })).toBe(
    'Rejected by an operator rule, deny. The request did not reach your service.',
  );
});

it('matched rules are shown with their text, and a deleted rule as deleted', () => {
  const rules = [
    { index: 1, name: null, summary: 'adds a header' },
    { index: 2, name: 'api', summary: 'goes to api' },
  ];
  expect(appliedRules({ answered_by: null, matched: [1, 2, 7], user: null }, rules)).toEqual([
    { index: 1, text: 'adds a header' },
    { index: 2, text: 'api: goes to api' },
    { index: 7, text: 'Rule no longer exists' },
  ]);
});

it("the policy texts name the login provider and count the operator's rules", () => {
  expect(loginText({ login: null })).toBeNull();
  expect(loginText({ login: { provider: 'company' } })).toBe('company (set up by the operator)');
  expect(loginText({ login: { issuer: 'https://id.example', client_id: 'x' } })).toBe('https://id.example');
  expect([operatorText(0), operatorText(1)?.slice(0, 10), operatorText(2)?.slice(0, 10)]).toEqual([
    null,
    '1 operator',
    '2 operator',
  ]);
});

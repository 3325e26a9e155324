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
    'Turned away by rule 2 (office), deny. Your service did not see it.',
  ],
  [
    'to the login',
    { policy: by('auth'), status: 302 },
    true,
    'Sent to the login by rule 2. Your service did not see it.',
  ],
  [
    'a wrong password',
    { policy: by('auth'), status: 401 },
    true,
    'Turned away by rule 2, auth. Your service did not see it.',
  ],
  [
    'a redirect',
    { policy: by('redirect'), status: 301 },
    false,
    'Answered by rule 2, redirect. Your service did not see it.',
  ],
  ['a preflight', { policy: by('cors'), status: 204 }, false, 'Answered by rule 2, cors. Your service did not see it.'],
  [
    'maintenance',
    { policy: by('respond'), status: 503 },
    true,
    'Turned away by rule 2, respond. Your service did not see it.',
  ],
])('%s: %j is turned away: %j', (_, request, isAway, text) => {
  expect(isTurnedAway(request)).toBe(isAway);
  expect(answeredText(request)).toBe(text);
});

it('a rule of the operator is told apart', () => {
  const policy = { answered_by: { index: 0, name: null, action: 'deny' }, matched: [], user: null };
  expect(answeredText({ policy, status: 403 })).toBe(
    'Turned away by a rule of the operator, deny. Your service did not see it.',
  );
});

it('matched rules are told in words, and one that is gone is no other rule', () => {
  const rules = [
    { index: 1, name: null, summary: 'adds a header' },
    { index: 2, name: 'api', summary: 'goes to api' },
  ];
  expect(appliedRules({ answered_by: null, matched: [1, 2, 7], user: null }, rules)).toEqual([
    { index: 1, text: 'adds a header' },
    { index: 2, text: 'api: goes to api' },
    { index: 7, text: 'No longer among the rules' },
  ]);
});

it('says who vouches for people, and how many rules stand before', () => {
  expect(loginText({ login: null })).toBeNull();
  expect(loginText({ login: { provider: 'company' } })).toBe('company (set up by the operator)');
  expect(loginText({ login: { issuer: 'https://id.example', client_id: 'x' } })).toBe('https://id.example');
  expect([operatorText(0), operatorText(1)?.slice(0, 10), operatorText(2)?.slice(0, 10)]).toEqual([
    null,
    '1 rule of ',
    '2 rules of',
  ]);
});

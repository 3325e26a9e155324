import { expect, it } from 'vitest';
import { judgeLogin, type LoginFacts } from './login-verdict.ts';

const good: LoginFacts = { external: false, passwordMatches: true, status: 'active', emailVerified: true };
const judge = (changes: Partial<LoginFacts>) => judgeLogin({ ...good, ...changes });

it('lets in a verified, active account with its password', () => expect(judge({})).toBe('welcome'));

it('tells an unknown address and a wrong password the same', () => {
  expect(judgeLogin(null)).toBe('wrong');
  expect(judge({ passwordMatches: false })).toBe('wrong');
});

it('tells the state of an account only to those who know its password', () => {
  expect(judge({ status: 'suspended' })).toBe('suspended');
  expect(judge({ emailVerified: false })).toBe('unverified');
  expect(judge({ status: 'suspended', emailVerified: false })).toBe('suspended');
  expect(judge({ status: 'suspended', passwordMatches: false })).toBe('wrong');
  expect(judge({ emailVerified: false, passwordMatches: false })).toBe('wrong');
});

it('sends accounts of an external sign-in to that, whatever they typed', () => {
  expect(judge({ external: true })).toBe('external');
  expect(judge({ external: true, passwordMatches: false, status: 'suspended' })).toBe('external');
});

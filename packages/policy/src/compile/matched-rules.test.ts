import { expect, it } from 'vitest';
import { DIGESTS, requestOf } from '../policy.fixture.ts';
import type { PolicyStep } from '../policy-step.ts';
import { begin, resume } from '../run/evaluate.ts';
import { compilePolicy } from './compile.ts';

const RULES = compilePolicy(
  {
    login: null,
    rules: [
      { match: { path: ['/a/**'] }, request_headers: { set: { 'X-A': '1' } } },
      { match: { path: ['/limited/**'] }, rate_limit: { requests: 1, per_secs: 1, burst: 1, by: 'address' } },
      { match: { path: ['/**/b'] }, response_headers: { set: { 'X-B': '1' } } },
      { match: { path: ['/no/**'] }, deny: 403 },
    ],
  },
  DIGESTS,
);
const LISTS = { operator: null, tunnel: RULES };

const asked = (path: string): PolicyStep => begin(LISTS, requestOf({ path }), 0);
const matchedOf = (step: PolicyStep): number[] =>
  step.kind === 'effect' ? [] : step.matched.map(({ index }) => index);

it('each request lists the rules that matched it, independent of the previous request', () => {
  const expected: [string, number[]][] = [
    ['/a/b', [1, 3]],
    ['/a/b', [1, 3]],
    ['/a', [1]],
    ['/x/b', [3]],
    ['/none', []],
    ['/a/b', [1, 3]],
    ['/no/b', [3, 4]],
    ['/x/b', [3]],
  ];
  const kept = expected.map(([path]) => asked(path));
  expect(kept.map(matchedOf)).toEqual(expected.map(([, matched]) => matched));
});

it('requests that pass while another request waits do not change its list of matched rules', () => {
  asked('/x/b');
  const waiting = asked('/limited/b');
  expect(matchedOf(asked('/a/b'))).toEqual([1, 3]);
  if (waiting.kind !== 'effect') throw new Error('it does not wait');
  expect(matchedOf(resume(waiting.state, { kind: 'token-taken', retryAfterSecs: null }, 0))).toEqual([2, 3]);
  expect(matchedOf(asked('/a/b'))).toEqual([1, 3]);
});

it('requests that match the same rules share one list object', () => {
  const one = asked('/a/b');
  const two = asked('/a/b');
  if (one.kind === 'effect' || two.kind === 'effect') throw new Error('they wait');
  expect(two.matched).toBe(one.matched);
});

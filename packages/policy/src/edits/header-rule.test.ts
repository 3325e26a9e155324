import { expect, it } from 'vitest';
import { requestOf } from '../policy.fixture.ts';
import { POLICY_FILLED_MAX_CHARS } from '../run/policy-run.ts';
import { HeaderRule } from './header-rule.ts';

const room = (fillLeft: number = POLICY_FILLED_MAX_CHARS) => ({ fillLeft });
const ann = requestOf({ address: '192.0.2.1', path: '/a' });
const bob = requestOf({ address: '192.0.2.2', path: '/b' });

it('headers without placeholders are one object shared by all visitors', () => {
  const rule = new HeaderRule({ set: { 'X-Env': 'ü' }, remove: ['Server'] });
  const first = rule.filledFor(ann, '', room());
  expect(first).toEqual({ kind: 'headers', set: [['X-Env', '\xc3\xbc']], add: [], remove: ['server'] });
  expect(rule.filledFor(bob, 'bob', room())).toBe(first);
});

it("headers that depend on the visitor are reused for the visitor's next request, and rebuilt for another visitor", () => {
  const rule = new HeaderRule({ set: { 'X-Who': '{user} at {address}' } });
  const first = rule.filledFor(ann, 'ann', room());
  expect(first?.set).toEqual([['X-Who', 'ann at 192.0.2.1']]);
  expect(rule.filledFor(requestOf({ address: '192.0.2.1', path: '/other' }), 'ann', room())).toBe(first);
  expect(rule.filledFor(bob, 'ann', room())?.set).toEqual([['X-Who', 'ann at 192.0.2.2']]);
  expect(rule.filledFor(bob, 'bob', room())?.set).toEqual([['X-Who', 'bob at 192.0.2.2']]);
});

it('headers that depend on the request are rebuilt for each request', () => {
  const rule = new HeaderRule({ add: { 'X-Path': '{path}' } });
  expect(rule.filledFor(ann, '', room())?.add).toEqual([['X-Path', '/a']]);
  expect(rule.filledFor(bob, '', room())?.add).toEqual([['X-Path', '/b']]);
});

it('cached headers use up as much of the placeholder budget as rebuilt headers', () => {
  const rule = new HeaderRule({ set: { 'X-Who': '{address}{address}' } });
  const shared = room(40);
  expect(rule.filledFor(ann, '', shared)).not.toBeNull();
  expect(shared.fillLeft).toBe(40 - 18);
  expect(rule.filledFor(ann, '', shared)).not.toBeNull();
  expect(shared.fillLeft).toBe(4);
  expect(rule.filledFor(ann, '', shared)).toBeNull();
});

// The policy gate: rule lists in order, effects in sequence, no unnecessary waiting, and every outcome counted once.

import { Fault } from '@tunnel/errors';
import type { PolicyEvent, PolicyRequest } from '@tunnel/policy';
import { expect, it } from 'vitest';
import type { Route } from '../routing/registry.ts';
import { NO_POLICY, type PolicyHolder } from '../routing/route-policy.ts';
import { basic, basicAuth, holderOf, SlowPasswords, testGate } from './policy.fixture.ts';
import type { DecidedRequest, PolicyGate, PolicyInForce } from './policy-gate.ts';
import { PolicySubject } from './policy-subject.ts';

const routeWith = (policy: PolicyHolder): Route =>
  ({
    tunnelId: 'tun_1',
    owner: { kind: 'operator' },
    publicUrl: 'http://web.edge.test:8000',
    policy,
  }) as unknown as Route;

const field = (name: string, value: string): PolicyRequest['headers'][number] => ({
  role: 'ordinary',
  name,
  lower: name.toLowerCase(),
  value,
  nameLength: name.length,
  line: `${name}: ${value}\r\n`,
});

const request = (path: string, ...headers: PolicyRequest['headers']): PolicyRequest => ({
  method: 'GET',
  path,
  headers,
  host: 'web.edge.test',
  authority: 'web.edge.test:8000',
  scheme: 'http',
  address: '192.0.2.7',
  isUpgrade: false,
  bodyLength: 0,
  requestId: 'req_1',
});

const inForceAt = (gate: PolicyGate, route: Route): PolicyInForce => gate.inForceAt(route) as PolicyInForce;

const asked = (route: Route, of: PolicyRequest, signal = new AbortController().signal): DecidedRequest => ({
  request: of,
  subject: new PolicySubject(route, route.policy.current, of),
  signal,
  holdBody: (): PolicyEvent => ({ kind: 'body-too-large' }),
});

it('a route without rules has no policy in force; operator rules are applied and counted even then', () => {
  const open = routeWith(NO_POLICY);
  expect(testGate().inForceAt(open)).toBeNull();
  const gate = testGate({ operator: [{ deny: 451 }] });
  expect(gate.decide(inForceAt(gate, open), asked(open, request('/')))).toMatchObject({
    kind: 'answer',
    rule: { list: 'operator', index: 1 },
    answer: { status: 451 },
  });
  expect([gate.operatorCounts.answered, [...gate.answers.values()]]).toEqual([
    [1],
    [{ action: 'deny', status: 451, count: 1 }],
  ]);
});

it('a decision without effects is synchronous, and counts matched rules and responses', () => {
  const route = routeWith(
    holderOf({ match: { path: ['/open/**'] }, allow: true }, { match: { path: ['/admin/**'] }, deny: 403 }),
  );
  const gate = testGate();
  const decide = (path: string): unknown => gate.decide(inForceAt(gate, route), asked(route, request(path)));
  expect(decide('/')).toMatchObject({ kind: 'pass' });
  expect(decide('/open/a')).toMatchObject({ kind: 'pass' });
  expect(decide('/admin/a')).toMatchObject({ kind: 'answer', rule: { index: 2 } });
  expect(decide('/admin/b')).toMatchObject({ kind: 'answer', rule: { index: 2 } });
  expect(route.policy.current?.counts).toEqual({ matched: [1, 2], answered: [undefined, 2] });
});

it('a decision waits for its effect and continues with the result', async () => {
  const route = routeWith(holderOf(basicAuth));
  const passwords = new SlowPasswords();
  const gate = testGate(passwords);
  const decide = (password: string) =>
    gate.decide(inForceAt(gate, route), asked(route, request('/', field('Authorization', basic('me', password)))));
  const right = decide('right');
  const wrong = decide('wrong');
  expect(right).toBeInstanceOf(Promise);
  passwords.asked[1]?.answer(false);
  passwords.asked[0]?.answer(true);
  expect(await wrong).toMatchObject({ kind: 'answer', answer: { status: 401 } });
  expect(await right).toMatchObject({ kind: 'pass', identity: { user: 'me', method: 'basic' } });
});

it('a decision ends when the visitor leaves, without counting a response', async () => {
  const route = routeWith(holderOf(basicAuth));
  const passwords = new SlowPasswords();
  const gate = testGate(passwords);
  const leaving = new AbortController();
  const of = request('/', field('Authorization', basic('me', 'right')));
  const decision = gate.decide(inForceAt(gate, route), asked(route, of, leaving.signal));
  leaving.abort();
  passwords.asked[0]?.answer(false);
  await expect(decision).rejects.toThrow();
  expect([...gate.answers.values()]).toEqual([]);
});

it('a failed effect gets an error response, never a pass', async () => {
  const route = routeWith(holderOf(basicAuth));
  const gate = testGate({
    perform: () => ({ kind: 'failed', fault: new Fault('POLICY_BUSY'), retryAfterSecs: 2 }),
  });
  const of = request('/', field('Authorization', basic('me', 'right')));
  expect(gate.decide(inForceAt(gate, route), asked(route, of))).toMatchObject({
    kind: 'answer',
    answer: { fault: { code: 'POLICY_BUSY' }, status: 503, retryAfterSecs: 2 },
  });
});

it('a connection is admitted or refused by its address, synchronously', () => {
  const route = routeWith(
    holderOf(
      { allow_addresses: ['192.0.2.0/24'] },
      { rate_limit: { requests: 2, per_secs: 3600, burst: 2, by: 'address' } },
    ),
  );
  const gate = testGate();
  expect(gate.admits(route, '198.51.100.1')).toBe(false);
  expect([1, 2, 3].map(() => gate.admits(route, '192.0.2.1'))).toEqual([true, true, false]);
  expect(gate.admits(route, '192.0.2.2')).toBe(true);
  expect([...gate.answers.values()]).toEqual([
    { action: 'allow_addresses', status: 403, count: 1 },
    { action: 'rate_limit', status: 429, count: 1 },
  ]);
  expect(testGate().admits(routeWith(NO_POLICY), '198.51.100.1')).toBe(true);
});

it('a synchronous decision creates no abort signal', () => {
  const route = routeWith(holderOf(basicAuth));
  const gate = testGate({ perform: () => ({ kind: 'password-checked', isRight: true }) });
  const of = request('/', field('Authorization', basic('me', 'right')));
  const unwatched: DecidedRequest = {
    ...asked(route, of),
    get signal(): AbortSignal {
      throw new Error('a signal was made');
    },
  };
  expect(gate.decide(inForceAt(gate, route), unwatched)).toMatchObject({ kind: 'pass', identity: { user: 'me' } });
});

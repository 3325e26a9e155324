// Tests of nested names: the account that owns a name, and the tunnel that visitors reach.
import { afterAll, beforeAll, expect } from 'vitest';
import { startWeb } from '../http-tunnels.fixture.ts';
import { Harness, it } from '../in-process.fixture.ts';
import { openWith, startPlatform } from '../platform-test.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { fateOfVisit, freshName, ROOMY_PLAN, reserved, Tenant, visitName } from './names.fixture.ts';

const shared = new Harness();
let stack: Stack;
let ann: Tenant;
let ben: Tenant;
beforeAll(async () => {
  stack = await startPlatform(shared, { tables: ROOMY_PLAN });
  [ann, ben] = await Promise.all([Tenant.signUp(stack, 'ann'), Tenant.signUp(stack, 'ben')]);
});
afterAll(() => shared.close());

const serve = async (harness: Harness, subdomain: string): Promise<string> => {
  const web = harness.use(await startWeb((_, response) => void response.end(subdomain)));
  const tunnel = await openWith(harness, stack, { token: ann.key }, ['http', web.port, '--subdomain', subdomain]);
  return (await tunnel.ready()).public_url;
};

it('visitors reach the exact name before the wildcard, which covers a single label', async ({ harness }) => {
  const name = freshName();
  const urls = await Promise.all([`*.${name}`, `a.${name}`, name].map((one) => serve(harness, one)));
  expect(urls.map((url) => new URL(url.replace('*', 'star')).hostname)).toEqual([
    `star.${name}.localhost`,
    `a.${name}.localhost`,
    `${name}.localhost`,
  ]);
  const reached = async (label: string): Promise<string> => (await visitName(stack, label)).text;
  expect(await reached(name)).toBe(name);
  expect(await reached(`a.${name}`)).toBe(`a.${name}`);
  expect(await reached(`A.${name.toUpperCase()}`)).toBe(`a.${name}`);
  expect(await reached(`b.${name}`)).toBe(`*.${name}`);
  expect(await reached(`xn--mnchen-3ya.${name}`)).toBe(`*.${name}`);
  for (const label of [`b.a.${name}`, `a.b.${name}`, `*.b.${name}`, `.${name}`, `..${name}`])
    expect(await fateOfVisit(stack, label)).toMatch(/^40[04] /);
});

it('an account that owns a name also owns every name below it, whichever was opened first', async ({ harness }) => {
  const name = freshName();
  expect(await ann.ask(harness, stack, { subdomain: `a.${name}` })).toBe(`ok a.${name}`);
  expect(await ann.reservation(name)).toMatchObject({ state: 'held' });
  for (const subdomain of [name, `a.${name}`, `b.${name}`, `*.${name}`])
    expect(await ben.ask(harness, stack, { subdomain })).toMatch(/^TUNNEL_SUBDOMAIN_IN_USE: /);
  for (const subdomain of [name, `a.${name}`, `b.${name}`, `*.${name}`])
    expect(await ann.ask(harness, stack, { subdomain })).toBe(`ok ${subdomain}`);
});

it('a nested name below a reserved name without a client gives a 502 or 404, and cannot be reserved separately', async () => {
  const name = freshName();
  await reserved(ann, { kind: 'subdomain', label: name });
  const wildcard = await ann.reserve({ kind: 'subdomain', label: `a.${name}` });
  expect(wildcard.status).toBe(400);
  const others = await ben.reserve({ kind: 'subdomain', label: `*.${name}` });
  expect(others.status).toBe(409);
  expect(await fateOfVisit(stack, `a.${name}`)).toMatch(/^(?:502 TUNNEL_AWAY|404 TUNNEL_NOT_FOUND)$/);
});

// Test of a login provider of the operator, selected by a flag: all tunnels share a callback at the edge, which only redirects.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { claimPortBlock } from '@tunnel/testkit';
import { expect } from 'vitest';
import { startIdentityProvider } from '../../browser/identity-provider.fixture.ts';
import { openHttp, startWeb } from '../http-tunnels.fixture.ts';
import { it } from '../in-process.fixture.ts';
import { Stack } from '../stack.fixture.ts';
import { askUrl, Browser } from './login.fixture.ts';

const SECRET = 'a secret that provider and tunnel share';

it('a login provider of the operator works through the callback of the edge, and codes, states and sessions are bound to a tunnel', async ({
  harness,
}) => {
  const ports = harness.use(await claimPortBlock());
  const bounce = `http://edge.localhost:${ports.fixed.http}/.tunnel/callback`;
  const provider = harness.use(await startIdentityProvider([bounce]));
  const folder = await harness.folder();
  writeFileSync(join(folder, 'client-secret'), `${SECRET}\n`, { mode: 0o600 });
  const tables = `[[policy.login]]\nname = "company"\nissuer = "${provider.issuer}"\nclient_id = "tunnels"\nclient_secret_file = "${join(folder, 'client-secret')}"`;
  const stack = harness.use(new Stack(await harness.folder(), ports, { fixedPorts: true, tables, programs: false }));
  await stack.start();
  const seen: string[] = [];
  const web = harness.use(
    await startWeb((request, response) => {
      seen.push(`${request.url} ${String(request.headers['x-tunnel-user'])} ${request.headers.cookie ?? ''}`);
      response.end('served');
    }),
  );
  const flags = ['--login', 'company', '--login-domain', 'example.com', '--no-inspect'];
  const urls: string[] = [];
  for (const name of ['bounced', 'sibling']) {
    urls.push((await openHttp(harness, stack, web.port, ['--subdomain', name, ...flags])).ready.public_url);
  }
  const [shop = '', sibling = ''] = urls;

  const ann = new Browser();
  const atEdge = await ann.toCallback(`${shop}/deep?x=1`, 'ann@example.com');
  expect(atEdge.startsWith(`${bounce}?`)).toBe(true);
  // The edge redirects only to the tunnel named in the state.
  for (const change of [/state=[^&]/, /state=[^&]*/, /state=/]) {
    expect((await askUrl(atEdge.replace(change, 'state=-'))).status).toBe(400);
  }
  const sent = await ann.open(atEdge);
  const callback = sent.headers.location ?? '';
  expect([sent.status, sent.headers['set-cookie'], new URL(callback).origin]).toEqual([302, undefined, shop]);
  expect(sent.headers['referrer-policy']).toBe('no-referrer');
  // The code is sealed: the tunnel rejects the plain code, a different browser is rejected, and the sibling tunnel rejects the sealed
  // code.
  const plain = new URL(callback);
  plain.searchParams.set('code', new URL(atEdge).searchParams.get('code') ?? '');
  expect((await ann.open(plain.href)).status).toBe(400);
  expect((await new Browser().open(callback)).status).toBe(400);
  for (const [name, value] of ann.cookiesAt(shop)) ann.cookiesAt(sibling).set(name, value);
  expect((await ann.open(callback.replace(shop, sibling))).status).toBe(400);
  const back = await ann.open(callback);
  expect([back.status, back.headers.location]).toEqual([302, '/deep?x=1']);
  expect((await ann.send(`${shop}/deep?x=1`)).text).toBe('served');
  // A session of a tunnel is invalid at its sibling, although provider and owner are the same.
  for (const [name, value] of ann.cookiesAt(shop)) ann.cookiesAt(sibling).set(name, value);
  expect((await ann.send(`${sibling}/`)).status).toBe(401);
  expect(seen).toEqual(['/deep?x=1 ann@example.com ']);
  expect([...stack.program.stdout, ...stack.program.stderr].join()).not.toContain(SECRET);
});

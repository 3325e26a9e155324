// A local service behind a sign-in for people of example.com, and the sign-in page of the identity provider.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Harness } from '../system/harness.fixture.ts';
import { startWeb } from '../system/http-tunnels.fixture.ts';
import { Account } from './account.fixture.ts';
import { startIdentityProvider } from './identity-provider.fixture.ts';
import type { StackAddress } from './own-stack.fixture.ts';
import type { Profile } from './profile.fixture.ts';

export const PERSON = 'ann@example.com';
export const STRANGER = 'eve@elsewhere.example';

interface Visit {
  readonly path: string | undefined;
  readonly user: string | undefined;
  readonly how: string | undefined;
  readonly cookie: string | undefined;
}

interface GuardedTunnel {
  readonly url: string;
  readonly issuer: string;
  /** Requests that reached the service, without those for icons. */
  readonly visits: Visit[];
}

/** Opens a tunnel to a service that requires a sign-in for people of example.com and has a page for each path. */
export const openGuarded = async (
  harness: Harness,
  stack: StackAddress,
  profile: Profile,
  name: string,
): Promise<GuardedTunnel> => {
  const visits: Visit[] = [];
  const web = harness.use(
    await startWeb((request, response) => {
      const { cookie, 'x-tunnel-user': user, 'x-tunnel-auth': how } = request.headers;
      if (request.url !== '/favicon.ico')
        visits.push({ path: request.url, user: user?.toString(), how: how?.toString(), cookie });
      response.setHeader('content-type', 'text/html');
      response.end(`<!doctype html><html lang="en"><title>Shop</title><h1>${request.url?.split('?')[0]}</h1></html>`);
    }),
  );
  const subdomain = `${name}-${process.pid}`;
  const { port } = new URL(stack.run.http_url);
  const url = `http://${subdomain}.localhost:${port}`;
  const provider = harness.use(await startIdentityProvider([`${url}/.tunnel/callback`]));
  const file = join(await harness.folder(), 'policy.yml');
  const rules = 'rules: [{ name: people, auth: { login: { domains: [example.com] } } }]';
  writeFileSync(file, `login: ${provider.login}\n${rules}\n`, { mode: 0o600 });
  const key = await (await Account.signUp(stack, name)).newKey();
  const flags = ['--json', '--subdomain', subdomain, '--policy', file, '--server', stack.control];
  const tunnel = await harness.run(['http', String(web.port), ...flags], { env: { TUNNEL_API_KEY: key.token } });
  expect((await tunnel.ready()).public_url).toBe(url);
  for (const host of [url, provider.issuer]) profile.allowHostOf(host);
  return { url, issuer: provider.issuer, visits };
};

export const signIn = async (page: Page, email: string): Promise<void> => {
  await page.getByLabel('Email').fill(email);
  await page.getByRole('button', { name: 'Sign in' }).click();
};

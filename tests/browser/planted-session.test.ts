// A dashboard on the same site as the tunnels, as with `--public`: a tunnel's page plants the session of its owner in the browsers of
// visitors.
import { freePort } from '@tunnel/testkit';
import { expect } from 'vitest';
import { startWeb } from '../system/http-tunnels.fixture.ts';
import { TLS_FLAGS } from '../system/https-visitor.fixture.ts';
import { Account, PASSWORD } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { startOwnStack } from './own-stack.fixture.ts';
import { logInAt } from './profile.fixture.ts';

/** The site. Browsers resolve every name below localhost to this machine, and reject cookies for localhost as they do for `com`. */
const SITE = 'site.localhost';

it('the dashboard rejects a session cookie that was planted by a tunnel, and a later sign-in opens the correct account', async ({
  browser,
  harness,
}) => {
  const https = await freePort();
  const http = await freePort();
  const dashboard = `https://console.${SITE}:${https}`;
  const env = {
    TUNNEL_SERVER__DOMAIN: SITE,
    TUNNEL_SERVER__HTTPS_PORT: `${https}`,
    TUNNEL_SERVER__HTTP_PORT: `${http}`,
    TUNNEL_PLATFORM__PUBLIC_URL: dashboard,
  };
  const { stack } = harness.use(await startOwnStack({ command: 'stack', tls: true, env }));
  const planter = await Account.signUp(stack, 'planter');
  const victim = await Account.signUp(stack, 'victim');
  const login = await fetch(`${stack.run.platform_url}/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: planter.email, password: PASSWORD }),
  });
  const [token = '', binding = ''] = login.headers.getSetCookie().map((text) => text.split(';')[0] ?? '');
  const web = harness.use(
    await startWeb((_request, response) => {
      const planted = [token, binding].flatMap((cookie) => [
        `${cookie}; Domain=${SITE}; Path=/auth; Secure; Max-Age=86400`,
        `${cookie}; Domain=${SITE}; Path=/; Secure; Max-Age=86400`,
      ]);
      // The page plants the token only once, because the platform rejects two cookies of the same name.
      response.setHeader('set-cookie', planted.slice(1));
      response.setHeader('content-type', 'text/html').end('<!doctype html><title>A prize</title>');
    }),
  );
  const key = await planter.newKey();
  const flags = ['--json', '--server', stack.control, '--subdomain', 'prize', ...TLS_FLAGS];
  const tunnel = await harness.run(['http', String(web.port), ...flags], { env: { TUNNEL_API_KEY: key.token } });
  await tunnel.ready();

  const context = await browser.newContext({ ignoreHTTPSErrors: true, locale: 'en-US' });
  harness.use(context);
  const page = await context.newPage();
  await page.goto(`https://prize.${SITE}:${https}/`);
  const shown = await context.cookies(`${dashboard}/auth/refresh`);
  expect(shown.map(({ name, domain }) => [name, domain])).toEqual([['refresh_token', `.${SITE}`]]);
  await page.goto(`${dashboard}/app/`);
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  const asked = await page.evaluate("fetch('/auth/refresh', { method: 'POST' }).then(({ status }) => status)");
  expect(asked).toBe(401);

  // A program of the token's owner sends only the token, and is not bound to a browser.
  const program = await fetch(`${stack.run.platform_url}/auth/refresh`, { method: 'POST', headers: { cookie: token } });
  expect(program.status).toBe(200);

  await context.clearCookies();
  await page.goto(`${dashboard}/app/login`);
  await logInAt(page, victim.email);
  await page.getByRole('navigation').waitFor();
  await page.reload();
  await page.getByRole('navigation').waitFor();
  const names = (await context.cookies(dashboard)).map(({ name }) => name);
  expect(names).toContain('__Host-refresh-binding');
  await page.goto(`${dashboard}/app/settings`);
  await page.getByText(victim.email).first().waitFor();
});

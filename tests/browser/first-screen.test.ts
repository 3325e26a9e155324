// The first screen shows the most important content: live tunnels on the overview, and requests on a tunnel's page.
import type { TunnelLogEntry } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { askHttp, endpointOf, startWeb } from '../system/http-tunnels.fixture.ts';
import { Account } from './account.fixture.ts';
import { seriousFindings } from './axe-findings.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { screensWithout } from './first-screen.fixture.ts';

it('the first live tunnel and the first request are visible without scrolling', async ({ profile, harness, stack }) => {
  const account = await Account.signUp(stack, 'first-screen');
  const key = await account.newKey();
  const web = harness.use(await startWeb((_request, response) => void response.end('hello')));
  const flags = ['--subdomain', `a-long-name-for-the-first-screen-${process.pid}`, '--name', 'website'];
  const tunnel = await harness.run(
    ['http', String(web.port), '--json', '--server', stack.control, '--client-name', 'anns-laptop', ...flags],
    { env: { TUNNEL_API_KEY: key.token } },
  );
  const ready = await tunnel.ready();
  await askHttp(endpointOf(ready.public_url), { path: '/first' });
  // Until the request is counted, the account is new and has a different start page.
  await eventually(
    async () => {
      const { request_count: count } = await account.get<TunnelLogEntry>(`/usage/tunnels/${ready.tunnel_id}`);
      expect(count).toBe(1);
    },
    { timeoutMs: 30_000, intervalMs: 200 },
  );
  await profile.logIn(account.email);
  const page = await profile.context.newPage();

  const overview = await screensWithout(page, async () => {
    await page.goto(profile.urlOf('/'));
    return page.getByRole('row').filter({ hasText: ready.public_url });
  });
  expect(overview).toEqual([]);
  await page.getByRole('button', { name: `Copy ${ready.public_url}` }).waitFor();
  // The overview of an account on the free plan shows no cost.
  expect(await page.getByText('Cost, this month').count()).toBe(0);
  expect(await page.getByRole('img', { name: /per day/ }).count()).toBeLessThanOrEqual(1);

  const requests = await screensWithout(page, async () => {
    await page.goto(profile.urlOf(`/tunnels/${ready.tunnel_id}`));
    return page.locator('[data-request]').first();
  });
  expect(requests).toEqual([]);
  for (const text of ['Open to everyone', 'HTTP tunnel: website on anns-laptop', '1 request', /^Up \d/]) {
    await page.getByText(text).first().waitFor();
  }
  for (const twice of ['HTTP requests', 'Edge location']) expect(await page.getByText(twice).count()).toBe(0);
  expect(await page.getByText('Started', { exact: true }).count()).toBe(1);
  expect(await seriousFindings(page)).toEqual([]);
});

it('the visibility check reports an element below the screen or behind a different element', async ({ profile }) => {
  const page = await profile.tab('/login');
  await page.getByRole('heading', { name: 'Sign in', level: 1 }).waitFor();
  const put = async (css: string) => {
    await page.evaluate(`{
      const part = document.querySelector('#probe') ?? document.body.appendChild(document.createElement('p'));
      part.id = 'probe';
      part.textContent = 'probe';
      part.style.cssText = ${JSON.stringify(css)};
    }`);
    return page.locator('#probe');
  };
  expect(await screensWithout(page, () => put('position: fixed; top: 0; left: 0; z-index: 9'))).toEqual([]);
  expect(await screensWithout(page, () => put('position: absolute; top: 2000px; left: 0'))).toHaveLength(4);
  expect(await screensWithout(page, () => put('position: fixed; top: 0; left: 0; z-index: -1'))).toHaveLength(4);
});

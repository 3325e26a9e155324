// The page of a tunnel: captured requests, replays, and a region that does not answer.
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { askHttp, endpointOf, startWeb } from '../system/http-tunnels.fixture.ts';
import { Account } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';

it('a captured request hides secrets and can be replayed and edited; a region that does not answer affects only a single panel', async ({
  profile,
  harness,
  stack,
}) => {
  const account = await Account.signUp(stack, 'captures');
  const key = await account.newKey();
  const heard: (string | undefined)[] = [];
  const web = harness.use(
    await startWeb((request, response) => {
      heard.push(request.headers.authorization);
      response.setHeader('content-type', 'application/json').end('{"stored":true}');
    }),
  );
  const tunnel = await harness.run(['http', String(web.port), '--json', '--server', stack.control], {
    env: { TUNNEL_API_KEY: key.token },
  });
  const ready = await tunnel.ready();
  const headers = { authorization: 'Bearer of-a-visitor', 'content-type': 'application/json', 'x-shown': 'yes' };
  await askHttp(endpointOf(ready.public_url), {
    method: 'POST',
    path: '/orders?id=7',
    body: '{"item":"tea"}',
    headers,
  });
  await profile.logIn(account.email);
  const page = await profile.tab(`/tunnels/${ready.tunnel_id}`);
  await page.locator('[data-request]', { hasText: '/orders?id=7' }).click();
  await page.getByText('x-shown').waitFor();
  await page.getByText('"tea"').waitFor();
  await page.getByText('"stored"').waitFor();
  expect(await page.content()).not.toContain('of-a-visitor');
  await page.getByRole('button', { name: 'Replay', exact: true }).click();
  const said = page.getByText(/^Replayed: 200 in /);
  await said.waitFor();
  // The secret is hidden on the page, but a replay sends it to the service.
  expect(heard).toEqual(['Bearer of-a-visitor', 'Bearer of-a-visitor']);
  await page.getByRole('link', { name: 'View original' }).click();
  await said.waitFor({ state: 'detached' });

  const edit = page.getByRole('button', { name: 'Edit and replay' });
  const editor = page.getByRole('dialog');
  await edit.press('Enter');
  await editor.getByLabel('Method').and(page.locator(':focus')).waitFor();
  await page.keyboard.press('Escape');
  // The focus returns to the button that opened the dialog.
  await edit.and(page.locator(':focus')).waitFor();
  await page.keyboard.press('Enter');
  await editor.getByLabel('Path').fill('orders');
  await editor.getByRole('button', { name: 'Send' }).press('Enter');
  await editor.getByLabel('Path').and(page.locator(':focus[aria-invalid="true"]')).waitFor();
  await editor.getByLabel('Path').fill('/orders?id=8');
  await editor.getByLabel('Body').fill('{"item":"coffee"}');
  await editor.getByRole('button', { name: 'Send' }).click();
  await said.waitFor();
  await page.getByText('Edited replay of').waitFor();
  await page.getByText('"coffee"').waitFor();
  expect(heard.at(-1)).toBe('Bearer of-a-visitor');

  await profile.context.grantPermissions(['clipboard-read', 'clipboard-write']);
  // The message appears only for a moment, so the wait starts before the click.
  const copied = page.getByText('Copied').first().waitFor();
  await page.getByRole('button', { name: 'Copy as cURL' }).click();
  await copied;
  const command = String(await page.evaluate('navigator.clipboard.readText()'));
  expect(command).toContain(`curl '${ready.public_url}/orders?id=8'`);
  expect(command).toContain(`--data-raw '{"item":"coffee"}'`);

  const rows = page.locator('[data-request]');
  await page.getByLabel('Filter requests').fill('id=8');
  await eventually(async () => expect(await rows.count()).toBe(1));
  await page.getByLabel('Status').selectOption('5xx');
  await page.getByText('No matching requests.').waitFor();

  profile.allowAbsence();
  await page.route('**/requests?*', (route) =>
    route.fulfill({
      status: 502,
      json: { error: 'region local did not answer', code: 'REGION_AWAY', request_id: 'req_x' },
    }),
  );
  await page.reload();
  await page.getByText("Couldn't load the requests").waitFor();
  await page.getByText('Tunnel ID').waitFor();
  await page.unrouteAll();
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.locator('[data-request]', { hasText: '/orders?id=7' }).first().waitFor();
});

// Tunnels that come and go while somebody looks, and what one of them carried.
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { askHttp, endpointOf, startWeb } from '../system/http-tunnels.fixture.ts';
import { Account } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';

it('a tunnel appears, ends and moves to the history by itself; the filter is in the address', async ({
  profile,
  harness,
  stack,
}) => {
  const account = await Account.signUp(stack, 'lists');
  const key = await account.newKey();
  const web = harness.use(await startWeb((_request, response) => void response.end('hello')));
  const open = (...args: string[]) =>
    harness.run([...args, '--json', '--server', stack.control], { env: { TUNNEL_API_KEY: key.token } });
  const label = `list-${process.pid}`;
  await profile.logIn(account.email);
  await profile.context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const page = await profile.tab('/tunnels');
  await page.getByText('No tunnels yet').waitFor();
  const [http, tcp] = [
    await open(
      'http',
      String(web.port),
      '--subdomain',
      label,
      '--name',
      'web',
      '--client-name',
      `desk of ${process.pid}`,
    ),
    await open('tcp', String(web.port)),
  ];
  const { assigned_port: port } = await tcp.ready();
  const [url, place] = [(await http.ready()).public_url, `localhost:${port}`];
  const rowOf = (name: string) => page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) });
  await rowOf(url).filter({ hasText: 'Live' }).waitFor();
  await rowOf(place).filter({ hasText: 'Live' }).waitFor();
  // Who it is, where it runs, and both ways to use its address.
  await rowOf(url).getByText(`web on desk of ${process.pid}`).waitFor();
  expect(
    await rowOf(url)
      .getByRole('link', { name: `Open ${url}` })
      .getAttribute('href'),
  ).toBe(url);
  await rowOf(place)
    .getByRole('button', { name: `Copy ${place}` })
    .click();
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(place);

  http.signal('SIGTERM');
  expect(await http.exitCode()).toBe(0);
  await rowOf(url).filter({ hasText: 'Ended' }).waitFor();
  // Live ones first: the one that ended later began earlier, and stands below.
  expect(await page.getByRole('row').nth(1).innerText()).toContain(String(port));

  await page.getByRole('radio', { name: 'TCP' }).click();
  await rowOf(url).waitFor({ state: 'detached' });
  expect(new URL(page.url()).search).toBe('?protocol=tcp');
  await page.getByRole('radio', { name: 'Ended' }).click();
  await page.getByText('No matching tunnels').waitFor();
  await page.reload();
  await page.getByText('No matching tunnels').waitFor();
  expect(await page.getByRole('radio', { name: 'Ended' }).isChecked()).toBe(true);
  await page.getByRole('link', { name: 'Show all tunnels' }).click();
  await rowOf(url).click();
  await page.getByRole('heading', { name: url, level: 1 }).waitFor();
});

it('a request shows its headers and bodies without its secrets; a region that does not answer breaks one panel', async ({
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
  // Hidden from those who look, and whole for the service.
  expect(heard).toEqual(['Bearer of-a-visitor', 'Bearer of-a-visitor']);
  await page.getByRole('link', { name: 'View original' }).click();
  await said.waitFor({ state: 'detached' });

  const edit = page.getByRole('button', { name: 'Edit and replay' });
  const editor = page.getByRole('dialog');
  await edit.press('Enter');
  await editor.getByLabel('Method').and(page.locator(':focus')).waitFor();
  await page.keyboard.press('Escape');
  // Who goes by keyboard is where they were.
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
  // It is shown for a moment: it is looked for before.
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
  await page.getByText('No request matches.').waitFor();

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

// Tunnels that come and go while somebody looks, and what one of them carried.
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
  const page = await profile.tab('/tunnels');
  await page.getByText('No tunnels yet').waitFor();
  const [http, tcp] = [await open('http', String(web.port), '--subdomain', label), await open('tcp', String(web.port))];
  const { assigned_port: port } = await tcp.ready();
  const rowOf = (name: string) => page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) });
  await rowOf(label).filter({ hasText: 'Live' }).waitFor();
  await rowOf(String(port)).filter({ hasText: 'Live' }).waitFor();

  http.signal('SIGTERM');
  expect(await http.exitCode()).toBe(0);
  await rowOf(label).filter({ hasText: 'Ended' }).waitFor();
  // Live ones first: the one that ended later began earlier, and stands below.
  expect(await page.getByRole('row').nth(1).innerText()).toContain(String(port));

  await page.getByRole('radio', { name: 'tcp' }).click();
  await rowOf(label).waitFor({ state: 'detached' });
  expect(new URL(page.url()).search).toBe('?protocol=tcp');
  await page.getByRole('radio', { name: 'Ended' }).click();
  await page.getByText('No tunnel is like this').waitFor();
  await page.reload();
  await page.getByText('No tunnel is like this').waitFor();
  expect(await page.getByRole('radio', { name: 'Ended' }).isChecked()).toBe(true);
  await page.getByRole('link', { name: 'Show all tunnels' }).click();
  await rowOf(label).click();
  await page.getByRole('heading', { name: label, level: 1 }).waitFor();
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
  await page.getByRole('button', { name: 'Replay' }).click();
  await page.getByText('Your service answered with').waitFor();
  // Hidden from those who look, and whole for the service.
  expect(heard).toEqual(['Bearer of-a-visitor', 'Bearer of-a-visitor']);

  profile.allowAbsence();
  await page.route('**/requests?*', (route) =>
    route.fulfill({
      status: 502,
      json: { error: 'region local did not answer', code: 'REGION_AWAY', request_id: 'req_x' },
    }),
  );
  await page.reload();
  await page.getByText('The requests cannot be shown').waitFor();
  await page.getByText('Public address').waitFor();
  await page.unrouteAll();
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.locator('[data-request]', { hasText: '/orders?id=7' }).first().waitFor();
});

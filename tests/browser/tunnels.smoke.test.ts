// The list of tunnels while tunnels open and close.
import { expect } from 'vitest';
import { startWeb } from '../system/http-tunnels.fixture.ts';
import { Account } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';

it('the tunnel list updates automatically when a tunnel opens or ends, and keeps its filter in the URL', async ({
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
  const http = await open(
    'http',
    String(web.port),
    '--subdomain',
    label,
    '--name',
    'web',
    '--client-name',
    `desk of ${process.pid}`,
  );
  const tcp = await open('tcp', String(web.port));
  const { assigned_port: port } = await tcp.ready();
  const url = (await http.ready()).public_url;
  const place = `localhost:${port}`;
  const rowOf = (name: string) => page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) });
  await rowOf(url).filter({ hasText: 'Live' }).waitFor();
  await rowOf(place).filter({ hasText: 'Live' }).waitFor();
  // The row shows the tunnel's name and computer, and the actions Open and Copy for its address.
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
  // Live tunnels come first. The ended tunnel opened earlier, so it is below.
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

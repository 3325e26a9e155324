// The list of tunnels: a row for each address with its history, a search, TLS separate from TCP, and Stop.
import type { TunnelLogEntry } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { askHttp, endpointOf, startWeb } from '../system/http-tunnels.fixture.ts';
import { Account } from './account.fixture.ts';
import { findingsOf, seriousFindings } from './axe-findings.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { walkByTab } from './keyboard-walk.fixture.ts';
import { manyTunnels } from './large-lists.fixture.ts';

const [first, second, third, fourth, fifth] = manyTunnels(5) as [
  ...[TunnelLogEntry, TunnelLogEntry, TunnelLogEntry, TunnelLogEntry, TunnelLogEntry],
];
const shop = { protocol: 'http', label: 'shop', public_url: 'https://shop.example.com' } as const;
const ALL: readonly TunnelLogEntry[] = [
  { ...first, ...shop, name: 'website', client_name: 'anns-laptop' },
  { ...second, protocol: 'tcp', label: 'vault.example.com', public_url: 'tls://vault.example.com:443' },
  { ...third, protocol: 'tcp', label: '20001', public_url: 'tcp://example.com:20001', name: 'database' },
  { ...fourth, ...shop, name: 'website', client_name: 'bobs-desk' },
  { ...fifth, ...shop, name: 'website', client_name: 'anns-laptop' },
];

it('tunnels with the same address share a row that opens their history; search and protocol are in the URL', async ({
  profile,
  stack,
}) => {
  const account = await Account.signUp(stack, 'rows');
  await profile.logIn(account.email);
  await profile.context.route('**/usage/tunnels?*', (route) => {
    const asked = new URL(route.request().url()).searchParams;
    const isLive = asked.get('state') === 'active';
    const wanted = asked.get('protocol');
    const some = ALL.filter(({ unregistered_at: end }) => (end === null) === isLive);
    return route.fulfill({ json: some.filter(({ protocol }) => wanted === null || protocol === wanted) });
  });
  const page = await profile.tab('/tunnels');
  await page.getByText('3 addresses, 3 live').waitFor();
  const rows = page.getByRole('row');
  const countRows = (count: number) => eventually(async () => expect(await rows.count()).toBe(1 + count));
  await countRows(3);
  const query = (): string => decodeURIComponent(new URL(page.url()).search).replaceAll('+', ' ');

  const history = page.getByRole('button', { name: '3 tunnels at https://shop.example.com' });
  await history.press('Enter');
  await countRows(6);
  expect(query()).toBe('?address=http https://shop.example.com');
  expect(await history.getAttribute('aria-expanded')).toBe('true');
  await rows.filter({ hasText: 'website on bobs-desk' }).filter({ hasText: 'Ended' }).waitFor();
  expect(await walkByTab(page)).toEqual({ missed: [], unseen: [] });
  expect(await findingsOf(page)).toEqual([]);
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.reload();
  await countRows(6);
  await history.press('Enter');
  await countRows(3);

  await page.getByRole('radio', { name: 'TLS' }).click();
  await page.getByRole('link', { name: 'vault.example.com:443' }).waitFor();
  await countRows(1);
  expect(query()).toBe('?protocol=tls');
  await page.getByRole('radio', { name: 'TCP' }).click();
  await page.getByRole('link', { name: 'example.com:20001' }).waitFor();
  await countRows(1);
  await page.getByRole('radio', { name: 'Any', exact: true }).click();
  await countRows(3);

  const search = page.getByLabel('Search tunnels');
  await search.pressSequentially('WEBSITE bobs');
  await countRows(1);
  await eventually(() => expect(query()).toBe('?q=WEBSITE bobs'));
  expect(await search.inputValue()).toBe('WEBSITE bobs');
  await search.fill('nothing like this');
  await page.getByText('No tunnels match “nothing like this”.').waitFor();
  await page.reload();
  await page.getByText('No tunnels match “nothing like this”.').waitFor();
  await page.getByRole('link', { name: 'Show all tunnels' }).click();
  await countRows(3);
  expect(await search.inputValue()).toBe('');
});

it('Stop asks for confirmation and ends a tunnel of a different computer, from the list and from its page', async ({
  profile,
  harness,
  stack,
}) => {
  const account = await Account.signUp(stack, 'stops');
  const key = await account.newKey();
  const web = harness.use(await startWeb((_request, response) => void response.end('hello')));
  const open = (...flags: string[]) =>
    harness.run(['http', String(web.port), '--json', '--server', stack.control, ...flags], {
      env: { TUNNEL_API_KEY: key.token },
    });
  const one = await open('--client-name', 'anns-laptop');
  const other = await open('--client-name', 'bobs-desk');
  const { public_url: url } = await one.ready();
  const { public_url: otherUrl, tunnel_id: otherId } = await other.ready();
  await profile.logIn(account.email);
  const page = await profile.tab('/tunnels');
  const dialog = page.getByRole('dialog');
  const stop = page.getByRole('button', { name: `Stop ${url}` });
  await stop.press('Enter');
  await dialog.getByText("The client on anns-laptop won't reopen the tunnel.").waitFor();
  expect(await seriousFindings(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await stop.and(page.locator(':focus')).waitFor();
  expect((await askHttp(endpointOf(url), { path: '/' })).text).toBe('hello');
  await page.keyboard.press('Enter');
  await dialog.getByRole('button', { name: 'Stop tunnel' }).press('Enter');
  await dialog.waitFor({ state: 'hidden' });
  await page.getByRole('row').filter({ hasText: url }).getByText('Ended').waitFor();
  expect(await one.exitCode()).toBe(4);
  expect((await askHttp(endpointOf(url), { path: '/' })).status).toBe(404);

  await page.goto(profile.urlOf(`/tunnels/${otherId}`));
  await page.getByRole('button', { name: 'Stop', exact: true }).press('Enter');
  await dialog.getByText(otherUrl).waitFor();
  await dialog.getByRole('button', { name: 'Stop tunnel' }).press('Enter');
  await page.getByText(/^Was up/).waitFor();
  expect(await other.exitCode()).toBe(4);
});

it('a failed Stop shows the reason, and a tunnel that has already ended is not an error', async ({
  profile,
  harness,
  stack,
}) => {
  const account = await Account.signUp(stack, 'stuck');
  const key = await account.newKey();
  const web = harness.use(await startWeb((_request, response) => void response.end('hello')));
  const program = await harness.run(['http', String(web.port), '--json', '--server', stack.control], {
    env: { TUNNEL_API_KEY: key.token },
  });
  const { tunnel_id: id } = await program.ready();
  await profile.logIn(account.email);
  profile.allowAbsence();
  const page = await profile.tab(`/tunnels/${id}`);
  const refuse = (status: number, code: string) =>
    page.route('**/tunnels/*', (route) =>
      route.request().method() === 'DELETE'
        ? route.fulfill({ status, json: { error: 'region local did not answer', code, request_id: 'req_x' } })
        : route.fallback(),
    );
  await refuse(502, 'EDGE_AWAY');
  await page.getByRole('button', { name: 'Stop', exact: true }).click();
  await page.getByRole('button', { name: 'Stop tunnel' }).click();
  await page.getByRole('dialog').getByText('Region local did not answer').waitFor();
  await page.unrouteAll();
  await refuse(404, 'TUNNEL_UNKNOWN');
  program.signal('SIGTERM');
  await program.exitCode();
  await page.getByRole('button', { name: 'Stop tunnel' }).click();
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
});

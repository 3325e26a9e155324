// A custom domain in the dashboard of a real platform with DNS. The other tests of these pages use mocked responses.
import type { OwnDomainView } from '@tunnel/contract';
import { startDnsServer } from '@tunnel/testkit';
import { expect } from 'vitest';
import { startWeb } from '../system/http-tunnels.fixture.ts';
import { Account } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { cardOf } from './domains-page.fixture.ts';
import { pretendPublic } from './own-domains.fixture.ts';
import { startOwnStack } from './own-stack.fixture.ts';
import { Profile } from './profile.fixture.ts';

it('a custom domain is added, verified when its DNS record appears, used by a tunnel, and removed together with the tunnel', async ({
  browser,
  harness,
}) => {
  const dns = harness.use(await startDnsServer());
  const { stack } = harness.use(await startOwnStack({ tables: `[dns]\nresolvers = ["${dns.address}"]` }));
  const account = await Account.signUp(stack, 'proven');
  const key = await account.newKey();
  const profile = harness.use(await Profile.open(browser, stack));
  await profile.logIn(account.email);
  await pretendPublic(profile.context);
  const page = await profile.tab('/domains');
  await page.getByText('No domains yet').waitFor();
  await page.getByRole('button', { name: 'Add domain' }).first().click();
  await page.keyboard.type('localhost');
  await page.keyboard.press('Enter');
  await page
    .getByRole('dialog')
    .getByRole('alert')
    .getByText(/is not valid/)
    .waitFor();
  await page.getByRole('dialog').getByRole('textbox').fill('shop.example.com');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'shop.example.com', level: 1 }).waitFor();
  await page.getByText('Add the records below at your DNS provider').waitFor();
  const [added] = await account.get<OwnDomainView[]>('/domains');
  const target = added?.cname_target ?? '';
  const records = cardOf(page, 'DNS records');
  await records
    .getByRole('row', { name: new RegExp(target) })
    .getByText('Missing')
    .waitFor();
  dns.set('shop.example.com', 'CNAME', target);
  await records
    .getByRole('row', { name: new RegExp(target) })
    .getByText('Found')
    .waitFor();
  await page.getByText('Verified', { exact: true }).waitFor();
  await page.getByText('No tunnel yet').waitFor();

  const web = harness.use(await startWeb((_request, response) => void response.end('hello')));
  const flags = ['--json', '--server', stack.control, '--domain', 'shop.example.com'];
  const tunnel = await harness.run(['http', String(web.port), ...flags], { env: { TUNNEL_API_KEY: key.token } });
  const { tunnel_id: id } = await tunnel.ready();
  await page.getByText('1 live tunnel').waitFor();
  const detail = await profile.tab(`/tunnels/${id}`);
  await detail.getByRole('link', { name: 'See DNS records and certificate' }).click();
  await detail.getByRole('heading', { name: 'shop.example.com', level: 1 }).waitFor();

  await page.getByRole('button', { name: 'Remove' }).click();
  await page.keyboard.type('shop.example.com');
  await page.keyboard.press('Enter');
  await page.getByText('No domains yet').waitFor();
  expect(await account.get('/domains')).toEqual([]);
  expect(await tunnel.exitCode()).not.toBe(0);
  await detail.getByText('Domain not found').waitFor();
  expect(profile.faults).toEqual([]);
});

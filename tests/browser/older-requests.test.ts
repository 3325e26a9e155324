// All captured requests of the edge can be shown, page by page.
import { CAPTURE_LIST_LIMIT } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { askHttp, endpointOf, startWeb } from '../system/http-tunnels.fixture.ts';
import { Account } from './account.fixture.ts';
import { findingsOf } from './axe-findings.fixture.ts';
import { it } from './browser-test.fixture.ts';

const COUNT = CAPTURE_LIST_LIMIT.max + 20;

it('Load older shows the requests before the newest 100, which stay in the list when new requests arrive', async ({
  profile,
  harness,
  stack,
}) => {
  const account = await Account.signUp(stack, 'older');
  const key = await account.newKey();
  const web = harness.use(await startWeb((_request, response) => void response.end('hello')));
  const tunnel = await harness.run(['http', String(web.port), '--json', '--server', stack.control], {
    env: { TUNNEL_API_KEY: key.token },
  });
  const ready = await tunnel.ready();
  const endpoint = endpointOf(ready.public_url);
  for (let number = 1; number <= COUNT; number += 1) await askHttp(endpoint, { path: `/visit-${number}.` });
  await profile.logIn(account.email);
  const page = await profile.tab(`/tunnels/${ready.tunnel_id}`);
  const rows = page.locator('[data-request]');
  await page.getByText('Newest 100 requests').waitFor();
  expect([await rows.count(), await rows.filter({ hasText: '/visit-1.' }).count()]).toEqual([100, 0]);

  await page.getByRole('button', { name: 'Load older' }).press('Enter');
  await page.getByText(`${COUNT} requests`, { exact: true }).waitFor();
  expect(await rows.count()).toBe(COUNT);
  expect(await page.getByRole('button', { name: 'Load older' }).count()).toBe(0);
  await askHttp(endpoint, { path: '/one-more' });
  await rows.filter({ hasText: '/one-more' }).waitFor();
  expect(await rows.count()).toBe(COUNT + 1);
  await rows.filter({ hasText: '/visit-1.' }).click();
  await page.getByRole('heading', { name: 'GET /visit-1.', level: 3 }).waitFor();
  await page.getByLabel('Filter requests').fill('visit-1.');
  await eventually(async () => expect(await rows.count()).toBe(1));
  await page.getByText(`1 of ${COUNT + 1} requests`).waitFor();
  expect(await findingsOf(page)).toEqual([]);
});

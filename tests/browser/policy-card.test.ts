// The policy of a tunnel in the dashboard: rules in words with their counts, their effect on a request, the visitor, and tunnels that are
// open to everyone.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { askHttp, endpointOf, startWeb } from '../system/http-tunnels.fixture.ts';
import { Account } from './account.fixture.ts';
import { findingsOf } from './axe-findings.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { walkByTab } from './keyboard-walk.fixture.ts';

const PASSWORD = 'correct horse battery staple';
const POLICY = `
rules:
  - name: no admin
    match: { path: "/admin/**" }
    deny: 404
  - response_headers: { set: { X-Frame-Options: DENY } }
  - name: people
    auth: { basic: { users: { ann: "${PASSWORD}" } } }
`;

/** Checks accessibility: keyboard, axe, and no overflow on the smallest phone. */
const expectForEverybody = async (page: Page): Promise<void> => {
  expect(await walkByTab(page)).toEqual({ missed: [], unseen: [] });
  expect(await findingsOf(page)).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  await page.setViewportSize({ width: 1280, height: 800 });
};

it('the tunnel page shows policy rules with their counts, and for a request the deciding rule and the visitor, but no secrets', async ({
  profile,
  harness,
  stack,
}) => {
  const account = await Account.signUp(stack, 'rules');
  const key = await account.newKey();
  const web = harness.use(await startWeb((_request, response) => void response.end('hello')));
  const file = join(await harness.folder(), 'policy.yml');
  writeFileSync(file, POLICY, { mode: 0o600 });
  const open = (...flags: string[]) =>
    harness.run(['http', String(web.port), '--json', '--server', stack.control, ...flags], {
      env: { TUNNEL_API_KEY: key.token },
    });
  const guarded = await (await open('--policy', file, '--name', 'guarded')).ready();
  const naked = await (await open('--name', 'naked')).ready();
  const endpoint = endpointOf(guarded.public_url);
  const authorization = `Basic ${Buffer.from(`ann:${PASSWORD}`).toString('base64')}`;
  expect((await askHttp(endpoint, { path: '/admin/users' })).status).toBe(404);
  expect((await askHttp(endpoint, { path: '/shop' })).status).toBe(401);
  expect((await askHttp(endpoint, { path: '/shop', headers: { authorization } })).text).toBe('hello');

  await profile.logIn(account.email);
  const page = await profile.tab(`/tunnels/${guarded.tunnel_id}`);
  const card = page.getByRole('region', { name: 'Access and rules' }).first();
  await card.getByText('3 rules.').waitFor();
  const countsOf = async (rule: number): Promise<string[]> =>
    (await card.getByRole('row').nth(rule).getByRole('cell').allInnerTexts()).slice(-2);
  await eventually(
    async () =>
      expect([await countsOf(1), await countsOf(3)]).toEqual([
        ['1', '1'],
        ['2', '1'],
      ]),
    {
      timeoutMs: 30_000,
    },
  );
  await card.getByText('no admin').waitFor();

  const rows = page.locator('[data-request]');
  await eventually(async () => expect(await rows.count()).toBe(3), { timeoutMs: 30_000 });
  await page.getByLabel('Status').selectOption('Rejected');
  await eventually(async () => expect(await rows.count()).toBe(2));
  await rows.filter({ hasText: '/admin/users' }).click();
  await page.getByText('Rejected by rule 1 (no admin), deny. The request did not reach your service.').waitFor();
  expect(await page.getByRole('button', { name: 'Replay', exact: true }).isDisabled()).toBe(true);
  await page.getByLabel('Status').selectOption('2xx');
  await eventually(async () => expect(await rows.count()).toBe(1));
  await rows.filter({ hasText: '/shop' }).click();
  await page.getByText('Matching rules').waitFor();
  await page.getByText('Visitor ann').waitFor();
  expect(await page.content()).not.toContain(PASSWORD);
  expect(await page.content()).not.toContain('scrypt');
  await expectForEverybody(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await findingsOf(page)).toEqual([]);

  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto(profile.urlOf('/tunnels'));
  const rowOf = (name: string) => page.getByRole('row').filter({ hasText: `${name} on ` });
  await rowOf('naked').getByText('Open to everyone').waitFor();
  expect(await rowOf('guarded').getByText('Open to everyone').count()).toBe(0);
  await page.goto(profile.urlOf(`/tunnels/${naked.tunnel_id}`));
  await page.getByText('Anyone with the URL can visit.').waitFor();
  await page.getByText('tunnel http 3000 --basic-auth-file users.txt').waitFor();
});

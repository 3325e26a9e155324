// The inspector page in a browser: requests are listed, filtered, copied, replayed and edited as in the dashboard.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { askHttp, endpointOf, startWeb } from '../system/http-tunnels.fixture.ts';
import { Account } from './account.fixture.ts';
import { findingsOf } from './axe-findings.fixture.ts';
import { it } from './browser-test.fixture.ts';

/** Checks that the page is not wider than a phone, a tablet or a desktop screen. */
const expectToFit = async (page: Page): Promise<void> => {
  for (const width of [390, 768, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
  }
};

it('the inspector filters, copies, replays and edits requests, hides secrets, and shows UTC times on hover', async ({
  profile,
  harness,
  stack,
}) => {
  const account = await Account.signUp(stack, 'inspector');
  const key = await account.newKey();
  const heard: string[] = [];
  const web = harness.use(
    await startWeb(async (request, response) => {
      let body = '';
      for await (const piece of request) body += String(piece);
      heard.push(`${request.method} ${request.url} ${request.headers.authorization} ${body}`);
      const status = request.url === '/missing' ? 404 : 200;
      response.writeHead(status, { 'content-type': 'application/json' }).end('{"stored":true}');
    }),
  );
  const program = await harness.run(['http', String(web.port), '--json', '--server', stack.control], {
    env: { TUNNEL_API_KEY: key.token },
  });
  const { public_url: url, inspect_url: inspector } = await program.ready();
  const endpoint = endpointOf(url);
  const address = String(inspector);
  await askHttp(endpoint, { path: '/missing' });
  const headers = { authorization: 'Bearer of-a-visitor', 'content-type': 'application/json' };
  await askHttp(endpoint, { method: 'POST', path: '/hook?token=s3cret', body: '{"n":1,"token":"t0ken"}', headers });

  profile.allowHostOf(address);
  await profile.context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: new URL(address).origin });
  const page = await profile.context.newPage();
  await page.goto(address);
  const rows = page.locator('.row');
  await eventually(async () => expect(await rows.count()).toBe(2));
  await page.getByLabel('Status').selectOption('4xx');
  await eventually(async () => expect(await rows.count()).toBe(1));
  await page.getByLabel('Status').selectOption('');
  await page.locator('#method').selectOption('POST');
  await page.locator('.row', { hasText: '/hook' }).click();
  expect(await page.locator('.facts time').getAttribute('title')).toMatch(/ UTC$/);
  expect(await page.content()).not.toMatch(/s3cret|t0ken|of-a-visitor/);
  await expectToFit(page);
  expect(await findingsOf(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });

  await page.getByRole('button', { name: 'Replay', exact: true }).click();
  await page.getByText(/^Replayed: 200 in /).waitFor();
  await page.getByRole('button', { name: 'View original' }).click();
  await page.getByRole('button', { name: 'Edit and replay' }).click();
  const editor = page.getByRole('dialog');
  await expectToFit(page);
  expect(await findingsOf(page)).toEqual([]);
  await editor.getByLabel('Path').fill('/again?token=[redacted]');
  await editor.getByLabel('Body').fill('{"n": 2, "token": "[redacted]"}');
  await editor.getByRole('button', { name: 'Send' }).click();
  await page.getByText('Edited replay of').waitFor();
  const secret = 'Bearer of-a-visitor';
  expect(heard.slice(1)).toEqual([
    `POST /hook?token=s3cret ${secret} {"n":1,"token":"t0ken"}`,
    `POST /hook?token=s3cret ${secret} {"n":1,"token":"t0ken"}`,
    `POST /again?token=s3cret ${secret} {"n": 2, "token": "t0ken"}`,
  ]);
  // The message appears only for a moment, which can pass before a busy machine looks, so the wait starts before the click.
  const copied = page.getByText('Copied').waitFor();
  await page.getByRole('button', { name: 'Copy as cURL' }).click();
  await copied;
  expect(await page.evaluate('navigator.clipboard.readText()')).toContain(`curl '${url}/again?token=[redacted]'`);
});

it('the inspector of several tunnels filters by tunnel, links only HTTP addresses, and marks a single selected row', async ({
  profile,
  harness,
  stack,
}) => {
  const account = await Account.signUp(stack, 'inspector-several');
  const key = await account.newKey();
  const web = harness.use(await startWeb((_, response) => void response.end('hello')));
  const home = await harness.folder();
  const local = `local_port: ${web.port}`;
  const config = `tunnels:\n  web: { proto: http, ${local} }\n  site: { proto: http, ${local} }\n  db: { proto: tcp, ${local} }\n`;
  await writeFile(join(home, 'config.yml'), config);
  const args = ['start', '--config', join(home, 'config.yml'), '--json', '--server', stack.control];
  const program = await harness.run(args, { home, env: { TUNNEL_API_KEY: key.token } });
  const opened = await eventually(() => {
    const ready = program.events('ready');
    expect(ready).toHaveLength(3);
    return ready;
  });
  for (const { name, public_url: url } of opened) {
    if (name !== 'db') await askHttp(endpointOf(String(url)), { path: `/of-${String(name)}` });
  }
  const address = String(opened[0]?.['inspect_url']);
  profile.allowHostOf(address);
  const page = await profile.context.newPage();
  await page.goto(address);
  const rows = page.locator('.row');
  await eventually(async () => expect(await rows.count()).toBe(2));

  expect(await page.locator('#tunnels a').count()).toBe(2);
  expect(await page.locator('#tunnels .address').textContent()).toMatch(/^tcp:\/\//);
  await page.getByLabel('Tunnel', { exact: true }).selectOption('site');
  await eventually(async () => expect(await rows.allTextContents()).toEqual([expect.stringContaining('/of-site')]));
  expect(await page.locator('#count').textContent()).toBe('1 of 2 requests');
  await page.getByLabel('Tunnel', { exact: true }).selectOption('');

  await page.locator('.row', { hasText: '/of-web' }).focus();
  await page.keyboard.press('Enter');
  await page.locator('.facts').waitFor();
  await page.keyboard.press('r');
  await page.getByText(/^Replayed: 200 in /).waitFor();
  await eventually(async () => {
    const chosen = await page.locator('.row[aria-current="true"]').getAttribute('data-id');
    expect(await page.evaluate('document.activeElement.dataset.id')).toBe(chosen);
  });
  expect(await page.locator('.row[aria-current="true"]').count()).toBe(1);

  await page.reload();
  expect(await page.locator('.keys').isVisible()).toBe(true);
  await page.setViewportSize({ width: 390, height: 844 });
  expect(await page.locator('.keys').isVisible()).toBe(false);
  await expectToFit(page);
  expect(await findingsOf(page)).toEqual([]);
});

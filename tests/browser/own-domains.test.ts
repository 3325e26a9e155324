// Custom domains in the dashboard: DNS records are copied and followed as they appear, checked on request, and domains are removed.
import { eventually } from '@tunnel/testkit';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { findingsOf } from './axe-findings.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { cardOf, openList } from './domains-page.fixture.ts';
import { walkByTab } from './keyboard-walk.fixture.ts';
import { certificate, NO_CERTIFICATE_YET, ownDomain, pendingDomain } from './own-domains.fixture.ts';

const SOON = { timeoutMs: 20_000 };

/** Returns by how many pixels the page is wider than the screen. */
const overhang = (page: Page): Promise<number> =>
  page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');

it('the list of custom domains shows the state and certificate of each domain, and its page says what to do next', async ({
  profile,
  stack,
}) => {
  const { page } = await openList(profile, stack);
  const card = cardOf(page, 'Your domains');
  const row = (name: string) => card.getByRole('row', { name });
  await row('shop.example.com').getByText('Verified').waitFor();
  await row('shop.example.com')
    .getByText(/until \d+ \w+ \d{4}/)
    .waitFor();
  await row('shop.example.com').getByText('In use').waitFor();
  await row('example.org').getByText('1 of 3 found').waitFor();
  await row('eu.example.com').getByText('Not issued').waitFor();
  await row('blog.example.net').getByText('None', { exact: true }).waitFor();
  await row('old.example.com').getByText('Lapsed').waitFor();
  await card.getByText(/^6 used; your free plan includes 3\./).waitFor();
  expect(await walkByTab(page)).toEqual({ missed: [], unseen: [] });
  expect(await findingsOf(page)).toEqual([]);

  const says = async (name: string, ...texts: readonly (string | RegExp)[]): Promise<void> => {
    await row(name).getByRole('link', { name, exact: true }).click();
    await page.getByRole('heading', { name, level: 1 }).waitFor();
    for (const text of texts) await page.getByText(text).first().waitFor();
    await page.getByRole('link', { name: 'Domains' }).first().click();
    await card.waitFor();
  };
  await says('typo.example.com', 'We stopped checking after three days', /then select Check now/, 'Missing');
  await says('old.example.com', /New tunnels can’t use this domain/, /another account has verified/);
  await says('*.eu.example.com', /needs one more record/, /did not find the record/, 'Certificate: not issued');
  await says('shop.example.com', '1 live tunnel', "Let's Encrypt R11", 'Next renewal');
});

it('the DNS records of a domain can be copied, and update until the domain is verified and its certificate issued', async ({
  profile,
  stack,
}) => {
  const { api, page } = await openList(profile, stack, [pendingDomain()]);
  await page.getByRole('link', { name: 'Set up: example.org' }).click();
  const records = cardOf(page, 'DNS records');
  await records
    .getByRole('row', { name: /203\.0\.113\.7/ })
    .getByText('Missing')
    .waitFor();
  await profile.context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await records.getByRole('button', { name: /^Copy tunnel-verify=/ }).click();
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe('tunnel-verify=k3v7q2m5x4n6p7r2t3wa');
  const [before] = api.list;
  api.change('example-org', { records: before?.records.map((one) => ({ ...one, found: true })) ?? [] });
  await records
    .getByRole('row', { name: /203\.0\.113\.7/ })
    .getByText('Found')
    .waitFor();
  api.change('example-org', { state: 'verified', certificate: { ...NO_CERTIFICATE_YET, state: 'ordering' } });
  await page.getByText('Certificate: being issued').waitFor();
  api.change('example-org', { certificate: certificate() });
  await page.getByText('Certificate valid').waitFor();
  await page.getByRole('link', { name: 'Open' }).waitFor();
  expect(await page.getByText('Add the records below').count()).toBe(0);
});

it('Check now shows its result, and counts down the seconds after a check that came too soon', async ({
  profile,
  stack,
}) => {
  const { api, page } = await openList(profile, stack, [pendingDomain()]);
  await page.getByRole('link', { name: 'Set up: example.org' }).click();
  const records = cardOf(page, 'DNS records');
  api.refusal = { status: 429, code: 'DOMAIN_CHECK_TOO_SOON', error: 'looked at a moment ago', after: 3 };
  await records.getByRole('button', { name: 'Check now' }).click();
  const waiting = records.getByRole('button', { name: /^Check again in [1-3] s$/ });
  await waiting.waitFor();
  expect(await waiting.isDisabled()).toBe(true);
  expect(await records.getByRole('alert').count()).toBe(0);
  await records.getByRole('button', { name: 'Check now' }).waitFor();
  api.refusal = { status: 403, code: 'ACCOUNT_SUSPENDED', error: 'this account is suspended' };
  await records.getByRole('button', { name: 'Check now' }).click();
  await records.getByRole('alert').getByText("Couldn't check the records").waitFor();
  api.change('example-org', { state: 'verified', last_error: null });
  await records.getByRole('button', { name: 'Check now' }).click();
  await page.getByText('Verified', { exact: true }).waitFor();
  expect(await records.getByRole('alert').count()).toBe(0);
});

it('a custom domain is removed only after its name is typed, and disappears from the list', async ({
  profile,
  stack,
}) => {
  const { api, page } = await openList(profile, stack);
  await page.getByRole('link', { name: 'Details: shop.example.com' }).click();
  await page.getByRole('heading', { name: 'shop.example.com', level: 1 }).waitFor();
  await page.getByRole('button', { name: 'Remove', exact: true }).click();
  const question = page.getByRole('dialog', { name: 'Remove shop.example.com?' });
  await question.getByText('1 live tunnel on this domain will be closed within 2 seconds.').waitFor();
  await page.keyboard.type('yes');
  await page.keyboard.press('Enter');
  await question.getByRole('alert').getByText('Type shop.example.com').waitFor();
  expect(api.list).toHaveLength(6);
  await question.getByLabel('Type shop.example.com to confirm').fill('shop.example.com');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Domains', level: 1 }).waitFor();
  await eventually(async () => {
    expect(await page.getByRole('link', { name: 'shop.example.com', exact: true }).count()).toBe(0);
  }, SOON);
  expect(api.list).toHaveLength(5);
  const gone = await profile.tab('/domains/shop-example-com');
  await gone.getByText('Domain not found').waitFor();
});

it('a domain of 253 characters fits a phone in the list, on its page and in the dialog', async ({ profile, stack }) => {
  const name = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(57)}.com`;
  const { page } = await openList(profile, stack, [ownDomain(name, { active_tunnels: 1 })]);
  await page.setViewportSize({ width: 360, height: 800 });
  await page.getByRole('link', { name, exact: true }).waitFor();
  expect(await overhang(page)).toBe(0);
  await page.getByRole('link', { name, exact: true }).click();
  await page.getByRole('heading', { name, level: 1 }).waitFor();
  await cardOf(page, 'Use this domain').waitFor();
  expect(await overhang(page)).toBe(0);
  await page.getByRole('button', { name: 'Remove' }).click();
  const question = page.getByRole('dialog');
  await question.getByRole('textbox').waitFor();
  const wide =
    'document.querySelector("dialog[open]").scrollWidth - document.querySelector("dialog[open]").clientWidth';
  expect(await page.evaluate(wide)).toBe(0);
});

// The search over pages, tunnels and domains, the list of shortcuts, and the five tabs on a phone, all by keyboard.
import type { TunnelLogEntry } from '@tunnel/contract';
import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { Account } from './account.fixture.ts';
import { findingsOf } from './axe-findings.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { manyTunnels } from './large-lists.fixture.ts';
import { DomainsApi, ownDomain } from './own-domains.fixture.ts';
import type { Profile } from './profile.fixture.ts';

const heading = (page: Page, name: string): Locator => page.getByRole('heading', { name, level: 1 });

const liveTunnels = (count: number): TunnelLogEntry[] =>
  manyTunnels(count).map((entry) => ({ ...entry, unregistered_at: null, client_name: 'laptop' }));

const answerTunnels = (profile: Profile, list: () => readonly TunnelLogEntry[]): Promise<unknown> =>
  profile.context.route('**/usage/tunnels?*', (route) => route.fulfill({ json: list() }));

const selectedIn = (page: Page): Promise<string> =>
  page.evaluate<string>(
    `document.getElementById(document.activeElement.getAttribute('aria-activedescendant') ?? '')?.textContent ?? ''`,
  );

it('Ctrl-K finds pages, tunnels and domains by keyboard, and Escape restores the focus', async ({ profile, stack }) => {
  await profile.logIn((await Account.signUp(stack, 'search')).email);
  await answerTunnels(profile, () => liveTunnels(3));
  await DomainsApi.in(profile.context, [ownDomain('shop.example.com')]);
  const page = await profile.tab('/keys');
  await heading(page, 'Keys').waitFor();
  await page.getByRole('button', { name: 'Create key' }).first().focus();
  await page.keyboard.press('Control+k');
  const field = page.getByRole('combobox', { name: 'Search pages, tunnels and domains' });
  await field.and(page.locator(':focus')).waitFor();
  await page.getByRole('option', { name: 'shop.example.com' }).waitFor();
  await page.getByRole('option', { name: /^site-1/ }).waitFor();
  expect(await selectedIn(page)).toContain('Overview');
  await page.keyboard.press('ArrowUp');
  expect(await selectedIn(page)).toContain('shop.example.com');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  expect(await selectedIn(page)).toContain('Tunnels');
  expect(await findingsOf(page)).toEqual([]);
  await page.keyboard.type('nothing like this');
  await page.getByRole('dialog').getByText('No matches.').waitFor();
  expect(await findingsOf(page)).toEqual([]);
  await page.keyboard.press('Enter');
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  expect(await page.evaluate('document.activeElement.textContent')).toContain('Create key');
  // Cmd-K is the shortcut on a Mac.
  await page.keyboard.press('Meta+k');
  await field.waitFor();
  await page.keyboard.type('SHOP');
  await page.keyboard.press('Enter');
  await heading(page, 'shop.example.com').waitFor();
  await page.keyboard.press('Control+k');
  await field.waitFor();
  await page.keyboard.type('nam');
  await page.keyboard.press('Enter');
  await heading(page, 'Names').waitFor();
  // The browser's Back button closes the dialog as well.
  await page.keyboard.press('Control+k');
  await field.waitFor();
  await page.goBack();
  await heading(page, 'shop.example.com').waitFor();
  expect(await page.getByRole('dialog').count()).toBe(0);
});

it('a tunnel that ends during a search moves the selection to the next result; a slow API does not delay results for pages', async ({
  profile,
  stack,
}) => {
  await profile.logIn((await Account.signUp(stack, 'gone')).email);
  let list = liveTunnels(8).filter(({ protocol }) => protocol === 'http');
  let answer = (): void => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  await profile.context.route('**/usage/tunnels?*', async (route) => {
    await answered;
    await route.fulfill({ json: list });
  });
  const page = await profile.tab('/settings');
  await heading(page, 'Settings').waitFor();
  await page.keyboard.press('Control+k');
  await page.getByText('Loading tunnels and domains.').waitFor();
  await page.keyboard.type('s');
  expect(await selectedIn(page)).toContain('Settings');
  answer();
  await page.getByRole('option', { name: /^site-1/ }).waitFor();
  expect(await selectedIn(page)).toContain('Settings');
  await page.keyboard.type('ite');
  await page.keyboard.press('ArrowDown');
  expect(await selectedIn(page)).toContain('site-2');
  list = list.filter(({ label }) => label !== 'site-2');
  await page.getByRole('option', { name: /^site-2/ }).waitFor({ state: 'detached' });
  expect(await selectedIn(page)).toContain('site-3');
  list = [];
  await page.getByText('No matches.').waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Search' }).waitFor();
});

it('search results of 100 tunnels with long names fit a phone, and pages are found even while the API returns errors', async ({
  profile,
  stack,
}) => {
  await profile.logIn((await Account.signUp(stack, 'crowd')).email);
  const long = 'x'.repeat(60);
  const list = liveTunnels(100).map((entry, index) => ({
    ...entry,
    label: `${long}${index}`,
    client_name: 'W'.repeat(64),
  }));
  await answerTunnels(profile, () => list);
  const page = await profile.tab('/settings');
  await page.setViewportSize({ width: 360, height: 800 });
  await heading(page, 'Settings').waitFor();
  await page.keyboard.press('Control+k');
  await page
    .getByText(/^Tunnel on W/)
    .first()
    .waitFor();
  expect(await page.getByRole('option').count()).toBe(50);
  for (const _ of Array.from({ length: 30 })) await page.keyboard.press('ArrowDown');
  const selected = page.getByRole('option', { selected: true });
  const results = page.getByRole('listbox');
  const row = await selected.boundingBox();
  const frame = await results.boundingBox();
  expect(row?.y).toBeGreaterThanOrEqual(frame?.y ?? 0);
  expect((row?.y ?? 0) + (row?.height ?? 0)).toBeLessThanOrEqual((frame?.y ?? 0) + (frame?.height ?? 0) + 1);
  const overhang = `(() => { const { scrollWidth, clientWidth } = document.querySelector('[role=listbox]'); return scrollWidth - clientWidth; })()`;
  expect(await page.evaluate(overhang)).toBe(0);
  await page.keyboard.type('x99');
  expect(await page.getByRole('option').count()).toBe(1);

  await profile.context.route('**/usage/tunnels?*', (route) =>
    route.fulfill({ status: 429, json: { error: 'too many requests', code: 'API_ACCOUNT_LIMIT', request_id: 'r' } }),
  );
  await page.reload();
  await heading(page, 'Settings').waitFor();
  await page.keyboard.press('Control+k');
  await page.getByText("Couldn't load tunnels and domains.").waitFor();
  await page.keyboard.type('bil');
  await page.keyboard.press('Enter');
  await heading(page, 'Billing').waitFor();
});

it('`?` opens the list of shortcuts except in a text field, and no dialog opens above another dialog', async ({
  profile,
  stack,
}) => {
  await profile.logIn((await Account.signUp(stack, 'keys-help')).email);
  const page = await profile.tab('/names');
  await heading(page, 'Names').waitFor();
  await page.keyboard.press('?');
  const keys = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
  await keys.getByText('Search pages, tunnels and domains').waitFor();
  expect(await findingsOf(page)).toEqual([]);
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.keyboard.press('Control+k');
  await page.keyboard.press('Escape');
  await keys.waitFor({ state: 'hidden' });
  expect(await page.getByRole('dialog').count()).toBe(0);
  await page.getByRole('button', { name: 'Reserve' }).first().click();
  const field = page.getByRole('dialog').getByRole('textbox', { name: 'Name' });
  await field.waitFor();
  await page.keyboard.type('a?');
  await page.keyboard.press('Control+k');
  expect(await field.inputValue()).toBe('a?');
  expect(await page.getByRole('dialog').count()).toBe(1);
});

it('shortcuts do nothing before sign-in, and the end of a session closes the search', async ({ profile, stack }) => {
  const page = await profile.tab('/login');
  await page.getByRole('button', { name: 'Sign in' }).focus();
  await page.keyboard.press('Control+k');
  await page.keyboard.press('?');
  expect(await page.getByRole('dialog').count()).toBe(0);
  await profile.logIn((await Account.signUp(stack, 'ends')).email);
  const one = await profile.tab('/names');
  const other = await profile.tab('/settings');
  await heading(one, 'Names').waitFor();
  await one.keyboard.press('Control+k');
  await one.getByRole('dialog', { name: 'Search' }).waitFor();
  await other.getByRole('button', { name: 'Sign out', exact: true }).click();
  await one.getByRole('button', { name: 'Sign in' }).waitFor();
  expect(await one.getByRole('dialog').count()).toBe(0);
});

it('the navigation on a phone has five tabs; further pages of a section are tabs on its pages', async ({
  profile,
  stack,
}) => {
  await profile.logIn((await Account.signUp(stack, 'tabs')).email);
  const page = await profile.tab('/keys');
  await page.setViewportSize({ width: 390, height: 844 });
  await heading(page, 'Keys').waitFor();
  const main = page.getByRole('navigation', { name: 'Main' });
  expect(await main.getByRole('link').allInnerTexts()).toEqual([
    'Overview',
    'Tunnels',
    'Domains',
    'Groups',
    'Settings',
  ]);
  expect(await main.getByRole('link', { name: 'Settings' }).getAttribute('aria-current')).toBe('true');
  const tabs = page.getByRole('navigation', { name: 'Section' });
  await tabs.getByRole('link', { name: 'Billing' }).click();
  await heading(page, 'Billing').waitFor();
  await tabs.getByRole('link', { name: 'Settings' }).click();
  await heading(page, 'Settings').waitFor();
  expect(await findingsOf(page)).toEqual([]);
  await page.setViewportSize({ width: 390, height: 844 });
  await main.getByRole('link', { name: 'Domains' }).click();
  await tabs.getByRole('link', { name: 'Names' }).click();
  await heading(page, 'Names').waitFor();
  expect(await findingsOf(page)).toEqual([]);
});

it('a server on this computer offers no custom domains', async ({ profile, stack }) => {
  await profile.logIn((await Account.signUp(stack, 'local')).email);
  const page = await profile.tab('/domains');
  await page.getByText('Custom domains need a public server').waitFor();
  expect(await page.getByRole('button', { name: 'Add domain' }).count()).toBe(0);
  await page.getByRole('link', { name: 'see Names' }).click();
  await heading(page, 'Names').waitFor();
});

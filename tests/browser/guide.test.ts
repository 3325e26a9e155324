// The guide in a browser: under its content security policy, on a phone and in dark mode. A violation fails the profile.
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { Account } from './account.fixture.ts';
import { findingsOf } from './axe-findings.fixture.ts';
import { it } from './browser-test.fixture.ts';

/** Script that returns what makes a page wider than its window, and the number of entries in its table of contents. */
const MEASURED = `({
  excess: document.documentElement.scrollWidth - innerWidth,
  wide: [...document.querySelectorAll('main *, header *, nav *')]
    .filter((element) => element.closest('pre, .table') === null && element.getBoundingClientRect().right > innerWidth + 1)
    .map((element) => element.outerHTML.slice(0, 120)),
  entries: [...document.querySelectorAll('.contents a')].filter((entry) => entry.checkVisibility()).length,
  pictures: [...document.images].filter(({ complete, naturalWidth }) => complete && naturalWidth === 0).length,
})`;

interface Measured {
  readonly excess: number;
  readonly wide: readonly string[];
  readonly entries: number;
  readonly pictures: number;
}

const addressesOf = (page: Page): Promise<string[]> =>
  page.locator('nav.pages a').evaluateAll((links) => links.map((link) => (link as unknown as { href: string }).href));

it('every page fits a phone in dark mode and a desktop, and has a table of contents', async ({ profile, stack }) => {
  const page = await profile.context.newPage();
  await page.goto(`${stack.run.platform_url}/docs/guide/`);
  const pages = (await addressesOf(page)).filter((address) => address.includes('/docs/guide/'));
  expect(pages.length).toBeGreaterThan(38);
  for (const [width, colorScheme] of [
    [360, 'dark'],
    [1440, 'light'],
  ] as const) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme });
    for (const address of pages) {
      await page.goto(address);
      const { excess, wide, entries, pictures } = await page.evaluate<Measured>(MEASURED);
      expect([address, width, excess, wide, pictures]).toEqual([address, width, 0, [], 0]);
      expect(entries, address).toBeGreaterThan(0);
    }
  }
});

it('pages have the colors of the theme, readable contrast, and boxes that the keyboard can scroll', async ({
  profile,
  stack,
}) => {
  const page = await profile.context.newPage();
  const background = `getComputedStyle(document.body).backgroundColor`;
  for (const name of ['', 'udp', 'mcp']) {
    await page.goto(`${stack.run.platform_url}/docs/guide/${name}`);
    expect(await findingsOf(page)).toEqual([]);
  }
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await page.evaluate(background)).toBe('rgb(11, 13, 17)');
  await page.emulateMedia({ colorScheme: 'light' });
  expect(await page.evaluate(background)).toBe('rgb(250, 250, 251)');
});

it('the dashboard leads to the guide, and the guide to a heading, a recipe, the API reference and the dashboard', async ({
  profile,
  stack,
}) => {
  const { email } = await Account.signUp(stack, 'guide');
  await profile.logIn(email);
  const page = await profile.tab('/');
  await page.getByRole('link', { name: 'Docs' }).click();
  await page.getByRole('heading', { name: 'Hatchway documentation', level: 1 }).waitFor();

  await page.getByRole('navigation', { name: 'All pages' }).getByRole('link', { name: 'HTTP tunnels' }).click();
  await page.getByRole('navigation', { name: 'On this page' }).getByRole('link', { name: 'Error pages' }).click();
  const heading = page.getByRole('heading', { name: 'Error pages' });
  await expect.poll(async () => (await heading.boundingBox())?.y ?? 0).toBeLessThan(200);
  // The heading is not behind the header.
  expect((await heading.boundingBox())?.y).toBeGreaterThan(50);

  await page.goto(`${stack.run.platform_url}/docs/guide/certificates`);
  await page.getByRole('link', { name: 'recipes/dns-01-nsupdate.sh' }).click();
  await page.getByText('#!/bin/sh').waitFor();
  await page.goBack();
  await page.getByRole('navigation', { name: 'Site' }).getByRole('link', { name: 'API reference' }).click();
  await page.getByRole('heading', { name: 'Hatchway platform API' }).waitFor();
  await page.goBack();
  await page.getByRole('navigation', { name: 'Site' }).getByRole('link', { name: 'Dashboard' }).click();
  await page.getByRole('navigation', { name: 'Main' }).waitFor();
});

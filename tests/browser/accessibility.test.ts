// Accessibility of every page: no serious axe findings, no overflow on phone, tablet and desktop widths in light and dark themes, one
// landmark of each kind, and full use by keyboard.
import type { Browser, Page } from 'playwright-core';
import { expect } from 'vitest';
import { Harness } from '../system/harness.fixture.ts';
import { Account } from './account.fixture.ts';
import { findingsOf, seriousFindings } from './axe-findings.fixture.ts';
import { orSkip, withBrowser } from './browser-test.fixture.ts';
import {
  ACCOUNT_PAGES,
  BEGINNER_PAGES,
  CONSENT_PAGES,
  DIALOG_PAGES,
  DOMAIN_PAGES,
  DOOR_PAGES,
  SUBSCRIBE_PAGE,
  visit,
} from './dashboard-pages.fixture.ts';
import { type Example, makeExample } from './example-account.fixture.ts';
import { walkByTab } from './keyboard-walk.fixture.ts';
import { DomainsApi } from './own-domains.fixture.ts';
import type { StackAddress } from './own-stack.fixture.ts';
import { Profile } from './profile.fixture.ts';

interface Visitor {
  readonly profile: Profile;
  readonly page: Page;
}

/** Opens a tab that all tests of this file share. The tests go from page to page and check each at every width and in both themes. */
const visitor = async (browser: Browser, stack: StackAddress, email?: string): Promise<Visitor> => {
  const profile = await Profile.open(browser, stack);
  if (email !== undefined) await profile.logIn(email);
  return { profile, page: await profile.context.newPage() };
};

const leave = async ({ profile }: Visitor): Promise<void> => {
  await profile.close();
  expect(profile.faults).toEqual([]);
};

const it = orSkip(
  withBrowser.extend<{ example: Example; nobody: Visitor; owner: Visitor; proprietor: Visitor; beginner: Visitor }>({
    // An account with tunnels of separate clients.
    example: [
      async ({ stack }, use) => {
        const harness = new Harness();
        const names = { web: `web-${process.pid}`, pool: `good-${process.pid}`, downPool: `bad-${process.pid}` };
        await use(await makeExample(harness, stack, names));
        await harness.close();
      },
      { scope: 'file' },
    ],
    nobody: [
      async ({ browser, stack }, use) => {
        const one = await visitor(browser, stack);
        await use(one);
        await leave(one);
      },
      { scope: 'file' },
    ],
    owner: [
      async ({ browser, stack, example: { account } }, use) => {
        const one = await visitor(browser, stack, account.email);
        await use(one);
        await leave(one);
      },
      { scope: 'file' },
    ],
    // A visitor with custom domains in every state.
    proprietor: [
      async ({ browser, stack, example: { account } }, use) => {
        const one = await visitor(browser, stack, account.email);
        await DomainsApi.in(one.profile.context);
        await use(one);
        await leave(one);
      },
      { scope: 'file' },
    ],
    beginner: [
      async ({ browser, stack }, use) => {
        const one = await visitor(browser, stack, (await Account.signUp(stack, 'beginner')).email);
        await use(one);
        await leave(one);
      },
      { scope: 'file' },
    ],
  }),
);

const PAGES = ['Overview', 'Tunnels', 'Domains', 'Names', 'Groups', 'Keys', 'Billing', 'Settings'];
const PHONE_TABS = ['Overview', 'Tunnels', 'Domains', 'Groups', 'Settings'];

const landmarks = async (page: Page): Promise<{ main: number; nav: number }> => ({
  main: await page.getByRole('main').count(),
  nav: await page.getByRole('navigation').count(),
});

const navigationOf = (page: Page): Promise<string[]> =>
  page.getByRole('navigation', { name: 'Main' }).getByRole('link').allInnerTexts();

it.for(DOOR_PAGES)(
  'the signed-out page $name fits every width, has no serious accessibility findings, one main landmark and no navigation, and works by keyboard',
  async (shown, { nobody: { page, profile } }) => {
    await visit(page, profile, shown);
    expect(await findingsOf(page)).toEqual([]);
    expect(await landmarks(page)).toEqual({ main: 1, nav: 0 });
    expect(await walkByTab(page)).toEqual({ missed: [], unseen: [] });
  },
);

it.for(ACCOUNT_PAGES)(
  'the page $name fits every width, has no serious accessibility findings, one main landmark and the full navigation, and works by keyboard',
  async (shown, { example: { tunnelId }, owner: { page, profile } }) => {
    await visit(page, profile, shown, tunnelId);
    expect(await landmarks(page)).toEqual({ main: 1, nav: 1 });
    expect(await navigationOf(page)).toEqual(PAGES);
    expect(await walkByTab(page)).toEqual({ missed: [], unseen: [] });
    expect(await findingsOf(page)).toEqual([]);
    // A phone shows five tabs at the bottom.
    expect(await navigationOf(page)).toEqual(PHONE_TABS);
    await page.setViewportSize({ width: 1440, height: 900 });
  },
);

it.for([...DIALOG_PAGES, SUBSCRIBE_PAGE])(
  'the dialog $name fits every width and has no serious accessibility findings in either theme',
  async (shown, { owner: { page, profile } }) => {
    await visit(page, profile, shown);
    expect(await findingsOf(page)).toEqual([]);
  },
);

it.for(DOMAIN_PAGES)(
  'the custom domain page $name fits every width and has no serious accessibility findings in either theme',
  async (shown, { proprietor: { page, profile } }) => {
    await visit(page, profile, shown);
    expect(await findingsOf(page)).toEqual([]);
  },
);

it.for(CONSENT_PAGES)(
  'the consent page $name fits every width, has no serious accessibility findings, one main landmark and no navigation, and works by keyboard',
  async (shown, { example: { app }, owner: { page, profile } }) => {
    await visit(page, profile, shown, await app.request());
    expect(await findingsOf(page)).toEqual([]);
    expect(await landmarks(page)).toEqual({ main: 1, nav: 0 });
    expect(await walkByTab(page)).toEqual({ missed: [], unseen: [] });
  },
);

it.for(BEGINNER_PAGES)(
  'the page $name of a new account fits every width and has no serious accessibility findings in either theme',
  async (shown, { beginner: { page, profile } }) => {
    await visit(page, profile, shown);
    expect(await findingsOf(page)).toEqual([]);
  },
);

it('a keyboard user can skip to the content, open a tunnel from the list, and return', async ({
  example: { account },
  profile,
}) => {
  await profile.logIn(account.email);
  const page = await profile.tab('/tunnels');
  await page.getByText(/addresses, \d live/).waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  expect(await page.evaluate('document.activeElement.tagName')).toBe('MAIN');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('k');
  const label = (await page.evaluate('document.activeElement.textContent')) as string;
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: label, level: 1 }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('heading', { name: 'Tunnels', level: 1 }).waitFor();
});

it('the accessibility checks find planted faults of contrast, alternative text and focus', async ({ profile }) => {
  const page = await profile.tab('/login');
  await page.getByRole('heading', { name: 'Sign in', level: 1 }).waitFor();
  // The planted fault appears at a single width and in a single theme.
  const pale = '@media (600px < width < 800px) and (prefers-color-scheme: dark) { h1 { color: #333 !important } }';
  await page.evaluate(`document.styleSheets[0].insertRule(${JSON.stringify(pale)})`);
  expect(await findingsOf(page)).toEqual([expect.stringMatching(/^768 px, dark: color-contrast: <h1/)]);
  await page.evaluate(`{
    const picture = document.querySelector('main').appendChild(document.createElement('img'));
    picture.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACw=';
    const bare = document.createElement('button');
    bare.textContent = 'bare';
    bare.style.outline = 'none';
    const shy = document.createElement('button');
    shy.textContent = 'shy';
    shy.addEventListener('focus', () => shy.blur());
    const last = document.createElement('button');
    last.textContent = 'last';
    document.querySelector('main').append(bare, shy, last);
  }`);
  expect((await seriousFindings(page)).join()).toContain('image-alt');
  const { missed, unseen } = await walkByTab(page);
  expect(unseen).toEqual([expect.stringContaining('bare')]);
  expect(missed).toContainEqual(expect.stringContaining('shy'));
});

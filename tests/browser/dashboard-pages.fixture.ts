// Every page of the dashboard, with the text that shows when the page has loaded.
import type { Page } from 'playwright-core';

export interface DashboardPage {
  readonly name: string;
  readonly path: string;
  /** Text of the first heading. */
  readonly heading: string | RegExp;
  /** Text that appears last. When it is visible, the page is complete. */
  readonly whole?: string | RegExp;
  /** Action before the check, for example opening a dialog or selecting a row. */
  readonly act?: (page: Page) => Promise<void>;
}

/** Pages before sign-in. */
export const DOOR_PAGES: readonly DashboardPage[] = [
  { name: 'login', path: '/login', heading: 'Sign in' },
  { name: 'signup', path: '/signup', heading: 'Create an account', whole: 'Optional' },
  { name: 'check-mail', path: '/check-mail', heading: 'Resend verification email' },
  { name: 'verify', path: '/verify?token=x', heading: 'Verify your email', whole: 'Resend email' },
  { name: 'forgot', path: '/forgot', heading: 'Reset your password' },
  { name: 'reset-password', path: '/reset-password?token=x', heading: 'Choose a new password' },
];

/** Placeholder in paths for the id of an http tunnel with requests, or of an app's authorization request. */
const ID = ':id';

/** Pages of an account with content on every page. */
export const ACCOUNT_PAGES: readonly DashboardPage[] = [
  { name: 'overview', path: '/', heading: 'Overview', whole: 'Live tunnels' },
  { name: 'tunnels', path: '/tunnels', heading: 'Tunnels', whole: /addresses, \d live/ },
  {
    name: 'tunnel',
    path: `/tunnels/${ID}`,
    // The heading is the tunnel's name as soon as it has loaded.
    heading: /^(?!Tunnel$)/,
    whole: 'Replay',
    act: (page) => page.locator('[data-request]', { hasText: '/items' }).first().click(),
  },
  { name: 'domains', path: '/domains', heading: 'Domains', whole: 'Custom domains need a public server' },
  { name: 'names', path: '/names', heading: 'Names', whole: 'Temporarily held' },
  { name: 'pools', path: '/pools', heading: 'Groups', whole: /chosen at random/ },
  { name: 'keys', path: '/keys', heading: 'Keys', whole: 'build server' },
  { name: 'billing', path: '/billing', heading: 'Billing', whole: 'Spend limit' },
  { name: 'settings', path: '/settings', heading: 'Settings', whole: 'Current' },
  { name: 'not-found', path: '/nowhere', heading: 'Page not found' },
];

/** Pages of an account with custom domains in every state, from own-domains.fixture.ts. */
export const DOMAIN_PAGES: readonly DashboardPage[] = [
  { name: 'own-domains', path: '/domains', heading: 'Domains', whole: 'typo.example.com' },
  { name: 'domain', path: '/domains/shop-example-com', heading: 'shop.example.com', whole: 'Next renewal' },
  { name: 'domain-pending', path: '/domains/example-org', heading: 'example.org', whole: '203.0.113.7' },
  { name: 'domain-lapsed', path: '/domains/old-example-com', heading: 'old.example.com', whole: 'Missing' },
  {
    name: 'add-domain',
    path: '/domains',
    heading: 'Domains',
    whole: 'Issue a certificate',
    act: (page) => page.getByRole('button', { name: 'Add domain' }).first().click(),
  },
  {
    name: 'remove-domain',
    path: '/domains/shop-example-com',
    heading: 'shop.example.com',
    whole: 'to confirm',
    act: (page) => page.getByRole('button', { name: 'Remove' }).click(),
  },
];

/** Pages for the authorization request of an app. The id is that of the request. */
export const CONSENT_PAGES: readonly DashboardPage[] = [
  { name: 'consent', path: `/consent?request=${ID}`, heading: /^An app wants to connect/, whole: 'in Settings' },
  { name: 'consent-over', path: '/consent', heading: 'This request has expired' },
];

/** Dialogs of the settings page that ask for confirmation. */
const SETTINGS_DIALOGS: readonly DashboardPage[] = [
  ['change-password', 'Change password', 'New password'],
  ['change-email', 'Change email', 'New email'],
  ['log-out-others', 'Sign out everywhere else', /^Sign out of \d+ other device/],
  ['disconnect-app', /^Disconnect/, 'must ask for access again'],
  ['delete-account', 'Delete account', 'Delete your account?'],
].map(([name, button = '', whole = '']) => ({
  name: String(name),
  path: '/settings',
  heading: 'Settings',
  whole,
  act: (page) => page.getByRole('button', { name: button }).click(),
}));

const createKey = async (page: Page): Promise<void> => {
  await page.getByRole('button', { name: 'Create key' }).first().click();
  await page.getByRole('dialog').getByLabel('Label').fill('raspberry pi');
  await page.keyboard.press('Enter');
};

/** Dialogs before an action. */
export const DIALOG_PAGES: readonly DashboardPage[] = [
  {
    name: 'stop-tunnel',
    path: '/tunnels',
    heading: 'Tunnels',
    whole: 'Open connections can finish.',
    act: (page) =>
      page
        .getByRole('button', { name: /^Stop http/ })
        .first()
        .click(),
  },
  {
    name: 'new-tunnel',
    path: '/tunnels',
    heading: 'Tunnels',
    whole: 'Start a tunnel',
    act: (page) => page.getByRole('button', { name: 'New tunnel' }).click(),
  },
  {
    name: 'reserve',
    path: '/names',
    heading: 'Names',
    whole: 'Public URL:',
    act: (page) => page.getByRole('button', { name: 'Reserve', exact: true }).first().click(),
  },
  {
    name: 'release',
    path: '/names',
    heading: 'Names',
    whole: 'to confirm',
    act: async (page) => {
      // On a phone the button is in a row that has to be opened first.
      await page.setViewportSize({ width: 1440, height: 900 });
      await page
        .getByRole('button', { name: /^Release (?!tcp)/ })
        .first()
        .click();
    },
  },
  {
    name: 'create-key',
    path: '/keys',
    heading: 'Keys',
    whole: 'Label',
    act: (page) => page.getByRole('button', { name: 'Create key' }).first().click(),
  },
  {
    name: 'revoke-key',
    path: '/keys',
    heading: 'Keys',
    whole: 'Cancel',
    act: (page) => page.getByRole('button', { name: 'Revoke laptop' }).click(),
  },
  {
    name: 'new-key',
    path: '/keys',
    heading: 'Keys',
    whole: "You won't see it again",
    act: (page) => createKey(page),
  },
  {
    name: 'new-key-mcp',
    path: '/keys',
    heading: 'Keys',
    whole: 'mcpServers',
    act: async (page) => {
      await createKey(page);
      await page.getByRole('radio', { name: 'MCP host' }).check();
    },
  },
  {
    name: 'search',
    path: '/names',
    heading: 'Names',
    whole: /^Tunnel on /,
    act: (page) => page.keyboard.press('Control+k'),
  },
  {
    name: 'keys-help',
    path: '/names',
    heading: 'Names',
    whole: 'Keyboard shortcuts',
    act: (page) => page.keyboard.press('?'),
  },
  ...SETTINGS_DIALOGS,
];

/** Subscription dialog of an account that does not pay yet. */
export const SUBSCRIBE_PAGE: DashboardPage = {
  name: 'subscribe',
  path: '/billing',
  heading: 'Billing',
  whole: 'You pay nothing today.',
  act: (page) => page.getByRole('button', { name: 'Subscribe' }).click(),
};

/** Pages of an account without a visitor so far. */
export const BEGINNER_PAGES: readonly DashboardPage[] = [
  { name: 'first-run', path: '/', heading: 'Get started', whole: 'Waiting for your first tunnel' },
  {
    name: 'overview-empty',
    path: '/',
    heading: 'Get started',
    whole: 'No tunnels yet',
    act: (page) => page.getByRole('button', { name: 'Skip' }).click(),
  },
  { name: 'tunnels-empty', path: '/tunnels', heading: 'Tunnels' },
  { name: 'names-empty', path: '/names', heading: 'Names', whole: 'No reserved names yet' },
  { name: 'pools-empty', path: '/pools', heading: 'Groups', whole: 'No groups yet' },
  { name: 'keys-empty', path: '/keys', heading: 'Keys', whole: 'No keys yet' },
];

export interface Visited {
  urlOf(path: string): string;
}

/** Opens a page and waits until it is complete. */
export const visit = async (page: Page, at: Visited, shown: DashboardPage, id = ''): Promise<void> => {
  await goTo(page, at.urlOf(shown.path.replace(ID, id)), at.urlOf('/'));
  await page.getByRole('heading', { name: shown.heading, level: 1 }).waitFor();
  await shown.act?.(page);
  if (shown.whole !== undefined) await page.getByText(shown.whole).first().waitFor();
  await page.locator('.skeleton, [aria-busy="true"]').first().waitFor({ state: 'detached' });
};

/** Navigates inside the app like a link, without reloading. Anything left open on the previous page disappears. */
const goTo = async (page: Page, url: string, app: string): Promise<void> => {
  if (!page.url().startsWith(app)) {
    await page.goto(url);
    return;
  }
  const follow = (to: string) => page.evaluate(`history.pushState(null, '', ${JSON.stringify(to)})`);
  if (new URL(page.url()).pathname === new URL(url).pathname) {
    await follow(`${app}left`);
    await page.getByRole('heading', { name: 'Page not found', level: 1 }).waitFor();
  }
  await follow(url);
};

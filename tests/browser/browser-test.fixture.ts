// What a browser test has: the shared stack, a browser of its own profile, and programs and services that end with it.
import { join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { expect, inject } from 'vitest';
import { ROOT } from '../repo/checkout.fixture.ts';
import { it as harnessIt } from '../system/system-test.fixture.ts';
import { type StackAddress, stackAt } from './own-stack.fixture.ts';
import { Profile } from './profile.fixture.ts';

/** Pictures of the pages of tests that failed. */
const FAILURES = join(ROOT, '.cache/browser-failures');

const address = inject('browserAddress');

interface BrowserHarness {
  browser: Browser;
  stack: StackAddress;
  /** Of a person that nobody knows yet. Whatever goes wrong in its pages fails the test. */
  profile: Profile;
}

export const withBrowser = harnessIt.extend<BrowserHarness>({
  browser: [
    async ({ task: _ }, use) => {
      const browser = await chromium.connect(address.endpoint ?? '');
      await use(browser);
      await browser.close();
    },
    { scope: 'file' },
  ],
  stack: [async ({ task: _ }, use) => use(stackAt(address.dataDir, address.flags)), { scope: 'file' }],
  profile: async ({ browser, stack, task }, use) => {
    const profile = await Profile.open(browser, stack);
    await use(profile);
    if (task.result?.state === 'fail') await profile.picture(join(FAILURES, task.id)).catch(() => {});
    await profile.close();
    // As text: a report shows it whole.
    expect(profile.faults.join('\n')).toBe('');
  },
});

/** Where no browser runs there is nothing to test. */
export const orSkip = <T extends { readonly skip: unknown }>(some: T): T =>
  address.endpoint === null ? (some.skip as T) : some;

export const it = orSkip(withBrowser);

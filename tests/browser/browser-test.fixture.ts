// The test context of browser tests: the shared stack, a separate browser profile, and programs and services that are stopped after the
// test.
import { join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { expect, inject } from 'vitest';
import { ROOT } from '../repo/checkout.fixture.ts';
import { it as harnessIt } from '../system/system-test.fixture.ts';
import { type StackAddress, stackAt } from './own-stack.fixture.ts';
import { Profile } from './profile.fixture.ts';

/** Folder for screenshots of failed tests. */
const FAILURES = join(ROOT, '.cache/browser-failures');

const address = inject('browserAddress');

interface BrowserHarness {
  browser: Browser;
  stack: StackAddress;
  /** Browser profile of a new visitor. A fault in any of its pages fails the test. */
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
    // The faults are compared as text, because a report shows text completely.
    expect(profile.faults.join('\n')).toBe('');
  },
});

/** Skips the tests on machines without a browser. */
export const orSkip = <T extends { readonly skip: unknown }>(some: T): T =>
  address.endpoint === null ? (some.skip as T) : some;

export const it = orSkip(withBrowser);

// What a browser test has: the shared stack, a browser of its own profile, and programs and services that end with it.
import { type Browser, chromium } from 'playwright-core';
import { expect, inject } from 'vitest';
import { it as sceneIt } from '../system/scene.ts';
import { type StackPlace, stackAt } from './own-stack.ts';
import { Profile } from './profile.ts';

const place = inject('browserPlace');

interface BrowserScene {
  browser: Browser;
  stack: StackPlace;
  /** Of a person that nobody knows yet. Whatever goes wrong in its pages fails the test. */
  profile: Profile;
}

const withBrowser = sceneIt.extend<BrowserScene>({
  browser: [
    async ({ task: _ }, use) => {
      const browser = await chromium.connect(place.endpoint ?? '');
      await use(browser);
      await browser.close();
    },
    { scope: 'file' },
  ],
  stack: async ({ task: _ }, use) => use(stackAt(place.dataDir, place.flags)),
  profile: async ({ browser, stack }, use) => {
    const profile = await Profile.open(browser, stack);
    await use(profile);
    await profile.close();
    expect(profile.faults).toEqual([]);
  },
});

export const it = (place.endpoint === null ? withBrowser.skip : withBrowser) as typeof withBrowser;

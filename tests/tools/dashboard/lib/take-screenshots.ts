// Takes screenshots of every page for an account that has been used for a while.
import { copyFileSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Account } from '../../../browser/account.fixture.ts';
import {
  ACCOUNT_PAGES,
  BEGINNER_PAGES,
  CONSENT_PAGES,
  type DashboardPage,
  DIALOG_PAGES,
  DOMAIN_PAGES,
  DOOR_PAGES,
  visit,
} from '../../../browser/dashboard-pages.fixture.ts';
import { makeExample } from '../../../browser/example-account.fixture.ts';
import { DomainsApi } from '../../../browser/own-domains.fixture.ts';
import { Profile } from '../../../browser/profile.fixture.ts';
import { ROOT } from '../../../repo/checkout.fixture.ts';
import { onStage, type Stage, type Tools } from './browser-and-stack.ts';
import { seedHistory } from './seed-history.ts';
import { subscribe } from './subscribe.ts';

const FOLDER = join(ROOT, '.cache/screenshots');
/** Folder with the screenshots that documentation pages show. */
const SHOWN = join(ROOT, 'docs/screenshots');
const DEVICES = { desktop: { width: 1440, height: 900 }, phone: { width: 360, height: 800 } } as const;
const THEMES = ['light', 'dark'] as const;
type Device = keyof typeof DEVICES;

interface Who {
  readonly pages: readonly DashboardPage[];
  /** Account that is signed in; undefined for pages before sign-in. */
  readonly email?: (device: Device) => string;
  /** Id of a tunnel or of an authorization request, for the page's path. */
  readonly id?: string;
  /** Whether the browser mocks custom domains, because most domain states take days. */
  readonly hasDomains?: boolean;
}

export const takeScreenshots = (tools: Tools): Promise<string> =>
  onStage(async (stage) => {
    mkdirSync(FOLDER, { recursive: true });
    const { stack, harness } = stage;
    const account = await Account.signUp(stack, 'ann', 'Ann Example', 'ann@example.com');
    const names = { web: 'blog', pool: 'shop', downPool: 'checkout' };
    const { tunnelId, app } = await makeExample(harness, stack, names, { account, visits: 240 });
    const requestId = await app.request();
    await seedHistory(stack.dataDir, account.email, 60);
    await subscribe(stack, account);
    // A new account for each device, because skipping the introduction applies to the whole account.
    const beginners = {
      desktop: await Account.signUp(stack, 'nia', 'Nia New', 'nia@example.com'),
      phone: await Account.signUp(stack, 'noah', 'Noah New', 'noah@example.com'),
    };
    const whos: Who[] = [
      { pages: DOOR_PAGES },
      { pages: BEGINNER_PAGES, email: (device) => beginners[device].email },
      { pages: [...ACCOUNT_PAGES, ...DIALOG_PAGES], email: () => account.email, id: tunnelId },
      { pages: DOMAIN_PAGES, email: () => account.email, hasDomains: true },
      { pages: CONSENT_PAGES, email: () => account.email, id: requestId },
    ];
    let taken = 0;
    for (const who of whos) {
      for (const device of Object.keys(DEVICES) as Device[]) {
        taken += await picturesOn(stage, who, device, tools);
      }
    }
    if (tools.values['docs'] !== true) return `${taken} pictures are in .cache/screenshots`;
    const shown = readdirSync(SHOWN);
    for (const name of shown) copyFileSync(join(FOLDER, name), join(SHOWN, name));
    return `${taken} pictures are in .cache/screenshots, and ${shown.length} of them in docs/screenshots`;
  });

const picturesOn = async (
  { browser, stack }: Stage,
  { pages, email, id, hasDomains = false }: Who,
  device: Device,
  { say, check }: Tools,
): Promise<number> => {
  const profile = await Profile.open(browser, stack, { viewport: DEVICES[device], hasTouch: device === 'phone' });
  if (email !== undefined) await profile.logIn(email(device));
  if (hasDomains) await DomainsApi.in(profile.context);
  const page = await profile.context.newPage();
  for (const shown of pages) {
    await visit(page, profile, shown, id);
    for (const colorScheme of THEMES) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({
        path: join(FOLDER, `${shown.name}-${device}-${colorScheme}.png`),
        animations: 'disabled',
      });
    }
    say(`${shown.name} on a ${device}`);
  }
  check(profile.faults.length === 0, `no fault in the pages${profile.faults.map((fault) => `\n  ${fault}`).join('')}`);
  await profile.close();
  return pages.length * THEMES.length;
};

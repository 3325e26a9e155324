// Performs the browser steps before the first `tunnel login`: the form, the mail and its link.
import { chromium } from 'playwright-core';
import { startChromium, stopChromium } from '../../../browser/start-chromium.fixture.ts';

export interface SignUp {
  /** URL of the sign-up page from the README. */
  readonly url: string;
  readonly email: string;
  readonly password: string;
  /** Returns the link of the mail as soon as the mail has arrived. */
  readonly link: () => Promise<string>;
}

const WAIT_MS = 30_000;
/** Delay between keys, because a person needs time to fill in a field. */
const TYPE = { delay: 125 };

/** Signs up in a browser. Returns false if no browser runs on this machine. */
export const signUpInBrowser = async ({ url, email, password, link }: SignUp): Promise<boolean> => {
  const started = await startChromium();
  if (started.server === null) return false;
  try {
    const browser = await chromium.connect(started.server.wsEndpoint());
    const page = await browser.newPage({ locale: 'en-US' });
    page.setDefaultTimeout(WAIT_MS);
    await page.goto(url);
    await page.getByLabel(/^e-?mail/i).pressSequentially(email, TYPE);
    await page.getByLabel('Password', { exact: true }).pressSequentially(password, TYPE);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: /check your/i }).waitFor();
    await page.goto(await link());
    await page.getByRole('link', { name: /log in/i }).waitFor();
    return true;
  } finally {
    await stopChromium(started.server);
  }
};

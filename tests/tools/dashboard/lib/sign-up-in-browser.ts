// What somebody does in the browser before the first `tunnel login`: the form, the mail, its link.
import { chromium } from 'playwright-core';
import { startChromium, stopChromium } from '../../../browser/start-chromium.fixture.ts';

export interface SignUp {
  /** Of the page that the README names. */
  readonly url: string;
  readonly email: string;
  readonly password: string;
  /** The link of the mail, as soon as it is there. */
  readonly link: () => Promise<string>;
}

const WAIT_MS = 30_000;
/** Whoever types does not fill a field at once. */
const TYPE = { delay: 125 };

/** False when no browser runs here. */
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

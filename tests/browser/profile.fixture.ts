// The browser of one person: its cookies, its tabs, and everything that went wrong in any of them.
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { PASSWORD } from './account.fixture.ts';
import type { StackAddress } from './own-stack.fixture.ts';

const WAIT_MS = 30_000;

/** Told to the console, where it is collected. */
const TELL_POLICY_VIOLATIONS = `addEventListener('securitypolicyviolation', (event) =>
  console.error('content security policy: ' + event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sample))`;

/** Once in a tab: somebody who has logged out there stays so. */
const MARK_SIGNED_IN = `if (location.pathname.startsWith('/app/') && sessionStorage.getItem('marked') === null) {
  sessionStorage.setItem('marked', 'yes');
  localStorage.setItem('signed-in', 'yes');
}`;

/** What a page tells when it cannot be loaded; the platform is away then. */
const ABOUT_ABSENCE = /^Fault: cannot reach /;

/** What the browser itself says about answers like 401; those are for the pages to handle. */
const ABOUT_ANSWERS = /^Failed to load resource:/;

export interface ProfileOptions
  extends Pick<BrowserContextOptions, 'colorScheme' | 'viewport' | 'reducedMotion' | 'timezoneId'> {
  readonly hasTouch?: boolean;
}

export class Profile {
  readonly context: BrowserContext;
  readonly #stack: StackAddress;
  readonly #faults: string[] = [];
  readonly #hosts: Set<string>;
  #mayBeAway = false;

  constructor(context: BrowserContext, stack: StackAddress) {
    this.context = context;
    this.#stack = stack;
    this.#hosts = new Set([new URL(stack.run.platform_url).host]);
    this.#watch();
  }

  static async open(browser: Browser, stack: StackAddress, options: ProfileOptions = {}): Promise<Profile> {
    // The language is given: on a machine without one, a browser may name a tag that its own Intl refuses.
    const context = await browser.newContext({ reducedMotion: 'reduce', locale: 'en-US', ...options });
    context.setDefaultTimeout(WAIT_MS);
    await context.addInitScript(TELL_POLICY_VIOLATIONS);
    return new Profile(context, stack);
  }

  /** Errors in scripts, violations of the policy, requests to other hosts, answers of a broken platform. */
  get faults(): readonly string[] {
    return this.#faults;
  }

  /** A new tab at a page of the dashboard. */
  async tab(path = '/'): Promise<Page> {
    const page = await this.context.newPage();
    await page.goto(this.urlOf(path));
    return page;
  }

  urlOf(path: string): string {
    return `${this.#stack.run.platform_url}/app${path}`;
  }

  /** Without the page: the cookie, and the mark by which the dashboard asks it, are all that a session leaves in a browser. */
  async logIn(email: string, password = PASSWORD): Promise<void> {
    const answer = await this.context.request.post(`${this.#stack.run.platform_url}/auth/login`, {
      data: { email, password },
    });
    if (!answer.ok()) throw new Error(`login: ${answer.status()} ${await answer.text()}`);
    await this.context.addInitScript(MARK_SIGNED_IN);
  }

  /** A page that the dashboard leads to on purpose. */
  allowHostOf(url: string): void {
    this.#hosts.add(new URL(url).host);
  }

  /** For tests in which the platform is away. */
  allowAbsence(): void {
    this.#mayBeAway = true;
  }

  /** What every tab shows, for people who look for the reason of a failure. */
  async picture(file: string): Promise<void> {
    for (const [index, page] of this.context.pages().entries()) {
      await page.screenshot({ path: `${file}-${index + 1}.png`, fullPage: true });
    }
  }

  close(): Promise<void> {
    return this.context.close();
  }

  #watch(): void {
    this.context.on('weberror', (error) => this.#faults.push(`error in a script: ${error.error().stack}`));
    this.context.on('console', (message) => {
      if (message.type() !== 'error' || ABOUT_ANSWERS.test(message.text())) return;
      if (this.#mayBeAway && ABOUT_ABSENCE.test(message.text())) return;
      this.#faults.push(`console: ${message.text()}`);
    });
    this.context.on('request', (request) => {
      const { protocol, host } = new URL(request.url());
      if (/^https?:$/.test(protocol) && !this.#hosts.has(host)) this.#faults.push(`asked ${request.url()}`);
    });
    this.context.on('response', (response) => {
      if (response.status() < 500 || this.#mayBeAway) return;
      this.#faults.push(`${response.request().method()} ${response.url()} answered ${response.status()}`);
    });
  }
}

/** Fills in the page that asks for email and password. */
export const logInAt = async (page: Page, email: string, password = PASSWORD): Promise<void> => {
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
};

// A person's browser: cookies, tabs, and every fault in any of the tabs.
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { PASSWORD } from './account.fixture.ts';
import type { StackAddress } from './own-stack.fixture.ts';

const WAIT_MS = 30_000;

/** New versions of Chromium return promises from methods that scroll. A page must not use the value, for example as React's cleanup. */
const SCROLL_AS_NEW_BROWSERS = `{
  for (const name of ['scroll', 'scrollBy', 'scrollIntoView', 'scrollTo']) {
    for (const owner of [Element.prototype, window]) {
      const scroll = owner[name];
      if (scroll) owner[name] = function (...args) { return Promise.resolve(scroll.apply(this, args)); };
    }
  }
}`;

/** Script that writes policy violations to the console, where they are collected. */
const TELL_POLICY_VIOLATIONS = `addEventListener('securitypolicyviolation', (event) =>
  console.error('content security policy: ' + event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sample))`;

/** Script that marks the browser as signed in. It runs once per tab, so that a user who signs out there stays signed out. */
const MARK_SIGNED_IN = `if (location.pathname.startsWith('/app/') && sessionStorage.getItem('marked') === null) {
  sessionStorage.setItem('marked', 'yes');
  localStorage.setItem('signed-in', 'yes');
}`;

/** Error of a page that cannot be loaded, because the platform is unreachable. */
const ABOUT_ABSENCE = /^Fault: cannot reach /;

/** Message of the browser about error responses such as 401, which the pages handle. */
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
    // The locale is fixed, because on a machine without a locale a browser may choose a tag that its Intl rejects.
    const context = await browser.newContext({ reducedMotion: 'reduce', locale: 'en-US', ...options });
    context.setDefaultTimeout(WAIT_MS);
    await context.addInitScript(TELL_POLICY_VIOLATIONS);
    await context.addInitScript(SCROLL_AS_NEW_BROWSERS);
    return new Profile(context, stack);
  }

  /** Script errors, policy violations, requests to other hosts, and server errors of the platform. */
  get faults(): readonly string[] {
    return this.#faults;
  }

  /** Opens a new tab at a page of the dashboard. */
  async tab(path = '/'): Promise<Page> {
    const page = await this.context.newPage();
    await page.goto(this.urlOf(path));
    return page;
  }

  urlOf(path: string): string {
    return `${this.#stack.run.platform_url}/app${path}`;
  }

  /** Signs in without the page. A session leaves only the cookie in a browser, and the mark that makes the dashboard use the cookie. */
  async logIn(email: string, password = PASSWORD): Promise<void> {
    const answer = await this.context.request.post(`${this.#stack.run.platform_url}/auth/login`, {
      data: { email, password },
    });
    if (!answer.ok()) throw new Error(`login: ${answer.status()} ${await answer.text()}`);
    await this.context.addInitScript(MARK_SIGNED_IN);
  }

  /** Allows requests to the host of a page to which the dashboard links. */
  allowHostOf(url: string): void {
    this.#hosts.add(new URL(url).host);
  }

  /** Allows errors of an unreachable platform. */
  allowAbsence(): void {
    this.#mayBeAway = true;
  }

  /** Saves a screenshot of every tab, to help find the reason for a failure. */
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

/** Fills in and submits the sign-in page. */
export const logInAt = async (page: Page, email: string, password = PASSWORD): Promise<void> => {
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
};

// A platform account that is created over the API and verified with the mailed link, and access to its mails.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ApiError, CreatedKey } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import PostalMime from 'postal-mime';
import type { StackAddress } from './own-stack.fixture.ts';

/**
 * Maximum wait for a mail: the time of several claims of the outbox, because a busy machine writes mails slowly, and a stopped process
 * leaves its claims behind.
 */
const SOON = { timeoutMs: 75_000, intervalMs: 50 };

export const PASSWORD = 'correct horse battery';

let made = 0;

/** Returns an email address that no other test of this run uses. */
export const newAddress = (name: string): string => `${name}-${process.pid}-${++made}@example.com`;

export class Account {
  readonly stack: StackAddress;
  readonly email: string;
  readonly #token: string;

  constructor(stack: StackAddress, email: string, token: string) {
    this.stack = stack;
    this.email = email;
    this.#token = token;
  }

  static async signUp(
    stack: StackAddress,
    name = 'ann',
    displayName = 'Ann Example',
    email = newAddress(name),
  ): Promise<Account> {
    await ask(stack, '/auth/register', { body: { email, password: PASSWORD, display_name: displayName } });
    await ask(stack, await mailedPath(stack, email, '/auth/verify-email/'));
    return Account.logIn(stack, email);
  }

  static async logIn(stack: StackAddress, email: string): Promise<Account> {
    const body = { email, password: PASSWORD };
    const { access_token: token } = await ask<{ access_token: string }>(stack, '/auth/login', { body });
    return new Account(stack, email, token);
  }

  get<T>(path: string): Promise<T> {
    return ask<T>(this.stack, path, { token: this.#token });
  }

  post<T>(path: string, body: unknown = {}): Promise<T> {
    return ask<T>(this.stack, path, { token: this.#token, body });
  }

  patch<T>(path: string, body: unknown): Promise<T> {
    return ask<T>(this.stack, path, { token: this.#token, body, method: 'PATCH' });
  }

  newKey(label = 'laptop'): Promise<CreatedKey> {
    return this.post('/keys', { label });
  }
}

interface Call {
  readonly method?: string;
  readonly body?: unknown;
  readonly token?: string;
}

/** Sends a request and returns the body. Throws if the status is an error. */
export const ask = async <T>(stack: StackAddress, path: string, { method, body, token }: Call = {}): Promise<T> => {
  const response = await fetch(`${stack.run.platform_url}${path}`, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(20_000),
  });
  const text = await response.text();
  const read: unknown = text === '' ? null : JSON.parse(text);
  if (!response.ok) throw new Error(`${path}: ${response.status} ${(read as ApiError | null)?.error}`);
  return read as T;
};

/**
 * Returns the path of the newest mailed link that begins with `begin`. The host is left out, because the test stack listens on random
 * ports.
 */
export const mailedPath = (stack: StackAddress, email: string, begin: string): Promise<string> =>
  eventually(async () => {
    const folder = join(stack.dataDir, 'mail');
    const files = readdirSync(folder).filter((name) => name.endsWith('.eml'));
    for (const file of files.sort().reverse()) {
      const { to, text = '' } = await PostalMime.parse(readFileSync(join(folder, file)));
      if (to?.some(({ address }) => address === email) !== true) continue;
      const link = text.split(/\s+/).find((word) => URL.canParse(word) && new URL(word).pathname.startsWith(begin));
      if (link !== undefined) return link.slice(new URL(link).origin.length);
    }
    throw new Error(`no mail to ${email} with a link to ${begin}`);
  }, SOON);

// An account of the platform, made by its API and verified by the mailed link; and the mails that it gets.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ApiError, CreatedKey } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import PostalMime from 'postal-mime';
import type { StackAddress } from './own-stack.fixture.ts';

/** Several claims of the outbox: a busy machine writes its mails in seconds, and a process that was stopped leaves its claims behind. */
const SOON = { timeoutMs: 75_000, intervalMs: 50 };

export const PASSWORD = 'correct horse battery';

let made = 0;

/** Nobody else's in this run. */
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

/** The body of an answer that is no refusal. */
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

/** The newest link to that address which begins so; without its host: tests listen where it happens. */
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

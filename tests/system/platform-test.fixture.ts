// Helpers for tests of the whole product: a stack with a database per test file, people with accounts, and their keys.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ApiError, CreatedKey, PlatformPools, TunnelLogEntry, UsageSummary } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import type { Harness } from './harness.fixture.ts';
import { Harness as HarnessInProcess, it as harnessIt } from './in-process.fixture.ts';
import { serverCommand } from './server-command.fixture.ts';
import type { Stack, StackOptions } from './stack.fixture.ts';

import type { TunnelProgram, TunnelRun } from './tunnel-program.fixture.ts';

/** Limits that let many people sign in from the same address. */
export const MANY_LOGINS = '[platform.limits]\nauth_per_minute = 10000\nauth_per_account_per_minute = 1000';

export const startPlatform = (harness: Harness, options: StackOptions = {}): Promise<Stack> =>
  harness.stack({ command: 'stack', ...options, tables: `${MANY_LOGINS}\n${options.tables ?? ''}` });

/** Runs each test with a stack shared by the tests of a file. The stack and the tunnels run inside the test process. */
export const it = harnessIt.extend<{ stack: Stack }>({
  stack: [
    async ({ task: _ }, use) => {
      const harness = new HarnessInProcess();
      const stack = await startPlatform(harness, { fixedPorts: true, tables: '[load_balancing]\nenabled = true' });
      await use(stack);
      await harness.close();
    },
    { scope: 'file' },
  ],
});

export interface Call {
  readonly method?: string;
  readonly body?: unknown;
}

export interface Reply<T = unknown> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: T;
}

/** Calls the platform API. The body of the response is JSON, or null. */
export const call = async <T>(
  stack: Pick<Stack, 'run'>,
  path: string,
  { method = 'GET', body, token }: Call & { readonly token?: string } = {},
): Promise<Reply<T>> => {
  const response = await fetch(`${stack.run.platform_url}${path}`, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(20_000),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: (text === '' ? null : JSON.parse(text)) as T };
};

let people = 0;

/** A person with an account: signed up, verified through the link on the console, and signed in. */
export class Person {
  readonly stack: Stack;
  readonly email: string;
  readonly token: string;

  constructor(stack: Stack, email: string, token: string) {
    this.stack = stack;
    this.email = email;
    this.token = token;
  }

  static async signUp(stack: Stack, name = 'ann'): Promise<Person> {
    const email = `${name}-${process.pid}-${++people}@example.com`;
    const password = 'correct horse battery';
    const registered = await call(stack, '/auth/register', { method: 'POST', body: { email, password } });
    expect(registered.status).toBe(201);
    expect((await call(stack, await verificationPath(stack, email))).status).toBe(200);
    const login = await call<{ access_token: string }>(stack, '/auth/login', {
      method: 'POST',
      body: { email, password },
    });
    expect(login.status).toBe(200);
    return new Person(stack, email, login.body.access_token);
  }

  call<T>(path: string, options: Call = {}): Promise<Reply<T>> {
    return call<T>(this.stack, path, { ...options, token: this.token });
  }

  /** Returns the body of a GET, which must have the status 200. */
  async get<T>(path: string): Promise<T> {
    const { status, body } = await this.call<T>(path);
    if (status !== 200) throw new Error(`${path}: ${status} ${(body as ApiError | null)?.error}`);
    return body;
  }

  async newKey(label = 'laptop'): Promise<CreatedKey> {
    const { status, body } = await this.call<CreatedKey>('/keys', { method: 'POST', body: { label } });
    expect(status).toBe(201);
    return body;
  }

  usage(): Promise<UsageSummary> {
    return this.get('/usage');
  }

  log(): Promise<TunnelLogEntry[]> {
    return this.get('/usage/tunnels?limit=100');
  }

  entry(id: string): Promise<TunnelLogEntry> {
    return this.get(`/usage/tunnels/${id}`);
  }

  pools(): Promise<PlatformPools> {
    return this.get('/load-balancing/groups');
  }
}

/**
 * Returns the path of the verification link, which the console shows for each mail. Its host is `public_url`, where the platform of a
 * test does not listen.
 */
const verificationPath = async (stack: Stack, email: string): Promise<string> => {
  const lines = await eventually(
    () => {
      const { stdout } = stack.program;
      const at = stdout.findIndex((line) => line.startsWith(`mail to ${email}:`));
      expect([at, stdout[at + 1]]).toEqual([expect.any(Number), expect.stringContaining('/auth/verify-email/')]);
      return stdout.slice(at);
    },
    { timeoutMs: 20_000 },
  );
  return new URL(lines[1]?.trim() ?? '').pathname;
};

/** Runs `tunnel http PORT --json` or `tunnel tcp PORT --json` with the given key. */
export const openWith = (
  harness: Harness,
  edge: Pick<Stack, 'control'>,
  key: Pick<CreatedKey, 'token'>,
  args: readonly (string | number)[],
  more: Partial<Pick<TunnelRun, 'home' | 'programs'>> = {},
): Promise<TunnelProgram> =>
  harness.run([...args.map(String), '--json', '--server', edge.control], {
    env: { TUNNEL_API_KEY: key.token },
    ...more,
  });

/** Returns the flags of a member of the HTTP group `name`. */
export const memberFlags = async (harness: Harness, name: string): Promise<string[]> => {
  const file = join(await harness.folder(), 'group-key');
  writeFileSync(file, 'the key of the group', { mode: 0o600 });
  return ['--group', name, '--group-key-file', file, '--subdomain', name];
};

/** Starts an edge with a credential created by the operator of the platform. */
export const startEdgeOf = async (
  harness: Harness,
  platform: Stack,
  region: string,
  options: StackOptions = {},
): Promise<Stack> => {
  const [credential = ''] = await serverCommand(platform, 'edge-credential', 'create', region);
  const file = join(await harness.folder(), 'credential');
  writeFileSync(file, `${credential}\n`, { mode: 0o600 });
  return harness.stack({
    ...options,
    command: 'edge',
    server: `platform_url = "${platform.run.platform_url}"\nplatform_credential_file = "${file}"`,
    tables: `[region]\nid = "${region}"\nname = "${region}"\n[load_balancing]\nenabled = true`,
  });
};

// A real server with its platform and embedded database, people who use it, their mails and their tunnels.
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CreatedKey, LoggedIn } from '@tunnel/contract';
import { Database, suspend } from '@tunnel/platform';
import { systemClock } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import PostalMime, { type Email } from 'postal-mime';
import { quiet } from '../../system/embedded-database.fixture.ts';
import type { Stack } from '../../system/stack.fixture.ts';
import { Harness } from '../../system/system-test.fixture.ts';
import { type Answer, askPlatform, type Question } from './api-request.fixture.ts';

export const REGION = 'conformance';
export const PASSWORD = 'correct horse battery';
export const TUNNEL_LIMIT = 20;

/** A busy machine is slow; a test that waits in vain fails in any case. */
export const PATIENCE_MS = 20_000;

/** An address that no other test has. */
export const newEmail = (stem = 'user'): string => `${stem}-${randomUUID().slice(0, 13)}@example.com`;

export interface Person {
  readonly email: string;
  readonly id: string;
  readonly token: string;
  readonly cookie: string;
}

export interface PlatformOptions {
  /** Lines for [platform]. */
  readonly platform?: string;
  /** Lines for [platform.limits]; as good as none unless told. */
  readonly attempts?: string;
  /** The kill switch; on unless told. null: the key is left out. */
  readonly loadBalancing?: boolean | null;
  /** More tables. */
  readonly tables?: string;
  readonly command?: 'stack' | 'platform';
}

const MANY_ATTEMPTS = 'auth_per_minute = 1000000\nauth_per_account_per_minute = 1000000';

export class PlatformHarness extends Harness {
  #stack: Stack | undefined;
  #database: Database | undefined;

  async start(options: PlatformOptions = {}): Promise<void> {
    const { command = 'stack', platform = '', attempts = MANY_ATTEMPTS, loadBalancing = true, tables = '' } = options;
    const enabled = loadBalancing === null ? '' : `enabled = ${loadBalancing}`;
    this.#stack = await this.stack({
      command,
      platform,
      server: 'drain_secs = 0',
      tables: [
        `[platform.limits]\n${attempts}`,
        `[platform.plans.free]\ntunnel_limit = ${TUNNEL_LIMIT}`,
        `[region]\nid = "${REGION}"\n[load_balancing]\n${enabled}`,
        tables,
      ].join('\n'),
    });
  }

  get server(): Stack {
    if (this.#stack === undefined) throw new Error('the server was not started');
    return this.#stack;
  }

  get url(): string {
    return this.server.run.platform_url;
  }

  /** What no endpoint does: accounts of an external sign-in, days that are over. */
  get db(): Database['db'] {
    if (this.#database === undefined) {
      const url = this.server.databaseUrl;
      if (url === null) throw new Error('the server has no database');
      this.#database = this.use(new Database({ url, logger: quiet, connections: 2 }));
    }
    return this.#database.db;
  }

  ask(method: string, path: string, question: Question = {}): Promise<Answer> {
    return askPlatform(this.url, method, path, question);
  }

  get(path: string, token?: string): Promise<Answer> {
    return this.ask('GET', path, token === undefined ? {} : { token });
  }

  post(path: string, body: unknown, token?: string): Promise<Answer> {
    return this.ask('POST', path, { body, ...(token === undefined ? {} : { token }) });
  }

  /** The raw mails to this address, oldest first. */
  rawMails(email: string): { name: string; raw: string }[] {
    const folder = join(this.server.dataDir, 'mail');
    return readdirSync(folder)
      .filter((name) => name.endsWith('.eml'))
      .sort()
      .map((name) => ({ name, raw: readFileSync(join(folder, name), 'utf8') }))
      .filter(({ raw }) => raw.includes(`\nTo: ${email}\r\n`));
  }

  async mails(email: string): Promise<Email[]> {
    return Promise.all(this.rawMails(email).map(({ raw }) => PostalMime.parse(raw)));
  }

  /** Of the link in the nth mail to this address, once it is there. */
  mailedToken(email: string, nth = 1): Promise<string> {
    return eventually(
      async () => {
        const text = (await this.mails(email))[nth - 1]?.text ?? '';
        const token = /(?:\/auth\/verify-email\/|\?token=)([\w-]+)$/m.exec(text)?.[1];
        if (token === undefined) throw new Error(`no mail ${nth} to ${email}`);
        return token;
      },
      { timeoutMs: PATIENCE_MS },
    );
  }

  async register(email = newEmail()): Promise<{ email: string; verifyToken: string }> {
    const { status } = await this.post('/auth/register', { email, password: PASSWORD });
    if (status !== 201) throw new Error(`register: ${status}`);
    return { email, verifyToken: await this.mailedToken(email) };
  }

  login(email: string, password = PASSWORD): Promise<Answer> {
    return this.post('/auth/login', { email, password });
  }

  /** Logged in once more. */
  async enter(email: string): Promise<Person> {
    const answer = await this.login(email);
    if (answer.status !== 200) throw new Error(`login: ${answer.status} ${answer.text}`);
    const { access_token: token, user } = answer.body as LoggedIn;
    return { email, id: user.id, token, cookie: answer.cookie };
  }

  /** Signed up, verified, logged in. */
  async person(): Promise<Person> {
    const { email, verifyToken } = await this.register();
    await this.get(`/auth/verify-email/${verifyToken}`);
    return this.enter(email);
  }

  async newKey({ token }: Pick<Person, 'token'>, label = 'laptop'): Promise<CreatedKey> {
    return (await this.post('/keys', { label }, token)).body as CreatedKey;
  }

  async suspend(email: string): Promise<void> {
    await suspend({ db: this.db, clock: systemClock }, { kind: 'operator', name: 'test' }, email);
  }

  /** An account as an external sign-in would make it. */
  async external(email = newEmail('external')): Promise<string> {
    const row = { email, auth_method: 'github', plan: 'free', email_verified_at: new Date() };
    await this.db.insertInto('users').values(row).execute();
    return email;
  }
}

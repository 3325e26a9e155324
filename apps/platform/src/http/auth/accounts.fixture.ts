// Accounts in a separate database, with a fake clock and cheap password hashes. For tests only.
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadServerConfig, type ServerConfig } from '@tunnel/config/server';
import type { LoggedIn } from '@tunnel/contract';
import { createLogger } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import type { MiddlewareHandler } from 'hono';
import { openMasterKey } from '../../db/master-key.ts';
import { createTestDatabase, type TestDatabase } from '../../db/test-database.fixture.ts';
import { sendRequestedMails } from '../../services/accounts/mail-requests.ts';
import { AccessTokens } from '../../services/auth/access-tokens.ts';
import type { AuthContext } from '../../services/auth/auth-context.ts';
import { PasswordHasher } from '../../services/auth/password-hasher.ts';
import { SigningKeys } from '../../services/auth/signing-keys.ts';
import { UserCache } from '../../services/auth/users.ts';
import { addAuthRoutes } from '../routes/auth/auth-routes.ts';
import type { AuthRouteDeps } from '../routes/auth/session-routes.ts';
import { createPlatformApp } from '../server/platform-app.ts';
import type { PlatformApp, PlatformEnv } from '../shared/platform-env.ts';
import { requireUser } from './require-actor.ts';

export const PASSWORD = 'correct horse battery';
const CHEAP = { memoryKib: 64, passes: 1, lanes: 1 };

/** Master key shared by all test runs of this system user, so that runs leave no further key files behind. */
export const MASTER_KEY_SOURCE = {
  file: join(tmpdir(), `tunnel-test-master-key-${process.getuid?.() ?? 0}`),
  isGiven: false,
};
export const MASTER_KEY = openMasterKey(MASTER_KEY_SOURCE, false);

export interface AccountsFixtureOptions {
  readonly settings?: Partial<Omit<ServerConfig['platform'], 'limits'>> & {
    readonly limits?: Partial<ServerConfig['platform']['limits']>;
  };
  readonly passwords?: PasswordHasher;
  /** Admission control of calls. Absent: every call begins immediately. */
  readonly admission?: AuthRouteDeps['admission'];
  /** Fixture with the database to share, as a second platform process would. */
  readonly beside?: AccountsFixture;
}

const HOST = 'localhost:8080';

export class AccountsFixture {
  readonly database: TestDatabase;
  readonly clock: FakeClock;
  readonly app: PlatformApp;
  readonly signingKeys: SigningKeys;
  readonly context: AuthContext & { readonly requireUser: MiddlewareHandler<PlatformEnv> };
  /** Client address of the next requests. */
  peer = '';

  constructor({ settings: given, passwords, beside, admission }: AccountsFixtureOptions, database: TestDatabase) {
    this.database = database;
    this.clock = beside?.clock ?? new FakeClock();
    const usual = loadServerConfig({ env: {} }).platform;
    const limits = { ...usual.limits, auth_per_minute: 1e6, auth_per_account_per_minute: 1e6, ...given?.limits };
    const settings = { ...usual, ...given, limits };
    const logger = createLogger({ level: 'silent', format: 'json' });
    this.app = createPlatformApp({ logger, settings });
    const { db } = database;
    const service = { db, clock: this.clock, logger, settings };
    this.signingKeys = new SigningKeys({ ...service, masterKey: () => MASTER_KEY });
    const accounts = {
      ...service,
      passwords: passwords ?? new PasswordHasher({ cost: CHEAP, slots: 4 }),
      accessTokens: new AccessTokens({ keys: this.signingKeys, clock: this.clock, issuer: settings.public_url }),
      users: new UserCache(service),
      wakeMailer: () => {},
      firstAccountMade: () => {},
    };
    this.context = { ...accounts, requireUser: requireUser(accounts) };
    addAuthRoutes(this.app, {
      ...this.context,
      signingKeys: this.signingKeys,
      masterKey: () => MASTER_KEY,
      port: () => 8080,
      admission,
    });
  }

  async ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
    const init = {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    const incoming = { url: path, headers: { host: HOST, ...init.headers }, socket: { remoteAddress: this.peer } };
    return this.app.request(path, init, { incoming });
  }

  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Response> {
    return this.ask('POST', path, body, headers);
  }

  register(email: string): Promise<Response> {
    return this.post('/auth/register', { email, password: PASSWORD });
  }

  /** Turns mail requests into mails. In production a job does this twice a second. */
  async sendRequested(): Promise<void> {
    const publicUrl = 'http://localhost:8080';
    await sendRequestedMails(this.database.db, { publicUrl, now: this.clock.now() });
  }

  /** Returns the link tokens of the waiting mails, oldest first. */
  async mailedTokens(recipient: string): Promise<string[]> {
    await this.sendRequested();
    const rows = await this.database.db
      .selectFrom('mail_outbox')
      .select('text_body')
      .where('recipient', '=', recipient)
      .orderBy('created_at')
      .execute();
    return rows.map(({ text_body }) => /(?:verify-email\/|token=)([\w-]{43})$/m.exec(text_body)?.[1] ?? '');
  }

  async signUp(email: string): Promise<void> {
    await this.register(email);
    const [token] = await this.mailedTokens(email);
    await this.ask('GET', `/auth/verify-email/${token}`);
  }

  async logIn(email: string, password = PASSWORD): Promise<{ bearer: Record<string, string>; cookie: string }> {
    const answer = await this.post('/auth/login', { email, password });
    const { access_token } = (await answer.json()) as LoggedIn;
    return { bearer: { authorization: `Bearer ${access_token}` }, cookie: cookieOf(answer) };
  }

  refresh(cookie: string, headers: Record<string, string> = {}): Promise<Response> {
    return this.post('/auth/refresh', undefined, { cookie, ...headers });
  }

  async setUser(email: string, change: { status?: 'active' | 'suspended'; auth_method?: string }): Promise<void> {
    await this.database.db.updateTable('users').set(change).where('email', '=', email).execute();
  }

  async auditOf(action: string) {
    return this.database.db.selectFrom('audit_log').selectAll().where('action', '=', action).orderBy('id').execute();
  }

  close(): Promise<void> {
    return this.database.close();
  }
}

/** Returns the refresh cookie as a browser would send it back, or an empty string if the cookie was not set or was cleared. */
export const cookieOf = (answer: Response): string =>
  /^refresh_token=[\w-]+/.exec(answer.headers.get('set-cookie') ?? '')?.[0] ?? '';

/** Statuses of concurrent responses, sorted, because the winner of a race is random but the number of winners is fixed. */
export const sortedStatuses = (answers: readonly Response[]): number[] =>
  answers.map(({ status }) => status).sort((one, other) => one - other);

export const openAccounts = async (options: AccountsFixtureOptions = {}): Promise<AccountsFixture> => {
  const database = options.beside?.database ?? (await createTestDatabase());
  const fixture = new AccountsFixture(options, database);
  await database.db
    .insertInto('plans')
    .values({
      name: 'free',
      tunnel_limit: 3,
      allow_custom_subdomains: true,
      monthly_minimum_cents: 0,
      price_cents_per_gb: 0,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return fixture;
};

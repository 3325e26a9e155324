// A server with platform and database, test accounts, their mails and their tunnels. Test files with the usual settings share a server
// that lives as long as the test process, and each test creates separate accounts.
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CreatedKey, LoggedIn } from '@tunnel/contract';
import { createUser, Database, PasswordHasher, suspend } from '@tunnel/platform';
import { systemClock } from '@tunnel/runtime';
import { type DnsServer, eventually, startDnsServer } from '@tunnel/testkit';
import PostalMime, { type Email } from 'postal-mime';
import { afterAll, it, onTestFinished } from 'vitest';
import { quiet } from '../../system/embedded-database.fixture.ts';
import { Harness } from '../../system/in-process.fixture.ts';
import type { Stack } from '../../system/stack.fixture.ts';
import { type Answer, askPlatform, type Question } from './api-request.fixture.ts';

export const REGION = 'conformance';
export const PASSWORD = 'correct horse battery';
export const TUNNEL_LIMIT = 20;
/** Maximum number of reservations, and of custom domains, in the plan payg. */
export const PAYG_LIMIT = 12;
/** MCP rate limit: low enough for a test to reach, but higher than the calls of all other tests of an account. */
export const MCP_CALLS_PER_MINUTE = 60;

export const OPERATOR = { kind: 'operator', name: 'test' } as const;

/** Maximum wait for slow conditions. The value can be generous, because a test that waits in vain fails in any case. */
export const PATIENCE_MS = 20_000;

/** Returns an email address that no other test uses. */
export const newEmail = (stem = 'user'): string => `${stem}-${randomUUID().slice(0, 13)}@example.com`;

export interface Person {
  readonly email: string;
  readonly id: string;
  readonly token: string;
  readonly cookie: string;
}

interface RawMail {
  readonly name: string;
  readonly raw: string;
  readonly recipient: string;
}

export interface PlatformOptions {
  /** Lines of the [platform] table. */
  readonly platform?: string;
  /** Lines of the [platform.limits] table. By default the limits are too high to be reached. */
  readonly attempts?: string;
  /** Whether load balancing is enabled; true by default. With null the key is left out of the configuration. */
  readonly loadBalancing?: boolean | null;
  /** Additional tables of the configuration. */
  readonly tables?: string;
  readonly command?: 'stack' | 'platform';
  /** URL of the database. By default a new database is created. */
  readonly databaseUrl?: string;
}

const MANY_ATTEMPTS = 'auth_per_minute = 1000000\nauth_per_account_per_minute = 1000000';

/** The hash of the password that all accounts share, because hashing takes most of the time to create an account. */
let hashed: Promise<string> | undefined;
const passwords = { hash: (password: string): Promise<string> => (hashed ??= new PasswordHasher().hash(password)) };

export class PlatformHarness extends Harness {
  #stack: Stack | undefined;
  #database: Database | undefined;
  #dns: DnsServer | undefined;
  /** Parsed mails by file name. A mail file never changes. */
  #mails = new Map<string, RawMail>();

  async start(options: PlatformOptions = {}): Promise<void> {
    const { platform = '', attempts = MANY_ATTEMPTS, loadBalancing = true, tables = '', ...more } = options;
    const enabled = loadBalancing === null ? '' : `enabled = ${loadBalancing}`;
    this.#stack = await this.stack({
      command: 'stack',
      platform,
      server: 'drain_secs = 0',
      ...more,
      tables: [
        `[platform.limits]\n${attempts}`,
        `[platform.plans.free]\ntunnel_limit = ${TUNNEL_LIMIT}`,
        `[region]\nid = "${REGION}"\n[load_balancing]\n${enabled}`,
        tables,
      ].join('\n'),
    });
  }

  /** Starts the shared server, with settings that do not affect other tests. */
  async startShared(): Promise<void> {
    this.#dns = this.use(await startDnsServer());
    const payg = `[platform.plans.payg]\nreserved_limit = ${PAYG_LIMIT}\ndomain_limit = ${PAYG_LIMIT}`;
    const mcp = `[platform.mcp]\ncalls_per_minute = ${MCP_CALLS_PER_MINUTE}`;
    await this.start({ tables: `[dns]\nresolvers = ["${this.#dns.address}"]\n${payg}\n${mcp}` });
  }

  /** Uses the server of a different harness from now on. The other harness closes the server. */
  share(owner: PlatformHarness): void {
    this.#stack = owner.server;
    this.#database = owner.#openDatabase();
    this.#dns = owner.dns;
    this.#mails = owner.#mails;
  }

  get server(): Stack {
    if (this.#stack === undefined) throw new Error('the server was not started');
    return this.#stack;
  }

  /** The DNS server that a shared server queries about domains. */
  get dns(): DnsServer {
    if (this.#dns === undefined) throw new Error('the server is not shared');
    return this.#dns;
  }

  get url(): string {
    return this.server.run.platform_url;
  }

  /** The database, for states that no endpoint can create: accounts of an external sign-in, and past days. */
  get db(): Database['db'] {
    return this.#openDatabase().db;
  }

  #openDatabase(): Database {
    if (this.#database === undefined) {
      const url = this.server.databaseUrl;
      if (url === null) throw new Error('the server has no database');
      this.#database = this.use(new Database({ url, logger: quiet, connections: 2 }));
    }
    return this.#database;
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

  /** Returns the raw mails to the address, oldest first. */
  rawMails(email: string): RawMail[] {
    const folder = join(this.server.dataDir, 'mail');
    return readdirSync(folder)
      .filter((name) => name.endsWith('.eml'))
      .sort()
      .map((name) => this.#mail(folder, name))
      .filter(({ recipient }) => recipient === email);
  }

  #mail(folder: string, name: string): RawMail {
    const known = this.#mails.get(name);
    if (known !== undefined) return known;
    const raw = readFileSync(join(folder, name), 'utf8');
    const mail = { name, raw, recipient: /\nTo: (\S+)\r\n/.exec(raw)?.[1] ?? '' };
    this.#mails.set(name, mail);
    return mail;
  }

  async mails(email: string): Promise<Email[]> {
    return Promise.all(this.rawMails(email).map(({ raw }) => PostalMime.parse(raw)));
  }

  /** Returns the token in the link of the nth mail to the address, as soon as the mail has arrived. */
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

  /** Signs in again. */
  async enter(email: string): Promise<Person> {
    const answer = await this.login(email);
    if (answer.status !== 200) throw new Error(`login: ${answer.status} ${answer.text}`);
    const { access_token: token, user } = answer.body as LoggedIn;
    return { email, id: user.id, token, cookie: answer.cookie };
  }

  /** Returns a signed-in account that the operator created. Sign-up has separate tests. */
  async person(): Promise<Person> {
    const context = { db: this.db, clock: systemClock, publicUrl: '', passwords };
    const { email } = await createUser(context, OPERATOR, { email: newEmail(), password: PASSWORD });
    return this.enter(email);
  }

  async newKey({ token }: Pick<Person, 'token'>, label = 'laptop'): Promise<CreatedKey> {
    return (await this.post('/keys', { label }, token)).body as CreatedKey;
  }

  async suspend(email: string): Promise<void> {
    await suspend({ db: this.db, clock: systemClock }, OPERATOR, email);
  }

  /** Creates an account like an external sign-in would. */
  async external(email = newEmail('external')): Promise<string> {
    const row = { email, auth_method: 'github', plan: 'free', email_verified_at: new Date() };
    await this.db.insertInto('users').values(row).execute();
    return email;
  }

  /** Adds an edge with a recent heartbeat until the test ends. The platform requests the groups of every account from this edge. */
  async edgeAt(api_url: string, region: string): Promise<string> {
    const names = { name: region, region_id: region, region_name: region };
    const row = { ...names, credential_hash: region.padEnd(64, '-'), api_url, api_secret: 'x'.repeat(40) };
    const heard = { ...row, last_heartbeat_at: new Date() };
    const { id } = await this.db.insertInto('edges').values(heard).returning('id').executeTakeFirstOrThrow();
    onTestFinished(async () => void (await this.db.deleteFrom('edges').where('id', '=', id).execute()));
    return id;
  }
}

const withPlatform = it
  .extend('owner', { scope: 'worker' }, () => new PlatformHarness())
  .extend('platform', { scope: 'worker' }, async ({ owner }, { onCleanup }) => {
    onCleanup(() => owner.close());
    await owner.startShared();
    return owner;
  });

/** Connects the tests of a file to the shared server. Everything the tests opened is closed afterwards. */
export const onSharedPlatform = <T extends PlatformHarness>(harness: T): T => {
  withPlatform.beforeAll(({ platform }) => harness.share(platform));
  afterAll(() => harness.close());
  return harness;
};

// The platform in the test process, over real HTTP and a real database, with a clock that moves on request.

import { loadServerConfig } from '@tunnel/config/server';
import type { LoggedIn } from '@tunnel/contract';
import { createPlatform, type MailNotice } from '@tunnel/platform';
import { Secret } from '@tunnel/runtime';
import { eventually, FakeClock, temporaryDirectory } from '@tunnel/testkit';
import { expect } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../apps/platform/src/db/test-database.fixture.ts';
import { quiet } from '../../system/embedded-database.fixture.ts';
import { type Answer, askPlatform, type Question } from './api-request.fixture.ts';

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

const PASSWORD = 'correct horse battery';

export interface ClockedPerson {
  readonly email: string;
  readonly id: string;
  readonly token: string;
  readonly cookie: string;
}

export class ClockedPlatform {
  readonly clock: FakeClock;
  readonly database: TestDatabase;
  readonly #url: () => string;
  readonly #endings: (() => Promise<void>)[];
  /** Link of the latest mail sent to each address. */
  readonly #links: ReadonlyMap<string, string>;
  #people = 0;

  private constructor(
    clock: FakeClock,
    database: TestDatabase,
    url: () => string,
    links: ReadonlyMap<string, string>,
    endings: (() => Promise<void>)[],
  ) {
    this.clock = clock;
    this.#links = links;
    this.database = database;
    this.#url = url;
    this.#endings = endings;
  }

  /** Starts a platform. `settings` are keys of the [platform] table. */
  static async start(now: number, settings: object = {}): Promise<ClockedPlatform> {
    const clock = new FakeClock(now);
    const database = await createTestDatabase();
    const folder = await temporaryDirectory();
    const limits = { auth_per_minute: 1_000_000, auth_per_account_per_minute: 1_000_000 };
    const config = loadServerConfig({ env: {}, overrides: { platform: { port: 0, limits, ...settings } } });
    const links = new Map<string, string>();
    const onMail = ({ recipient, link }: MailNotice): void => void links.set(recipient, link?.reveal() ?? '');
    const deps = { clock, logger: quiet, version: '1', databaseUrl: database.url, dataDir: folder.path, onMail };
    const platform = createPlatform(config, { ...deps, adminToken: new Secret('of-the-operator') });
    await platform.start();
    const url = (): string => `http://127.0.0.1:${platform.address.port}`;
    return new ClockedPlatform(clock, database, url, links, [
      () => platform.stop(),
      () => database.close(),
      () => folder.close(),
    ]);
  }

  /** Moves the wall clock. Timers do not fire, so that a month passes at once. */
  pass(ms: number): void {
    this.clock.setWallClock(this.clock.now() + ms);
  }

  ask(method: string, path: string, question: Question = {}): Promise<Answer> {
    return askPlatform(this.#url(), method, path, question);
  }

  async status(path: string, token?: string): Promise<number> {
    return (await this.ask('GET', path, token === undefined ? {} : { token })).status;
  }

  refresh(cookie: string): Promise<Answer> {
    return this.ask('POST', '/auth/refresh', { cookie });
  }

  /** Returns the token in the link of the latest mail to the address. */
  async mailedToken(email: string): Promise<string> {
    await this.#sendRequested();
    const { text_body } = await this.database.db
      .selectFrom('mail_outbox')
      .select('text_body')
      .where('recipient', '=', email)
      .orderBy('created_at', 'desc')
      .limit(1)
      .executeTakeFirstOrThrow();
    // The outbox clears the text of a mail after sending it.
    const text = text_body === '' ? (this.#links.get(email) ?? '') : text_body;
    const token = /(?:verify-email\/|token=)([\w-]+)$/m.exec(text)?.[1];
    if (token === undefined) throw new Error(`no link was found in the mail to ${email}`);
    return token;
  }

  /** Waits until the job has turned mail requests into mails. The job follows the clock, which is moved only while requests wait. */
  async #sendRequested(): Promise<void> {
    const waiting = () => this.database.db.selectFrom('mail_requests').select('id').execute();
    if ((await waiting()).length === 0) return;
    await this.clock.advance(SECOND / 2);
    await eventually(async () => expect(await waiting()).toEqual([]));
  }

  async register(): Promise<{ email: string; verifyToken: string }> {
    this.#people += 1;
    const email = `user-${this.#people}@example.com`;
    await this.ask('POST', '/auth/register', { body: { email, password: PASSWORD } });
    return { email, verifyToken: await this.mailedToken(email) };
  }

  login(email: string, password = PASSWORD): Promise<Answer> {
    return this.ask('POST', '/auth/login', { body: { email, password } });
  }

  async enter(email: string): Promise<ClockedPerson> {
    const answer = await this.login(email);
    const { access_token: token, user } = answer.body as LoggedIn;
    return { email, id: user.id, token, cookie: answer.cookie };
  }

  async person(): Promise<ClockedPerson> {
    const { email, verifyToken } = await this.register();
    await this.ask('GET', `/auth/verify-email/${verifyToken}`);
    return this.enter(email);
  }

  async close(): Promise<void> {
    for (const end of this.#endings) await end();
  }
}

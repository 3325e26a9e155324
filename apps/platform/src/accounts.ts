// Accounts put together: what checks passwords and tokens, what sends mails, and the routes over it.

import type { MiddlewareHandler } from 'hono';
import type { PlatformApp, PlatformEnv } from './http/platform-env.ts';
import { requireUser } from './http/require-user.ts';
import { addAuthRoutes } from './http/routes/auth-routes.ts';
import { MailSender } from './mail/mail-sender.ts';
import { createMailTransport, type MailNotice } from './mail/mail-transport.ts';
import { AccessTokens } from './services/auth/access-tokens.ts';
import type { AuthContext } from './services/auth/auth-context.ts';
import { KnownUsers } from './services/auth/known-users.ts';
import { PasswordHasher } from './services/auth/password-hasher.ts';
import { SigningKeys } from './services/auth/signing-keys.ts';
import type { ServiceContext } from './services/service-context.ts';

export interface AccountsOptions extends ServiceContext {
  readonly dataDir: string;
  /** The one that is listened on. */
  readonly port: () => number;
  /** Told of each mail that went into a file, for the console. */
  readonly onMail?: (notice: MailNotice) => void;
  readonly passwords?: PasswordHasher;
}

export class Accounts {
  /** In front of every route that is a user's own. */
  readonly requireUser: MiddlewareHandler<PlatformEnv>;
  readonly #context: AuthContext;
  readonly #signingKeys: SigningKeys;
  readonly #mailSender: MailSender;
  readonly #port: () => number;

  constructor({ dataDir, port, onMail, passwords = new PasswordHasher(), ...service }: AccountsOptions) {
    const { db, clock, logger, settings } = service;
    const transport = createMailTransport({
      settings: settings.mail,
      dataDir,
      ...(onMail === undefined ? {} : { onMail }),
    });
    this.#mailSender = new MailSender({ db, clock, logger, transport });
    this.#signingKeys = new SigningKeys({ db, clock });
    this.#port = port;
    this.#context = {
      ...service,
      passwords,
      accessTokens: new AccessTokens({ keys: this.#signingKeys, clock, issuer: settings.public_url }),
      users: new KnownUsers({ db, clock }),
      mailWaits: () => this.#mailSender.wake(),
    };
    this.requireUser = requireUser(this.#context);
  }

  addRoutes(app: PlatformApp): void {
    const [requireThem, signingKeys, port] = [this.requireUser, this.#signingKeys, this.#port];
    addAuthRoutes(app, { ...this.#context, requireUser: requireThem, signingKeys, port });
  }

  /** When the tables are there. */
  async start(): Promise<void> {
    this.#mailSender.start();
    await Promise.all([this.#context.passwords.prepare(), this.#signingKeys.newest()]);
  }

  /** Before the database is closed. */
  async stop(): Promise<void> {
    await this.#mailSender.stop();
  }
}

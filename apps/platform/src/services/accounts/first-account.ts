// Invitation for the first account. If sign-up is by invitation and no account exists yet, the server creates an invitation for its
// operator. The link is in a file of the data directory, which is written when the database is ready and removed when an account exists.

import { type ServerConfig } from '@tunnel/config/server';
import { type Logger, removeFirstAccountLink, sha256Hex, writeFirstAccountLink } from '@tunnel/runtime';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { MasterKey } from '../../db/master-key.ts';
import { invitationLink } from '../mail/mails.ts';
import { NO_ACCOUNT_YET } from './invites.ts';

interface Deps {
  readonly db: Db;
  readonly masterKey: MasterKey;
  readonly now: number;
}

/**
 * Returns the token of the invitation for the first account, or null if an account exists. There is one invitation per database: servers
 * with the same database derive the same token from their master key and the time of the row. So a restart prints the same link, and the
 * table contains no usable token.
 */
export const firstAccountToken = async ({ db, masterKey, now }: Deps): Promise<string | null> => {
  const tokenOf = (created: Date): string =>
    masterKey.derive('first-account', created.toISOString()).toString('base64url');
  return db.transaction().execute(async (trx) => {
    const kept = trx.selectFrom('invites').select(['token_hash', 'created_at']).where('email', 'is', null);
    // The lock waits for a concurrent sign-up with the invitation.
    const before = await kept.forUpdate().executeTakeFirst();
    const { rows } = await sql<{ none: boolean }>`select ${NO_ACCOUNT_YET} as none`.execute(trx);
    const token = before === undefined ? null : tokenOf(before.created_at);
    if (rows[0]?.none === true && token !== null && sha256Hex(token) === before?.token_hash) return token;
    // The invitation is void, or was created with another master key, which no server has any more.
    await trx.deleteFrom('invites').where('email', 'is', null).execute();
    if (rows[0]?.none !== true) return null;
    const created_at = new Date(now);
    await trx
      .insertInto('invites')
      .values({ token_hash: sha256Hex(tokenOf(created_at)), email: null, created_at, expires_at: null })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    // Another server may have inserted the row first, so the time is read from the row.
    return tokenOf((await kept.executeTakeFirstOrThrow()).created_at);
  });
};

interface FirstAccountLinkOptions {
  readonly dataDir: string;
  readonly settings: Pick<ServerConfig['platform'], 'sign_up' | 'public_url'>;
  readonly logger: Logger;
}

export class FirstAccountLink {
  readonly #options: FirstAccountLinkOptions;

  constructor(options: FirstAccountLinkOptions) {
    this.#options = options;
  }

  /**
   * Writes the file with the link, or removes the file if the link is void. An unwritable folder is logged and does not prevent the
   * start.
   */
  async prepare(db: Db, masterKey: MasterKey, now: number): Promise<void> {
    const { dataDir, settings } = this.#options;
    const token = settings.sign_up === 'invite' ? await firstAccountToken({ db, masterKey, now }) : null;
    if (token === null) this.remove();
    else this.#try(() => writeFirstAccountLink(dataDir, invitationLink(settings.public_url, token)));
  }

  remove(): void {
    this.#try(() => removeFirstAccountLink(this.#options.dataDir));
  }

  #try(work: () => void): void {
    try {
      work();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#options.logger.error({ reason }, 'cannot write the file first-account-link');
    }
  }
}

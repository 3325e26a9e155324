// The invitation for the first account: where sign-up is by invitation and nobody can be invited yet, the server itself makes one for its operator. Its link is in a
// file of the data directory: written when the database is ready, removed when there is an account.

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
 * The token of the invitation for the first account, or null if there is an account. One per database: servers that share it derive the same token from their
 * master key and the time of the row, so that a restart prints the same link and the table holds nothing that could be used.
 */
export const firstAccountToken = async ({ db, masterKey, now }: Deps): Promise<string | null> => {
  const tokenOf = (created: Date): string =>
    masterKey.derive('first-account', created.toISOString()).toString('base64url');
  return db.transaction().execute(async (trx) => {
    const kept = trx.selectFrom('invites').select(['token_hash', 'created_at']).where('email', 'is', null);
    // A sign-up that is using the invitation at this moment is waited for.
    const before = await kept.forUpdate().executeTakeFirst();
    const { rows } = await sql<{ none: boolean }>`select ${NO_ACCOUNT_YET} as none`.execute(trx);
    const token = before === undefined ? null : tokenOf(before.created_at);
    if (rows[0]?.none === true && token !== null && sha256Hex(token) === before?.token_hash) return token;
    // Void, or of another master key, which nobody has any more.
    await trx.deleteFrom('invites').where('email', 'is', null).execute();
    if (rows[0]?.none !== true) return null;
    const created_at = new Date(now);
    await trx
      .insertInto('invites')
      .values({ token_hash: sha256Hex(tokenOf(created_at)), email: null, created_at, expires_at: null })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    // Another server may have been faster.
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

  /** Writes the link, or removes one that is void. A folder that cannot be written keeps nobody from starting. */
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

// The link for the first account, in a file of the data directory: written when the database is ready, removed when there is an account.
import { type Logger, removeFirstAccountLink, type ServerConfig, writeFirstAccountLink } from '@tunnel/runtime';
import type { Db } from '../../db/database.ts';
import type { MasterKey } from '../../db/master-key.ts';
import { invitationLink } from '../mail/mails.ts';
import { firstAccountToken } from './first-account.ts';

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
      this.#options.logger.error({ reason }, 'the file first-account-link cannot be written');
    }
  }
}

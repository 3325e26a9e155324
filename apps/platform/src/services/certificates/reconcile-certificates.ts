// Brings what is kept to what is wanted: makes records, suspends them, takes them up again, forgets them with their keys.
import { type CertificateFacts, CORE_LIMITS, type WantedCertificate, wantedCertificates } from '@tunnel/core';
import type { Logger } from '@tunnel/runtime';
import type { Db } from '../../db/database.ts';
import { readDomains, readReserved } from './certificate-facts.ts';
import { lifeOf } from './certificate-rows.ts';
import type { PostgresCertificateStore } from './postgres-certificate-store.ts';

export interface ReconcileOptions {
  readonly db: Db;
  readonly directory: string;
  readonly store: PostgresCertificateStore;
  readonly facts: Pick<CertificateFacts, 'domain' | 'platformHost' | 'hasLogin' | 'dns' | 'canWildcard'>;
  readonly now: number;
  readonly logger: Logger;
}

interface KnownRow {
  readonly id: string;
  readonly names: string;
  readonly userId: string | null;
  readonly isSuspended: boolean;
  readonly isValid: boolean;
  readonly hasFailed: boolean;
}

const NAMES = { max: CORE_LIMITS.CERTIFICATE_NAMES_MAX, windowMs: CORE_LIMITS.CERTIFICATE_NAMES_WINDOW_MS };
const BUDGET = 'names below the domain';

/** Whether something new is to be ordered. */
export const reconcileCertificates = async (options: ReconcileOptions): Promise<boolean> => {
  const { db, store, logger } = options;
  // Before the facts: a row is made after what wants it was committed, so that what is seen here is wanted there, unless it is not any more.
  const known = await knownRows(options);
  const byName = new Map(known.map((row) => [row.names, row]));
  const own = byName.get(`*.${options.facts.domain}`);
  const wildcard = own === undefined ? null : { isValid: own.isValid, hasFailed: own.hasFailed };
  // What lapsed keeps what was its account's own: who had it since may have removed it, with its key.
  const domains = (await readDomains(db)).filter(
    ({ name, accountId, state }) => state === 'verified' || byName.get(name)?.userId === accountId,
  );
  const reserved = await readReserved(db, wildcard?.isValid === true);
  const wanted = wantedCertificates({ ...options.facts, wildcard, domains, reserved });
  const names = new Set(wanted.map(({ name }) => name));
  for (const row of known) {
    if (names.has(row.names)) continue;
    await store.forget(row.id);
    logger.info({ name: row.names }, 'a certificate that nobody wants any more was destroyed');
  }
  return bringUp(options, wanted, byName);
};

const bringUp = async (
  { store, logger, now }: ReconcileOptions,
  wanted: readonly WantedCertificate[],
  known: ReadonlyMap<string, KnownRow>,
): Promise<boolean> => {
  let hasNews = false;
  let hasRoom = true;
  for (const { name, accountId: userId, keeping, isCounted } of wanted) {
    const row = known.get(name);
    const isSuspended = keeping === 'suspended';
    if (row !== undefined) {
      if (row.userId === userId && row.isSuspended === isSuspended) continue;
      await store.setKeeping(row.id, { userId, isSuspended });
      hasNews ||= !isSuspended;
    } else if (keeping === 'ordered' && (hasRoom || !isCounted)) {
      if (isCounted) hasRoom = (await store.takeFromBudget(BUDGET, NAMES, now)).kind === 'taken';
      if (isCounted && !hasRoom) {
        logger.debug({ name, max: NAMES.max }, 'too many names got a certificate of their own this week: it waits');
        continue;
      }
      await store.wantFor([name], userId);
      hasNews = true;
    }
  }
  return hasNews;
};

/** Without chains and keys: there may be thousands. */
const knownRows = async ({ db, directory, now }: ReconcileOptions): Promise<readonly KnownRow[]> => {
  const rows = await db
    .selectFrom('certificates')
    .select(['id', 'names', 'user_id', 'suspended', 'life'])
    .where('directory', '=', directory)
    .execute();
  return rows.map((row) => {
    const life = lifeOf(row);
    return {
      ...{ id: row.id, names: row.names, userId: row.user_id, isSuspended: row.suspended },
      isValid: life.issued !== null && life.issued.notAfter > now,
      hasFailed: life.failures > 0,
    };
  });
};

// Reconciles stored certificates with the required certificates: creates, suspends and resumes records, and deletes unneeded records with
// their keys.

import { type CertificateFacts, type WantedCertificate, wantedCertificates } from '@tunnel/certificates/life';
import { RULE_LIMITS } from '@tunnel/rules/limits';
import { subdomainOf } from '@tunnel/rules/names';
import type { Logger } from '@tunnel/runtime';
import type { Db } from '../../db/database.ts';
import { readDomains, readReserved } from './certificate-facts.ts';
import { certificateLife } from './certificate-rows.ts';
import type { PostgresCertificateStore } from './postgres-certificate-store.ts';

/**
 * Maximum number of certificates for single names that an account can get within 7 days: a quarter of the server's total.
 * @limit accounts: Certificates for single names per account within 7 days | the order waits until the week has passed
 */
const CERTIFICATE_NAMES_PER_ACCOUNT = 10;

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

const NAMES = {
  max: RULE_LIMITS.CERTIFICATE_NAMES_MAX,
  windowMs: RULE_LIMITS.CERTIFICATE_NAMES_WINDOW_MS,
  perAccount: CERTIFICATE_NAMES_PER_ACCOUNT,
};
const BUDGET = 'names below the domain';

/** Reconciles the stored certificates. Returns true if there is something new to order. */
export const reconcileCertificates = async (options: ReconcileOptions): Promise<boolean> => {
  const { db, store, logger } = options;
  // Stored certificates are read before the facts. A row is created only after its reason was committed, so the facts read later contain
  // the reason for every row seen here, unless the reason has gone.
  const known = await knownRows(options);
  const byName = new Map(known.map((row) => [row.names, row]));
  const own = byName.get(`*.${options.facts.domain}`);
  const wildcard = own === undefined ? null : { isValid: own.isValid, hasFailed: own.hasFailed };
  // The certificate of a lapsed domain is kept only if it still belongs to the same account. If another account had the domain since,
  // that account may have removed the certificate together with its key.
  const domains = (await readDomains(db)).filter(
    ({ name, accountId, state }) => state === 'verified' || byName.get(name)?.userId === accountId,
  );
  const reserved = await readReserved(db, wildcard?.isValid === true);
  const certified = known.flatMap(({ names: name, userId: accountId, isValid }) => {
    const label = isValid ? subdomainOf(name, options.facts.domain) : null;
    // The configuration decides about certificates of the operator's names.
    return label === null || accountId === null ? [] : [{ label, accountId }];
  });
  const wanted = wantedCertificates({ ...options.facts, wildcard, domains, reserved, certified });
  const names = new Set(wanted.map(({ name }) => name));
  for (const row of known) {
    if (names.has(row.names)) continue;
    await store.forget(row.id);
    logger.info({ name: row.names }, 'deleted a certificate that is no longer needed');
  }
  return bringUp(options, wanted, byName);
};

const bringUp = async (
  options: ReconcileOptions,
  wanted: readonly WantedCertificate[],
  known: ReadonlyMap<string, KnownRow>,
): Promise<boolean> => {
  const { store, logger } = options;
  let hasNews = false;
  const room = new WeeklyRoom(options);
  for (const { name, accountId: userId, keeping, isCounted } of wanted) {
    const row = known.get(name);
    const isSuspended = keeping === 'suspended';
    if (row !== undefined) {
      if (row.userId === userId && row.isSuspended === isSuspended) continue;
      await store.setKeeping(row.id, { accountId: userId, isSuspended });
      hasNews ||= !isSuspended;
    } else if (keeping === 'ordered') {
      if (isCounted && !(await room.takesOne(userId))) {
        logger.debug({ name }, 'the weekly certificate limit is reached; waiting');
        continue;
      }
      await store.want([name], userId);
      hasNews = true;
    }
  }
  return hasNews;
};

/**
 * Remaining certificates of the week. Remembers accounts without remaining certificates, to query the budget only once for such an
 * account.
 */
class WeeklyRoom {
  readonly #options: ReconcileOptions;
  readonly #without = new Set<string | null>();
  #isEmpty = false;

  constructor(options: ReconcileOptions) {
    this.#options = options;
  }

  async takesOne(accountId: string | null): Promise<boolean> {
    if (this.#isEmpty || this.#without.has(accountId)) return false;
    const { store, now } = this.#options;
    const answer = await store.takeFromBudget(BUDGET, NAMES, now, accountId);
    if (answer.kind === 'taken') return true;
    this.#without.add(accountId);
    this.#isEmpty = answer.isWhole;
    return false;
  }
}

/** Reads all certificate rows of the directory without chains and keys, because there may be thousands. */
const knownRows = async ({ db, directory, now }: ReconcileOptions): Promise<readonly KnownRow[]> => {
  const rows = await db
    .selectFrom('certificates')
    .select(['id', 'names', 'user_id', 'suspended', 'life'])
    .where('directory', '=', directory)
    .execute();
  return rows.map((row) => {
    const life = certificateLife(row);
    return {
      id: row.id,
      names: row.names,
      userId: row.user_id,
      isSuspended: row.suspended,
      isValid: life.issued !== null && life.issued.notAfter > now,
      hasFailed: life.failures > 0,
    };
  });
};

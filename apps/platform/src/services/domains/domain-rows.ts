// Rows of custom domains, in the form needed by domain-life. All accounts' rows of a name are read, locked and written together.
import type { DomainName, OwnDomain, OwnDomains, StoredCheck } from '@tunnel/certificates/domains';
import { type Selectable, sql, type Transaction } from 'kysely';
import type { OwnDomainsTable, Schema } from '../../db/schema.ts';

type Trx = Transaction<Schema>;
export type DomainRow = Selectable<OwnDomainsTable>;

/**
 * First half of the PostgreSQL advisory lock for a domain: the ASCII letters 'od'. The second half is the hash of the name. The letters
 * keep the lock ids of different subjects apart.
 */
const DOMAIN_LOCKS = 0x6f64;

/**
 * Locks a domain name and returns every account's row of the name, oldest first. Every change of a row must hold the lock, because a
 * check decides about all rows at once, and because a name without rows has no row to lock. Lock order: after the account's row, and
 * before changes are announced to edges.
 */
export const lockDomains = async (trx: Trx, name: string): Promise<readonly DomainRow[]> => {
  await sql`select pg_advisory_xact_lock(${DOMAIN_LOCKS}, hashtext(${name}))`.execute(trx);
  return trx
    .selectFrom('own_domains')
    .selectAll()
    .where('name', '=', name)
    .orderBy('created_at')
    .orderBy('id')
    .forNoKeyUpdate()
    .execute();
};

const WILDCARD = '*.';

export const domainNameOf = ({ name, wildcard }: Pick<DomainRow, 'name' | 'wildcard'>): DomainName => ({
  name,
  host: wildcard ? name.slice(WILDCARD.length) : name,
  wildcard,
});

/** Endpoint of a tunnel on a custom domain, as stored in the log. Like other endpoints: kind, region and label, with an empty region. */
export const endpointOfDomain = (domain: string): string => `domain//${domain}`;

/** Stored result of the last DNS check, or null before the first check. */
export const storedCheck = ({ found }: Pick<DomainRow, 'found'>): StoredCheck | null => found as StoredCheck | null;

export const domainsOf = (rows: readonly DomainRow[]): OwnDomains => rows.map(domainOf);

const domainOf = (row: DomainRow): OwnDomain => ({
  id: row.id,
  token: row.token,
  state: row.state,
  since: row.since.getTime(),
  verifiedAt: row.verified_at?.getTime() ?? null,
  checkedAt: row.checked_at?.getTime() ?? null,
  absentSince: row.absent_since?.getTime() ?? null,
  nextLookAt: row.next_look_at?.getTime() ?? null,
  lastError: row.last_error,
  mailedAt: row.mailed_at,
});

const dateOf = (ms: number | null): Date | null => (ms === null ? null : new Date(ms));

/** Columns changed by the state machine of custom domains (domain-life). */
export const columnsOf = (domain: OwnDomain) => ({
  state: domain.state,
  since: new Date(domain.since),
  verified_at: dateOf(domain.verifiedAt),
  checked_at: dateOf(domain.checkedAt),
  absent_since: dateOf(domain.absentSince),
  next_look_at: dateOf(domain.nextLookAt),
  last_error: domain.lastError,
  mailed_at: domain.mailedAt,
});

/** Writes changed domains. `found` has the results of a DNS check by row id; rows without a result keep their previous result. */
export const writeDomains = async (
  trx: Trx,
  before: OwnDomains,
  after: OwnDomains,
  found: ReadonlyMap<string, StoredCheck> = new Map(),
): Promise<void> => {
  const unchanged = new Set(before);
  const changed = after.filter((domain) => !unchanged.has(domain));
  // First the accounts that lose the domain, then the account that gets it, because only one account can hold a domain at a time.
  for (const wins of [false, true]) {
    const some = changed.filter(({ state }) => (state === 'verified') === wins);
    await update(
      trx,
      some.map((domain) => ({ ...columnsOf(domain), id: domain.id, found: found.get(domain.id) ?? null })),
    );
  }
};

/** Updates the rows in a single statement, regardless of the number of accounts with the name. */
const update = async (trx: Trx, told: readonly object[]): Promise<void> => {
  if (told.length === 0) return;
  await sql`
    update own_domains set
      state = told.state, since = told.since, verified_at = told.verified_at, checked_at = told.checked_at,
      absent_since = told.absent_since, next_look_at = told.next_look_at, last_error = told.last_error,
      mailed_at = told.mailed_at, found = coalesce(told.found, own_domains.found)
    from jsonb_to_recordset(${JSON.stringify(told)}::jsonb) as told (
      id uuid, state text, since timestamptz, verified_at timestamptz, checked_at timestamptz,
      absent_since timestamptz, next_look_at timestamptz, last_error text, mailed_at jsonb, found jsonb
    )
    where own_domains.id = told.id
  `.execute(trx);
};

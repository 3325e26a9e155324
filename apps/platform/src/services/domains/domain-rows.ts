// The rows of own domains, as domain-life sees them: all accounts' of one name, read and locked, and written as it says.
import type { DomainName, OwnDomain, OwnDomains, StoredCheck } from '@tunnel/certificates/domains';
import { type Selectable, sql, type Transaction } from 'kysely';
import type { OwnDomainsTable, Schema } from '../../db/schema.ts';

type Trx = Transaction<Schema>;
export type DomainRow = Selectable<OwnDomainsTable>;

/** Two letters of ASCII before the number of the name, so that it meets no other lock: 'od'. */
const DOMAIN_LOCKS = 0x6f64;

/**
 * Every account's row of the name, in the order in which they added it. Whoever changes one of them holds this lock: a look decides about all at
 * once, and where there is no row yet there would be nothing else to wait for. After the account's row, and before what is announced.
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

/** How the log says that a tunnel is at it, as other endpoints are said: kind, region, label. */
export const endpointOfDomain = (domain: string): string => `domain//${domain}`;

/** What was kept of the last look; null: nobody has looked yet. */
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

/** The columns that the machine changes. */
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

/** Those that have changed. `found`: what is kept of the look, by id; one that is not in it keeps what it had. */
export const writeDomains = async (
  trx: Trx,
  before: OwnDomains,
  after: OwnDomains,
  found: ReadonlyMap<string, StoredCheck> = new Map(),
): Promise<void> => {
  const unchanged = new Set(before);
  const changed = after.filter((domain) => !unchanged.has(domain));
  // Whoever loses it first: one account has it at a time.
  for (const wins of [false, true]) {
    const some = changed.filter(({ state }) => (state === 'verified') === wins);
    await update(
      trx,
      some.map((domain) => ({ ...columnsOf(domain), id: domain.id, found: found.get(domain.id) ?? null })),
    );
  }
};

/** However many accounts have the name, in one statement. */
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

// Own domains as edges and deletions see them: which are verified, whether a tunnel may be opened on one, and all of an account's at once.
import type { LapsedDomain, LinkRefusal, VerifiedDomain } from '@tunnel/contract';
import { shownText } from '@tunnel/rules/names';
import { sql, type Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import { refusal } from '../shared/link-answers.ts';
import { changeDomain } from './change-domain.ts';
import { lockDomains } from './domain-rows.ts';

/** Rows of the snapshot for an edge that are in memory at once. */
export const NAMES_PAGE = 1000;

type Trx = Transaction<Schema>;

/** Those after a name, in order; fewer than a page: the last. */
export const verifiedAfter = async (db: Db, after: string | null): Promise<readonly VerifiedDomain[]> => {
  const later = after === null ? sql`true` : sql`name > ${after}`;
  const { rows } = await sql<VerifiedDomain>`
    select name as domain, user_id as account_id from own_domains
    where state = 'verified' and ${later} order by name limit ${NAMES_PAGE}
  `.execute(db);
  return rows;
};

/** The same of those that nobody has any more, with whoever had each last. */
export const lapsedAfter = async (db: Db, after: string | null): Promise<readonly LapsedDomain[]> => {
  const later = after === null ? sql`true` : sql`name > ${after}`;
  const { rows } = await sql<LapsedDomain>`
    select distinct on (name) name as lapsed_domain, user_id as account_id from own_domains
    where state = 'lapsed' and ${later}
      and not exists (select from own_domains other where other.name = own_domains.name and other.state = 'verified')
    order by name, verified_at desc limit ${NAMES_PAGE}
  `.execute(db);
  return rows;
};

export interface DomainClaim {
  readonly domain: string;
  readonly accountId: string;
  /** It was open before on this very domain: while nobody else has it, it may come back to one that has lapsed since. */
  readonly isResumed: boolean;
}

/**
 * null: it may. The row is held until the tunnel is counted: whoever takes the domain away waits for it, and edges hear of that after the tunnel
 * was let in.
 */
export const refusalOfDomain = async (
  trx: Trx,
  { domain, accountId, isResumed }: DomainClaim,
): Promise<LinkRefusal | null> => {
  const { rows } = await sql<{ user_id: string; state: string }>`
    select user_id, state from own_domains
    where name = ${domain} and (user_id = ${accountId} or state = 'verified') order by created_at, id for share
  `.execute(trx);
  const own = rows.find(({ user_id }) => user_id === accountId);
  if (own?.state === 'verified') return null;
  const isNobodys = rows.every(({ state }) => state !== 'verified');
  if (isResumed && own?.state === 'lapsed' && isNobodys) return null;
  return refusal('TUNNEL_DOMAIN_UNVERIFIED', { domain: shownText(domain) });
};

/** Of an account that is deleted. Each by itself: whoever announces must wait for nobody's lock any more. */
export const removeAllDomainsOf = async (db: Db, userId: string, now: number): Promise<void> => {
  const own = await db.selectFrom('own_domains').select(['id', 'name']).where('user_id', '=', userId).execute();
  for (const { id, name } of own) {
    await db.transaction().execute(async (trx) => {
      const rows = await lockDomains(trx, name);
      await changeDomain(trx, { rows, event: { kind: 'removed', id }, now, publicUrl: '', actor: 'system' });
    });
  }
};

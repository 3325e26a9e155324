// Custom domains for edges and for deletions: lists verified domains, decides whether a tunnel may use a domain, and removes all domains
// of an account.
import type { LapsedDomain, LinkRefusal, VerifiedDomain } from '@tunnel/contract';
import { shownText } from '@tunnel/rules/names';
import { sql, type Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import { refusal } from '../shared/link-answers.ts';
import { changeDomain } from './change-domain.ts';
import { lockDomains } from './domain-rows.ts';

/** Number of rows per page of the snapshot for an edge; the rows of a page are in memory together. */
export const NAMES_PAGE = 1000;

type Trx = Transaction<Schema>;

/** Returns a page of verified domains after a name, in alphabetical order. A page with fewer than NAMES_PAGE domains is the last page. */
export const verifiedAfter = async (db: Db, after: string | null): Promise<readonly VerifiedDomain[]> => {
  const later = after === null ? sql`true` : sql`name > ${after}`;
  const { rows } = await sql<VerifiedDomain>`
    select name as domain, user_id as account_id from own_domains
    where state = 'verified' and ${later} order by name limit ${NAMES_PAGE}
  `.execute(db);
  return rows;
};

/**
 * Returns a page of lapsed domains without a current holder, each with the account that held the domain last. Pages as in verifiedAfter.
 */
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
  /**
   * True if the tunnel was open on the same domain before. Such a tunnel may return to a lapsed domain as long as no other account has
   * the domain.
   */
  readonly isResumed: boolean;
}

/**
 * Returns null if the account may open a tunnel on the domain, otherwise the rejection. The rows stay locked until the tunnel is counted.
 * So a transaction that takes the domain away waits for the tunnel, and edges hear of the change after the tunnel was admitted.
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

/**
 * Removes all domains of a deleted account, in a separate transaction per domain, because a transaction must not take further locks after
 * announcing a change.
 */
export const removeAllDomainsOf = async (db: Db, userId: string, now: number): Promise<void> => {
  const own = await db.selectFrom('own_domains').select(['id', 'name']).where('user_id', '=', userId).execute();
  for (const { id, name } of own) {
    await db.transaction().execute(async (trx) => {
      const rows = await lockDomains(trx, name);
      await changeDomain(trx, { rows, event: { kind: 'removed', id }, now, publicUrl: '', actor: 'system' });
    });
  }
};

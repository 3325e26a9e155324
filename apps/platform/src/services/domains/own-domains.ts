// Custom domains of an account: add, list, check on request, remove.
import { randomUUID } from 'node:crypto';
import { domainToASCII } from 'node:url';
import {
  type DomainName,
  proofToken,
  readDomainName,
  requestedCheckWaitMs,
  transitionDomain,
} from '@tunnel/certificates/domains';
import type { NewDomain, OwnDomainView } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { sql, type Transaction } from 'kysely';
import type { MasterKey } from '../../db/master-key.ts';
import { isUuid, type Schema } from '../../db/schema.ts';
import { LIMITS } from '../../limits.ts';
import { writeAudit } from '../shared/audit.ts';
import { type CreationContext, countCreation } from '../shared/creations.ts';
import type { ServiceContext, UserActor } from '../shared/service-context.ts';
import { changeDomain, type DomainNews } from './change-domain.ts';
import { columnsOf, type DomainRow, domainsOf, lockDomains, writeDomains } from './domain-rows.ts';
import type { DomainSettings } from './domain-settings.ts';
import type { DomainVerifier } from './domain-verifier.ts';
import { readViews } from './domain-views.ts';

type Trx = Transaction<Schema>;

export interface DomainsContext extends Pick<ServiceContext, 'db'>, CreationContext {
  readonly domains: DomainSettings;
  readonly domainVerifier: Pick<DomainVerifier, 'verifyFor' | 'edgeAddresses'>;
  /** Called after the commit of a changed custom domain, with the work to start. */
  readonly onDomainNews: (news: DomainNews) => void;
  /** Returns the master key, which is available after the database tables were created. */
  readonly masterKey: () => MasterKey;
}

/** Lists the account's custom domains, oldest first. */
export const listDomains = (context: DomainsContext, { userId }: UserActor): Promise<OwnDomainView[]> =>
  readViews(context, sql`user_id = ${userId}`);

/** Returns a custom domain. The domain of another account is reported as unknown. */
export const readDomain = async (
  context: DomainsContext,
  { userId }: UserActor,
  id: string,
): Promise<OwnDomainView> => {
  if (!isUuid(id)) throw new Fault('DOMAIN_UNKNOWN');
  const [view] = await readViews(context, sql`id = ${id} and user_id = ${userId}`);
  if (view === undefined) throw new Fault('DOMAIN_UNKNOWN');
  return view;
};

export interface AddedDomain {
  readonly domain: OwnDomainView;
  /** False if the account had added the domain already. */
  readonly isNew: boolean;
}

/**
 * Adds a custom domain. Domains of other accounts are not checked: DNS decides who gets the domain, and users must not learn of other
 * accounts.
 */
export const addDomain = async (context: DomainsContext, actor: UserActor, wanted: NewDomain): Promise<AddedDomain> => {
  const { db, domains } = context;
  if (domains.isLocal) throw new Fault('DOMAIN_LOCAL_SERVER', { domain: domains.serverDomain });
  const reading = readDomainName(wanted.name, { toAscii: domainToASCII, operatorsHosts: domains.operatorsHosts });
  if (reading.kind === 'refused') throw reading.fault;
  const added = await db
    .transaction()
    .execute((trx) => insertDomain(trx, context, actor, { domain: reading.domain, certificate: wanted.certificate }));
  if (added.certificates) context.onDomainNews({ certificates: true, mails: false });
  return { domain: await readDomain(context, actor, added.id), isNew: added.isNew };
};

interface Inserted {
  readonly id: string;
  readonly isNew: boolean;
  /** True if the required certificates have changed. */
  readonly certificates: boolean;
}

const insertDomain = async (
  trx: Trx,
  context: DomainsContext,
  { userId }: UserActor,
  { domain, certificate }: { readonly domain: DomainName; readonly certificate: boolean | undefined },
): Promise<Inserted> => {
  const limit = await lockLimit(trx, userId);
  const rows = await lockDomains(trx, domain.name);
  const own = rows.find((row) => row.user_id === userId);
  if (own !== undefined) {
    // A request that leaves out the certificate setting keeps the previous value.
    const set = { wants_certificate: certificate ?? own.wants_certificate };
    const certificates = own.wants_certificate !== set.wants_certificate;
    if (certificates) await trx.updateTable('own_domains').set(set).where('id', '=', own.id).execute();
    return { id: own.id, isNew: false, certificates };
  }
  await refuseOverPlan(trx, userId, limit);
  await countCreation(trx, context, userId);
  const { clock, masterKey } = context;
  const { name, wildcard } = domain;
  const id = randomUUID();
  const token = tokenOf(masterKey(), userId, name);
  const now = clock.now();
  const [after] = transitionDomain(domainsOf(rows), { kind: 'added', id, token }, now);
  const made = after.find((one) => one.id === id);
  if (made === undefined) throw new Error('a newly added domain is missing');
  await trx
    .insertInto('own_domains')
    .values({
      id,
      user_id: userId,
      name,
      wildcard,
      token,
      wants_certificate: certificate ?? true,
      ...columnsOf(made),
      mailed_at: JSON.stringify(made.mailedAt),
      created_at: new Date(now),
    })
    .execute();
  await writeAudit(trx, {
    actor: `user:${userId}`,
    action: 'domain.added',
    userId,
    details: { domain_id: id, name },
  });
  return { id, isNew: true, certificates: false };
};

/**
 * Verification token of an account for a name. The token is always the same, so existing DNS records stay valid after the domain is
 * removed and added again.
 */
const tokenOf = (masterKey: MasterKey, userId: string, name: string): string =>
  proofToken(masterKey.derive('domain-token', `${userId} ${name}`));

/**
 * Locks the account and returns the domain limit of its plan, or null without a limit. The lock makes concurrent requests count one after
 * the other; otherwise every request could pass the limit.
 */
const lockLimit = async (trx: Trx, userId: string): Promise<number | null> => {
  const account = await trx
    .selectFrom('users')
    .innerJoin('plans', 'plans.name', 'users.plan')
    .select(['users.deleted_at', 'plans.domain_limit'])
    .where('users.id', '=', userId)
    .forNoKeyUpdate('users')
    .executeTakeFirst();
  // A request that began before the account's deletion must not add a domain afterwards.
  if (account === undefined || account.deleted_at !== null) throw new Fault('ACCESS_TOKEN_INVALID');
  return account.domain_limit;
};

const refuseOverPlan = async (trx: Trx, userId: string, limit: number | null): Promise<void> => {
  if (limit === null) return;
  const { count } = await trx
    .selectFrom('own_domains')
    .select((rows) => rows.fn.countAll<number>().as('count'))
    .where('user_id', '=', userId)
    .executeTakeFirstOrThrow();
  if (count >= limit) throw new Fault('DOMAIN_LIMIT', { limit });
};

/** Checks a custom domain in DNS now. If a resolver does not respond, only the displayed error changes. */
export const checkDomain = async (context: DomainsContext, actor: UserActor, id: string): Promise<OwnDomainView> => {
  await context.domainVerifier.verifyFor(actor.userId, () => claimLook(context, actor, id));
  return readDomain(context, actor, id);
};

/** Claims the domain for a check by this process, so that no other process checks it meanwhile. */
const claimLook = ({ db, clock }: DomainsContext, actor: UserActor, id: string): Promise<DomainRow> =>
  db.transaction().execute(async (trx) => {
    const { rows, own } = await lockOwn(trx, actor, id);
    const now = clock.now();
    const before = domainsOf(rows);
    const waitMs = Math.max(
      ...before.filter((domain) => domain.id === id).map((one) => requestedCheckWaitMs(one, now)),
    );
    if (waitMs > 0) throw new Fault('DOMAIN_CHECK_TOO_SOON', { seconds: Math.ceil(waitMs / 1000) });
    const [after] = transitionDomain(before, { kind: 'check-asked', id }, now);
    const claimed = after.map((one) => (one.id === id ? { ...one, nextLookAt: now + LIMITS.DOMAIN_CLAIM_MS } : one));
    await writeDomains(trx, before, claimed);
    return own;
  });

export const removeDomain = async (context: DomainsContext, actor: UserActor, id: string): Promise<void> => {
  const { db, clock, domains } = context;
  const news = await db.transaction().execute(async (trx) => {
    const { rows } = await lockOwn(trx, actor, id);
    return changeDomain(trx, {
      rows,
      now: clock.now(),
      publicUrl: domains.publicUrl,
      actor: `user:${actor.userId}`,
      event: { kind: 'removed', id },
    });
  });
  context.onDomainNews(news);
};

/** Locks a domain of the account, together with the other accounts' rows of the same name. */
const lockOwn = async (
  trx: Trx,
  { userId }: UserActor,
  id: string,
): Promise<{ readonly rows: readonly DomainRow[]; readonly own: DomainRow }> => {
  if (!isUuid(id)) throw new Fault('DOMAIN_UNKNOWN');
  const found = await trx
    .selectFrom('own_domains')
    .select('name')
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  const rows = found === undefined ? [] : await lockDomains(trx, found.name);
  const own = rows.find((row) => row.id === id);
  // The domain may have been removed while waiting for the lock.
  if (own === undefined) throw new Fault('DOMAIN_UNKNOWN');
  return { rows, own };
};

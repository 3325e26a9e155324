// The own domains of an account: added, listed, looked at on request, removed.
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
  /** After a commit. */
  readonly onDomainNews: (news: DomainNews) => void;
  /** There once the tables are. */
  readonly masterKey: () => MasterKey;
}

/** Oldest first. */
export const listDomains = (context: DomainsContext, { userId }: UserActor): Promise<OwnDomainView[]> =>
  readViews(context, sql`user_id = ${userId}`);

/** Of another account: as if there were none. */
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
  /** false: the account has it already. */
  readonly isNew: boolean;
}

/** Whether another account has it is not looked at: DNS decides, and nobody learns who else is here. */
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
  /** Other certificates are wanted than before. */
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
    // One who says nothing of it has not changed their mind.
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

/** Per account and name, and the same each time: records that were set before are good after remove and add. */
const tokenOf = (masterKey: MasterKey, userId: string, name: string): string =>
  proofToken(masterKey.derive('domain-token', `${userId} ${name}`));

/** One after the other: those who count at once would all find room. null: no limit. */
const lockLimit = async (trx: Trx, userId: string): Promise<number | null> => {
  const account = await trx
    .selectFrom('users')
    .innerJoin('plans', 'plans.name', 'users.plan')
    .select(['users.deleted_at', 'plans.domain_limit'])
    .where('users.id', '=', userId)
    .forNoKeyUpdate('users')
    .executeTakeFirst();
  // A request that began before the deletion adds nothing after it.
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

/** Looks at once. A resolver that does not answer changes nothing but the error that is shown. */
export const checkDomain = async (context: DomainsContext, actor: UserActor, id: string): Promise<OwnDomainView> => {
  await context.domainVerifier.verifyFor(actor.userId, () => claimLook(context, actor, id));
  return readDomain(context, actor, id);
};

/** It is this process that looks: nobody else takes it up meanwhile. */
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

/** With all others of the name. */
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
  // It may have gone while its lock was waited for.
  if (own === undefined) throw new Fault('DOMAIN_UNKNOWN');
  return { rows, own };
};

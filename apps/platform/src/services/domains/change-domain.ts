// Applies an event to a domain name. domain-life decides for all accounts with the name, and the consequences follow in the same
// transaction, so that everything is committed together: rows, audit entries, mails, and last the changes announced to edges.
import {
  type DomainEffect,
  type DomainEvent,
  type DomainMail,
  type OwnDomains,
  type StoredCheck,
  transitionDomain,
} from '@tunnel/certificates/domains';
import type { Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import { domainMail } from '../mail/domain-mails.ts';
import { queueMail } from '../mail/mail-template.ts';
import { writeAudit } from '../shared/audit.ts';
import { type AnnouncedChange, announceChanges } from '../shared/edge-changes.ts';
import { type DomainRow, domainsOf, writeDomains } from './domain-rows.ts';

type Trx = Transaction<Schema>;

export interface DomainChange {
  /** Rows of all accounts with the name, locked by lockDomains. */
  readonly rows: readonly DomainRow[];
  readonly event: DomainEvent;
  readonly now: number;
  readonly publicUrl: string;
  /** Actor in the audit log: `user:<id>` or `system`. */
  readonly actor: string;
  /** Results of a DNS check to store, by row id. */
  readonly found?: ReadonlyMap<string, StoredCheck>;
}

/** Work to start after the transaction was committed. */
export interface DomainNews {
  /** True if the required certificates may have changed. */
  readonly certificates: boolean;
  readonly mails: boolean;
}

export const changeDomain = async (trx: Trx, change: DomainChange): Promise<DomainNews> => {
  const { rows, event, now } = change;
  const before = domainsOf(rows);
  const [after, effects] = transitionDomain(before, event, now);
  const removed = removedFrom(before, after);
  if (removed.length > 0) await trx.deleteFrom('own_domains').where('id', 'in', removed).execute();
  await writeDomains(trx, before, after, change.found);
  const byId = new Map(rows.map((row) => [row.id, row]));
  const changes: AnnouncedChange[] = [];
  let mails = false;
  for (const effect of effects) {
    if (effect.kind === 'mail') mails = (await writeTo(trx, byId.get(effect.id), effect.mail, change)) || mails;
    else changes.push(...(await tellOf(trx, effect, byId, change.actor)));
  }
  await announceChanges(trx, changes);
  return { certificates: changes.length > 0, mails };
};

const removedFrom = (before: OwnDomains, after: OwnDomains): string[] => {
  const left = new Set(after.map(({ id }) => id));
  return before.flatMap(({ id }) => (left.has(id) ? [] : [id]));
};

type Told = Exclude<DomainEffect, { kind: 'mail' }>;

/** Writes the audit entry for an effect. Returns the changes to announce to edges. */
const tellOf = async (
  trx: Trx,
  effect: Told,
  byId: ReadonlyMap<string, DomainRow>,
  actor: string,
): Promise<readonly AnnouncedChange[]> => {
  const row = byId.get(effect.kind === 'moved' ? effect.from : effect.id);
  // A failed verification changes nothing for users and edges.
  if (row === undefined || effect.kind === 'failed') return [];
  const to = effect.kind === 'moved' ? byId.get(effect.to) : undefined;
  await writeAudit(trx, {
    actor,
    action: `domain.${effect.kind}`,
    userId: row.user_id,
    details: {
      domain_id: row.id,
      name: row.name,
      ...(to === undefined ? {} : { to_domain_id: to.id, to_user_id: to.user_id }),
    },
  });
  // A domain that was never verified has no tunnels, so edges need no notification of its removal.
  if (effect.kind === 'removed' && row.state !== 'verified' && row.state !== 'lapsed') return [];
  const keepsTunnels = effect.kind === 'verified' || effect.kind === 'lapsed';
  return [{ kind: 'domain-changed', domain: row.name, keepsTunnels }];
};

/** Queues a mail to the owner of a domain. Returns false if the account no longer exists. */
const writeTo = async (
  trx: Trx,
  row: DomainRow | undefined,
  mail: DomainMail,
  { publicUrl, now }: DomainChange,
): Promise<boolean> => {
  if (row === undefined) return false;
  const user = await trx
    .selectFrom('users')
    .select('email')
    .where('id', '=', row.user_id)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  if (user === undefined) return false;
  await queueMail(trx, domainMail(publicUrl, user.email, { mail, name: row.name }), { userId: row.user_id, now });
  return true;
};

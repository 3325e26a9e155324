// The audit: who did what to whom. A line of it is written in the transaction of the deed, so that neither is there alone.
import type { Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import type { EdgeActor, OperatorActor, UserActor } from './service-context.ts';

export interface AuditEntry {
  /** `user:<id>`, `operator:<name>`, `edge:<id>` or `system`. */
  readonly actor: string;
  /** In the past tense, what first: `key.revoked`, `user.suspended`. */
  readonly action: string;
  /** The account it was about. */
  readonly userId?: string;
  /** Never a secret. */
  readonly details?: Record<string, unknown>;
}

export const writeAudit = async (db: Db | Transaction<Schema>, entry: AuditEntry): Promise<void> => {
  await db
    .insertInto('audit_log')
    .values({
      actor: entry.actor,
      action: entry.action,
      user_id: entry.userId ?? null,
      details: JSON.stringify(entry.details ?? {}),
    })
    .execute();
};

/** How an actor is called in the audit. */
export const actorName = (actor: UserActor | OperatorActor | EdgeActor): string => {
  switch (actor.kind) {
    case 'user':
      return `user:${actor.userId}`;
    case 'operator':
      return `operator:${actor.name}`;
    case 'edge':
      return `edge:${actor.edgeId}`;
  }
};

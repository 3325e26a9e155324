// Audit log: records the actor, the action and the affected account. An entry is written in the transaction of the action, so that action
// and entry are committed together.
import type { Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import type { EdgeActor, OperatorActor, UserActor } from './service-context.ts';

export interface AuditEntry {
  /** Actor of the entry: `user:<id>`, `operator:<name>`, `edge:<id>` or `system`. */
  readonly actor: string;
  /** Action as object and verb in the past tense, such as `key.revoked` or `user.suspended`. */
  readonly action: string;
  /** Id of the affected account. */
  readonly userId?: string;
  /** Further facts about the action. Must not contain secrets. */
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

/** Name of an actor in the audit log. */
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

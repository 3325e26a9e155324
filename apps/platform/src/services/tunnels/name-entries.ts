// Assigns names to tunnels of a batch that were opened without asking the platform: ports chosen by the edge, and tunnels opened while
// the platform was down. The tunnels are already open, so none is rejected; a name owned by another account keeps its owner.
import type { JournalRecord } from '@tunnel/contract';
import { sql, type Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import { claimName } from '../names/claim-name.ts';
import { keyOfOpened } from '../names/name-key.ts';
import { inNameOrder, lockNames, type NameSettings, type NameUse } from '../names/name-rows.ts';
import type { AnnouncedChange, NameKey } from '../shared/edge-changes.ts';
import type { LogEntry } from './entry-changes.ts';

type Trx = Transaction<Schema>;
type Opened = Extract<JournalRecord, { kind: 'opened' }>;

export interface UnnamedEntries {
  readonly entries: ReadonlyMap<string, LogEntry>;
  readonly records: readonly JournalRecord[];
  readonly now: number;
  readonly settings: NameSettings;
}

/** Claims names for the tunnels of a batch. Returns the changes to announce to edges at the end of the transaction. */
export const nameEntries = async (
  trx: Trx,
  { entries, records, now, settings }: UnnamedEntries,
): Promise<readonly AnnouncedChange[]> => {
  // Tunnels are sorted by name, so that two edges with the same names in their batches cannot deadlock.
  const asked = unnamedOf(records, entries).toSorted((a, b) => inNameOrder(a.key, b.key));
  const changes: AnnouncedChange[] = [];
  for (const { entry, record, key } of asked) {
    const { kind, asked: wasAsked, group_key_hash, joins_group } = record.endpoint;
    const claimed = await claimName(trx, {
      accountId: entry.userId,
      regionId: entry.regionId,
      now,
      settings,
      // The name that the tunnel got, which may differ from the requested name.
      endpoint: { kind, label: key.label, asked: wasAsked, group_key_hash, joins_group },
    });
    changes.push(...claimed.changes);
    if (claimed.nameId === null) continue;
    await sql`update tunnel_log set name_id = ${claimed.nameId}::uuid where id = ${entry.id}::uuid`.execute(trx);
  }
  return changes;
};

/** Locks the names claimed by a batch, and the names with a new time of last use, before any of the names is changed. */
export const lockNamesOf = async (
  trx: Trx,
  unnamed: Omit<UnnamedEntries, 'now' | 'settings'>,
  uses: readonly NameUse[],
) =>
  lockNames(
    trx,
    uses.map(({ nameId }) => nameId),
    unnamedOf(unnamed.records, unnamed.entries).map(({ key }) => key),
  );

interface Unnamed {
  readonly entry: LogEntry;
  readonly record: Opened & { readonly endpoint: NonNullable<Opened['endpoint']> };
  readonly key: NameKey;
}

const unnamedOf = (records: readonly JournalRecord[], entries: ReadonlyMap<string, LogEntry>): Unnamed[] =>
  records.flatMap((record) => {
    if (record.kind !== 'opened' || record.endpoint === undefined) return [];
    const entry = entries.get(record.tunnel_id);
    if (entry === undefined || entry.nameId !== null || entry.abandoned || entry.unregisteredAt !== null) return [];
    const key = keyOfOpened(record, entry.regionId);
    if (key === null || entry.userId !== record.account_id) return [];
    return [{ entry, record: { ...record, endpoint: record.endpoint }, key }];
  });

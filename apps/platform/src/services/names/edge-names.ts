// Names for edges: a snapshot of all reserved names and verified custom domains, for routing visitors and for the time when the platform
// is down; and the check whether a tunnel of the operator may use a name.
import type { LapsedDomain, NameAnswer, NameQuestion, NameSnapshotLine, VerifiedDomain } from '@tunnel/contract';
import { refusalOfName } from '@tunnel/rules/names';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { lapsedAfter, NAMES_PAGE, verifiedAfter } from '../domains/edge-domains.ts';
import { changeRange, type ReservedKind } from '../shared/edge-changes.ts';
import type { EdgeActor } from '../shared/service-context.ts';
import { decidingKey } from './name-key.ts';
import { type NamesContext, readOwnership, rulesFor } from './name-rows.ts';

interface ReservedRow {
  readonly kind: ReservedKind;
  readonly region_id: string;
  readonly label: string;
  readonly account_id: string;
  readonly group_key_hash: string | null;
}

const encoder = new TextEncoder();
const encode = (lines: readonly NameSnapshotLine[]): Uint8Array =>
  encoder.encode(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));

/**
 * Streams the snapshot of names to an edge, page by page, as fast as the edge reads, so that only a few rows are in memory. A snapshot
 * interrupted by an error lacks its last line.
 */
export const nameSnapshot = (
  db: Db,
  { edgeId }: EdgeActor,
  { domains }: { readonly domains: boolean },
): ReadableStream<Uint8Array> => {
  const pages = linesOf(db, edgeId, domains);
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const { value, done } = await pages.next();
        if (done === true) controller.close();
        else controller.enqueue(encode(value));
      },
      cancel: async () => {
        await pages.return();
      },
    },
    { highWaterMark: 1 },
  );
};

async function* linesOf(db: Db, edgeId: string, domains: boolean): AsyncGenerator<NameSnapshotLine[], void> {
  // The number of the latest change is read before the rows: changes made while the rows are read have higher numbers, and are sent again
  // by the change stream.
  const { latest } = await changeRange(db);
  const regionId = await regionOf(db, edgeId);
  yield [{ at: latest }];
  let after: ReservedRow | null = null;
  for (;;) {
    const rows: readonly ReservedRow[] = await pageAfter(db, regionId, after);
    if (rows.length > 0) {
      yield rows.map(({ kind, label, account_id, group_key_hash }) => ({ kind, label, account_id, group_key_hash }));
    }
    if (rows.length < NAMES_PAGE) break;
    after = rows.at(-1) ?? null;
  }
  if (domains) {
    yield* pagesOf((last: VerifiedDomain | null) => verifiedAfter(db, last?.domain ?? null));
    yield* pagesOf((last: LapsedDomain | null) => lapsedAfter(db, last?.lapsed_domain ?? null));
  }
  yield [{ end: true }];
}

async function* pagesOf<Row>(read: (last: Row | null) => Promise<readonly Row[]>): AsyncGenerator<Row[], void> {
  let last: Row | null = null;
  for (;;) {
    const page: readonly Row[] = await read(last);
    if (page.length > 0) yield [...page];
    if (page.length < NAMES_PAGE) return;
    last = page.at(-1) ?? null;
  }
}

const regionOf = async (db: Db, edgeId: string): Promise<string> => {
  const edge = await db.selectFrom('edges').select('region_id').where('id', '=', edgeId).executeTakeFirst();
  return edge?.region_id ?? '';
};

/** Reads a page of reserved names. Ports of other regions are irrelevant to the edge, and are left out. */
const pageAfter = async (db: Db, regionId: string, after: ReservedRow | null): Promise<readonly ReservedRow[]> => {
  const later =
    after === null ? sql`true` : sql`(kind, region_id, label) > (${after.kind}, ${after.region_id}, ${after.label})`;
  const { rows } = await sql<ReservedRow>`
    select kind, region_id, label, user_id as account_id, group_key_hash from names
    where state = 'reserved' and region_id in ('', ${regionId}) and ${later}
    order by kind, region_id, label limit ${NAMES_PAGE}
  `.execute(db);
  return rows;
};

/** Checks whether a tunnel of the operator may use a name. The operator owns no names and cannot use an account's name. */
export const checkName = async (
  { db, clock, names }: NamesContext,
  { edgeId }: EdgeActor,
  { kind, label, group_key_hash: groupKeyHash }: NameQuestion,
): Promise<NameAnswer> => {
  const key = decidingKey(kind, label, kind === 'subdomain' ? null : await regionOf(db, edgeId));
  const rules = rulesFor(kind, names);
  const row = await db
    .selectFrom('names')
    .selectAll()
    .where('kind', '=', key.kind)
    .where('region_id', '=', key.regionId)
    .where('label', '=', key.label)
    .executeTakeFirst();
  const name = await readOwnership(db, row, clock.now(), rules);
  return { free: refusalOfName(name, { by: null, groupKeyHash }, clock.now(), rules) === null };
};

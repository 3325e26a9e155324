// What edges ask about names besides a tunnel's own: every reserved one and every verified own domain, for visitors and for when the platform is away; and whether the
// operator's tunnel may have one.
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

/** Read as fast as the edge takes it, a page at a time: however many there are, few are in memory. One that breaks off has no last line. */
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
  // First: what changes while the rows are read comes after this number, and is told again by the stream.
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

/** Ports of other regions are nothing to this edge. */
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

/** The operator claims nothing, and takes nothing that an account has. */
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

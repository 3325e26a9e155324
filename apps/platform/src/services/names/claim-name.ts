// Decides whether an account may use the name requested for a tunnel. The decision is made in the transaction that counts the tunnel,
// with the row of the name locked: of two concurrent requests, on any edges, the second waits for the first and then sees the owner.
import type { LinkRefusal, WantedNameEndpoint } from '@tunnel/contract';
import { crowdedOut, type NameEvent, type NameOwnership, type NameRefusal, transitionName } from '@tunnel/rules/names';
import { sql, type Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import type { AnnouncedChange, NameKey } from '../shared/edge-changes.ts';
import { refusal } from '../shared/link-answers.ts';
import { capReleasedNames } from './cap-released-names.ts';
import { decidingKey } from './name-key.ts';
import {
  insertName,
  lockName,
  lockNameKey,
  type NameRow,
  type NameSettings,
  readOwnership,
  rulesFor,
  updateName,
} from './name-rows.ts';

type Trx = Transaction<Schema>;

export interface NameClaim {
  readonly accountId: string;
  /** Region of the edge with the tunnel. */
  readonly regionId: string | null;
  readonly endpoint: WantedNameEndpoint;
  readonly now: number;
  readonly settings: NameSettings;
}

export interface ClaimedName {
  readonly refused: LinkRefusal | null;
  /** Id of the row for the name served by the tunnel, or null if no row is needed. */
  readonly nameId: string | null;
  /** Changes to announce to edges at the end of the transaction. */
  readonly changes: readonly AnnouncedChange[];
}

const NOTHING: ClaimedName = { refused: null, nameId: null, changes: [] };

/**
 * Maximum attempts to claim a name while other transactions insert and delete its row. More collisions than that do not happen by chance.
 */
const TRIES = 5;

export const claimName = async (trx: Trx, claim: NameClaim): Promise<ClaimedName> => {
  const { endpoint, regionId } = claim;
  if (endpoint.label === null) return NOTHING;
  const key = decidingKey(endpoint.kind, endpoint.label, regionId);
  for (let tries = 0; tries < TRIES; tries += 1) {
    const claimed = await tryClaim(trx, key, claim);
    if (claimed !== null) return claimed;
  }
  return refusedBy('in-use', endpoint);
};

/** Tries to claim a name. Returns null if another transaction inserted the row meanwhile, and the attempt must be repeated. */
const tryClaim = async (trx: Trx, key: NameKey, claim: NameClaim): Promise<ClaimedName | null> => {
  const { accountId, endpoint, now, settings } = claim;
  const rules = rulesFor(key.kind, settings, key.label);
  const leavesNoRow = rules.holdMs === 0 || endpoint.joins_group;
  const row = leavesNoRow ? await lockNameKey(trx, key) : await lockName(trx, key);
  const before = await readOwnership(trx, row, now, rules);
  const [after, effects] = transitionName(before, eventOf(claim), now, rules);
  for (const effect of effects) if (effect.kind === 'refused') return refusedBy(effect.reason, endpoint);
  if (after.kind === 'free') return NOTHING;
  const written =
    row === undefined ? await insertName(trx, key, after, now) : await rewrite(trx, row, before, after, now);
  if (written === null) return null;
  if (effects.some(({ kind }) => kind === 'claimed')) await crowdOut(trx, accountId, written.id, now);
  const hasNewKey = after.kind === 'reserved' && row !== undefined && row.group_key_hash !== after.groupKeyHash;
  return { refused: null, nameId: written.id, changes: hasNewKey ? [{ kind: 'name-changed', name: key }] : [] };
};

const eventOf = ({ accountId, endpoint }: NameClaim): NameEvent => ({
  kind: 'tunnel-opened',
  by: accountId,
  groupKeyHash: endpoint.group_key_hash,
  joinsGroup: endpoint.joins_group,
  isAssigned: !endpoint.asked,
});

type OwnedName = Exclude<NameOwnership, { kind: 'free' }>;

/** Stores the new state of an existing row. Writes nothing if an account returns to its name without a change. */
const rewrite = async (
  trx: Trx,
  row: NameRow,
  before: NameOwnership,
  after: OwnedName,
  now: number,
): Promise<NameRow> => {
  if (before.kind === 'free') return updateName(trx, row, after, { at: now });
  const isSame =
    row.state === after.kind &&
    row.group_key_hash === after.groupKeyHash &&
    row.assigned === (after.isAssigned === true);
  return isSame ? row : updateName(trx, row, after, null);
};

const refusedBy = (reason: NameRefusal, { kind, label }: WantedNameEndpoint): ClaimedName => {
  if (reason === 'withheld') {
    const values = { subdomain: label ?? '', reason: 'it is reserved' };
    return { ...NOTHING, refused: refusal('TUNNEL_SUBDOMAIN_INVALID', values) };
  }
  return { ...NOTHING, refused: reason === 'group-key' ? refusal('GROUP_KEY_MISMATCH') : inUse(kind, label ?? '') };
};

const inUse = (kind: WantedNameEndpoint['kind'], label: string): LinkRefusal => {
  if (kind === 'p2p') return refusal('TUNNEL_P2P_NAME_IN_USE', { name: label });
  return kind === 'subdomain'
    ? refusal('TUNNEL_SUBDOMAIN_IN_USE', { subdomain: label })
    : refusal('TUNNEL_PORT_IN_USE', { port: label });
};

/**
 * Releases the account's held names above the limit. The account's row is locked, so no concurrent transaction counts the same names.
 * While a tunnel is ending, its name is locked; such a name is skipped until the next call.
 */
const crowdOut = async (trx: Trx, accountId: string, claimedId: string, now: number): Promise<void> => {
  const rows = await trx
    .selectFrom('names')
    .select(['id', 'last_used_at'])
    .select((of) =>
      of
        .exists(
          of
            .selectFrom('tunnel_log')
            .select('tunnel_log.id')
            .whereRef('tunnel_log.name_id', '=', 'names.id')
            .where('unregistered_at', 'is', null),
        )
        .as('is_open'),
    )
    .where('user_id', '=', accountId)
    .where('state', '=', 'held')
    .orderBy('created_at')
    .execute();
  const held = rows.map(({ id, last_used_at, is_open }) => ({
    id,
    lastUsedAt: last_used_at?.getTime() ?? null,
    openTunnels: Number(is_open || id === claimedId),
  }));
  const over = crowdedOut(held);
  if (over.length === 0) return;
  const column = <T>(of: (name: (typeof over)[number]) => T): T[] => over.map(of);
  await sql`
    with over as (
      select names.id, told.is_open from names
      join unnest(${column(({ id }) => id)}::uuid[], ${column(({ openTunnels }) => openTunnels > 0)}::boolean[]) as told (id, is_open)
        on told.id = names.id
      where names.state = 'held'
      for no key update of names skip locked
    )
    update names set state = 'released', group_key_hash = null,
      released_at = case when over.is_open then null else ${new Date(now)}::timestamptz end
    from over where names.id = over.id
  `.execute(trx);
  await capReleasedNames(trx, accountId, 'subdomain');
};

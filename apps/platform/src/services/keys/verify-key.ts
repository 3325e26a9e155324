// Verifies API keys for edges: the account of a key, the account's rights, and the time of the key's last use.
import type { KeyAnswer } from '@tunnel/contract';
import { type Clock, type Logger, SerialRuns, sha256Hex, type Timer } from '@tunnel/runtime';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { linkTo } from '../mail/mail-template.ts';
import { refusal, toAccountRights } from '../shared/link-answers.ts';
import { RecentLookups } from '../shared/recent-lookups.ts';
import type { ServiceContext } from '../shared/service-context.ts';

/** Interval at which uses of keys are written to the database, in a single batch. */
const KEY_USES_FLUSH_MS = 5000;
/** Minimum interval between two updates of a key's last_used_at. */
const KEY_USE_EVERY_MS = 60_000;
/** Maximum number of keys with an unwritten use. Uses of further keys are ignored until the next flush. */
const KEY_USES_MAX = 50_000;
/** Maximum number of API keys in the cache of verified keys. */
const VERIFIED_KEYS_MAX = 20_000;

export interface VerifyKeyContext extends Pick<ServiceContext, 'db'> {
  readonly settings: Pick<ServiceContext['settings'], 'public_url'>;
  readonly keyUses: Pick<KeyUses, 'note'>;
}

export const verifyKey = async ({ db, settings, keyUses }: VerifyKeyContext, tokenHash: string): Promise<KeyAnswer> => {
  const row = await db
    .selectFrom('api_keys')
    .innerJoin('users', 'users.id', 'api_keys.user_id')
    .innerJoin('plans', 'plans.name', 'users.plan')
    .select(['api_keys.id as key_id', 'api_keys.status as key_status', 'api_keys.unlimited', 'api_keys.user_id'])
    .select(['users.status as account_status', 'users.plan', 'plans.tunnel_limit', 'plans.allow_custom_subdomains'])
    .select('users.email')
    .where('api_keys.token_hash', '=', tokenHash)
    .executeTakeFirst();
  if (row === undefined) return refusal('AUTH_TOKEN_INVALID');
  if (row.key_status !== 'active') return refusal('AUTH_TOKEN_REVOKED');
  if (row.account_status !== 'active') return refusal('ACCOUNT_SUSPENDED');
  keyUses.note(row.key_id);
  const profile = { email: row.email, dashboard_url: linkTo(settings.public_url, '/app') };
  return { ok: true, key_id: row.key_id, unlimited: row.unlimited, account: toAccountRights(row), profile };
};

/** Cache of verified keys for two seconds. A revoked key is rejected within this time. */
export class KnownKeys {
  readonly #lookups: RecentLookups<KeyAnswer>;

  constructor(context: VerifyKeyContext & { readonly clock: Clock }) {
    const read = (tokenHash: string): Promise<KeyAnswer> => verifyKey(context, tokenHash);
    this.#lookups = new RecentLookups({ clock: context.clock, max: VERIFIED_KEYS_MAX, read });
  }

  /** Returns the cached result for a key, without a database query. Returns undefined if the key is not cached. */
  recent(key: string): KeyAnswer | undefined {
    return this.#lookups.recent(sha256Hex(key)) ?? undefined;
  }

  /**
   * Returns the account id of a key according to the last lookup, regardless of the lookup's age. Only for counting, not for admitting
   * requests.
   */
  accountOf(key: string): string | null {
    const answer = this.#lookups.last(sha256Hex(key));
    return answer?.ok === true ? answer.account.account_id : null;
  }

  async find(key: string): Promise<KeyAnswer> {
    return (await this.#lookups.find(sha256Hex(key))) ?? refusal('AUTH_TOKEN_INVALID');
  }
}

export interface KeyUsesOptions {
  readonly db: Db;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Updates last_used_at of keys without a write per use: uses are collected in memory and written in batches. */
export class KeyUses {
  readonly #options: KeyUsesOptions;
  /** Time of the last use, for keys with an unwritten use. */
  #waiting = new Map<string, number>();
  /** Time of the last written use, for keys written less than KEY_USE_EVERY_MS ago. Oldest first. */
  readonly #written = new Map<string, number>();
  #timer: Timer | null = null;
  readonly #writes = new SerialRuns(() => this.#write());

  constructor(options: KeyUsesOptions) {
    this.#options = options;
  }

  /** Records that the API key is used now. */
  note(keyId: string): void {
    const now = this.#options.clock.now();
    const before = this.#written.get(keyId);
    if (before !== undefined && now - before < KEY_USE_EVERY_MS) return;
    if (this.#waiting.size < KEY_USES_MAX) this.#waiting.set(keyId, now);
  }

  start(): void {
    this.#timer ??= this.#options.clock.setInterval(() => void this.flush(), KEY_USES_FLUSH_MS);
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = null;
    await this.flush();
  }

  /** Writes the collected uses to the database. Never rejects: uses that could not be written are kept for the next flush. */
  flush(): Promise<void> {
    return this.#writes.run();
  }

  async #write(): Promise<void> {
    const uses = this.#waiting;
    if (uses.size === 0) return;
    this.#waiting = new Map();
    try {
      await writeUses(this.#options.db, uses);
      for (const [keyId, at] of uses) {
        this.#written.delete(keyId);
        this.#written.set(keyId, at);
      }
    } catch (error) {
      this.#options.logger.warn({ reason: (error as Error).message }, 'cannot store the last use of keys yet');
      for (const [keyId, at] of uses) if (!this.#waiting.has(keyId)) this.#waiting.set(keyId, at);
    }
    this.#forgetOld();
  }

  #forgetOld(): void {
    const until = this.#options.clock.now() - KEY_USE_EVERY_MS;
    for (const [keyId, at] of this.#written) if (at <= until) this.#written.delete(keyId);
  }
}

/** Writes uses of keys to the database. Keys updated within the last minute, possibly by another platform process, are skipped. */
const writeUses = async (db: Db, uses: ReadonlyMap<string, number>): Promise<void> => {
  const ids = [...uses.keys()];
  const times = ids.map((id) => new Date(uses.get(id) ?? 0).toISOString());
  const interval = `${KEY_USE_EVERY_MS} milliseconds`;
  await sql`
    with used as (
      select api_keys.id, uses.at from api_keys
      join unnest(${ids}::uuid[], ${times}::timestamptz[]) as uses (id, at) on uses.id = api_keys.id
      where api_keys.last_used_at is null or api_keys.last_used_at <= uses.at - ${interval}::interval
      order by api_keys.id for no key update of api_keys
    )
    update api_keys set last_used_at = used.at from used where api_keys.id = used.id
  `.execute(db);
};

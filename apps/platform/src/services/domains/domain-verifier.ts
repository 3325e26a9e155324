// Checks custom domains in DNS and applies the result. This process checks a name only once at a time; further requests for the name
// share the running check. DNS access is opened at the first check.
import { checkToStore, type StoredCheck } from '@tunnel/certificates/domains';
import { Fault } from '@tunnel/errors';
import { FairShare } from '@tunnel/rules/rate';
import { type Clock, type Logger, SingleFlight } from '@tunnel/runtime';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { DatabaseAway } from '../../db/database-away.ts';
import { LIMITS } from '../../limits.ts';
import { changeDomain, type DomainNews } from './change-domain.ts';
import type { DomainCheck } from './check-dns-records.ts';
import type { DomainDns } from './domain-dns.ts';
import { type DomainRow, domainNameOf, lockDomains, storedCheck } from './domain-rows.ts';
import type { DomainSettings } from './domain-settings.ts';
import { EdgeAddresses } from './edge-addresses.ts';

/** Maximum number of custom domains that a process checks in DNS at the same time. */
export const DOMAIN_CHECKS_AT_ONCE = 50;
/**
 * Maximum number of concurrent checks per account, separately for scheduled and requested checks. Names with DNS servers that never
 * respond delay only their own account.
 * @limit accounts: Custom domains checked at the same time per account | 429 `DOMAIN_CHECKS_AT_ONCE`
 */
export const DOMAIN_CHECKS_PER_ACCOUNT = 4;

export interface DomainVerifierOptions {
  readonly db: Db;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: DomainSettings;
  readonly openDns: () => Promise<DomainDns>;
  /** Called after the commit of a changed custom domain, with the work to start. */
  readonly onNews: (news: DomainNews) => void;
}

type CheckedName = Pick<DomainRow, 'name' | 'wildcard'>;
type DueName = CheckedName & Pick<DomainRow, 'user_id'> & { readonly ids: readonly string[] };

/** DNS check in progress. `ids` has the ids of the domains to judge; null means the domains of all accounts with the name. */
interface RunningCheck {
  ids: Set<string> | null;
  ended: Promise<void>;
}

/** Retry-After for an account with too many checks in progress. Most checks end within a second. */
const ASK_AGAIN_SECS = 1;

export class DomainVerifier {
  readonly #options: DomainVerifierOptions;
  readonly #running = new Map<string, RunningCheck>();
  /** Number of scheduled checks in progress by account. Many checks wait for DNS servers chosen by the domain's owner. */
  readonly #due = newShares();
  /** Number of checks in progress that users requested, by account. */
  readonly #asked = newShares();
  readonly #addresses: EdgeAddresses;
  readonly #dns = new SingleFlight(() => this.#options.openDns(), { keepsResult: true });
  #isStopped = false;

  constructor(options: DomainVerifierOptions) {
    this.#options = options;
    const { clock, settings } = options;
    this.#addresses = new EdgeAddresses({
      clock,
      lookUp: async () => (await this.#dns.run()).addresses(settings.serverDomain),
    });
  }

  /** Returns the addresses of the edge, to which `[server] domain` resolves. Empty if unknown. */
  edgeAddresses(): Promise<readonly string[]> {
    return this.#addresses.get();
  }

  /** Starts due checks that no other process has claimed, as many as there is capacity for, without waiting for their results. */
  async beginDue(): Promise<void> {
    const room = DOMAIN_CHECKS_AT_ONCE - this.#due.taken;
    if (room <= 0 || this.#isStopped) return;
    for (const due of await this.#claimDue(room)) {
      this.#due.take(due.user_id);
      this.check(due, due.ids)
        .catch((error: unknown) => this.#failed(due, error))
        .finally(() => this.#due.give(due.user_id));
    }
  }

  /**
   * Runs a check requested by a user. Rejects the request if the account has reached its maximum of concurrent checks. `claim` returns
   * the domain to check.
   */
  async verifyFor(userId: string, claim: () => Promise<CheckedName & Pick<DomainRow, 'id'>>): Promise<void> {
    if (this.#asked.refusal(userId) !== null) {
      throw new Fault('DOMAIN_CHECKS_AT_ONCE', { seconds: ASK_AGAIN_SECS });
    }
    this.#asked.take(userId);
    try {
      const claimed = await claim();
      await this.check(claimed, [claimed.id]);
    } finally {
      this.#asked.give(userId);
    }
  }

  /** Checks a name. Resolves when the result was applied to the domains with the given ids; without ids, to the domains of all accounts. */
  check(domain: CheckedName, ids?: readonly string[]): Promise<void> {
    const running = this.#running.get(domain.name);
    if (running !== undefined) {
      if (ids === undefined) running.ids = null;
      for (const id of ids ?? []) running.ids?.add(id);
      return running.ended;
    }
    if (this.#isStopped) return Promise.resolve();
    const check: RunningCheck = { ids: ids === undefined ? null : new Set(ids), ended: Promise.resolve() };
    this.#running.set(domain.name, check);
    check.ended = this.#runCheck(domain, check).finally(() => this.#running.delete(domain.name));
    return check.ended;
  }

  /** Stops the verifier. Checks in progress end without a result; their names are checked again later. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    const dns = await this.#dns.current?.catch(() => null);
    dns?.close();
    await Promise.allSettled(Array.from(this.#running.values(), ({ ended }) => ended));
  }

  /**
   * Claims due checks. Claimed domains become due again later, in case this process dies before the result. An account gets only its
   * share; its remaining domains stay due.
   */
  async #claimDue(most: number): Promise<readonly DueName[]> {
    const { db, clock } = this.#options;
    const now = clock.now();
    const share = DOMAIN_CHECKS_PER_ACCOUNT;
    const { rows } = await sql<DueName>`
      with ranked as (
        select id, user_id, row_number() over (partition by user_id order by next_look_at) as nth
        from own_domains where next_look_at <= ${new Date(now)}
      ), due as (
        select own_domains.id from own_domains join ranked on ranked.id = own_domains.id
        left join jsonb_each_text(${JSON.stringify(this.#due.held())}::jsonb) held on held.key = ranked.user_id::text
        where ranked.nth + coalesce(held.value::integer, 0) <= ${share} and own_domains.next_look_at <= ${new Date(now)}
        order by own_domains.next_look_at limit ${most} for no key update of own_domains skip locked
      ), claimed as (
        update own_domains set next_look_at = ${new Date(now + LIMITS.DOMAIN_CLAIM_MS)}
        from due where own_domains.id = due.id returning own_domains.id, name, wildcard, user_id
      )
      select name, wildcard, (array_agg(user_id))[1] as user_id, array_agg(id) as ids from claimed group by name, wildcard
    `.execute(db);
    return rows;
  }

  async #runCheck(domain: CheckedName, running: RunningCheck): Promise<void> {
    const begunAt = this.#options.clock.now();
    const dns = await this.#dns.run();
    const check = await dns.check(domainNameOf(domain));
    if (this.#isStopped) return;
    const news = await this.#judge(domain.name, running, check, begunAt);
    if (news !== null) this.#options.onNews(news);
  }

  /**
   * Applies the result of a check. Returns null if a newer check has finished meanwhile, because an older result must not override a
   * newer decision.
   */
  async #judge(
    name: string,
    { ids }: Pick<RunningCheck, 'ids'>,
    check: DomainCheck,
    begunAt: number,
  ): Promise<DomainNews | null> {
    const { db, clock, settings } = this.#options;
    return db.transaction().execute(async (trx) => {
      const rows = await lockDomains(trx, name);
      if (rows.some(({ checked_at: checkedAt }) => (checkedAt?.getTime() ?? 0) > begunAt)) return null;
      return changeDomain(trx, {
        rows,
        now: clock.now(),
        publicUrl: settings.publicUrl,
        actor: 'system',
        event: {
          kind: 'looked',
          ...(ids === null ? {} : { ids: [...ids] }),
          findings: check.findings,
          problem: check.problem,
        },
        found: this.#kept(rows, check),
      });
    });
  }

  #kept(rows: readonly DomainRow[], check: DomainCheck): ReadonlyMap<string, StoredCheck> {
    const domain = this.#options.settings.serverDomain;
    return new Map(rows.map((row) => [row.id, checkToStore(check, { token: row.token, domain }, storedCheck(row))]));
  }

  #failed({ name }: CheckedName, error: unknown): void {
    const { logger } = this.#options;
    // The monitoring of the database logs the outage, so a debug message is enough here.
    if (error instanceof DatabaseAway) logger.debug({ domain: name }, 'a domain check is waiting for the database');
    else logger.error({ domain: name, err: error }, 'a domain check failed');
  }
}

const newShares = (): FairShare =>
  new FairShare({ limit: DOMAIN_CHECKS_AT_ONCE, perHolder: DOMAIN_CHECKS_PER_ACCOUNT });

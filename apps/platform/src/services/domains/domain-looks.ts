// Looks at names in DNS, and lets core judge what was found. One look of a name at a time in this process; whoever asks for another meanwhile is
// answered by that one. Nothing of it is loaded before there is a domain to look at.
import { randomBytes } from 'node:crypto';
import { type KeptLook, keptLook, PROOF_TOKEN_BYTES, proofToken } from '@tunnel/core';
import type { DnsLookups, DomainLook } from '@tunnel/dns';
import type { Clock, Logger } from '@tunnel/runtime';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { DatabaseAway } from '../../db/database-away.ts';
import { LIMITS } from '../../limits.ts';
import { changeDomain, type DomainNews } from './change-domain.ts';
import { type DomainRow, domainNameOf, keptLookOf, lockDomains } from './domain-rows.ts';
import type { DomainSettings } from './domain-settings.ts';
import { EdgeAddresses } from './edge-addresses.ts';

export interface DomainLooksDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: DomainSettings;
  /** After a commit. */
  readonly onNews: (news: DomainNews) => void;
}

type LookedName = Pick<DomainRow, 'name' | 'wildcard'>;

export class DomainLooks {
  readonly #deps: DomainLooksDeps;
  readonly #running = new Map<string, Promise<void>>();
  readonly #addresses: EdgeAddresses;
  #loaded: Promise<Looker> | null = null;
  #isStopped = false;

  constructor(deps: DomainLooksDeps) {
    this.#deps = deps;
    const { clock, settings } = deps;
    this.#addresses = new EdgeAddresses({
      clock,
      lookUp: async () => (await this.#looker()).lookups.addresses(settings.serverDomain),
    });
  }

  /** Of the edge, as its domain resolves; empty: not known. */
  edgeAddresses(): Promise<readonly string[]> {
    return this.#addresses.get();
  }

  /** Begins those that are due and that no other process has, as many as there is room for, and waits for none of them. */
  async beginDue(): Promise<void> {
    const room = LIMITS.DOMAIN_LOOKS_AT_ONCE - this.#running.size;
    if (room <= 0 || this.#isStopped) return;
    for (const due of await this.#claimDue(room)) {
      this.look(due).catch((error: unknown) => this.#failed(due, error));
    }
  }

  /** Until it was looked at and judged. */
  look(domain: LookedName): Promise<void> {
    const running = this.#running.get(domain.name);
    if (running !== undefined) return running;
    const look = this.#lookAt(domain).finally(() => this.#running.delete(domain.name));
    this.#running.set(domain.name, look);
    return look;
  }

  /** Those that are under way end without a word: what they did not find out is looked at again. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    const loaded = await this.#loaded?.catch(() => null);
    loaded?.lookups.close();
    await Promise.allSettled(this.#running.values());
  }

  /** They are due again later in case this process does not live to judge them. */
  async #claimDue(most: number): Promise<readonly LookedName[]> {
    const { db, clock } = this.#deps;
    const now = clock.now();
    const { rows } = await sql<LookedName>`
      with due as (
        select id from own_domains where next_look_at <= ${new Date(now)}
        order by next_look_at limit ${most} for no key update skip locked
      ), claimed as (
        update own_domains set next_look_at = ${new Date(now + LIMITS.DOMAIN_CLAIM_MS)}
        from due where own_domains.id = due.id returning name, wildcard
      )
      select distinct name, wildcard from claimed
    `.execute(db);
    return rows;
  }

  async #lookAt(domain: LookedName): Promise<void> {
    const { clock, settings } = this.#deps;
    const begunAt = clock.now();
    const { lookups, lookAtDomain } = await this.#looker();
    const look = await lookAtDomain(lookups, domainNameOf(domain), {
      serverDomain: settings.serverDomain,
      randomLabel: proofToken(randomBytes(PROOF_TOKEN_BYTES)),
    });
    if (this.#isStopped) return;
    const news = await this.#judge(domain.name, look, begunAt);
    if (news !== null) this.#deps.onNews(news);
  }

  /** null: somebody has looked meanwhile, and an older answer must not undo what a newer one decided. */
  async #judge(name: string, look: DomainLook, begunAt: number): Promise<DomainNews | null> {
    const { db, clock, settings } = this.#deps;
    return db.transaction().execute(async (trx) => {
      const rows = await lockDomains(trx, name);
      if (rows.some(({ checked_at: checkedAt }) => (checkedAt?.getTime() ?? 0) > begunAt)) return null;
      return changeDomain(trx, {
        ...{ rows, now: clock.now(), publicUrl: settings.publicUrl, actor: 'system' },
        event: { kind: 'looked', findings: look.findings, problem: look.problem },
        found: this.#kept(rows, look),
      });
    });
  }

  #kept(rows: readonly DomainRow[], look: DomainLook): ReadonlyMap<string, KeptLook> {
    const domain = this.#deps.settings.serverDomain;
    return new Map(rows.map((row) => [row.id, keptLook(look, { token: row.token, domain }, keptLookOf(row))]));
  }

  /** A load that failed is tried again. */
  #looker(): Promise<Looker> {
    this.#loaded ??= this.#load().catch((error: unknown) => {
      this.#loaded = null;
      throw error;
    });
    return this.#loaded;
  }

  async #load(): Promise<Looker> {
    const { clock, settings } = this.#deps;
    const { DnsLookups: Lookups, lookAtDomain } = await import('@tunnel/dns');
    const lookups = new Lookups({ resolvers: settings.resolvers, clock });
    // It may have stopped while this was loaded.
    if (this.#isStopped) lookups.close();
    return { lookups, lookAtDomain };
  }

  #failed({ name }: LookedName, error: unknown): void {
    const { logger } = this.#deps;
    // Whoever watches the database tells of that.
    if (error instanceof DatabaseAway) logger.debug({ domain: name }, 'a look at a domain waits for the database');
    else logger.error({ domain: name, err: error }, 'a look at a domain failed');
  }
}

interface Looker {
  readonly lookups: DnsLookups;
  readonly lookAtDomain: typeof import('@tunnel/dns').lookAtDomain;
}

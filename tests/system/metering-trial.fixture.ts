// Usage is reported while the platform is killed at random points of it. A test does it a few times, a script many times.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { claimPortBlock, eventually, type PortBlock } from '@tunnel/testkit';
import { Database } from '../../apps/platform/src/db/database.ts';
import { DatabaseHarness, quiet } from './embedded-database.fixture.ts';
import { type Payer, reportedBytes, signUpPayer } from './payer.fixture.ts';
import { Stack } from './stack.fixture.ts';
import { UsageReportingEdge } from './usage-reporting-edge.fixture.ts';

export interface TrialOptions {
  /** Accounts that have something to report in a run. */
  readonly accounts: number;
  readonly random: () => number;
}

/** A killed process holds what it was sending for 6 s: an account takes part in every third round. */
const COHORTS = 3;
/** Who signs up together; more passwords at once would be refused. */
const AT_ONCE = 12;
/** What an event takes from being cut to being noted as taken, about; a kill comes within that of all. */
const EVENT_MS = 15;
const SOON = { timeoutMs: 60_000 };
/** A month whose event was held by a killed process is cut again after a minute. */
const IN_THE_END = { timeoutMs: 180_000 };
/** Grows with each event that is cut, and with each try. */
const BEGUN = 'select count(*) + coalesce(sum(attempts), 0) as count from meter_events';
const LOGINS = '[platform.limits]\nauth_per_minute = 100000\nauth_per_account_per_minute = 1000';

export class MeteringTrial {
  readonly #random: () => number;
  readonly #harness: DatabaseHarness;
  readonly #ports: PortBlock;
  readonly #stack: Stack;
  readonly #database: Database;
  readonly #cohorts: readonly (readonly Payer[])[];
  readonly #edge: UsageReportingEdge;
  #round = 0;

  private constructor(
    options: Parts,
    cohorts: readonly (readonly Payer[])[],
    edge: UsageReportingEdge,
    random: () => number,
  ) {
    this.#harness = options.harness;
    this.#ports = options.ports;
    this.#stack = options.stack;
    this.#database = options.database;
    this.#cohorts = cohorts;
    this.#edge = edge;
    this.#random = random;
  }

  static async open({ accounts, random }: TrialOptions): Promise<MeteringTrial> {
    const parts = await openParts();
    const edge = await UsageReportingEdge.join(parts.stack);
    const payers: Payer[] = [];
    while (payers.length < accounts * COHORTS) {
      const count = Math.min(AT_ONCE, accounts * COHORTS - payers.length);
      payers.push(...(await Promise.all(Array.from({ length: count }, () => signUpPayer(parts.stack)))));
    }
    const cohorts = Array.from({ length: COHORTS }, (_none, at) => payers.slice(at * accounts, (at + 1) * accounts));
    return new MeteringTrial(parts, cohorts, edge, random);
  }

  async close(): Promise<void> {
    await this.#stack.close();
    await this.#database.close();
    await this.#harness.stopAll();
    this.#harness.remove();
    await this.#ports.close();
  }

  /**
   * Usage comes in; the platform is killed, and killed again in the run that reports it, which begins with the start. How many
   * events of that run were left to the next one.
   */
  async killOnce(): Promise<number> {
    const cohort = this.#cohorts[this.#round % COHORTS] ?? [];
    this.#round += 1;
    for (const payer of cohort) await this.#edge.tell(payer, 1 + Math.floor(this.#random() * 3_000_000_000));
    const before = await this.#count(BEGUN);
    await this.#stack.kill();
    const started = this.#stack.start().catch(() => {});
    await eventually(async () => {
      if ((await this.#count(BEGUN)) === before) throw new Error(`no run began:\n${this.#said()}`);
    }, SOON);
    await new Promise((resolve) => setTimeout(resolve, this.#random() * EVENT_MS * cohort.length));
    await this.#stack.kill();
    await started;
    const left = await this.#count('select count(*) from meter_events where sent_at is null');
    await this.#stack.start();
    return left;
  }

  /** Bytes by account: as used, and as reported. Once all was reported, or after three minutes. */
  async totals(): Promise<{ readonly used: readonly number[]; readonly reported: readonly number[] }> {
    const payers = this.#cohorts.flat();
    const { rows } = await this.#database.pool.query<{ user_id: string; bytes: number }>(
      'select user_id, sum(bytes)::bigint as bytes from usage_daily group by user_id',
    );
    const usedBy = new Map(rows.map(({ user_id, bytes }) => [user_id, Number(bytes)]));
    const used = payers.map(({ accountId }) => usedBy.get(accountId) ?? 0);
    let reported: number[] = [];
    await eventually(async () => {
      const byCustomer = await reportedBytes(this.#stack);
      reported = payers.map(({ customerId }) => byCustomer.get(customerId) ?? 0);
      if (used.some((bytes, at) => bytes !== reported[at])) throw new Error('not all is reported');
    }, IN_THE_END).catch(() => {});
    return { used, reported };
  }

  /** Events that were sent more than once: their first answer was lost. */
  sentAgain(): Promise<number> {
    return this.#count('select count(*) from meter_events where attempts > 1');
  }

  #said(): string {
    const { stdout, stderr } = this.#stack.program;
    return [...stdout, ...stderr].slice(-20).join('\n');
  }

  async #count(query: string): Promise<number> {
    const { rows } = await this.#database.pool.query<{ count: number }>(query);
    return Number(rows[0]?.count ?? 0);
  }
}

interface Parts {
  readonly harness: DatabaseHarness;
  readonly ports: PortBlock;
  readonly stack: Stack;
  readonly database: Database;
}

/** The database is not the platform's own: only the platform is killed, and it is back sooner. */
const openParts = async (): Promise<Parts> => {
  const harness = new DatabaseHarness();
  const { url } = await harness.embedded(harness.folder()).start();
  const ports = await claimPortBlock();
  const dir = harness.folder('platform');
  mkdirSync(join(dir, 'data'), { recursive: true });
  const tables = `${LOGINS}\n[database]\nurl = "${url.reveal()}"`;
  const stack = new Stack(dir, ports, { command: 'platform', fixedPorts: true, tables });
  await stack.start();
  return { harness, ports, stack, database: new Database({ url, logger: quiet, connections: 2 }) };
};

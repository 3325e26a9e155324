// A trial that kills the platform at random moments while it reports usage. A test kills a few times, a script many times.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { claimPortBlock, eventually, type PortBlock } from '@tunnel/testkit';
import { Database } from '../../apps/platform/src/db/database.ts';
import { DatabaseHarness, quiet } from './embedded-database.fixture.ts';
import { type Payer, reportedBytes, signUpPayer } from './payer.fixture.ts';
import { Stack } from './stack.fixture.ts';
import { UsageReportingEdge } from './usage-reporting-edge.fixture.ts';

export interface TrialOptions {
  /** Number of accounts with usage to report in a round. */
  readonly accounts: number;
  readonly random: () => number;
}

/**
 * Number of groups of accounts that take turns. A killed process keeps the events it was sending locked for 6 s, so an account takes part
 * only in every third round.
 */
const COHORTS = 3;
/** Number of accounts that sign up together. More password hashes at once would be refused. */
const AT_ONCE = 12;
/** Approximate milliseconds from the creation of an event until it is marked as sent. A kill comes within the total time of all events. */
const EVENT_MS = 15;
const SOON = { timeoutMs: 60_000 };
/** Time limit for all reports. A month with an event locked by a killed process is reported again after a minute. */
const IN_THE_END = { timeoutMs: 180_000 };
/** Query for a number that grows with every new event and every attempt to send an event. */
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
   * Adds usage, kills the platform, and kills it again during the run that reports the usage right after the start. Returns the number of
   * events that the killed run left to the next run.
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

  /** Returns the used and the reported bytes of each account, once all usage was reported, or after three minutes. */
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

  /** Returns the number of events sent more than once, because the first response was lost. */
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

/** Starts a platform with a separate database. A kill then hits only the platform, which is back sooner. */
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

// Accounts with metered usage, a processor that obeys the test, and any number of platform processes that report to it.
import type { Clock, Logger } from '@tunnel/runtime';
import { eventually, FakeClock } from '@tunnel/testkit';
import { sql } from 'kysely';
import { addAccount, createLinkWorld, type LinkWorld } from '../../services/edges/link.fixture.ts';
import { Metering } from './metering.ts';
import { ScriptedProcessor } from './scripted-processor.fixture.ts';

export interface MeteredAccount {
  readonly userId: string;
  readonly customerId: string;
}

export class MeteringWorld {
  readonly world: LinkWorld;
  readonly processor: ScriptedProcessor;
  readonly #clock: FakeClock;
  readonly #running: { readonly metering: Metering; readonly clock: Clock }[] = [];

  private constructor(world: LinkWorld) {
    this.world = world;
    this.#clock = world.clock;
    this.processor = new ScriptedProcessor(world.clock);
  }

  static async create(): Promise<MeteringWorld> {
    return new MeteringWorld(await createLinkWorld());
  }

  get db() {
    return this.world.db;
  }

  get clock(): FakeClock {
    return this.#clock;
  }

  async close(): Promise<void> {
    for (const { metering, clock } of this.#running) {
      const stopped = metering.stop();
      // What a call that hangs gets to finish.
      if (clock instanceof FakeClock) await clock.advance(2000);
      await stopped;
    }
    await this.world.close();
  }

  async addAccount(customerId: string | null = null): Promise<MeteredAccount> {
    const { accountId: userId } = await addAccount(this.db, 'payg');
    const customer_id = customerId ?? `cus_${userId.slice(0, 8)}`;
    await this.db.insertInto('billing_accounts').values({ user_id: userId, customer_id }).execute();
    return { userId, customerId: customer_id };
  }

  /** As storing an edge's records does it. */
  async use({ userId }: Pick<MeteredAccount, 'userId'>, bytes: number, month = '2030-06'): Promise<void> {
    await sql`
      insert into metered_usage (user_id, month, bytes) values (${userId}, ${month}, ${bytes})
      on conflict (user_id, month) do update set bytes = metered_usage.bytes + excluded.bytes
    `.execute(this.db);
  }

  /** Another process has a clock of its own. */
  metering(clock: Clock = this.clock, logger: Logger = this.world.logger): Metering {
    const { db, processor } = this;
    const metering = new Metering({ db, clock, logger, processor, random: () => 0.5 });
    this.#running.push({ metering, clock });
    return metering;
  }

  events() {
    return this.db.selectFrom('meter_events').selectAll().orderBy('created_at').orderBy('identifier').execute();
  }

  /** Rounds run on the real database while the clock stands. */
  settled(check: (events: Awaited<ReturnType<MeteringWorld['events']>>) => void): Promise<void> {
    return eventually(async () => check(await this.events()));
  }

  /** Every event was taken and nothing is left to cut. */
  allTaken(): Promise<void> {
    return eventually(async () => {
      // In this order: what is cut between the two is seen by the second.
      const { rows } = await sql`select from metered_usage where bytes > cut_bytes`.execute(this.db);
      const waiting = (await this.events()).filter(({ sent_at }) => sent_at === null);
      if (waiting.length + rows.length > 0)
        throw new Error(`${waiting.length} events wait, ${rows.length} are to be cut`);
    });
  }
}

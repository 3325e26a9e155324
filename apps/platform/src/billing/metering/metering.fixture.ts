// Accounts with metered usage, a processor scripted by the test, and any number of platform processes reporting to it.
import { Fault } from '@tunnel/errors';
import type { Clock, Logger } from '@tunnel/runtime';
import { eventually, FakeClock } from '@tunnel/testkit';
import { sql } from 'kysely';
import { addAccount, createLinkFixture, type LinkFixture } from '../../services/edges/link.fixture.ts';
import type { Processor, UsageEvent, UsageRange } from '../processor/processor.ts';
import { Metering } from './metering.ts';

export interface MeteredAccount {
  readonly userId: string;
  readonly customerId: string;
}

export class MeteringFixture {
  readonly fixture: LinkFixture;
  readonly processor: ScriptedProcessor;
  readonly #clock: FakeClock;
  readonly #running: { readonly metering: Metering; readonly clock: Clock }[] = [];

  private constructor(fixture: LinkFixture) {
    this.fixture = fixture;
    this.#clock = fixture.clock;
    this.processor = new ScriptedProcessor(fixture.clock);
  }

  static async create(): Promise<MeteringFixture> {
    return new MeteringFixture(await createLinkFixture());
  }

  get db() {
    return this.fixture.db;
  }

  get clock(): FakeClock {
    return this.#clock;
  }

  async close(): Promise<void> {
    for (const { metering, clock } of this.#running) {
      const stopped = metering.stop();
      // Time for a hanging call to reach its timeout.
      if (clock instanceof FakeClock) await clock.advance(2000);
      await stopped;
    }
    await this.fixture.close();
  }

  async addAccount(customerId: string | null = null): Promise<MeteredAccount> {
    const { accountId: userId } = await addAccount(this.db, 'payg');
    const customer_id = customerId ?? `cus_${userId.slice(0, 8)}`;
    await this.db.insertInto('billing_accounts').values({ user_id: userId, customer_id }).execute();
    return { userId, customerId: customer_id };
  }

  /** Adds usage in the same way as storing an edge's records does. */
  async use({ userId }: Pick<MeteredAccount, 'userId'>, bytes: number, month = '2030-06'): Promise<void> {
    await sql`
      insert into metered_usage (user_id, month, bytes) values (${userId}, ${month}, ${bytes})
      on conflict (user_id, month) do update set bytes = metered_usage.bytes + excluded.bytes
    `.execute(this.db);
  }

  /** Creates the Metering of one platform process. Further processes have separate clocks. */
  metering(clock: Clock = this.clock, logger: Logger = this.fixture.logger): Metering {
    const { db, processor } = this;
    const metering = new Metering({ db, clock, logger, processor, random: () => 0.5 });
    this.#running.push({ metering, clock });
    return metering;
  }

  events() {
    return this.db.selectFrom('meter_events').selectAll().orderBy('created_at').orderBy('identifier').execute();
  }

  /** Waits until the events pass the check. Polling rounds run on the real database while the fake clock stands still. */
  settled(check: (events: Awaited<ReturnType<MeteringFixture['events']>>) => void): Promise<void> {
    return eventually(async () => check(await this.events()));
  }

  /** Waits until every event was sent and no usage is left to cut into events. */
  allTaken(): Promise<void> {
    return eventually(async () => {
      // Reads the usage before the events: usage cut between the two reads then appears among the events.
      const { rows } = await sql`select from metered_usage where bytes > cut_bytes`.execute(this.db);
      const waiting = (await this.events()).filter(({ sent_at }) => sent_at === null);
      if (waiting.length + rows.length > 0)
        throw new Error(`${waiting.length} events wait, ${rows.length} are to be cut`);
    });
  }
}

type Mood =
  | 'takes'
  | 'is away'
  | 'refuses'
  /** The processor accepts the event, and its response is lost. */
  | 'answers to nobody'
  /** The processor accepts the event, and the call never returns: the sender has died. */
  | 'hangs after taking'
  | 'hangs before taking';

const IDENTIFIERS_KNOWN_MS = 24 * 60 * 60_000;

/** Processor that accepts usage as Stripe does, counts each identifier once within 24 hours, and fails on the test's command. */
class ScriptedProcessor implements Pick<Processor, 'reportUsage' | 'meteredBytes'> {
  mood: Mood = 'takes';
  readonly calls: UsageEvent[] = [];
  readonly looks: UsageRange[] = [];
  readonly #clock: Clock;
  readonly #taken: UsageEvent[] = [];
  readonly #knownSince = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async reportUsage(event: UsageEvent): Promise<void> {
    this.calls.push(event);
    if (this.mood === 'is away') throw new Fault('BILLING_PROCESSOR_AWAY');
    if (this.mood === 'refuses') throw new Fault('BILLING_PROCESSOR_REFUSED', { reason: 'no such customer' });
    if (this.mood === 'hangs before taking') return new Promise(() => {});
    this.#take(event);
    if (this.mood === 'answers to nobody') throw new Fault('BILLING_PROCESSOR_AWAY');
    if (this.mood === 'hangs after taking') return new Promise(() => {});
    return undefined;
  }

  async meteredBytes(range: UsageRange): Promise<number> {
    this.looks.push(range);
    if (this.mood === 'is away') throw new Fault('BILLING_PROCESSOR_AWAY');
    return this.#sum(({ customerId, at }) => customerId === range.customerId && at >= range.from && at < range.to);
  }

  totalOf(customer: string): number {
    return this.#sum(({ customerId }) => customerId === customer);
  }

  #take(event: UsageEvent): void {
    const now = this.#clock.now();
    const since = this.#knownSince.get(event.identifier);
    if (since !== undefined && now - since < IDENTIFIERS_KNOWN_MS) return;
    this.#knownSince.set(event.identifier, now);
    this.#taken.push(event);
  }

  #sum(which: (event: UsageEvent) => boolean): number {
    let bytes = 0;
    for (const event of this.#taken) if (which(event)) bytes += event.bytes;
    return bytes;
  }
}

// Openings, ends and usage of accounts' tunnels on their way to the platform: metered, journalled, delivered.
import { showProtocol, type TunnelQuestion } from '@tunnel/contract';
import { type Clock, type Logger, randomId, type Timer } from '@tunnel/runtime';
import type { TunnelClosed, TunnelOpened } from './backend.ts';
import { Journal } from './journal/journal.ts';
import { JournalDelivery } from './journal-delivery.ts';
import type { PlatformLink } from './platform-link.ts';
import { UsageMeter } from './usage-meter.ts';

/** what the last delivery may take when the edge stops; the rest waits on the disk */
export const PLATFORM_STOP_MS = 3000;
/** what tunnels have carried is on disk after this: the most that a kill of the process takes */
export const JOURNAL_WRITE_MS = 100;
/** the end of a stream is written at once, but not more often than this */
export const JOURNAL_STREAM_END_MS = 5;
/** how often the platform is told of usage; of openings and ends it is told at once */
export const JOURNAL_DELIVER_MS = 5000;
/** records that the platform is told of at once */
const JOURNAL_BATCH_RECORDS = 1000;
/** the same by their size */
const JOURNAL_BATCH_BYTES = 1024 * 1024;
/** lines behind the last summary; then the usage of one tunnel and day is summed up anew */
const JOURNAL_TAIL_BYTES = 8 * 1024 * 1024;
/** lines that wait for a slow disk, usage summed up; with more, no tunnel of an account is opened until the disk has taken them */
const JOURNAL_QUEUE_BYTES = 8 * 1024 * 1024;
/**
 * summed records that wait for the platform; with more, no tunnel of an account is opened until it is back
 * @limit operator: Usage records waiting for the platform | new tunnels are rejected until the platform is back
 */
export const JOURNAL_RECORDS_MAX = 100_000;
/** the counters of an ended tunnel are watched this long, and until its last connection ends */
const USAGE_AFTER_END_MS = 60_000;

export interface UsageLogOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly link: PlatformLink;
  readonly runId: string;
  readonly folder: string;
}

/** Keeps the looking below a hundredth of a core. */
const TUNNELS_PER_PAUSE_MS = 400;

export class UsageLog {
  readonly #clock: Clock;
  readonly #runId: string;
  readonly #journal: Journal;
  readonly #delivery: JournalDelivery;
  readonly #meter: UsageMeter;
  /** Accounts with an end that the platform may not have heard of, and the number of the last one. */
  readonly #untold = new Map<string, number>();
  #ends = 0;
  #ticking: Timer | undefined;
  #soon: Timer | null = null;
  #writtenAt = 0;

  constructor({ clock, logger, link, runId, folder }: UsageLogOptions) {
    this.#clock = clock;
    this.#runId = runId;
    this.#journal = new Journal({
      folder,
      logger,
      newId: () => randomId('jrn'),
      batch: { records: JOURNAL_BATCH_RECORDS, bytes: JOURNAL_BATCH_BYTES },
      tailBytes: JOURNAL_TAIL_BYTES,
      queueBytes: JOURNAL_QUEUE_BYTES,
    });
    const everyMs = JOURNAL_DELIVER_MS;
    this.#delivery = new JournalDelivery({ clock, logger, journal: this.#journal, link, runId, everyMs });
    this.#meter = new UsageMeter({ clock, afterEndMs: USAGE_AFTER_END_MS });
  }

  /** So much waits for the platform, or for the disk, that nothing new should begin. */
  get isFull(): boolean {
    return this.#journal.size >= JOURNAL_RECORDS_MAX || this.#journal.waiting.isFull;
  }

  get queue(): { readonly bytes: number; readonly timesFull: number } {
    return this.#journal.waiting;
  }

  async start(): Promise<void> {
    await this.#journal.start();
    this.#ticking = this.#clock.setInterval(() => this.#write(), JOURNAL_WRITE_MS);
    this.#delivery.start();
  }

  /** What is not delivered in time waits on the disk. */
  async stop(): Promise<void> {
    this.#ticking?.cancel();
    this.#soon?.cancel();
    this.#delivery.stop();
    this.#write();
    let timer: Timer | undefined;
    const late = new Promise((resolve) => {
      timer = this.#clock.setTimeout(() => resolve(false), PLATFORM_STOP_MS);
    });
    await Promise.race([this.#delivery.deliver(), late]);
    timer?.cancel();
    await this.#journal.close();
  }

  opened(event: TunnelOpened, accountId: string, asked: Pick<TunnelQuestion, 'endpoint' | 'domain'>): void {
    const { tunnelId, sessionId, name, clientName, protocol, label, publicUrl, keyId, counters, at } = event;
    this.#meter.watch(tunnelId, counters);
    this.#journal.append([
      {
        kind: 'opened',
        run_id: this.#runId,
        tunnel_id: tunnelId,
        session_id: sessionId,
        account_id: accountId,
        key_id: keyId,
        name,
        client_name: clientName,
        protocol: showProtocol(protocol),
        ...asked,
        label,
        public_url: publicUrl,
        at,
      },
    ]);
    void this.#delivery.deliverUnlessFailing();
  }

  closed({ tunnelId, at }: TunnelClosed, accountId: string): void {
    this.#meter.ended(tunnelId);
    this.#write();
    this.#journal.append([{ kind: 'closed', tunnel_id: tunnelId, at, abandoned: false }]);
    this.#tellEnd(accountId);
  }

  abandoned(tunnelId: string, accountId: string): void {
    this.#journal.append([{ kind: 'closed', tunnel_id: tunnelId, at: this.#clock.now(), abandoned: true }]);
    this.#tellEnd(accountId);
  }

  /** The platform counts an account's tunnels: it should know of every end before it is asked for one more. */
  async endsTold(accountId: string): Promise<void> {
    const end = this.#untold.get(accountId);
    if (end !== undefined && (await this.#delivery.deliver())) this.#told(accountId, end);
  }

  /** The platform is back. */
  deliver(): void {
    void this.#delivery.deliver();
  }

  /** At once, and then not again for some milliseconds: more of them, the more tunnels have to be written about. */
  streamEnded(): void {
    if (this.#soon !== null) return;
    const pauseMs = JOURNAL_STREAM_END_MS + this.#meter.changed / TUNNELS_PER_PAUSE_MS;
    const delayMs = Math.max(0, this.#writtenAt + pauseMs - this.#clock.monotonic());
    this.#soon = this.#clock.setTimeout(() => {
      this.#soon = null;
      this.#write();
    }, delayMs);
  }

  #write(): void {
    this.#writtenAt = this.#clock.monotonic();
    this.#journal.append(this.#meter.read());
  }

  #tellEnd(accountId: string): void {
    this.#ends += 1;
    const end = this.#ends;
    this.#untold.set(accountId, end);
    void this.#delivery.deliverUnlessFailing().then((isTold) => isTold && this.#told(accountId, end));
  }

  #told(accountId: string, end: number): void {
    if (this.#untold.get(accountId) === end) this.#untold.delete(accountId);
  }
}

// Reports openings, ends and usage of accounts' tunnels to the platform: meters the usage, writes a journal, and delivers the journal.
import { showProtocol, type TunnelQuestion } from '@tunnel/contract';
import { type Clock, type Logger, randomId, type Timer } from '@tunnel/runtime';
import type { TunnelClosed, TunnelOpened } from './backend.ts';
import { Journal } from './journal/journal.ts';
import { JournalDelivery } from './journal-delivery.ts';
import type { PlatformLink } from './platform-link.ts';
import { UsageMeter } from './usage-meter.ts';

/** Maximum duration of the last delivery when the edge stops. Undelivered records stay on disk. */
export const PLATFORM_STOP_MS = 3000;
/** Interval at which usage is written to disk. If the process is killed, at most the usage of this interval is lost. */
export const JOURNAL_WRITE_MS = 100;
/** Minimum time between writes after the end of a stream, which is otherwise written at once. */
export const JOURNAL_STREAM_END_MS = 5;
/** Interval at which usage is delivered to the platform. Openings and ends of tunnels are delivered at once. */
export const JOURNAL_DELIVER_MS = 5000;
/** Maximum usage records in a batch for the platform. */
const JOURNAL_BATCH_RECORDS = 1000;
/** Maximum size in bytes of a batch of usage records for the platform. */
const JOURNAL_BATCH_BYTES = 1024 * 1024;
/**
 * Maximum bytes appended to the journal file since the last compaction. Further bytes start a compaction, which sums up the usage per
 * tunnel and day.
 */
const JOURNAL_TAIL_BYTES = 8 * 1024 * 1024;
/**
 * Maximum bytes waiting for a slow disk, with usage summed up. Above the limit, accounts cannot open tunnels until the disk has caught
 * up.
 */
const JOURNAL_QUEUE_BYTES = 8 * 1024 * 1024;
/**
 * Maximum records waiting for the platform, with usage summed up. At the limit, accounts cannot open tunnels until the platform is back.
 * @limit operator: Usage records waiting for the platform | new tunnels are rejected until the platform is back
 */
export const JOURNAL_RECORDS_MAX = 100_000;
/**
 * Maximum bytes of delivered usage records that are kept for a platform that was restored from a backup: about 100,000 records.
 * @limit operator: Delivered usage records kept by an edge, in bytes | after a restore of the platform, usage from before the oldest kept record is missing
 */
const JOURNAL_SENT_BYTES = 16 * 1024 * 1024;
/** Minimum time for which the counters of a closed tunnel are watched. Watching continues until the last connection has closed. */
const USAGE_AFTER_END_MS = 60_000;

export interface UsageLogOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly link: PlatformLink;
  readonly runId: string;
  readonly folder: string;
}

/**
 * Number of changed tunnels that lengthens the pause between writes by 1 ms, so that reading the counters takes less than 1 % of a core.
 */
const TUNNELS_PER_PAUSE_MS = 400;

export class UsageLog {
  readonly #clock: Clock;
  readonly #runId: string;
  readonly #journal: Journal;
  readonly #delivery: JournalDelivery;
  readonly #meter: UsageMeter;
  /** Accounts with a closed tunnel that the platform may not know about yet, with the sequence number of the latest end. */
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
      sentBytes: JOURNAL_SENT_BYTES,
    });
    const everyMs = JOURNAL_DELIVER_MS;
    this.#delivery = new JournalDelivery({ clock, logger, journal: this.#journal, link, runId, everyMs });
    this.#meter = new UsageMeter({ clock, afterEndMs: USAGE_AFTER_END_MS });
  }

  /** True if so much data is waiting for the platform or the disk that no tunnel should be opened. */
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

  /** Delivers the remaining records. Records not delivered in time stay on disk. */
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

  /**
   * Delivers the ends of an account's tunnels before the account opens a tunnel, because the platform limits the number of open tunnels.
   */
  async endsTold(accountId: string): Promise<void> {
    const end = this.#untold.get(accountId);
    if (end !== undefined && (await this.#delivery.deliver())) this.#told(accountId, end);
  }

  /** Delivers all usage records when the platform is reachable again. */
  deliver(): void {
    void this.#delivery.deliver();
  }

  /** Writes the usage at once, then pauses for some milliseconds. The pause grows with the number of changed tunnels. */
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

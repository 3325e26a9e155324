// Sends the mails in the outbox: at once when woken, and every second by polling for mails left by other processes. Polling continues
// while mails are being sent, so that a mail delayed by its mail server does not delay other mails.
import { decideMailRetry } from '@tunnel/rules/rate';
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import type { Db } from '../db/database.ts';
import { DatabaseAway } from '../db/database-away.ts';
import { LIMITS } from '../limits.ts';
import { withTimeout } from '../timeout.ts';
import type { MailTransport } from './mail-transport.ts';
import {
  type ClaimedMail,
  claimMails,
  MAIL_CLAIM_MS,
  type MailOutcome,
  markSent,
  markUnsent,
  renewClaims,
} from './outbox.ts';

/** Interval for polling the outbox for waiting mails. */
const MAIL_POLL_MS = 1000;
/** Maximum number of mails claimed by one process. */
const MAIL_BATCH = 100;
/** Maximum number of mails sent by one process at the same time. */
export const MAIL_SENDS_MAX = 10;
/** Time limit for sending one mail, from opening the connection to the last response of the mail server. */
const MAIL_SEND_TIMEOUT_MS = 45_000;
/** First pause before a failed mail is retried. */
const MAIL_RETRY_MIN_MS = 5000;
/** Maximum pause before a failed mail is retried. Pauses grow up to the limit. */
const MAIL_RETRY_MAX_MS = 60 * 60_000;
/**
 * Time after which a failing mail is abandoned, with a line in the log.
 * @limit operator: Email delivery, time to retry | delivery is abandoned and logged
 */
const MAIL_GIVE_UP_MS = 24 * 60 * 60_000;

const RETRY = {
  minMs: MAIL_RETRY_MIN_MS,
  maxMs: MAIL_RETRY_MAX_MS,
  giveUpAfterMs: MAIL_GIVE_UP_MS,
};

export interface MailSenderOptions {
  readonly db: Db;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly transport: MailTransport;
  readonly random?: () => number;
}

export class MailSender {
  readonly #options: MailSenderOptions;
  readonly #held = new ClaimedMails();
  readonly #sending = new Set<Promise<void>>();
  #timer: Timer | undefined;
  #round: Promise<void> | undefined;
  /** True if wake() was called during a round. The round may have missed the new mail, so another round follows. */
  #calledAgain = false;
  #renewedAt = 0;

  constructor(options: MailSenderOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer ??= this.#options.clock.setInterval(() => this.wake(), MAIL_POLL_MS);
    this.wake();
  }

  /** Stops sending. Running deliveries get a short time to finish; unfinished mails are retried after the next start. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const { clock, transport, db } = this.#options;
    this.#held.releaseUnsent(clock.now());
    const atMost = LIMITS.HTTP_STOP_GRACE_MS;
    await withTimeout(clock, Promise.all(this.#sending), atMost).catch(() => {});
    const written = Promise.resolve(this.#round).then(() => this.#held.settle(db, clock.now()));
    await withTimeout(clock, written, atMost).catch(() => {});
    transport.close();
  }

  wake(): void {
    if (this.#timer === undefined) return;
    if (this.#round !== undefined) {
      this.#calledAgain = true;
      return;
    }
    this.#round = this.#goRound().finally(() => {
      this.#round = undefined;
      if (!this.#calledAgain) return;
      this.#calledAgain = false;
      this.wake();
    });
  }

  async #goRound(): Promise<void> {
    const { db, clock, logger } = this.#options;
    try {
      // Outcomes are written before new mails are claimed. Otherwise a mail with an unrecorded outcome could be claimed and sent again.
      await this.#held.settle(db, clock.now());
      await this.#renew();
      const room = MAIL_BATCH - this.#held.size;
      if (room > 0 && this.#timer !== undefined) this.#held.take(await claimMails(db, clock.now(), room));
      this.#sendNext();
    } catch (error) {
      // The database watch already reports an unavailable database. The mails are still in the outbox when the database is back.
      if (!(error instanceof DatabaseAway)) logger.error({ err: error }, 'cannot read the mail outbox');
    }
  }

  async #renew(): Promise<void> {
    const { db, clock } = this.#options;
    const now = clock.monotonic();
    if (now - this.#renewedAt < MAIL_CLAIM_MS / 4) return;
    this.#renewedAt = now;
    await renewClaims(db, this.#held.unfinished, clock.now());
  }

  #sendNext(): void {
    while (this.#timer !== undefined && this.#sending.size < MAIL_SENDS_MAX) {
      const mail = this.#held.next();
      if (mail === undefined) return;
      const sending = this.#send(mail).then((outcome) => {
        this.#held.finish(mail, outcome);
        this.#sending.delete(sending);
        this.#sendNext();
        this.wake();
      });
      this.#sending.add(sending);
    }
  }

  async #send(mail: ClaimedMail): Promise<MailOutcome> {
    const { clock, transport } = this.#options;
    try {
      await withTimeout(clock, transport.send(mail), MAIL_SEND_TIMEOUT_MS);
      return { kind: 'sent' };
    } catch (error) {
      return this.#failed(mail, error);
    }
  }

  #failed({ id: mail_id, attempts, writtenAt }: ClaimedMail, error: unknown): MailOutcome {
    const { clock, logger, random = Math.random } = this.#options;
    const retry = decideMailRetry({ writtenAt: writtenAt.getTime(), attempts }, clock.now(), random(), RETRY);
    const fields = { mail_id, attempts, reason: reasonOf(error) };
    if (retry.kind === 'give-up') {
      logger.error(fields, 'gave up sending a mail after a day');
      return { kind: 'given-up' };
    }
    logger.warn({ ...fields, next_try_at: new Date(retry.at).toISOString() }, 'failed to send a mail');
    return retry;
  }
}

/** Returns the reason of a failed delivery for the log. Mail servers repeat addresses in their responses, so addresses are masked. */
const reasonOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replaceAll(/[^\s<>"']+@[^\s<>"']+/g, '[address]');

interface Held {
  readonly mail: ClaimedMail;
  state: 'waiting' | 'sending' | MailOutcome;
}

/**
 * The mails claimed by this process: waiting for a turn, being sent, or finished with an outcome not yet written to the database. Writing
 * is retried until it succeeds, so that no finished mail stays claimed.
 */
class ClaimedMails {
  readonly #mails = new Map<string, Held>();

  get size(): number {
    return this.#mails.size;
  }

  /** Ids of the mails still waiting or being sent. */
  get unfinished(): string[] {
    return [...this.#mails.values()].filter(({ state }) => typeof state === 'string').map(({ mail }) => mail.id);
  }

  take(claimed: readonly ClaimedMail[]): void {
    // After a jump of the machine's clock, a claim may have expired and the same mail may be claimed again. The first entry is kept.
    for (const mail of claimed) if (!this.#mails.has(mail.id)) this.#mails.set(mail.id, { mail, state: 'waiting' });
  }

  /** Returns the waiting mail claimed first, and marks the mail as being sent. */
  next(): ClaimedMail | undefined {
    for (const held of this.#mails.values()) {
      if (held.state !== 'waiting') continue;
      held.state = 'sending';
      return held.mail;
    }
    return undefined;
  }

  finish({ id }: ClaimedMail, outcome: MailOutcome): void {
    const held = this.#mails.get(id);
    if (held !== undefined) held.state = outcome;
  }

  /** Marks the waiting mails for an immediate retry by another process, because this process is stopping. */
  releaseUnsent(now: number): void {
    for (const held of this.#mails.values()) if (held.state === 'waiting') held.state = { kind: 'retry', at: now };
  }

  /** Writes the outcomes of finished mails to the database. Throws on a database error; the next call writes the outcomes again. */
  async settle(db: Db, now: number): Promise<void> {
    const finished = [...this.#mails.values()];
    const sent = finished.filter(({ state }) => typeof state !== 'string' && state.kind === 'sent');
    const ids = sent.map(({ mail }) => mail.id);
    await markSent(db, ids, now);
    for (const id of ids) this.#mails.delete(id);
    for (const { mail, state } of finished) {
      if (typeof state === 'string' || state.kind === 'sent') continue;
      await markUnsent(db, mail, state, now);
      this.#mails.delete(mail.id);
    }
  }
}

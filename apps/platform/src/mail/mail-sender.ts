// Sends what waits in the outbox: at once when it is woken, and by looking every second for what others left there.
import { decideMailRetry } from '@tunnel/core';
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import type { Db } from '../db/database.ts';
import { isDatabaseAway } from '../db/database-away.ts';
import { PLATFORM_BOUNDS } from '../platform-bounds.ts';
import { within } from '../within.ts';
import type { MailTransport } from './mail-transport.ts';
import { type ClaimedMail, claimMails, markGivenUp, markRetry, markSent } from './outbox.ts';

const RETRY = {
  minMs: PLATFORM_BOUNDS.MAIL_RETRY_MIN_MS,
  maxMs: PLATFORM_BOUNDS.MAIL_RETRY_MAX_MS,
  giveUpAfterMs: PLATFORM_BOUNDS.MAIL_GIVE_UP_MS,
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
  #timer: Timer | undefined;
  #round: Promise<void> | undefined;
  /** Somebody called while a round was under way: it may have missed that one. */
  #calledAgain = false;

  constructor(options: MailSenderOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer ??= this.#options.clock.setInterval(() => this.wake(), PLATFORM_BOUNDS.MAIL_POLL_MS);
    this.wake();
  }

  /** Mails that are being sent get a moment; those that do not make it are tried again after the next start. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const { clock, transport } = this.#options;
    await within(clock, this.#round ?? Promise.resolve(), PLATFORM_BOUNDS.HTTP_STOP_GRACE_MS).catch(() => {});
    transport.close();
  }

  wake(): void {
    if (this.#timer === undefined) return;
    if (this.#round !== undefined) {
      this.#calledAgain = true;
      return;
    }
    this.#round = this.#sendAll().finally(() => {
      this.#round = undefined;
      if (!this.#calledAgain) return;
      this.#calledAgain = false;
      this.wake();
    });
  }

  async #sendAll(): Promise<void> {
    const { db, clock, logger } = this.#options;
    try {
      while (this.#timer !== undefined) {
        const mails = await claimMails(db, clock.now());
        if (mails.length === 0) return;
        await Promise.all(mails.map((mail) => this.#send(mail)));
      }
    } catch (error) {
      // That the database is away is told by whoever watches it. The mails are still there when it comes back.
      if (!isDatabaseAway(error)) logger.error({ err: error }, 'the mail outbox cannot be read');
    }
  }

  async #send(mail: ClaimedMail): Promise<void> {
    const { db, clock, transport } = this.#options;
    try {
      await within(clock, transport.send(mail), PLATFORM_BOUNDS.MAIL_SEND_TIMEOUT_MS);
    } catch (error) {
      await this.#failed(mail, error);
      return;
    }
    await markSent(db, mail, clock.now());
  }

  async #failed(mail: ClaimedMail, error: unknown): Promise<void> {
    const { db, clock, logger, random = Math.random } = this.#options;
    const { id: mail_id, attempts, writtenAt } = mail;
    const now = clock.now();
    const retry = decideMailRetry({ writtenAt: writtenAt.getTime(), attempts }, now, random(), RETRY);
    const fields = { mail_id, attempts, reason: reasonOf(error) };
    if (retry.kind === 'give-up') {
      await markGivenUp(db, mail, now);
      logger.error(fields, 'a mail could not be sent for a day and is given up');
      return;
    }
    await markRetry(db, mail, retry.at);
    logger.warn({ ...fields, next_try_at: new Date(retry.at).toISOString() }, 'a mail could not be sent');
  }
}

/** Mail servers repeat addresses in what they say. */
const reasonOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replaceAll(/[^\s<>"']+@[^\s<>"']+/g, '[address]');

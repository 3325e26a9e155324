// Sends what waits in the outbox: at once when it is woken, and by looking every second for what others left there. The looking
// goes on while mails are being sent, so that one which a mail server holds up keeps no other waiting.
import { decideMailRetry } from '@tunnel/core';
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import type { Db } from '../db/database.ts';
import { isDatabaseAway } from '../db/database-away.ts';
import { PLATFORM_BOUNDS } from '../platform-bounds.ts';
import { within } from '../within.ts';
import { HeldMails } from './held-mails.ts';
import type { MailTransport } from './mail-transport.ts';
import { type ClaimedMail, claimMails, type MailOutcome, renewClaims } from './outbox.ts';

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
  readonly #held = new HeldMails();
  readonly #sending = new Set<Promise<void>>();
  #timer: Timer | undefined;
  #round: Promise<void> | undefined;
  /** Somebody called while a round was under way: it may have missed that one. */
  #calledAgain = false;
  #renewedAt = 0;

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
    const { clock, transport, db } = this.#options;
    this.#held.letGoUnsent(clock.now());
    const atMost = PLATFORM_BOUNDS.HTTP_STOP_GRACE_MS;
    await within(clock, Promise.all(this.#sending), atMost).catch(() => {});
    const written = Promise.resolve(this.#round).then(() => this.#held.settle(db, clock.now()));
    await within(clock, written, atMost).catch(() => {});
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
      // Before anything is claimed: a mail whose end the database has not heard of would be claimed, and sent, again.
      await this.#held.settle(db, clock.now());
      await this.#renew();
      const room = PLATFORM_BOUNDS.MAIL_BATCH - this.#held.size;
      if (room > 0 && this.#timer !== undefined) this.#held.take(await claimMails(db, clock.now(), room));
      this.#sendNext();
    } catch (error) {
      // That the database is away is told by whoever watches it. The mails are still there when it comes back.
      if (!isDatabaseAway(error)) logger.error({ err: error }, 'the mail outbox cannot be read');
    }
  }

  async #renew(): Promise<void> {
    const { db, clock } = this.#options;
    const now = clock.monotonic();
    if (now - this.#renewedAt < PLATFORM_BOUNDS.MAIL_CLAIM_MS / 4) return;
    this.#renewedAt = now;
    await renewClaims(db, this.#held.unfinished, clock.now());
  }

  #sendNext(): void {
    while (this.#timer !== undefined && this.#sending.size < PLATFORM_BOUNDS.MAIL_SENDS_MAX) {
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
      await within(clock, transport.send(mail), PLATFORM_BOUNDS.MAIL_SEND_TIMEOUT_MS);
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
      logger.error(fields, 'a mail could not be sent for a day and is given up');
      return { kind: 'given-up' };
    }
    logger.warn({ ...fields, next_try_at: new Date(retry.at).toISOString() }, 'a mail could not be sent');
    return retry;
  }
}

/** Mail servers repeat addresses in what they say. */
const reasonOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replaceAll(/[^\s<>"']+@[^\s<>"']+/g, '[address]');

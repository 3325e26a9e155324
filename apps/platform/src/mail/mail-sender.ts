// Sends what waits in the outbox: at once when it is woken, and by looking every second for what others left there. The looking
// goes on while mails are being sent, so that one which a mail server holds up keeps no other waiting.
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

/** How often mails that wait are looked for. */
const MAIL_POLL_MS = 1000;
/** Mails that one process holds, and how many of them it sends at once. */
const MAIL_BATCH = 100;
/** Mails that one process sends at once. */
export const MAIL_SENDS_MAX = 10;
/** For one mail, from the connection to the last answer of the mail server. */
const MAIL_SEND_TIMEOUT_MS = 45_000;
/** The first pause after a mail that could not be sent. */
const MAIL_RETRY_MIN_MS = 5000;
/** Pauses grow up to this. */
const MAIL_RETRY_MAX_MS = 60 * 60_000;
/**
 * A mail that could not be sent for so long is given up, with a line in the log.
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
  /** Somebody called while a round was under way: it may have missed that one. */
  #calledAgain = false;
  #renewedAt = 0;

  constructor(options: MailSenderOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer ??= this.#options.clock.setInterval(() => this.wake(), MAIL_POLL_MS);
    this.wake();
  }

  /** Mails that are being sent get a moment; those that do not make it are tried again after the next start. */
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
      // Before anything is claimed: a mail whose end the database has not heard of would be claimed, and sent, again.
      await this.#held.settle(db, clock.now());
      await this.#renew();
      const room = MAIL_BATCH - this.#held.size;
      if (room > 0 && this.#timer !== undefined) this.#held.take(await claimMails(db, clock.now(), room));
      this.#sendNext();
    } catch (error) {
      // That the database is away is told by whoever watches it. The mails are still there when it comes back.
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

/** Mail servers repeat addresses in what they say. */
const reasonOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replaceAll(/[^\s<>"']+@[^\s<>"']+/g, '[address]');

interface Held {
  readonly mail: ClaimedMail;
  state: 'waiting' | 'sending' | MailOutcome;
}

/**
 * The mails that this process has claimed: they wait for their turn, are being sent, or have an end that the database has not
 * heard of yet. That is told it again until it has, so that no mail stays claimed by a process that is done with it.
 */
class ClaimedMails {
  readonly #mails = new Map<string, Held>();

  get size(): number {
    return this.#mails.size;
  }

  /** Ids of those without an end. */
  get unfinished(): string[] {
    return [...this.#mails.values()].filter(({ state }) => typeof state === 'string').map(({ mail }) => mail.id);
  }

  take(claimed: readonly ClaimedMail[]): void {
    // A claim that ran out, because the machine's clock jumped, may have been made again.
    for (const mail of claimed) if (!this.#mails.has(mail.id)) this.#mails.set(mail.id, { mail, state: 'waiting' });
  }

  /** The one that was claimed first. */
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

  /** Those whose turn does not come any more. */
  releaseUnsent(now: number): void {
    for (const held of this.#mails.values()) if (held.state === 'waiting') held.state = { kind: 'retry', at: now };
  }

  /** Tells the database how they ended. Throws when it does not hear; then it is told the next time. */
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

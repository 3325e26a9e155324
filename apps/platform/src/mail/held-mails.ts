// The mails that this process has claimed: they wait for their turn, are being sent, or have an end that the database has not
// heard of yet. That is told it again until it has, so that no mail stays claimed by a process that is done with it.
import type { Db } from '../db/database.ts';
import { type ClaimedMail, type MailOutcome, markSent, markUnsent } from './outbox.ts';

interface Held {
  readonly mail: ClaimedMail;
  state: 'waiting' | 'sending' | MailOutcome;
}

export class HeldMails {
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
  letGoUnsent(now: number): void {
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

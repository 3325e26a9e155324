// Looks up whom the mails that were asked for are for, and queues them. By its own clock, and not when a request comes: what it
// does for an address that somebody has must not fall into the time of the answer.
import { MAIL_REQUESTS_BATCH, MAIL_REQUESTS_MAX, sendRequestedMails } from '../services/accounts/mail-requests.ts';
import type { Job } from './jobs.ts';

/** Files of mails are there within 2 s of the request. */
const MAIL_REQUESTS_EVERY_MS = 500;

export interface RequestedMailsOptions {
  readonly publicUrl: string;
  /** A mail waits; called after the transaction. */
  readonly wakeMailer: () => void;
}

export const sendRequested = ({ publicUrl, wakeMailer }: RequestedMailsOptions): Job => ({
  name: 'send requested mails',
  everyMs: MAIL_REQUESTS_EVERY_MS,
  run: async ({ db, clock, logger }) => {
    let total = 0;
    for (;;) {
      const { taken, queued } = await sendRequestedMails(db, { publicUrl, now: clock.now() });
      if (queued > 0) wakeMailer();
      total += taken;
      if (taken < MAIL_REQUESTS_BATCH) break;
    }
    if (total < MAIL_REQUESTS_MAX) return;
    logger.warn({ limit: MAIL_REQUESTS_MAX }, 'the mail queue is full; some mail requests were dropped');
  },
});

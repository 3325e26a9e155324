// Finds the accounts for requested mails (such as password resets) and queues the mails. Runs as a job instead of in the request, because
// the extra work for an existing account would change the response time and reveal the account.
import { MAIL_REQUESTS_BATCH, MAIL_REQUESTS_MAX, sendRequestedMails } from '../services/accounts/mail-requests.ts';
import type { Job } from './jobs.ts';

/** Interval between runs. Short, so that the file of a mail exists within 2 s of the request. */
const MAIL_REQUESTS_EVERY_MS = 500;

export interface RequestedMailsOptions {
  readonly publicUrl: string;
  /** Wakes the mail sender. Called after the transaction that queued mails. */
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

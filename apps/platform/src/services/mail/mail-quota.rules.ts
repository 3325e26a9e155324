// Rate limit per recipient for mails that strangers can cause, because anyone can enter another person's address into a form.

export interface MailQuotaRules {
  readonly perHour: number;
  readonly perDay: number;
}

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

/**
 * Counts a mail to a recipient. `sent` has the times of earlier mails. Returns the times to store, at most `perDay`, or null if the mail
 * exceeds the limit.
 */
export const takeMail = (
  sent: readonly number[],
  now: number,
  { perHour, perDay }: MailQuotaRules,
): number[] | null => {
  // A time in the future, recorded before the clock was set back, counts as now.
  const ofDay = sent.filter((at) => now - at < DAY_MS).map((at) => Math.min(at, now));
  const inHour = ofDay.filter((at) => now - at < HOUR_MS).length;
  return inHour >= perHour || ofDay.length >= perDay ? null : [...ofDay, now];
};

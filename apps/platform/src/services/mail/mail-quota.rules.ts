// How many mails one recipient gets that a stranger can cause: anybody may type anybody's address into a form.

export interface MailQuotaRules {
  readonly perHour: number;
  readonly perDay: number;
}

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

/**
 * The times that count once one more mail is sent now; null: it is one too many. `sent`: when those before it were sent. At most
 * `perDay` times are ever kept.
 */
export const takeMail = (
  sent: readonly number[],
  now: number,
  { perHour, perDay }: MailQuotaRules,
): number[] | null => {
  // A time ahead of ours, of a clock that was set back, counts as now.
  const ofDay = sent.filter((at) => now - at < DAY_MS).map((at) => Math.min(at, now));
  const inHour = ofDay.filter((at) => now - at < HOUR_MS).length;
  return inHour >= perHour || ofDay.length >= perDay ? null : [...ofDay, now];
};

// When a mail that could not be sent is tried again, and when nobody tries any more.

interface MailRetryRules {
  readonly minMs: number;
  readonly maxMs: number;
  /** Counted from when it was written. */
  readonly giveUpAfterMs: number;
}

type MailRetry = { readonly kind: 'retry'; readonly at: number } | { readonly kind: 'give-up' };

/**
 * After the `attempts`-th try failed. `random` in [0, 1) spreads mails that failed together. The last try is at the very end of
 * the time: a server that came back in time gets every mail.
 */
export const decideMailRetry = (
  mail: { readonly writtenAt: number; readonly attempts: number },
  now: number,
  random: number,
  rules: MailRetryRules,
): MailRetry => {
  const end = mail.writtenAt + rules.giveUpAfterMs;
  if (now >= end) return { kind: 'give-up' };
  const delayMs = Math.min(rules.maxMs, rules.minMs * 2 ** Math.min(Math.max(0, mail.attempts - 1), 30));
  return { kind: 'retry', at: Math.min(end, Math.round(now + delayMs * (0.75 + random / 2))) };
};

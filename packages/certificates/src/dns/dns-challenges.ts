// TXT records of dns-01 challenges: sets them, independent of the DNS provider, and checks their visibility.
import type { Clock } from '@tunnel/runtime';
import type { DnsLookups } from './lookups.ts';

/** Interval between checks whether a challenge's TXT record is visible in DNS. */
const SEEN_EVERY_MS = 2000;
/** Time until the visibility check of a TXT record gives up, without using a validation attempt. */
export const SEEN_WITHIN_MS = 120_000;

export interface DnsChallenges {
  /** Resolves when the record is set. Other values stay, because a name and its wildcard use the same record name. */
  set(name: string, value: string): Promise<void>;
  /** Removes a challenge's TXT record. Does nothing if the record is absent. */
  clear(name: string, value: string): Promise<void>;
  /** Looks up through `[dns] resolvers`, as a CA does: `name` may be a CNAME to the record. */
  isSeen(name: string, value: string): Promise<boolean>;
}

/** Returns whether DNS has a TXT record with this value. Returns false if there is no answer. */
export const isTextSeen = async (lookups: DnsLookups, name: string, value: string): Promise<boolean> => {
  const answer = await lookups.texts(name);
  return answer.kind === 'found' && answer.values.includes(value);
};

/** Returns false if the record did not become visible in time. Then no validation should be attempted. */
export const untilSeen = async (
  challenges: DnsChallenges,
  record: { readonly name: string; readonly value: string },
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<boolean> => {
  const giveUpAt = clock.monotonic() + SEEN_WITHIN_MS;
  for (;;) {
    if (await challenges.isSeen(record.name, record.value)) return true;
    if (signal.aborted || clock.monotonic() + SEEN_EVERY_MS > giveUpAt) return false;
    await pause(clock, signal);
  }
};

const pause = (clock: Clock, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.setTimeout(end, SEEN_EVERY_MS);
    signal.addEventListener('abort', end, { once: true });
  });

// Where the TXT records of dns-01 challenges are set, whoever answers for them, and whether the world can see one.
import type { Clock } from '@tunnel/runtime';
import type { DnsLookups } from './lookups.ts';

/** between looks at whether a record can be seen */
const SEEN_EVERY_MS = 2000;
/** then it is given up, and no validation is spent */
export const SEEN_WITHIN_MS = 120_000;

export interface DnsChallenges {
  /** Settles when it was set. Other values at the name stay: a name and its wildcard are proven at the same one. */
  set(name: string, value: string): Promise<void>;
  /** One that is not there is no fault. */
  clear(name: string, value: string): Promise<void>;
  /** Through `[dns] resolvers`, as a CA will look: `name` may be a CNAME that leads to where it was set. */
  isSeen(name: string, value: string): Promise<boolean>;
}

/** No answer is no sight of it. */
export const isTextSeen = async (lookups: DnsLookups, name: string, value: string): Promise<boolean> => {
  const answer = await lookups.texts(name);
  return answer.kind === 'found' && answer.values.includes(value);
};

/** false: not seen in time, so no validation should be spent on it. */
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

// Derives why connections use the relay: whether both sides can attempt a direct path, how the edge sees their ports, and how the last
// round ended. The last verdict is kept during retries.
import type { Inability, Reachability } from './peer-messages.ts';

/** Why connections between two peers use the relay. docs/p2p.md describes the reasons. */
export type RelayReason =
  | 'punching'
  | 'udp-blocked'
  | 'random-ports'
  | 'no-answer'
  | 'went-silent'
  | 'off'
  | 'no-transport';

/** Outcome of an attempt to connect directly. */
export type DirectOutcome = 'direct' | 'udp-blocked' | 'random-ports' | 'no-answer' | 'no-transport';

/** How the last round of attempts to connect directly failed. Null if no round has failed yet. */
export type RoundVerdict = 'no-answer' | 'went-silent' | null;

export interface RelayFacts {
  /** Why either side cannot attempt a direct path. Null if both sides can. */
  readonly unable: Inability | null;
  /** Reachability of both sides by UDP, as far as known. */
  readonly ports: readonly Reachability[];
  readonly verdict: RoundVerdict;
}

export const relayReasonOf = ({ unable, ports, verdict }: RelayFacts): RelayReason => {
  if (unable !== null) return unable;
  // The direct path worked before, so the kind of UDP ports is not the reason.
  if (verdict === 'went-silent') return verdict;
  if (ports.includes('none')) return 'udp-blocked';
  const random = ports.filter((side) => side === 'random').length;
  // Two networks with random ports hardly ever connect, except within the same network.
  if (random === 2) return 'random-ports';
  if (verdict === null) return 'punching';
  // Random ports work with an open network on the other side, so the other network is not open.
  return random === 1 ? 'random-ports' : verdict;
};

/** Maps the reason for using the relay after a failed round to the outcome of that attempt. */
export const outcomeForReason = (reason: RelayReason): DirectOutcome => {
  switch (reason) {
    case 'udp-blocked':
    case 'random-ports':
    case 'no-transport':
      return reason;
    default:
      return 'no-answer';
  }
};

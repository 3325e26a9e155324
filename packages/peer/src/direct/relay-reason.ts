// Why connections go through the relay, from what is known of both sides: whether they can try at all, how the edge sees their ports, and how
// the last round ended. What was found out stays said while it is tried again.
import type { Inability, Reachability } from './peer-messages.ts';

/** Why connections go through the relay; docs/p2p.md has each in words. */
export type RelayReason =
  | 'punching'
  | 'udp-blocked'
  | 'random-ports'
  | 'no-answer'
  | 'went-silent'
  | 'off'
  | 'no-transport';

/** How a try to go direct has ended. */
export type DirectOutcome = 'direct' | 'udp-blocked' | 'random-ports' | 'no-answer' | 'no-transport';

/** How the last round ended; null: none has. */
export type RoundVerdict = 'no-answer' | 'went-silent' | null;

export interface RelayFacts {
  /** Of either side. */
  readonly unable: Inability | null;
  /** Of both sides, as far as they are known. */
  readonly ports: readonly Reachability[];
  readonly verdict: RoundVerdict;
}

export const relayReasonOf = ({ unable, ports, verdict }: RelayFacts): RelayReason => {
  if (unable !== null) return unable;
  // It worked: what the edge sees of the ports is not the reason.
  if (verdict === 'went-silent') return verdict;
  if (ports.includes('none')) return 'udp-blocked';
  const random = ports.filter((side) => side === 'random').length;
  // Two of them hardly ever meet, except within one network.
  if (random === 2) return 'random-ports';
  if (verdict === null) return 'punching';
  // An open network would have met a random one: this one is not open.
  return random === 1 ? 'random-ports' : verdict;
};

/** Of a round in vain. */
export const outcomeOf = (reason: RelayReason): DirectOutcome => {
  switch (reason) {
    case 'udp-blocked':
    case 'random-ports':
    case 'no-transport':
      return reason;
    default:
      return 'no-answer';
  }
};

// Result of the last alert of each group, by alert URL of members. An owner sees the result with the owner's member, with less detail
// than in the log: whether the receiver accepted the alert, but not the receiver's response. Results are deleted with the group.
import type { LastAlert } from '@tunnel/contract';
import type { Tunnel } from '../routing/tunnel.ts';
import type { AlertOutcome } from './alert-outcomes.ts';

type ShownOutcome = LastAlert['outcome'];

const SHOWN: Readonly<Record<AlertOutcome, ShownOutcome>> = {
  delivered: 'delivered',
  'refused-status': 'failed',
  timeout: 'failed',
  failed: 'failed',
  'guard-refused': 'refused',
  dropped: 'dropped',
};

/** Records a result for alert URLs, exactly as configured. If `urls` is null, the result applies to all URLs without a separate result. */
export type TellEnd = (urls: readonly string[] | null, outcome: AlertOutcome) => void;

type AlertedMember = Pick<Tunnel, 'alertWebhook' | 'connectedSince'>;

interface Fall {
  readonly at: number;
  /** Results by alert URL. Contains at most the URLs of the group's members, so the size of the group bounds the map. */
  readonly ends: Map<string, ShownOutcome>;
  /** Result of all URLs without an entry in `ends`. Null while the alert to these URLs is in progress. */
  rest: ShownOutcome | null;
}

export class LastAlerts {
  readonly #falls = new WeakMap<object, Fall>();

  /** Begins a new alert for a group that lost its last healthy member. The returned function records the results of the new alert. */
  begin(group: object, at: number): TellEnd {
    const fall: Fall = { at, ends: new Map(), rest: null };
    this.#falls.set(group, fall);
    return (urls, outcome) => {
      if (urls === null) fall.rest = SHOWN[outcome];
      else for (const url of urls) fall.ends.set(url, SHOWN[outcome]);
    };
  }

  /**
   * Returns the result of a group's last alert to a member's URL. Returns null if no alert was sent to the URL, or if the alert is in
   * progress. Also returns null for a member that joined after the alert, even if an earlier member has the same URL.
   */
  of(group: object, { alertWebhook: url, connectedSince }: AlertedMember): LastAlert | null {
    const fall = this.#falls.get(group);
    if (fall === undefined || url === null || connectedSince > fall.at) return null;
    const outcome = fall.ends.get(url) ?? fall.rest;
    return outcome === null ? null : { at: new Date(fall.at).toISOString(), outcome };
  }
}

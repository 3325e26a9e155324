// What became of the last alert of each group, by the URLs of members that it went to. Each owner sees it with the own member, in less
// detail than the log has it: whether a receiver took it, not what the receiver said. Gone with the group.
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

/** `urls`: as members spell them; null: all that nothing else was told of. */
export type TellEnd = (urls: readonly string[] | null, outcome: AlertOutcome) => void;

type AlertedMember = Pick<Tunnel, 'alertWebhook' | 'connectedSince'>;

interface Fall {
  readonly at: number;
  /** At most one for each URL of a member: bounded as the group is. */
  readonly ends: Map<string, ShownOutcome>;
  /** Of URLs without an end of their own; null: they are under way. */
  rest: ShownOutcome | null;
}

export class LastAlerts {
  readonly #falls = new WeakMap<object, Fall>();

  /** A group fell: what is told from now on is of this alert. */
  begin(group: object, at: number): TellEnd {
    const fall: Fall = { at, ends: new Map(), rest: null };
    this.#falls.set(group, fall);
    return (urls, outcome) => {
      if (urls === null) fall.rest = SHOWN[outcome];
      else for (const url of urls) fall.ends.set(url, SHOWN[outcome]);
    };
  }

  /** null: there was none to its URL, or it is under way. Whoever joins later learns nothing of it: not even by the URL of another. */
  of(group: object, { alertWebhook: url, connectedSince }: AlertedMember): LastAlert | null {
    const fall = this.#falls.get(group);
    if (fall === undefined || url === null || connectedSince > fall.at) return null;
    const outcome = fall.ends.get(url) ?? fall.rest;
    return outcome === null ? null : { at: new Date(fall.at).toISOString(), outcome };
  }
}

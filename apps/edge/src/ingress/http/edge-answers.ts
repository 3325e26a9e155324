// Reports requests answered by the edge to the clients of their tunnels: individually up to a limit per second, the rest as a count.
// Reports are never queued, so a client that does not read misses some reports and costs no memory.

import { type EdgeResponse, type RequestHead, redactUrl } from '@tunnel/http1';
import { type ControlMessageInput, WIRE_LIMITS } from '@tunnel/protocol';
import { ownerKey } from '@tunnel/rules/tunnels';
import type { Clock } from '@tunnel/runtime';
import type { Tunnel } from '../../routing/tunnel.ts';
import type { CapturedRules } from '../../upstream/captured-rules.ts';
import { NoticePace } from './notice-pace.rules.ts';

/**
 * Maximum requests per second answered by the edge and reported individually to the clients of an account. Further requests are reported as
 * a count.
 */
const EDGE_ANSWERS_PER_SECOND_ACCOUNT = 400;

/**
 * Result of sending an optional message. `full`: the client has not read earlier messages yet. `unwanted`: the client is disconnected, or
 * does not know the message.
 */
export type Offered = 'sent' | 'full' | 'unwanted';

/** Sends an optional message to a client: the message may be dropped. */
export type Offer = (sessionId: string, message: ControlMessageInput) => Offered;

export interface EdgeAnswer {
  readonly head: Pick<RequestHead, 'method' | 'path'>;
  /** Start of the request, in monotonic milliseconds. */
  readonly startedMs: number;
  readonly status: number;
  /** Error code of the response. Null if the response is not an error. */
  readonly code: string | null;
  /** Rule that responded, as displayed after the word `rule`. Null if no rule responded. */
  readonly rule: string | null;
  readonly requestId: string;
}

export class EdgeAnswers {
  readonly #clock: Clock;
  readonly #offer: Offer;
  readonly #pace = new NoticePace<Tunnel>({
    perSubject: WIRE_LIMITS.EDGE_ANSWERS_PER_SECOND,
    perHolder: EDGE_ANSWERS_PER_SECOND_ACCOUNT,
  });

  constructor(clock: Clock, offer: Offer) {
    this.#clock = clock;
    this.#offer = offer;
  }

  onAnswered(tunnel: Tunnel, answer: EdgeAnswer): void {
    // The platform's own host has no client to notify of the edge's answers.
    if (tunnel.sessionId === '') return;
    if (!this.#pace.take(tunnel, () => ownerKey(tunnel.owner))) return;
    if (this.#offer(tunnel.sessionId, this.#message(tunnel, answer)) === 'full') this.#pace.notSent(tunnel);
  }

  /** Sends the counts of the past second. Must be called once a second. */
  tick(): void {
    this.#pace.nextSecond((tunnel, count) => {
      const { tunnelId: tunnel_id, sessionId } = tunnel;
      return this.#offer(sessionId, { type: 'EdgeAnsweredMore', tunnel_id, count }) !== 'full';
    });
  }

  #message({ tunnelId }: Tunnel, answer: EdgeAnswer): ControlMessageInput {
    const durationMs = Math.max(0, this.#clock.monotonic() - answer.startedMs);
    return {
      type: 'EdgeAnswered',
      tunnel_id: tunnelId,
      request_id: answer.requestId,
      at: new Date(this.#clock.now() - durationMs).toISOString(),
      method: answer.head.method.slice(0, WIRE_LIMITS.EDGE_ANSWERED_METHOD_MAX_CHARS),
      path: redactUrl(answer.head.path).slice(0, WIRE_LIMITS.EDGE_ANSWERED_PATH_MAX_CHARS),
      status: answer.status,
      code: answer.code,
      rule: answer.rule,
      duration_ms: Math.round(durationMs * 10) / 10,
    };
  }
}

/**
 * Returns the rule that responded, as shown to the tunnel's owner, or null if no rule did. Operator rules are shown without name and
 * number.
 */
export const shownRuleOf = (rules: CapturedRules | null): string | null => {
  const answeredBy = rules?.policy.answered_by ?? null;
  return answeredBy === null ? null : ruleText(answeredBy);
};

export const ruleText = ({ index, name }: { readonly index: number; readonly name: string | null }): string =>
  index === 0 ? 'of the operator' : (name ?? String(index));

/** Returns the error code of a response made by the edge, or null if the response is not an error. */
export const errorCodeOf = ({ headers }: EdgeResponse): string | null =>
  headers.find(([name]) => name.toLowerCase() === 'x-tunnel-error')?.[1] ?? null;

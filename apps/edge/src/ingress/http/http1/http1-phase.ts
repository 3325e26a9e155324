// Phases of a visitor's HTTP/1.1 connection, with descriptions for operators.
import type { ConnectionState } from '@tunnel/rules/admission';

export type Phase =
  /** Phase of a connection: waiting for a request head, or reading it. */
  | 'head'
  /** Phase of a connection: routing and policy decision of the request are pending. */
  | 'deciding'
  /** Phase of a connection: the decision is pending, while the request body is buffered for the policy. */
  | 'holding'
  /** Phase of a connection: passing the request's body to the service. */
  | 'body'
  /** Phase of a connection: the request is complete, the response is not. */
  | 'answering'
  /** The response is complete, but the visitor has not read all of it. */
  | 'sending'
  /** Phase of a connection after status 101: bytes flow in both directions. */
  | 'upgraded'
  /** The final response is sent. Further input is discarded, so that the visitor can read the response. */
  | 'lingering'
  /** A response that would look complete was cut off. The connection is reset shortly. */
  | 'cutting'
  /** The connection belongs to a client and is about to move to the control plane. */
  | 'leaving'
  | 'closed';

const WAITS_FOR: Readonly<Record<Phase, string>> = {
  head: 'a request from the visitor',
  deciding: 'a routing decision',
  holding: 'the request body from the visitor',
  body: 'the request body from the visitor',
  answering: 'the service',
  sending: 'the visitor to read the response',
  upgraded: 'both sides',
  lingering: 'the visitor to close the connection',
  cutting: 'the reset',
  leaving: 'the control plane',
  closed: 'nothing',
};

export const describePhase = (
  phase: Phase,
  isHeadBegun: boolean,
  isPaused: boolean,
  queuedBytes: number,
): ConnectionState => {
  if (phase === 'head' && isHeadBegun) return { phase, waitsFor: 'the rest of a request head' };
  if (isPaused) return { phase, waitsFor: 'the service to read the body' };
  const isUnread = phase !== 'upgraded' && phase !== 'closed' && queuedBytes > 0;
  return { phase, waitsFor: isUnread ? WAITS_FOR.sending : WAITS_FOR[phase] };
};

export const isDeciding = (phase: Phase): boolean => phase === 'deciding' || phase === 'holding';

/**
 * After an internal error at `where`: reports whether the visitor waits for a response of which nothing was sent. On an idle connection, a
 * response would be taken for the response to the next request.
 */
export const awaitsAnswer = (phase: Phase, where: string, isHeadBegun: boolean, isAnswerOut: boolean): boolean => {
  // The visitor has disconnected, so no response is awaited.
  if (where === 'socket.reset') return false;
  if (phase === 'head') return isHeadBegun || where === 'socket.data';
  return !isAnswerOut && (isDeciding(phase) || phase === 'body' || phase === 'answering');
};

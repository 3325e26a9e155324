// Where an HTTP/1.1 connection of a visitor is, what it waits for there, and what the visitor does.
import type { ConnectionState } from '@tunnel/rules/admission';

export type Phase =
  /** Waits for a head, or reads one. */
  | 'head'
  /** Where the request goes, and whether, is being asked. */
  | 'deciding'
  /** The same, and its body is held until it is known. */
  | 'holding'
  /** Passes the request's body on. */
  | 'body'
  /** The request is complete, its response is not. */
  | 'answering'
  /** The answer is complete, and the visitor has not taken all of it. */
  | 'sending'
  /** After 101: bytes both ways. */
  | 'upgraded'
  /** We have said our last word; what still comes is thrown away, so that the visitor can read it. */
  | 'lingering'
  /** Half of an answer is out that would look whole; the reset is about to follow. */
  | 'cutting'
  /** It is a client's connection, and about to be the control plane's. */
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
 * Something of ours threw at `where`: does the visitor wait for an answer, of which nothing is out? An idle connection has asked for nothing: an
 * answer now would be taken for that to its next request.
 */
export const awaitsAnswer = (phase: Phase, where: string, isHeadBegun: boolean, isAnswerOut: boolean): boolean => {
  // Nobody is there any more.
  if (where === 'socket.reset') return false;
  if (phase === 'head') return isHeadBegun || where === 'socket.data';
  return !isAnswerOut && (isDeciding(phase) || phase === 'body' || phase === 'answering');
};

// Renders responses made by the edge, such as error pages and redirects to https.

import type { ErrorCode } from '@tunnel/errors';
import {
  fieldValueOf,
  type OwnResponse,
  ownResponseText,
  type RequestHead,
  type ResponseHead,
  renderError,
} from '@tunnel/http1';
import type { OwnAnswer } from '../../routing/http-router.ts';

/** Changes that a policy applies to any response to a request it let pass. */
export interface AnswerNotes {
  noted(response: OwnResponse): OwnResponse;
  /** Applies the changes to the head of the service's response. */
  notedHead(head: ResponseHead): ResponseHead;
}

/** Renders an answer. `accept` is the request's header, or null if missing or unreadable. `notes` is null if the policy changes nothing. */
export const renderAnswer = (answer: OwnAnswer, accept: string | null, notes: AnswerNotes | null): OwnResponse => {
  if ('own' in answer) return answer.own;
  const { fault, retryAfterSecs, requestId } = answer;
  const { code, status, message, next } = fault;
  const response = renderError({ code, status, message, next, accept, retryAfterSecs, requestId });
  return notes === null ? response : notes.noted(response);
};

export interface Asked {
  readonly head: Pick<RequestHead, 'method' | 'version' | 'headers'> | null;
  readonly keepAlive: boolean;
  readonly notes: AnswerNotes | null;
}

/** Renders an answer as an HTTP/1.1 message. */
export const ownAnswerText = (
  answer: OwnAnswer,
  { head, keepAlive, notes }: Asked,
): { status: number; text: string } => {
  const response = renderAnswer(answer, head === null ? null : fieldValueOf(head.headers, 'accept'), notes);
  const options = { keepAlive, visitorVersion: head?.version ?? '1.1', isHead: head?.method === 'HEAD' } as const;
  return { status: response.status, text: ownResponseText(response, options) };
};

export const refusalCodeOf = (status: number): ErrorCode => REFUSALS[status] ?? 'HTTP_BAD_REQUEST';

const REFUSALS: Readonly<Record<number, ErrorCode>> = {
  400: 'HTTP_BAD_REQUEST',
  408: 'HTTP_HEAD_TIMEOUT',
  431: 'HTTP_HEAD_TOO_LARGE',
  501: 'HTTP_NOT_IMPLEMENTED',
  505: 'HTTP_VERSION_UNSUPPORTED',
};

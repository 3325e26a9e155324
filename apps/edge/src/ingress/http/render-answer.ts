// Renders responses made by the edge, such as error pages and redirects to https.

import type { ErrorCode } from '@tunnel/errors';
import {
  type EdgeResponse,
  edgeResponseText,
  fieldValueOf,
  type RequestHead,
  type ResponseHead,
  renderError,
} from '@tunnel/http1';
import type { EdgeReply } from '../../routing/http-router.ts';

/** Changes that a policy applies to any response to a request it let pass. */
export interface ResponseEdits {
  applyToResponse(response: EdgeResponse): EdgeResponse;
  /** Applies the policy's changes to the head of the service's response. */
  applyToHead(head: ResponseHead): ResponseHead;
}

/** Renders an answer. `accept` is the request's header, or null if missing or unreadable. `notes` is null if the policy changes nothing. */
export const renderAnswer = (answer: EdgeReply, accept: string | null, edits: ResponseEdits | null): EdgeResponse => {
  if ('response' in answer) return answer.response;
  const { fault, retryAfterSecs, requestId } = answer;
  const { code, status, message, next } = fault;
  const response = renderError({ code, status, message, next, accept, retryAfterSecs, requestId });
  return edits === null ? response : edits.applyToResponse(response);
};

export interface Asked {
  readonly head: Pick<RequestHead, 'method' | 'version' | 'headers'> | null;
  readonly keepAlive: boolean;
  readonly edits: ResponseEdits | null;
}

/** Renders an answer of the edge as an HTTP/1.1 message. */
export const edgeReplyText = (
  answer: EdgeReply,
  { head, keepAlive, edits }: Asked,
): { status: number; text: string } => {
  const response = renderAnswer(answer, head === null ? null : fieldValueOf(head.headers, 'accept'), edits);
  const options = { keepAlive, visitorVersion: head?.version ?? '1.1', isHead: head?.method === 'HEAD' } as const;
  return { status: response.status, text: edgeResponseText(response, options) };
};

export const refusalCodeOf = (status: number): ErrorCode => REFUSALS[status] ?? 'HTTP_BAD_REQUEST';

const REFUSALS: Readonly<Record<number, ErrorCode>> = {
  400: 'HTTP_BAD_REQUEST',
  408: 'HTTP_HEAD_TIMEOUT',
  431: 'HTTP_HEAD_TOO_LARGE',
  501: 'HTTP_NOT_IMPLEMENTED',
  505: 'HTTP_VERSION_UNSUPPORTED',
};

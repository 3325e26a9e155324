// Answers that the edge gives by itself, written out: an error page, or the way to https.
import { fieldValueOf, type OwnResponse, ownResponseText, type RequestHead, renderError } from '@tunnel/core';
import type { ErrorCode } from '@tunnel/errors';
import type { OwnAnswer } from '../../routing/http-router.ts';

/** `accept` of the request; null: none, or there was no head that could be read. */
export const renderAnswer = (answer: OwnAnswer, accept: string | null): OwnResponse => {
  if ('own' in answer) return answer.own;
  const { fault, retryAfterSecs } = answer;
  const { code, status, message, next } = fault;
  return renderError({ code, status, message, next, accept, retryAfterSecs });
};

export interface Asked {
  readonly head: Pick<RequestHead, 'method' | 'version' | 'headers'> | null;
  readonly keepAlive: boolean;
}

/** As one HTTP/1.1 message. */
export const ownAnswerText = (answer: OwnAnswer, { head, keepAlive }: Asked): { status: number; text: string } => {
  const response = renderAnswer(answer, head === null ? null : fieldValueOf(head.headers, 'accept'));
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

// Answers that the edge gives by itself: an error page, or the way to https.
import { fieldValueOf, type OwnResponse, ownResponseText, type RequestHead, renderError } from '@tunnel/core';
import type { Fault } from '@tunnel/errors';

export type LocalAnswer =
  | { readonly fault: Fault; readonly retryAfterSecs?: number }
  /** Such as the way to https. */
  | { readonly own: OwnResponse };

export const isLocalAnswer = (route: object): route is LocalAnswer => 'fault' in route || 'own' in route;

/** `accept` of the request; null: none, or there was no head that could be read. */
export const renderAnswer = (answer: LocalAnswer, accept: string | null): OwnResponse => {
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
export const localAnswer = (answer: LocalAnswer, { head, keepAlive }: Asked): { status: number; text: string } => {
  const response = renderAnswer(answer, head === null ? null : fieldValueOf(head.headers, 'accept'));
  const options = { keepAlive, visitorVersion: head?.version ?? '1.1', isHead: head?.method === 'HEAD' } as const;
  return { status: response.status, text: ownResponseText(response, options) };
};

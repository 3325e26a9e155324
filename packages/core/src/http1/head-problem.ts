// What is wrong with a head: data, so that the rim can answer, close and count.

export interface HeadProblem {
  readonly kind: 'problem';
  /** To answer with. 502: the head came from the local service. */
  readonly status: 400 | 431 | 501 | 502 | 505;
  /** For the page and the log. Holds nothing of the message. */
  readonly reason: string;
}

export const headProblem = (status: HeadProblem['status'], reason: string): HeadProblem => ({
  kind: 'problem',
  status,
  reason,
});

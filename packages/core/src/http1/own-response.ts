// Writes a whole response of our own: error pages, redirects. One character per byte.
import { isFieldValue, isToken } from './char-classes.ts';
import type { HttpVersion } from './request-head.ts';

export type OwnHeader = readonly [name: string, value: string];

export interface OwnResponse {
  readonly status: number;
  readonly headers: readonly OwnHeader[];
  /** ASCII. */
  readonly body: string;
}

export interface OwnResponseOptions {
  readonly keepAlive: boolean;
  readonly visitorVersion: HttpVersion;
  /** The answer to HEAD: the head as for GET, and no body. */
  readonly isHead: boolean;
}

export const ownResponseText = (response: OwnResponse, options: OwnResponseOptions): string => {
  const { status, headers, body } = response;
  let text = `HTTP/1.1 ${status} ${reasonOf(status)}\r\n`;
  for (const [name, value] of headers) {
    if (isToken(name) && isFieldValue(value)) text += `${name}: ${value}\r\n`;
  }
  text += `content-length: ${body.length}\r\n`;
  if (!options.keepAlive) text += 'connection: close\r\n';
  else if (options.visitorVersion === '1.0') text += 'connection: keep-alive\r\n';
  return options.isHead ? `${text}\r\n` : `${text}\r\n${body}`;
};

export const reasonOf = (status: number): string => REASONS.get(status) ?? '';

const REASONS: ReadonlyMap<number, string> = new Map([
  [308, 'Permanent Redirect'],
  [400, 'Bad Request'],
  [403, 'Forbidden'],
  [404, 'Not Found'],
  [408, 'Request Timeout'],
  [410, 'Gone'],
  [413, 'Content Too Large'],
  [421, 'Misdirected Request'],
  [429, 'Too Many Requests'],
  [431, 'Request Header Fields Too Large'],
  [500, 'Internal Server Error'],
  [501, 'Not Implemented'],
  [502, 'Bad Gateway'],
  [503, 'Service Unavailable'],
  [504, 'Gateway Timeout'],
  [505, 'HTTP Version Not Supported'],
]);

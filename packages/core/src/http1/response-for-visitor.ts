// The head that the visitor gets: the service's, with the framing and the connection that suit this visitor.
import type { ChunkedForm } from './chunked-body.ts';
import type { FieldRole } from './field-role.ts';
import { type Framing, UNTIL_CLOSE } from './framing.ts';
import type { HeaderField } from './header-field.ts';
import { keptFields, keptLines } from './kept-lines.ts';
import type { HttpVersion } from './request-head.ts';
import type { ResponseHead } from './response-head.ts';

export interface VisitorResponseOptions {
  readonly visitorVersion: HttpVersion;
  /** The visitor's wish, and ours. */
  readonly keepAlive: boolean;
}

export interface VisitorResponse {
  /** Empty: the visitor cannot be told (a 1xx in HTTP/1.0). One character per byte. */
  readonly text: string;
  /** How the visitor finds the body's end. */
  readonly framing: Framing;
  /** How to read a chunked body for it. */
  readonly form: ChunkedForm;
  /** false: close after the body. */
  readonly keepAlive: boolean;
}

export const responseHeadFor = (head: ResponseHead, options: VisitorResponseOptions): VisitorResponse => {
  const isOld = options.visitorVersion === '1.0';
  if (head.interim && isOld) return { text: '', framing: head.framing, form: 'chunks', keepAlive: options.keepAlive };
  const isUnchunked = isOld && head.framing.kind === 'chunked';
  const framing = isUnchunked ? UNTIL_CLOSE : head.framing;
  const keepAlive = options.keepAlive && framing.kind !== 'until-close';
  const connection = head.interim ? '' : connectionLines(head, keepAlive, isOld);
  const text =
    `HTTP/1.1 ${head.status} ${head.reason}\r\n${keptLines(head, isKept)}` +
    `${framingLine(head, isOld)}${connection}\r\n`;
  return { text, framing, form: isUnchunked ? 'data' : 'chunks', keepAlive };
};

/** For HTTP/2, which frames by itself: what passes on, and the length where it is known. */
export const endToEndFields = (head: ResponseHead): HeaderField[] => keptFields(head, isKept);

const isKept = (role: FieldRole): boolean => {
  switch (role) {
    case 'connection':
    case 'hop':
    case 'coding':
    case 'length':
    case 'upgrade':
    case 'te':
      return false;
    default:
      return true;
  }
};

/** Of HEAD and 304 the length or coding that the body would have had; of 1xx and 204 none (RFC 9110, 8.6). */
const framingLine = (head: ResponseHead, isOld: boolean): string => {
  if (head.status < 200 || head.status === 204) return '';
  if (head.contentLength !== null) return `Content-Length: ${head.contentLength}\r\n`;
  return head.isChunked && !isOld ? 'Transfer-Encoding: chunked\r\n' : '';
};

const connectionLines = (head: ResponseHead, keepAlive: boolean, isOld: boolean): string => {
  if (head.status === 101) return `Connection: Upgrade\r\nUpgrade: ${head.upgrade ?? ''}\r\n`;
  // 426 says what to upgrade to (RFC 9110, 15.5.22).
  if (head.upgrade !== null) {
    return `Connection: ${keepAlive ? 'Upgrade' : 'close, Upgrade'}\r\nUpgrade: ${head.upgrade}\r\n`;
  }
  if (!keepAlive) return 'Connection: close\r\n';
  return isOld ? 'Connection: keep-alive\r\n' : '';
};

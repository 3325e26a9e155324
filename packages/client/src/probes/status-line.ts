// The first line of an HTTP/1 answer, as strictly as the edge reads it: what a probe accepts, visitors get too.
import { CLIENT_LIMITS } from '../limits.ts';

export type StatusLine = { readonly status: number } | 'unfinished' | 'not-http';

const WHOLE = /^HTTP\/1\.[01] ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?\r$/;
const BEGINNING = 'HTTP/1.';

/** `text`: what has come so far, one character per byte. */
export const readStatusLine = (text: string): StatusLine => {
  const end = text.indexOf('\n');
  if (end >= 0) {
    const status = WHOLE.exec(text.slice(0, end))?.[1];
    return status === undefined ? 'not-http' : { status: Number(status) };
  }
  // What cannot become a status line any more is not waited for.
  const isPromising = BEGINNING.startsWith(text.slice(0, BEGINNING.length));
  return isPromising && text.length < CLIENT_LIMITS.PROBE_STATUS_LINE_MAX_BYTES ? 'unfinished' : 'not-http';
};

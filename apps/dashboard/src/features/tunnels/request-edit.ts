// Converts a captured request to an editable draft, and the draft to the changes sent to the API. Only changed parts are sent, so that
// the rest of the replay is byte-identical. Pure functions.
import type { CapturedRequest, ReplayEdit } from '@tunnel/contract';
import { headerLines } from './request-copy.ts';

export interface RequestDraft {
  readonly method: string;
  readonly path: string;
  /** Headers of the request, one `name: value` per line. */
  readonly headers: string;
  /** Body of the request. Null if the body is not text and so cannot be edited. */
  readonly body: string | null;
}

/** Headers hidden from the draft, because they are set automatically for every request. */
const SET_FOR_YOU: ReadonlySet<string> = new Set([
  ...['content-length', 'connection', 'keep-alive', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'expect'],
]);

export const draftFromRequest = (request: CapturedRequest): RequestDraft => {
  const { method, path, request_headers, request_body, request_size } = request;
  const shown = Object.entries(request_headers).filter(([name]) => !SET_FOR_YOU.has(name));
  const body = request_size === 0 ? '' : request_body;
  return { method, path, headers: headerLines(Object.fromEntries(shown)), body: body === null ? null : laidOut(body) };
};

/** Indents single-line JSON. JSON is left unchanged if parsing would alter it, as with large numbers and repeated names. */
const laidOut = (text: string): string => {
  try {
    const value: unknown = JSON.parse(text);
    return JSON.stringify(value) === text ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
};

export type DraftResult =
  | { readonly kind: 'edit'; readonly edit: ReplayEdit }
  | { readonly kind: 'problem'; readonly field: 'method' | 'path' | 'headers'; readonly text: string };

/** Returns the changes of a draft, or an error message for a field. The changes are empty if the draft is unchanged. */
export const readDraft = (request: CapturedRequest, draft: RequestDraft): DraftResult => {
  const before = draftFromRequest(request);
  const method = draft.method.trim().toUpperCase();
  const path = encoded(draft.path.trim());
  if (!/^[!#$%&'*+\-.^_`|~\w]+$/.test(method)) return problem('method', 'Enter a method such as POST.');
  if (!path.startsWith('/')) return problem('path', 'The path must start with /.');
  const headers = readLines(draft.headers);
  if (typeof headers === 'string') return problem('headers', headers);
  const body = draft.body === null || draft.body === before.body ? undefined : withLineEnds(draft.body, request);
  return {
    kind: 'edit',
    edit: {
      ...(method === request.method ? {} : { method }),
      ...(path === request.path ? {} : { path }),
      ...(draft.headers === before.headers ? {} : { headers }),
      ...(body === undefined ? {} : { body }),
    },
  };
};

const problem = (field: 'method' | 'path' | 'headers', text: string): DraftResult => ({ kind: 'problem', field, text });

/** Percent-encodes characters that a request line cannot contain, like a browser's address bar. */
const encoded = (path: string): string => path.replace(/[^\x21-\x7e]+|#/gu, (text) => encodeURIComponent(text));

const readLines = (text: string): [string, string][] | string => {
  const headers: [string, string][] = [];
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue;
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).trim();
    if (colon < 1 || name === '') return `Use the form name: value, not '${line.trim().slice(0, 40)}'.`;
    headers.push([name, line.slice(colon + 1).trim()]);
  }
  return headers;
};

/** Restores CRLF line ends if the original body contained CRLF. HTML text fields use \n only, but multipart forms require CRLF. */
const withLineEnds = (text: string, { request_body }: CapturedRequest): string =>
  request_body?.includes('\r\n') === true ? text.replace(/\r?\n/g, '\r\n') : text;

// A captured request as a person edits it, and what is sent of that: only what was changed, so that the rest stays to the byte. Pure.
import type { CapturedRequest, ReplayEdit } from '@tunnel/contract';
import { headerLines } from './request-copy.ts';

export interface RequestDraft {
  readonly method: string;
  readonly path: string;
  /** One a line: `name: value`. */
  readonly headers: string;
  /** null: it is not text, and cannot be edited. */
  readonly body: string | null;
}

/** Set anew for each request that is sent. */
const SET_FOR_YOU: ReadonlySet<string> = new Set([
  ...['content-length', 'connection', 'keep-alive', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'expect'],
]);

export const draftFromRequest = (request: CapturedRequest): RequestDraft => {
  const { method, path, request_headers, request_body, request_size } = request;
  const shown = Object.entries(request_headers).filter(([name]) => !SET_FOR_YOU.has(name));
  const body = request_size === 0 ? '' : request_body;
  return { method, path, headers: headerLines(Object.fromEntries(shown)), body: body === null ? null : laidOut(body) };
};

/** JSON on one line becomes readable, unless a number or a repeated name of it would be lost on the way. */
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

/** An empty edit: nothing was changed. */
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

/** As an address bar does it: what no request line can have is percent-encoded. */
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

/** A text field knows \n alone; a form of parts needs the ends of lines that it had. */
const withLineEnds = (text: string, { request_body }: CapturedRequest): string =>
  request_body?.includes('\r\n') === true ? text.replace(/\r?\n/g, '\r\n') : text;

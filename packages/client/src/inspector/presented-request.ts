// How the inspector's page sees tunnels and requests: without secrets, with the curl command of each request.
import {
  type CapturedBody,
  fieldValueOf,
  type HeaderField,
  readableBody,
  redactFields,
  redactUrl,
} from '@tunnel/http1';
import { edgeAnswerText } from '../requests/edge-answer-text.ts';
import { BODY_BOUNDS } from '../requests/replay.ts';
import type { RequestRecord } from '../requests/request-record.ts';
import type { Tunnel } from '../tunnels/tunnel.ts';

export const presentTunnel = ({ name, publicUrl, local, state }: Tunnel) => ({
  name,
  state,
  public_url: publicUrl,
  local,
});

export const presentSummary = (record: RequestRecord) => ({
  id: record.id,
  tunnel: record.tunnel.name,
  at: new Date(record.at).toISOString(),
  method: record.method,
  path: record.shownPath,
  state: record.state,
  status: record.status,
  duration_ms: record.state === 'running' ? null : rounded(record.durationMs),
  request_bytes: record.requestBody.bytes,
  response_bytes: record.responseBody.bytes,
  replay_of: record.replayOf,
  edited: record.isEdited,
  answered_by: answeredBy(record),
});

/** The edge, and why; null: the service answered. */
const answeredBy = ({ edgeAnswer }: RequestRecord) =>
  edgeAnswer === null ? null : { code: edgeAnswer.code, rule: edgeAnswer.rule, reason: edgeAnswerText(edgeAnswer) };

/** Why it cannot be sent again; null: it can. `asksEdge`: this client can have the edge send what only the edge has. */
export const replayProblemOf = (record: RequestRecord, asksEdge: boolean): string | null =>
  record.replayProblem === null && record.isKeptAtEdge && !asksEdge
    ? `captured only on the edge; replay it with: tunnel replay ${record.id}`
    : record.replayProblem;

export const presentDetail = async (record: RequestRecord, asksEdge = false) => {
  const { requestHead, responseHead } = record;
  const headers = headersOf(requestHead?.headers);
  const body = await bodyOf(requestHead?.headers, record.requestBody);
  // With the mark that an edit may leave in its place.
  const path = requestHead === null ? record.shownPath : redactUrl(requestHead.path);
  return {
    ...presentSummary(record),
    path,
    request: { version: requestHead?.version ?? null, headers, body },
    response:
      responseHead === null
        ? null
        : {
            version: responseHead.version,
            reason: responseHead.reason,
            headers: headersOf(responseHead.headers),
            body: await bodyOf(responseHead.headers, record.responseBody),
          },
    user: fieldValueOf(requestHead?.headers ?? [], 'x-tunnel-user'),
    replay_problem: replayProblemOf(record, asksEdge),
    /** Its head and body are at the edge alone, so it cannot be edited here. */
    is_at_edge: record.isKeptAtEdge,
    curl: curlCommand({ method: record.method, origin: record.tunnel.publicUrl, path, headers, body }),
  };
};

const headersOf = (headers: readonly HeaderField[] = []): [string, string][] =>
  redactFields(headers.map(({ name, value }) => ({ name, value }))).map(({ name, value }) => [name, value]);

/** `text` null: nothing came, or it is not text. */
const bodyOf = async (headers: readonly HeaderField[] = [], body: CapturedBody) => ({
  bytes: body.bytes,
  text: await readableBody(
    {
      kept: body.kept,
      contentType: fieldValueOf(headers, 'content-type'),
      contentEncoding: fieldValueOf(headers, 'content-encoding'),
    },
    BODY_BOUNDS,
  ),
  is_whole: body.isWhole,
});

const rounded = (ms: number): number => Math.round(ms * 10) / 10;

export interface CurlSource {
  readonly method: string;
  /** Public URL of its tunnel. */
  readonly origin: string;
  readonly path: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: { readonly bytes: number; readonly text: string | null; readonly is_whole: boolean };
}

/** Of a connection, made by curl itself, or added by the edge once more. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  ...['host', 'content-length', 'connection', 'keep-alive', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'expect'],
  ...['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-proto', 'x-real-ip'],
  ...['x-tunnel-user', 'x-tunnel-auth', 'x-tunnel-replay'],
]);

/** It was not kept as text or not whole, or cannot be typed: it has to be a file. */
const BODY_FILE = 'body.bin';

/** For a POSIX shell. */
export const curlCommand = ({ method, origin, path, headers, body }: CurlSource): string => {
  const text = body.is_whole && isTypeable(body.text) ? body.text : null;
  const words = [`curl ${quoted(origin.replace(/\/+$/, '') + path)}`];
  // Else curl would take brackets for a pattern of many URLs, and dots for a way up.
  if (/[[\]{}]/.test(path)) words.push('--globoff');
  if (/\/\.\.?(?:[/?]|$)/.test(path)) words.push('--path-as-is');
  if (method === 'HEAD') words.push('--head');
  else if (method !== (body.bytes > 0 ? 'POST' : 'GET')) words.push(`-X ${quoted(method)}`);
  for (const [name, value] of headers) {
    const lower = name.toLowerCase();
    if (LEFT_OUT.has(lower) || (lower === 'content-encoding' && text !== null)) continue;
    // A name with nothing behind its colon would tell curl to leave the field out.
    const line = value === '' ? `${name};` : `${name}: ${value}`;
    words.push(lower === 'accept-encoding' ? '--compressed' : `-H ${quoted(line)}`);
  }
  if (body.bytes > 0) words.push(text === null ? `--data-binary @${BODY_FILE}` : `--data-raw ${quoted(text)}`);
  return words.join(' \\\n  ');
};

/** In a terminal other control characters are keys: one of them could end the paste, and what follows would be a command. */
const isTypeable = (text: string | null): boolean => text !== null && !/[^\P{Cc}\t\r\n]/u.test(text);

const quoted = (text: string): string => (/^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

// Tunnels and requests as shown on the inspector's page: without secrets, and with a curl command per request.
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

/** Returns the edge's reason if the edge answered, or null if the service answered. */
const answeredBy = ({ edgeAnswer }: RequestRecord) =>
  edgeAnswer === null ? null : { code: edgeAnswer.code, rule: edgeAnswer.rule, reason: edgeAnswerText(edgeAnswer) };

/**
 * Returns the reason why a request cannot be replayed, or null. `asksEdge` means that this client can ask the edge to replay requests
 * captured only there.
 */
export const replayProblemOf = (record: RequestRecord, asksEdge: boolean): string | null =>
  record.replayProblem === null && record.isKeptAtEdge && !asksEdge
    ? `captured only on the edge; replay it with: tunnel replay ${record.id}`
    : record.replayProblem;

export const presentDetail = async (record: RequestRecord, asksEdge = false) => {
  const { requestHead, responseHead } = record;
  const headers = headersOf(requestHead?.headers);
  const body = await bodyOf(requestHead?.headers, record.requestBody);
  // The redacted URL contains a placeholder, which an edit may leave in place.
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
    /** True if head and body are only at the edge, so the request cannot be edited here. */
    is_at_edge: record.isKeptAtEdge,
    curl: curlCommand({ method: record.method, origin: record.tunnel.publicUrl, path, headers, body }),
  };
};

const headersOf = (headers: readonly HeaderField[] = []): [string, string][] =>
  redactFields(headers.map(({ name, value }) => ({ name, value }))).map(({ name, value }) => [name, value]);

/** Formats a body. `text` is null if nothing arrived or the body is not text. */
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
  /** Public URL of the tunnel. */
  readonly origin: string;
  readonly path: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: { readonly bytes: number; readonly text: string | null; readonly is_whole: boolean };
}

/** Headers of the connection, headers set by curl, and headers added by the edge again. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  ...['host', 'content-length', 'connection', 'keep-alive', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'expect'],
  ...['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-proto', 'x-real-ip'],
  ...['x-tunnel-user', 'x-tunnel-auth', 'x-tunnel-replay'],
]);

/** File name in the curl command for a body that is not text, incomplete, or cannot be typed in a terminal. */
const BODY_FILE = 'body.bin';

/** Returns a curl command for a POSIX shell that repeats the request. */
export const curlCommand = ({ method, origin, path, headers, body }: CurlSource): string => {
  const text = body.is_whole && isTypeable(body.text) ? body.text : null;
  const words = [`curl ${quoted(origin.replace(/\/+$/, '') + path)}`];
  // Without these options, curl would expand brackets in the path as URL patterns and resolve its dots.
  if (/[[\]{}]/.test(path)) words.push('--globoff');
  if (/\/\.\.?(?:[/?]|$)/.test(path)) words.push('--path-as-is');
  if (method === 'HEAD') words.push('--head');
  else if (method !== (body.bytes > 0 ? 'POST' : 'GET')) words.push(`-X ${quoted(method)}`);
  for (const [name, value] of headers) {
    const lower = name.toLowerCase();
    if (LEFT_OUT.has(lower) || (lower === 'content-encoding' && text !== null)) continue;
    // An empty header value is written with a semicolon, because curl omits a field with nothing after the colon.
    const line = value === '' ? `${name};` : `${name}: ${value}`;
    words.push(lower === 'accept-encoding' ? '--compressed' : `-H ${quoted(line)}`);
  }
  if (body.bytes > 0) words.push(text === null ? `--data-binary @${BODY_FILE}` : `--data-raw ${quoted(text)}`);
  return words.join(' \\\n  ');
};

/** Rejects other control characters, which act as keys in a terminal: they could end a paste and turn the rest into a command. */
const isTypeable = (text: string | null): boolean => text !== null && !/[^\P{Cc}\t\r\n]/u.test(text);

const quoted = (text: string): string => (/^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

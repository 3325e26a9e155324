// What the inspector's page can ask for, how records look to it, and how it is told what has changed. Who may ask was decided before.
import type { ServerResponse } from 'node:http';
import { type CapturedBody, readableBody } from '@tunnel/capture';
import { fieldValueOf, type HeaderField, redactFields } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { Clock, Timer } from '@tunnel/runtime';
import { DialFailed } from '../forward/local-service.ts';
import { CLIENT_LIMITS } from '../limits.ts';
import type { RequestRecord } from '../requests/request-record.ts';
import type { RequestReporter, RequestStore } from '../requests/request-reporter.ts';
import type { Tunnel } from '../tunnel.ts';
import { PAGE_STYLE, pageHtml } from './page.ts';
import { PAGE_SCRIPT } from './page-script.ts';

export interface RouteDeps {
  readonly token: string;
  readonly store: RequestStore;
  readonly tunnels: () => readonly Tunnel[];
  readonly replay: (record: RequestRecord) => Promise<string>;
}

export type Answer =
  | { readonly kind: 'text'; readonly status: number; readonly type: string; readonly text: string }
  | { readonly kind: 'events' };

const text = (type: string, body: string): Answer => ({
  kind: 'text',
  status: 200,
  type: `${type}; charset=utf-8`,
  text: body,
});

export const json = (status: number, value: object): Answer => ({
  kind: 'text',
  status,
  type: 'application/json; charset=utf-8',
  text: JSON.stringify(value),
});

const NOT_FOUND = json(404, { error: 'Not found' });

export const answerTo = async (method: string, path: string, deps: RouteDeps): Promise<Answer> => {
  if (method === 'POST') return replayOf(path, deps);
  switch (path) {
    case '/':
      return text('text/html', pageHtml(deps.token));
    case '/page.css':
      return text('text/css', PAGE_STYLE);
    case '/page.js':
      return text('text/javascript', PAGE_SCRIPT);
    case '/api/events':
      return { kind: 'events' };
    case '/api/requests':
      return json(200, { tunnels: deps.tunnels().map(presentTunnel), requests: deps.store.list().map(presentSummary) });
    default: {
      const record = recordAt(path, '', deps);
      return record === undefined ? NOT_FOUND : json(200, await presentDetail(record));
    }
  }
};

const replayOf = async (path: string, deps: RouteDeps): Promise<Answer> => {
  const record = recordAt(path, '/replay', deps);
  if (record === undefined) return NOT_FOUND;
  if (record.replayProblem !== null) return json(409, { error: `it cannot be sent again: ${record.replayProblem}` });
  try {
    return json(202, { id: await deps.replay(record) });
  } catch (error) {
    if (error instanceof DialFailed) return json(502, { error: error.fault.message });
    if (error instanceof Fault) return json(409, { error: error.message });
    throw error;
  }
};

const recordAt = (path: string, tail: string, { store }: RouteDeps): RequestRecord | undefined => {
  const id = /^\/api\/requests\/(req_\w{1,40})(\/replay)?$/.exec(path);
  return id === null || (id[2] ?? '') !== tail ? undefined : store.get(id[1] ?? '');
};

const presentTunnel = ({ name, publicUrl, local, state }: Tunnel) => ({
  name,
  state,
  public_url: publicUrl,
  local,
});

const presentSummary = (record: RequestRecord) => ({
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
});

const presentDetail = async (record: RequestRecord) => ({
  ...presentSummary(record),
  request: {
    version: record.requestHead?.version ?? null,
    headers: headersOf(record.requestHead?.headers),
    body: await bodyOf(record.requestHead?.headers, record.requestBody),
  },
  response:
    record.responseHead === null
      ? null
      : {
          version: record.responseHead.version,
          reason: record.responseHead.reason,
          headers: headersOf(record.responseHead.headers),
          body: await bodyOf(record.responseHead.headers, record.responseBody),
        },
  replay_problem: record.replayProblem,
});

const headersOf = (headers: readonly HeaderField[] = []): [string, string][] =>
  redactFields(headers.map(({ name, value }) => ({ name, value }))).map(({ name, value }) => [name, value]);

const BODY_BOUNDS = {
  shownBytes: CLIENT_LIMITS.INSPECTOR_BODY_MAX_BYTES,
  unpackedBytes: 8 * CLIENT_LIMITS.INSPECTOR_BODY_MAX_BYTES,
};

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

const EVERY_MS = 100;

/** Tells open pages what has changed, a few times a second at most, and drops a page that does not read. */
export class LiveEvents {
  readonly #deps: { readonly requests: RequestReporter; readonly store: RequestStore; readonly clock: Clock };
  readonly #pages = new Set<ServerResponse>();
  readonly #changed = new Set<string>();
  #timer: Timer | null = null;
  #stopListening: (() => void) | null = null;

  constructor(deps: { readonly requests: RequestReporter; readonly store: RequestStore; readonly clock: Clock }) {
    this.#deps = deps;
  }

  add(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.write('retry: 1000\n\nevent: hello\ndata: {}\n\n');
    this.#pages.add(response);
    this.#stopListening ??= this.#deps.requests.on(({ id }) => this.#note(id));
    response.on('close', () => this.#remove(response));
  }

  close(): void {
    for (const page of [...this.#pages]) {
      this.#remove(page);
      page.destroy();
    }
  }

  #remove(page: ServerResponse): void {
    this.#pages.delete(page);
    if (this.#pages.size > 0) return;
    this.#stopListening?.();
    this.#stopListening = null;
    this.#timer?.cancel();
    this.#timer = null;
    this.#changed.clear();
  }

  #note(id: string): void {
    this.#changed.add(id);
    this.#timer ??= this.#deps.clock.setTimeout(() => this.#flush(), EVERY_MS);
  }

  #flush(): void {
    this.#timer = null;
    // What has left the store already is not worth telling.
    const records = [...this.#changed].flatMap((id) => this.#deps.store.get(id) ?? []);
    this.#changed.clear();
    if (records.length === 0) return;
    const message = `event: requests\ndata: ${JSON.stringify(records.map(presentSummary))}\n\n`;
    for (const page of [...this.#pages]) {
      if (page.writableLength > CLIENT_LIMITS.INSPECTOR_LAG_MAX_BYTES) page.destroy();
      else page.write(message);
    }
  }
}

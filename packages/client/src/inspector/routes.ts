// The inspector's API: routes, the format of records, and live events. Access was checked before.
import type { ServerResponse } from 'node:http';
import { Fault } from '@tunnel/errors';
import type { RequestEdit } from '@tunnel/http1';
import type { Clock, Timer } from '@tunnel/runtime';
import { DialFailed } from '../local/local-service.ts';
import type { RequestRecord } from '../requests/request-record.ts';
import type { RequestReporter } from '../requests/request-reporter.ts';
import type { RequestStore } from '../requests/request-store.ts';
import type { Tunnel } from '../tunnels/tunnel.ts';
import type { RequestAtEdge } from './inspector.ts';
import { pageHtml } from './page.ts';
import { PAGE_SCRIPT } from './page-script.ts';
import { PAGE_STYLE } from './page-style.ts';
import { presentDetail, presentSummary, presentTunnel, replayProblemOf } from './presented-request.ts';

/** Maximum bytes of events queued for one open page. A slower page is disconnected and loads again. */
const INSPECTOR_LAG_MAX_BYTES = 1024 * 1024;

export interface RouteDeps {
  readonly token: string;
  readonly store: RequestStore;
  readonly tunnels: () => readonly Tunnel[];
  readonly replay: (record: RequestRecord, edit: RequestEdit) => Promise<string>;
  /** Replays a request captured only by the edge. Null if this client cannot ask the edge. */
  readonly replayAtEdge: ((request: RequestAtEdge) => Promise<string>) | null;
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

/** Answers a request. `bodyText` resolves with null if the body is longer than an edit may be. */
export const answerTo = async (
  method: string,
  path: string,
  deps: RouteDeps,
  bodyText: () => Promise<string | null>,
): Promise<Answer> => {
  if (method === 'POST') return replayOf(path, deps, await bodyText());
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
      return record === undefined ? NOT_FOUND : json(200, await presentDetail(record, deps.replayAtEdge !== null));
    }
  }
};

const replayOf = async (path: string, deps: RouteDeps, body: string | null): Promise<Answer> => {
  const record = recordAt(path, '/replay', deps);
  if (record === undefined) return NOT_FOUND;
  if (body === null) return json(413, { error: 'the edited request is too long' });
  const edit = readEdit(body);
  if (edit === null) return json(400, { error: 'the edited request must have the form {method, path, headers, body}' });
  const problem = replayProblemOf(record, deps.replayAtEdge !== null);
  if (problem !== null) return json(409, { error: `the request cannot be replayed: ${problem}` });
  if (record.isKeptAtEdge && Object.keys(edit).length > 0) {
    return json(409, { error: 'only the edge has captured this request; edit it in the dashboard' });
  }
  try {
    return json(202, { id: await (record.isKeptAtEdge ? askEdge(record, deps) : deps.replay(record, edit)) });
  } catch (error) {
    if (error instanceof DialFailed) return json(502, { error: error.fault.message });
    if (error instanceof Fault) return json(400, { error: error.message });
    throw error;
  }
};

const askEdge = ({ id: requestId, tunnel }: RequestRecord, { replayAtEdge }: RouteDeps): Promise<string> => {
  if (replayAtEdge === null) throw new Fault('CLIENT_USAGE', { reason: 'only the edge has captured this request' });
  return replayAtEdge({ tunnelId: tunnel.tunnelId, requestId });
};

const EDITED = new Set(['method', 'path', 'headers', 'body']);

/** Parses an edit. Returns null for invalid input. An empty body means no change. */
const readEdit = (body: string): RequestEdit | null => {
  if (body === '') return {};
  try {
    const value: unknown = JSON.parse(body);
    return isEditForm(value) ? value : null;
  } catch {
    return null;
  }
};

const isEditForm = (value: unknown): value is RequestEdit => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { method = '', path = '', headers = [], body = '' } = value as Record<string, unknown>;
  return (
    Object.keys(value).every((name) => EDITED.has(name)) &&
    [method, path, body].every((part) => typeof part === 'string') &&
    Array.isArray(headers) &&
    headers.every(
      (field) => Array.isArray(field) && field.length === 2 && field.every((part) => typeof part === 'string'),
    )
  );
};

const recordAt = (path: string, tail: string, { store }: RouteDeps): RequestRecord | undefined => {
  const id = /^\/api\/requests\/(req_\w{1,40})(\/replay)?$/.exec(path);
  return id === null || (id[2] ?? '') !== tail ? undefined : store.get(id[1] ?? '');
};

const EVERY_MS = 100;

/** Sends changes to open pages, at most a few times per second, and disconnects a page that does not read. */
export class LiveEvents {
  readonly #options: { readonly requests: RequestReporter; readonly store: RequestStore; readonly clock: Clock };
  readonly #pages = new Set<ServerResponse>();
  readonly #changed = new Set<string>();
  #timer: Timer | null = null;
  #stopListening: (() => void) | null = null;

  constructor(options: { readonly requests: RequestReporter; readonly store: RequestStore; readonly clock: Clock }) {
    this.#options = options;
  }

  add(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.write('retry: 1000\n\nevent: hello\ndata: {}\n\n');
    this.#pages.add(response);
    this.#stopListening ??= this.#options.requests.on((event) => {
      if (event.type !== 'edge-answered-more') this.#note(event.id);
    });
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
    this.#timer ??= this.#options.clock.setTimeout(() => this.#flush(), EVERY_MS);
  }

  #flush(): void {
    this.#timer = null;
    // Requests already evicted from the store are not reported to the inspector's pages.
    const records = [...this.#changed].flatMap((id) => this.#options.store.get(id) ?? []);
    this.#changed.clear();
    if (records.length === 0) return;
    const message = `event: requests\ndata: ${JSON.stringify(records.map(presentSummary))}\n\n`;
    for (const page of [...this.#pages]) {
      if (page.writableLength > INSPECTOR_LAG_MAX_BYTES) page.destroy();
      else page.write(message);
    }
  }
}

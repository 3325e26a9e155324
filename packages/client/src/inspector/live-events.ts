// Tells open pages what has changed, a few times a second at most, and drops a page that does not read.
import type { ServerResponse } from 'node:http';
import type { Clock, Timer } from '@tunnel/runtime';
import { CLIENT_LIMITS } from '../limits.ts';
import type { RequestFeed } from '../requests/request-feed.ts';
import type { RequestLog } from '../requests/request-log.ts';
import { presentSummary } from './present.ts';

const EVERY_MS = 100;

export class LiveEvents {
  readonly #deps: { readonly feed: RequestFeed; readonly log: RequestLog; readonly clock: Clock };
  readonly #pages = new Set<ServerResponse>();
  readonly #changed = new Set<string>();
  #timer: Timer | null = null;
  #stopListening: (() => void) | null = null;

  constructor(deps: { readonly feed: RequestFeed; readonly log: RequestLog; readonly clock: Clock }) {
    this.#deps = deps;
  }

  add(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.write('retry: 1000\n\nevent: hello\ndata: {}\n\n');
    this.#pages.add(response);
    this.#stopListening ??= this.#deps.feed.on(({ id }) => this.#note(id));
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
    // What has left the log already is not worth telling.
    const records = [...this.#changed].flatMap((id) => this.#deps.log.get(id) ?? []);
    this.#changed.clear();
    if (records.length === 0) return;
    const message = `event: requests\ndata: ${JSON.stringify(records.map(presentSummary))}\n\n`;
    for (const page of [...this.#pages]) {
      if (page.writableLength > CLIENT_LIMITS.INSPECTOR_LAG_MAX_BYTES) page.destroy();
      else page.write(message);
    }
  }
}

// Reads a Server-Sent Events stream and keeps its events and comments in order.
import { get, type IncomingMessage } from 'node:http';
import type { GroupEvent } from '@tunnel/contract';
import type { Clock } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import type { Harness } from '../../system/harness.fixture.ts';

export interface FeedEvent {
  readonly event: string;
  readonly data: unknown;
  readonly id: string | undefined;
}

export class EventFeed {
  readonly events: FeedEvent[] = [];
  /** Comments of the stream, with their time of arrival. */
  readonly comments: { readonly text: string; readonly at: number }[] = [];
  readonly openedAt: number;
  ended = false;
  readonly #response: IncomingMessage;
  readonly #clock: Clock;
  #rest = '';

  constructor(response: IncomingMessage, clock: Clock) {
    this.#response = response;
    this.#clock = clock;
    this.openedAt = clock.monotonic();
    response.setEncoding('utf8');
    response.on('data', (text: string) => this.#read(text));
    for (const end of ['end', 'close', 'error']) {
      response.on(end, () => {
        this.ended = true;
      });
    }
  }

  /** Opens a stream. Resolves when the stream has begun, and rejects if the status is not 200. */
  static async open(harness: Harness, url: string, token: string): Promise<EventFeed> {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const request = get(url, { agent: false, headers: { authorization: `Bearer ${token}` } });
      request.on('response', resolve);
      request.on('error', reject);
    });
    harness.use({ close: async () => void response.destroy() });
    if (response.statusCode !== 200) throw new Error(`${url}: ${response.statusCode}`);
    return new EventFeed(response, harness.clock);
  }

  get type(): string | undefined {
    return this.#response.headers['content-type'];
  }

  /** Stops reading, so that the sender's buffers fill up. */
  pause(): void {
    this.#response.pause();
  }

  resume(): void {
    this.#response.resume();
  }

  get groupEvents(): GroupEvent[] {
    return this.events.filter(({ event }) => event === 'group_event').map(({ data }) => data as GroupEvent);
  }

  /** The health changes of the stream as pairs of tunnel id and health bit. */
  get changes(): [string, boolean][] {
    return this.groupEvents.map(({ tunnel_id, healthy }) => [tunnel_id, healthy]);
  }

  /** Waits for the given number of group events. */
  until(count: number): Promise<GroupEvent[]> {
    return eventually(() => {
      if (this.groupEvents.length < count) throw new Error(`${this.groupEvents.length} of ${count} events`);
      return this.groupEvents;
    });
  }

  #read(text: string): void {
    const blocks = (this.#rest + text).replaceAll('\r\n', '\n').split('\n\n');
    this.#rest = blocks.pop() ?? '';
    for (const block of blocks) this.#keep(block.split('\n'));
  }

  #keep(lines: readonly string[]): void {
    const field = (name: string): string | undefined =>
      lines
        .find((line) => line.startsWith(`${name}:`))
        ?.slice(name.length + 1)
        .trim();
    for (const line of lines.filter((one) => one.startsWith(':'))) {
      this.comments.push({ text: line.slice(1).trim(), at: this.#clock.monotonic() });
    }
    const data = field('data');
    if (data !== undefined) this.events.push({ event: field('event') ?? '', data: JSON.parse(data), id: field('id') });
  }
}

// A consumer of Server-Sent Events for tests: collects the received events in order.
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';

export interface SeenEvent {
  readonly id?: string;
  readonly event?: string;
  readonly data?: Record<string, unknown>;
  readonly retry?: string;
  readonly comment?: string;
}

export class SeenEvents {
  readonly events: SeenEvent[] = [];
  /** Resolves when the stream ends. */
  readonly ended: Promise<void>;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #isEnded = false;

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
    this.ended = this.#readAll().finally(() => {
      this.#isEnded = true;
    });
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** The received events of type group_event, without comments and the retry delay. */
  get changes(): SeenEvent[] {
    return this.events.filter(({ event }) => event === 'group_event');
  }

  async until(count: number): Promise<readonly SeenEvent[]> {
    await eventually(() => expect(this.events.length).toBeGreaterThanOrEqual(count));
    return this.events;
  }

  leave(): Promise<void> {
    return this.#reader.cancel();
  }

  async #readAll(): Promise<void> {
    const decoder = new TextDecoder();
    let text = '';
    for (;;) {
      const { done, value } = await this.#reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      this.events.push(...blocks.map(parseBlock));
    }
  }
}

const parseBlock = (block: string): SeenEvent => {
  const fields: Record<string, unknown> = {};
  for (const line of block.split('\n')) {
    const colon = line.indexOf(': ');
    const name = line.slice(0, colon);
    const value = line.slice(colon + 2);
    fields[name === '' ? 'comment' : name] = name === 'data' ? JSON.parse(value) : value;
  }
  return fields;
};

// Stream of Server-Sent Events to a single consumer: a bounded, ordered queue, and a body that the consumer reads at its own pace.

/** Delay before a consumer reconnects after the end of its stream. Sent to the consumer in the `retry` field. */
const SSE_RETRY_MS = 2000;
/** Maximum events queued for a consumer. Further events are dropped, and the consumer is notified of the number. */
export const SSE_QUEUE_MAX = 256;

/** Marks a position in the queue where events were dropped. */
interface Lag {
  missed: number;
}

const ENCODER = new TextEncoder();
const PING = ': ping\n\n';

export class EventStream {
  /**
   * Response body. Produces data only after the socket has accepted all previous data, so a consumer that does not read costs no more
   * memory than its queue.
   */
  readonly body: ReadableStream<Uint8Array>;
  readonly #onClosed: () => void;
  readonly #waiting: (string | Lag)[] = [];
  /** First bytes, sent at once: proxies forward the response, fetch() resolves, and the consumer learns the reconnect delay. */
  #opening: string | null = `retry: ${SSE_RETRY_MS}\n\n`;
  #state: 'open' | 'ending' | 'closed' = 'open';
  #pingDue = false;
  #wake: (() => void) | null = null;

  constructor(onClosed: () => void) {
    this.#onClosed = onClosed;
    this.body = new ReadableStream<Uint8Array>(
      { pull: (controller) => this.#pull(controller), cancel: () => this.cut() },
      { highWaterMark: 0 },
    );
  }

  /** Queues a complete event. If the queue is full, drops the event and marks the gap at the event's position for the consumer. */
  send(text: string): void {
    if (this.#state !== 'open') return;
    const last = this.#waiting.at(-1);
    if (this.#waiting.length < SSE_QUEUE_MAX) this.#waiting.push(text);
    else if (typeof last === 'object') last.missed += 1;
    else this.#waiting.push({ missed: 1 });
    this.#wake?.();
  }

  /** Requests a keep-alive comment. Not sent if events are queued, because any data keeps the connection alive. */
  ping(): void {
    this.#pingDue = true;
    this.#wake?.();
  }

  /** Ends the stream after the consumer has read all queued events. */
  end(): void {
    if (this.#state === 'open') this.#state = 'ending';
    this.#wake?.();
  }

  /** Ends the stream at once and discards all queued events. */
  cut(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#waiting.length = 0;
    this.#wake?.();
    this.#onClosed();
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    let text = this.#next();
    while (text === null && this.#state === 'open') {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = null;
      text = this.#next();
    }
    if (text !== null) controller.enqueue(ENCODER.encode(text));
    else {
      this.cut();
      close(controller);
    }
  }

  #next(): string | null {
    if (this.#state === 'closed') return null;
    const opening = this.#opening;
    this.#opening = null;
    if (opening !== null) return opening;
    const first = this.#waiting.shift();
    if (first !== undefined) {
      this.#pingDue = false;
      return typeof first === 'string' ? first : `event: lagged\ndata: ${JSON.stringify({ missed: first.missed })}\n\n`;
    }
    if (!this.#pingDue) return null;
    this.#pingDue = false;
    return PING;
  }
}

/** Closes the body. If its reader has canceled, the body is closed already, and the exception is ignored. */
const close = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
  try {
    controller.close();
  } catch {}
};

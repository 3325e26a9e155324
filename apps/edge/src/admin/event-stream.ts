// One consumer of Server-Sent Events: what waits for it, in order and bounded, and the body that it reads at its own pace.

/** after which a consumer is told to come back when its stream has ended */
const SSE_RETRY_MS = 2000;
/** events that wait for one consumer; the next ones are dropped, and it is told how many */
export const SSE_QUEUE_MAX = 256;

/** Events that were dropped at this point of the order. */
interface Lag {
  missed: number;
}

const ENCODER = new TextEncoder();
const PING = ': ping\n\n';

export class EventStream {
  /** Asked for more only when the socket has taken what it was given: a consumer that does not read costs its queue. */
  readonly body: ReadableStream<Uint8Array>;
  readonly #onClosed: () => void;
  readonly #waiting: (string | Lag)[] = [];
  /** First bytes at once: proxies and fetch() resolve, and the consumer knows when to come back. */
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

  /** `text` is a whole event. When the queue is full it is dropped, and the consumer is told so where it would have stood. */
  send(text: string): void {
    if (this.#state !== 'open') return;
    const last = this.#waiting.at(-1);
    if (this.#waiting.length < SSE_QUEUE_MAX) this.#waiting.push(text);
    else if (typeof last === 'object') last.missed += 1;
    else this.#waiting.push({ missed: 1 });
    this.#wake?.();
  }

  /** Only says what silence would not: with events waiting there is no need. */
  ping(): void {
    this.#pingDue = true;
    this.#wake?.();
  }

  /** Ends when the consumer has read what waits. */
  end(): void {
    if (this.#state === 'open') this.#state = 'ending';
    this.#wake?.();
  }

  /** Ends now; what waits is nobody's any more. */
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

/** A body that its reader cancelled is closed already. */
const close = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
  try {
    controller.close();
  } catch {}
};

// Stream of changes for an edge: a response body that is filled only as fast as the edge reads.
import type { EdgeChange } from '@tunnel/contract';

/** Number of unread keep-alive lines after which a stream is closed. */
const CHANGES_UNREAD_MAX = 3;

export interface ChangeStreamEvents {
  /** Called when the edge has read the sent data, if the stream was skipped meanwhile. */
  readonly onCatchUp: () => void;
  readonly onGone: (stream: ChangeStream) => void;
}

const encoder = new TextEncoder();

export class ChangeStream {
  readonly edgeId: string;
  readonly body: ReadableStream<Uint8Array>;
  /** Number of the last change sent to the edge. */
  cursor: number;
  /** True once the stream's start number was checked: the changes after the number are still stored, or the edge was reset. */
  checked = false;
  /** Region of the stream's edge; empty until known. */
  regionId = '';
  #passedOver = false;
  readonly #events: ChangeStreamEvents;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  #unread = 0;

  constructor(edgeId: string, since: number, events: ChangeStreamEvents) {
    this.edgeId = edgeId;
    this.cursor = since;
    this.#events = events;
    this.body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
      },
      pull: () => {
        if (!this.#passedOver) return;
        this.#passedOver = false;
        events.onCatchUp();
      },
      cancel: () => this.#leave(),
    });
  }

  /** True if the edge has read almost all data sent on the stream. */
  get isReady(): boolean {
    return (this.#controller?.desiredSize ?? 0) > 0;
  }

  /** Marks the stream as skipped: once the edge has read the sent data, `onCatchUp` is called. */
  passOver(): void {
    this.#passedOver = true;
  }

  send(changes: readonly EdgeChange[]): void {
    if (changes.length === 0) return;
    this.#controller?.enqueue(encoder.encode(changes.map((change) => `${JSON.stringify(change)}\n`).join('')));
  }

  /**
   * Sends a keep-alive line. A stream that is not read is closed after CHANGES_UNREAD_MAX lines; the edge reconnects and requests the
   * missed changes.
   */
  alive(): void {
    if (this.isReady) {
      this.#unread = 0;
      this.send([{ kind: 'alive', id: this.cursor }]);
      return;
    }
    this.#unread += 1;
    if (this.#unread >= CHANGES_UNREAD_MAX) this.end();
  }

  /** Ends the stream, so that the edge sees a complete response. */
  end(): void {
    try {
      this.#controller?.close();
    } catch {
      // The edge has already closed the stream.
    }
    this.#leave();
  }

  #leave(): void {
    if (this.#controller === null) return;
    this.#controller = null;
    this.#events.onGone(this);
  }
}

// One edge's stream of changes: a body that is filled only as fast as the edge reads it.
import type { EdgeChange } from '@tunnel/contract';

/** Unread keep-alive lines after which a stream is cut. */
const CHANGES_UNREAD_MAX = 3;

export interface ChangeStreamEvents {
  /** It has read what it had, and was passed over meanwhile. */
  readonly onCatchUp: () => void;
  readonly onGone: (stream: ChangeStream) => void;
}

const encoder = new TextEncoder();

export class ChangeStream {
  readonly edgeId: string;
  readonly body: ReadableStream<Uint8Array>;
  /** Changes up to this one were sent. */
  cursor: number;
  /** The number it came with is one to go on from. */
  checked = false;
  /** Of its edge; empty until it is known. */
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

  /** It has read what it was sent, or as good as. */
  get isReady(): boolean {
    return (this.#controller?.desiredSize ?? 0) > 0;
  }

  /** There may be something for it once it has read what it has. */
  passOver(): void {
    this.#passedOver = true;
  }

  send(changes: readonly EdgeChange[]): void {
    if (changes.length === 0) return;
    this.#controller?.enqueue(encoder.encode(changes.map((change) => `${JSON.stringify(change)}\n`).join('')));
  }

  /** A sign of life. A stream that nobody reads is cut: its edge comes back and asks for all since. */
  alive(): void {
    if (this.isReady) {
      this.#unread = 0;
      this.send([{ kind: 'alive', id: this.cursor }]);
      return;
    }
    this.#unread += 1;
    if (this.#unread >= CHANGES_UNREAD_MAX) this.end();
  }

  /** Ends it in order. */
  end(): void {
    try {
      this.#controller?.close();
    } catch {
      // The other side was first.
    }
    this.#leave();
  }

  #leave(): void {
    if (this.#controller === null) return;
    this.#controller = null;
    this.#events.onGone(this);
  }
}

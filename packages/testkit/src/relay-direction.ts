// One direction of the relay: chunks wait for their delay, and while frozen nothing passes, not even a FIN.
import type { Socket } from 'node:net';

/** What may wait inside one direction before its sender is paused, as a long link would hold in flight. */
const IN_FLIGHT_MAX_BYTES = 4 * 1024 * 1024;

interface InFlight {
  readonly dueAt: number;
  /** null: the FIN. */
  readonly chunk: Buffer | null;
}

export class RelayDirection {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #delayMs: () => number;
  readonly #queue: InFlight[] = [];
  #queuedBytes = 0;
  #timer: NodeJS.Timeout | null = null;
  #frozen = false;
  #blocked = false;

  constructor(from: Socket, to: Socket, delayMs: () => number) {
    this.#from = from;
    this.#to = to;
    this.#delayMs = delayMs;
    from.on('data', (chunk) => this.#take(chunk));
    from.on('end', () => this.#take(null));
    to.on('drain', () => {
      this.#blocked = false;
      this.#run();
    });
  }

  freeze(): void {
    this.#frozen = true;
    this.#from.pause();
  }

  thaw(): void {
    this.#frozen = false;
    this.#run();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#queue.length = 0;
  }

  #take(chunk: Buffer | null): void {
    this.#queue.push({ dueAt: performance.now() + this.#delayMs(), chunk });
    this.#queuedBytes += chunk?.length ?? 0;
    this.#run();
  }

  #run(): void {
    if (this.#frozen) return;
    while (!this.#blocked) {
      const first = this.#queue[0];
      if (first === undefined) break;
      const waitMs = first.dueAt - performance.now();
      if (waitMs > 0) {
        this.#timer ??= setTimeout(() => this.#onTimer(), waitMs);
        break;
      }
      this.#queue.shift();
      this.#pass(first.chunk);
    }
    if (this.#blocked || this.#queuedBytes > IN_FLIGHT_MAX_BYTES) this.#from.pause();
    else this.#from.resume();
  }

  #pass(chunk: Buffer | null): void {
    if (chunk === null) {
      this.#to.end();
      return;
    }
    this.#queuedBytes -= chunk.length;
    if (!this.#to.destroyed && !this.#to.write(chunk)) this.#blocked = true;
  }

  #onTimer(): void {
    this.#timer = null;
    this.#run();
  }
}

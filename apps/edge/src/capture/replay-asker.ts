// Receives the response to a replay: into the capture, within a time and a size, and then tells whoever waits.
import type { ChunkedForm, ResponseHead } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { MuxStream } from '@tunnel/mux';
import { LIMITS, type StreamReason } from '@tunnel/protocol';
import type { Clock, Timer } from '@tunnel/runtime';
import type { Asker, Exchange } from '../ingress/http/exchange.ts';
import type { CaptureEnd, CaptureRecorder } from './recorder.ts';

const UNASKED: StreamReason = { code: 'cancelled', text: 'a replay does not switch protocols' };

export class ReplayAsker implements Asker {
  readonly bodyForm: ChunkedForm = 'data';
  /** Settles with the end of the response, or its cut; rejects with a fault when there was none at all. */
  readonly done: Promise<void>;
  readonly #recorder: CaptureRecorder;
  readonly #clock: Clock;
  #exchange: Exchange | null = null;
  #timer: Timer | null = null;
  #leftBytes: number = LIMITS.REPLAY_RESPONSE_MAX_BYTES;
  #resolve: () => void = () => {};
  #reject: (fault: Fault) => void = () => {};

  constructor(recorder: CaptureRecorder, clock: Clock) {
    this.#recorder = recorder;
    this.#clock = clock;
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // It may fail before anyone awaits it.
    this.done.catch(() => {});
  }

  begin(exchange: Exchange): void {
    this.#exchange = exchange;
    this.#timer = this.#clock.setTimeout(() => this.#cut(), LIMITS.REPLAY_TIMEOUT_MS);
  }

  #cut(): void {
    this.#exchange?.abort();
    if (this.#recorder.status !== 0) this.#finish('aborted');
    else this.#finish(new Fault('LOCAL_TIMEOUT', { seconds: LIMITS.REPLAY_TIMEOUT_MS / 1000 }));
  }

  onInterim(): void {}

  onHead(head: ResponseHead): void {
    this.#recorder.onResponseHead(head, this.bodyForm);
  }

  onBody(bytes: Buffer, start: number, end: number): boolean {
    this.#recorder.onResponseBody(bytes, start, end);
    this.#leftBytes -= end - start;
    return true;
  }

  onText(): void {}
  onTrailers(): void {}

  onTurn(): void {
    if (this.#leftBytes < 0) this.#cut();
  }

  onDone(): void {
    this.#finish('complete');
  }

  onSwitched(head: ResponseHead, stream: MuxStream): void {
    stream.reset(UNASKED);
    this.#recorder.onResponseHead(head, this.bodyForm);
    this.#finish('aborted');
  }

  onFailed(fault: Fault): void {
    this.#finish(fault);
  }

  onBodyDrain(): void {}

  #finish(end: CaptureEnd): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#exchange = null;
    const hadAnswer = this.#recorder.status !== 0;
    this.#recorder.finish(this.#clock.monotonic(), end);
    if (end instanceof Fault && !hadAnswer) this.#reject(end);
    else this.#resolve();
  }
}

// How long the page takes to answer somebody, as the browser itself measures it: from the input to the next paint.
import type { Page } from 'playwright-core';

/** Long tasks hold up everything else; frames tell what the eye sees of it. */
const INSTALL = `(() => {
  const meter = { events: [], longTasks: [], frames: [], isRecording: false };
  globalThis.meter = meter;
  new PerformanceObserver((list) => meter.events.push(...list.getEntries().map(({ name, duration }) => ({ name, duration }))))
    .observe({ type: 'event', durationThreshold: 16, buffered: false });
  new PerformanceObserver((list) => meter.longTasks.push(...list.getEntries().map(({ duration }) => duration)))
    .observe({ type: 'longtask', buffered: false });
  let before = performance.now();
  const frame = (now) => {
    if (meter.isRecording) meter.frames.push(now - before);
    before = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})()`;

const TWO_FRAMES =
  'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))';

export interface Interaction {
  /** From the input to the paint after it; 0: less than the browser tells (16 ms). */
  readonly paintMs: number;
  /** The longest task of its time; 0: none above 50 ms. */
  readonly longTaskMs: number;
}

export interface Scrolling {
  readonly longTasks: number;
  readonly longestMs: number;
  /** Of the time between two frames. */
  readonly p95FrameMs: number;
}

export class PageMeter {
  readonly #page: Page;

  constructor(page: Page) {
    this.#page = page;
  }

  install(): Promise<void> {
    return this.#page.evaluate(INSTALL);
  }

  async interaction(act: () => Promise<void>): Promise<Interaction> {
    await this.#page.evaluate('meter.events.length = meter.longTasks.length = 0');
    await act();
    await this.#page.evaluate(TWO_FRAMES);
    return this.#page.evaluate<Interaction>(`({
      paintMs: Math.max(0, ...meter.events.map(({ duration }) => duration)),
      longTaskMs: Math.max(0, ...meter.longTasks),
    })`);
  }

  async scrolling(act: () => Promise<void>): Promise<Scrolling> {
    await this.#page.evaluate('meter.frames.length = meter.longTasks.length = 0; meter.isRecording = true');
    await act();
    return this.#page.evaluate<Scrolling>(`(() => {
      meter.isRecording = false;
      const frames = meter.frames.toSorted((one, other) => one - other);
      return {
        longTasks: meter.longTasks.length,
        longestMs: Math.max(0, ...meter.longTasks),
        p95FrameMs: frames[Math.floor(frames.length * 0.95)] ?? 0,
      };
    })()`);
  }
}

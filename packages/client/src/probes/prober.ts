// Probes one service again and again, never twice at once, and says when its health has changed.
import { type HealthReport, ProbeStreak } from '@tunnel/core';
import type { Clock, Timer } from '@tunnel/runtime';
import type { Probe } from './probe.ts';

export interface ProberOptions {
  readonly probe: Probe;
  readonly intervalMs: number;
  readonly maxFailed: number;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly onChange: (report: HealthReport) => void;
}

/** Of the interval, to either side: clients that began together must not go on together. */
const JITTER = 0.1;

export class Prober {
  readonly #options: ProberOptions;
  readonly #streak: ProbeStreak;
  readonly #stop = new AbortController();
  #timer: Timer | null = null;
  #hasBegun = false;

  constructor(options: ProberOptions) {
    this.#options = options;
    this.#streak = new ProbeStreak(options);
  }

  /** What is known so far, for an edge that has not heard it; null: nothing yet. */
  get known(): HealthReport | null {
    return this.#streak.toldAnew();
  }

  /** The first probe begins at once. */
  start(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    void this.#look();
  }

  stop(): void {
    this.#stop.abort();
    this.#timer?.cancel();
  }

  async #look(): Promise<void> {
    const { probe, clock, onChange } = this.#options;
    const { signal } = this.#stop;
    const nextAt = clock.monotonic() + this.#pauseMs();
    const result = await probe(signal);
    if (signal.aborted) return;
    const report = result.ok ? this.#streak.succeeded() : this.#streak.failed(result.reason);
    // Counted from the beginning of the last one; one that took longer is followed at once.
    this.#timer = clock.setTimeout(() => void this.#look(), Math.max(0, nextAt - clock.monotonic()));
    if (report !== null) onChange(report);
  }

  #pauseMs(): number {
    const { intervalMs, random } = this.#options;
    return intervalMs * (1 + JITTER * (2 * random() - 1));
  }
}

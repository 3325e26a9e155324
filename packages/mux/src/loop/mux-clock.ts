// Time, as far as the mux needs it: the part of the Clock of @tunnel/runtime that this package uses, because it must not import that package.

export interface MuxTimer {
  cancel(): void;
  unref?(): void;
}

export interface MuxClock {
  /** Milliseconds that only ever grow. */
  monotonic(): number;
  setTimeout(run: () => void, ms: number): MuxTimer;
}

// The part of Clock from @tunnel/runtime used by the mux. Declared here because this package must not import the runtime package.

export interface MuxTimer {
  cancel(): void;
  unref?(): void;
}

export interface MuxClock {
  /** Returns milliseconds that never decrease. */
  monotonic(): number;
  setTimeout(run: () => void, ms: number): MuxTimer;
}

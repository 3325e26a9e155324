// The part of Clock from @tunnel/runtime used by the mux. Declared here because this package must not import the runtime package.

export interface MuxTimer {
  cancel(): void;
  unref?(): void;
}

export interface MuxClock {
  /** Returns the monotonic time in milliseconds, which never decreases. */
  monotonic(): number;
  setTimeout(run: () => void, ms: number): MuxTimer;
}

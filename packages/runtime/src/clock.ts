// Time as an argument: everything that waits or stamps takes a Clock, so that a test can hold the hands.

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Milliseconds since the epoch; may jump when the machine's clock is set. */
  now(): number;
  /** Milliseconds that only ever grow; for durations. */
  monotonic(): number;
  setTimeout(fn: () => void, ms: number): Timer;
  setInterval(fn: () => void, ms: number): Timer;
}

export const systemClock: Clock = Object.freeze({
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout: (fn: () => void, ms: number): Timer => {
    const handle = setTimeout(fn, ms);
    return { cancel: () => clearTimeout(handle) };
  },
  setInterval: (fn: () => void, ms: number): Timer => {
    const handle = setInterval(fn, ms);
    return { cancel: () => clearInterval(handle) };
  },
});

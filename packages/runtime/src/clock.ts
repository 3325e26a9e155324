// Time as an argument: code that waits or records times takes a Clock, so that tests can control it.

export interface Timer {
  cancel(): void;
  /** The timer no longer keeps the process alive. Clocks in tests may omit it. */
  unref?(): void;
}

export interface Clock {
  /** Unix time in milliseconds. May jump when the machine's clock is set. */
  now(): number;
  /** Monotonic time in milliseconds, for durations. */
  monotonic(): number;
  setTimeout(fn: () => void, ms: number): Timer;
  setInterval(fn: () => void, ms: number): Timer;
}

class SystemTimer implements Timer {
  readonly #handle: NodeJS.Timeout;

  constructor(handle: NodeJS.Timeout) {
    this.#handle = handle;
  }

  cancel(): void {
    clearTimeout(this.#handle);
  }

  unref(): void {
    this.#handle.unref();
  }
}

export const systemClock: Clock = Object.freeze({
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout: (fn: () => void, ms: number): Timer => new SystemTimer(setTimeout(fn, ms)),
  setInterval: (fn: () => void, ms: number): Timer => new SystemTimer(setInterval(fn, ms)),
});

let ofThisTurn = -1;

const forgetTurn = (): void => {
  ofThisTurn = -1;
};

const monotonicOfTurn = (): number => {
  if (ofThisTurn < 0) {
    ofThisTurn = performance.now();
    setImmediate(forgetTurn);
  }
  return ofThisTurn;
};

/**
 * The monotonic clock for code that stamps every chunk: read once per turn of the event loop, so at most one turn behind. A read costs 60
 * ns or more; from three reads per turn on this is cheaper (the edge's HTTP makes 5 to 80). A clock of a test is read every time, because
 * it may move within a turn.
 */
export const readOncePerTurn = (clock: Clock): (() => number) =>
  clock === systemClock ? monotonicOfTurn : () => clock.monotonic();

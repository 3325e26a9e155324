// A part of the stack across all its runs. Fails if the first start fails; afterwards, restarts the part whenever it ends unexpectedly.
import { Fault } from '@tunnel/errors';
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import { type CrashError, crashErrorOf } from '../data-dir/crash-reports.ts';
import type { FromPart, PartName, PartReady, StartPart, ToPart } from './messages.ts';
import type { PartEnd, PartRun } from './part-process.ts';
import { afterEnd, RESTART_BOUNDS, type RestartState, UNTRIED } from './restart-policy.ts';

export const PART_LIFE_BOUNDS = {
  /**
   * Time limit for a restart, from the launch until the part is running. Then the part is killed and restarted. The first start has no
   * limit, because it may have to migrate tables.
   */
  START_AGAIN_MS: 45_000,
  /** Time limit for a part to stop, in addition to its drain time. Then the part is killed. */
  STOP_GRACE_MS: 12_000,
} as const;

/** How a run ended without a stop request. */
export interface UnexpectedEnd extends PartEnd {
  readonly part: PartName;
  readonly livedMs: number;
  readonly error: CrashError | null;
  readonly counters: Readonly<Record<string, number>>;
}

export interface SupervisedPartOptions {
  readonly part: PartName;
  readonly launch: (onMessage: (message: FromPart) => void) => PartRun;
  /** Returns the start message for the part. Called for every start. */
  readonly startMessage: () => StartPart;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called after every successful start, including the first. */
  readonly onReady: (ready: PartReady) => void;
  /** Called after an unexpected end, before the part restarts. */
  readonly onEnded: (end: UnexpectedEnd) => void;
}

// States: loading -> starting -> running. An end in any of these states leads to waiting and then to loading, except during the first
// start. stop() is possible in every state.
type State = 'idle' | 'loading' | 'starting' | 'running' | 'waiting' | 'stopping';

export class SupervisedPart {
  readonly #options: SupervisedPartOptions;
  #state: State = 'idle';
  #process: PartRun | null = null;
  #launchedAt = 0;
  #isLoaded = false;
  /** True if the start message can be sent as soon as the code of the part is loaded. */
  #mayStart = false;
  #error: CrashError | null = null;
  #counters: Readonly<Record<string, number>> = {};
  #policy: RestartState = UNTRIED;
  #hasEverRun = false;
  /** End of the first run, possibly before start() was called. */
  #endedEarly: PartEnd | null = null;
  #restart: Timer | undefined;
  #startLimit: Timer | undefined;
  /** Callbacks of the first start's promise. Only the first call has an effect. */
  #firstStart: { resolve: () => void; reject: (error: unknown) => void } | null = null;

  constructor(options: SupervisedPartOptions) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#state === 'running';
  }

  /** Launches the process, which loads the code of the part. No ports or files are opened yet. */
  load(): void {
    this.#state = 'loading';
    this.#launchedAt = this.#options.clock.monotonic();
    this.#isLoaded = false;
    this.#error = null;
    this.#counters = {};
    const run = this.#options.launch((message) => this.#said(run, message));
    this.#process = run;
    void run.ended.then((end) => this.#ended(run, end));
  }

  #loadAgain(): void {
    try {
      this.load();
    } catch (error) {
      // The launch can fail temporarily, for example if there is no memory for another process.
      this.#error = crashErrorOf(error);
      this.#startAgain({ code: null, signal: null, output: '' });
      return;
    }
    this.#startLimit = this.#options.clock.setTimeout(() => {
      this.#error = crashErrorOf(new Error('no response during startup'));
      this.#options.logger.error({ part: this.#options.part }, 'a process hangs during a restart; killing it');
      this.#process?.kill();
    }, PART_LIFE_BOUNDS.START_AGAIN_MS);
  }

  /** Starts the part for the first time. Rejects with the reason if the start fails; the start is not retried. */
  start(): Promise<void> {
    const started = new Promise<void>((resolve, reject) => {
      this.#firstStart = { resolve, reject };
    });
    this.#mayStart = true;
    if (this.#endedEarly !== null) this.#failFirstStart(this.#endedEarly);
    else if (this.#isLoaded) this.#tellToStart();
    return started;
  }

  tell(message: ToPart): void {
    if (this.#state === 'running') this.#process?.send(message);
  }

  /** Stops the part. Resolves when the process has ended; after a time limit, the process is killed. */
  async stop({ drainMs }: { readonly drainMs: number }): Promise<void> {
    const run = this.#process;
    const hadStarted = this.#state === 'starting' || this.#state === 'running';
    this.#state = 'stopping';
    this.#restart?.cancel();
    this.#startLimit?.cancel();
    if (run === null) return;
    if (hadStarted) run.send({ kind: 'stop', drainMs });
    else run.kill();
    const late = this.#options.clock.setTimeout(() => {
      this.#options.logger.warn({ part: this.#options.part }, 'a process did not stop in time; killing it');
      run.kill();
    }, drainMs + PART_LIFE_BOUNDS.STOP_GRACE_MS);
    await run.ended;
    late.cancel();
  }

  /** Kills the part's process immediately. */
  kill(): void {
    this.#state = 'stopping';
    this.#restart?.cancel();
    this.#startLimit?.cancel();
    this.#process?.kill();
  }

  #tellToStart(): void {
    this.#state = 'starting';
    this.#process?.send(this.#options.startMessage());
  }

  #said(run: PartRun, message: FromPart): void {
    if (run !== this.#process) return;
    switch (message.kind) {
      case 'loaded':
        this.#isLoaded = true;
        if (this.#mayStart && this.#state === 'loading') this.#tellToStart();
        return;
      case 'ready':
        this.#ready(message);
        return;
      case 'failed':
        this.#error = message.error;
        this.#firstStart?.reject(faultOf(message));
        return;
      case 'crashed':
        this.#error = message.error;
        return;
      case 'counters':
        this.#counters = message.counters;
    }
  }

  #ready(ready: PartReady): void {
    if (this.#state !== 'starting') return;
    this.#state = 'running';
    this.#startLimit?.cancel();
    this.#options.onReady(ready);
    if (this.#hasEverRun) this.#options.logger.info({ part: this.#options.part }, 'a process is running again');
    this.#hasEverRun = true;
    this.#firstStart?.resolve();
  }

  #ended(run: PartRun, end: PartEnd): void {
    if (run !== this.#process) return;
    this.#process = null;
    this.#startLimit?.cancel();
    if (this.#state === 'stopping') return;
    if (this.#hasEverRun) {
      this.#startAgain(end);
      return;
    }
    this.#state = 'idle';
    this.#endedEarly = end;
    this.#failFirstStart(end);
  }

  /** Rejects the first start with the reason. A part that fails at its first start is not restarted. */
  #failFirstStart({ code, signal, output }: PartEnd): void {
    const how = output.trim().split('\n').at(-1) || `exited with ${signal ?? code}`;
    this.#firstStart?.reject(new Error(`the ${this.#options.part} did not start: ${how}`));
  }

  #startAgain(end: PartEnd): void {
    const { part, clock, logger, onEnded } = this.#options;
    const now = clock.monotonic();
    const livedMs = now - this.#launchedAt;
    const { state, delayMs, isLoud } = afterEnd(this.#policy, now);
    this.#policy = state;
    this.#state = 'waiting';
    onEnded({ ...end, part, livedMs, error: this.#error, counters: this.#counters });
    const { code, signal } = end;
    const why = this.#error === null ? {} : { reason: this.#error.message };
    const fields = { part, code, signal, ...why, restart_in_ms: delayMs };
    logger.error(fields, 'a process exited unexpectedly; restarting');
    if (isLoud) {
      const { LOUD_ENDS } = RESTART_BOUNDS;
      logger.error(
        { part },
        `THE ${part.toUpperCase()} DOES NOT STAY UP: it exited ${LOUD_ENDS} times within a minute`,
      );
    }
    // The restart always runs in a later turn, even with a delay of 0, so that a stop request in the current turn takes precedence.
    this.#restart = clock.setTimeout(() => this.#loadAgain(), delayMs);
  }
}

const faultOf = ({ fault, error }: Extract<FromPart, { kind: 'failed' }>): Error => {
  if (fault !== null) return Fault.fromWire(fault.code, fault.message, fault.values);
  const unexpected = new Error(error.message);
  unexpected.stack = error.stack;
  return unexpected;
};

// One part of the stack over all its runs: started once in earnest, then started again whenever it ends without being asked to.
import { Fault } from '@tunnel/errors';
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import { type CrashError, crashErrorOf } from '../data-dir/crash-reports.ts';
import type { FromPart, PartName, PartReady, StartPart, ToPart } from './messages.ts';
import type { PartEnd, PartRun } from './part-process.ts';
import { afterEnd, RESTART_BOUNDS, type RestartState, UNTRIED } from './restart-policy.ts';

export const PART_LIFE_BOUNDS = {
  /** From its launch until it runs again; then it is killed and tried anew. A first start may have tables to change: it has no limit. */
  START_AGAIN_MS: 45_000,
  /** Beyond its drain, what a part may take to end by itself; then it is killed. */
  STOP_GRACE_MS: 12_000,
} as const;

/** How a run ended that nobody had asked to end. */
export interface UnexpectedEnd extends PartEnd {
  readonly part: PartName;
  readonly livedMs: number;
  readonly error: CrashError | null;
  readonly counters: Readonly<Record<string, number>>;
}

export interface SupervisedPartOptions {
  readonly part: PartName;
  readonly launch: (onMessage: (message: FromPart) => void) => PartRun;
  /** What it is told at a start; asked for at each. */
  readonly startMessage: () => StartPart;
  readonly clock: Clock;
  readonly logger: Logger;
  /** At every start that succeeded, the first one too. */
  readonly onReady: (ready: PartReady) => void;
  /** Before it is started again. */
  readonly onEnded: (end: UnexpectedEnd) => void;
}

// loading -> starting -> running; any end but the first start's leads to waiting, and from there to loading. stop() ends all of it.
type State = 'idle' | 'loading' | 'starting' | 'running' | 'waiting' | 'stopping';

export class SupervisedPart {
  readonly #options: SupervisedPartOptions;
  #state: State = 'idle';
  #process: PartRun | null = null;
  #launchedAt = 0;
  #isLoaded = false;
  /** It may be told to start as soon as its code is there. */
  #mayStart = false;
  #error: CrashError | null = null;
  #counters: Readonly<Record<string, number>> = {};
  #policy: RestartState = UNTRIED;
  #hasEverRun = false;
  /** The end of a first run, maybe before anybody asked it to start. */
  #endedEarly: PartEnd | null = null;
  #restart: Timer | undefined;
  #startLimit: Timer | undefined;
  /** Of the first start; what comes after the first word on it changes nothing. */
  #firstStart: { resolve: () => void; reject: (error: unknown) => void } | null = null;

  constructor(options: SupervisedPartOptions) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#state === 'running';
  }

  /** Its process begins to load its code; it opens nothing yet. */
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
      // No memory for one more process, say: there may be some later.
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

  /** The first start. Rejects with what kept it from starting; it is then not tried again. */
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

  /** Resolves when it has ended; it is killed when it takes too long. */
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

  /** There and then. */
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

  /** What cannot start at all is not tried again. */
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
    // Not in this very turn even for 0: whoever asks to stop right now is heard first.
    this.#restart = clock.setTimeout(() => this.#loadAgain(), delayMs);
  }
}

const faultOf = ({ fault, error }: Extract<FromPart, { kind: 'failed' }>): Error => {
  if (fault !== null) return Fault.fromWire(fault.code, fault.message, fault.values);
  const unexpected = new Error(error.message);
  unexpected.stack = error.stack;
  return unexpected;
};

// Holds the stream of changes open: comes back when it ends or falls silent, and asks for what it has missed.
import { type EdgeChange, edgeChange } from '@tunnel/contract';
import { afterConnect, afterFailure, type BackoffState, CALM } from '@tunnel/rules/rate';
import type { Clock, Timer } from '@tunnel/runtime';
import type { PlatformLink } from './platform-link.ts';
import { linesIn } from './stream-lines.ts';

/** a stream of changes without a sign of life for so long is dead and asked for anew */
export const PLATFORM_CHANGES_SILENT_MS = 25_000;
/** one line of that stream */
const PLATFORM_CHANGE_MAX_BYTES = 64 * 1024;
/** the first pause before that stream is asked for again */
const PLATFORM_RETRY_MIN_MS = 200;
/** the longest one: a key that was revoked meanwhile is heard of soon after the return */
export const PLATFORM_RETRY_MAX_MS = 2000;
/** a stream that lived this long was a good one: the pauses begin anew */
const PLATFORM_RETRY_STABLE_MS = 10_000;

export interface ChangeStreamOptions {
  readonly clock: Clock;
  readonly link: Pick<PlatformLink, 'changes'>;
  readonly random: () => number;
  readonly onChange: (change: EdgeChange) => void;
}

const RULES = {
  minMs: PLATFORM_RETRY_MIN_MS,
  maxMs: PLATFORM_RETRY_MAX_MS,
  stableAfterMs: PLATFORM_RETRY_STABLE_MS,
};

export class ChangeStream {
  readonly #options: ChangeStreamOptions;
  #since: number | null = null;
  #backoff: BackoffState = CALM;
  #ending: AbortController | null = null;
  #waiting: Timer | undefined;
  #silence: Timer | undefined;
  #isStopped = false;

  constructor(options: ChangeStreamOptions) {
    this.#options = options;
  }

  /** The latest change that we know; null: none yet. */
  get since(): number | null {
    return this.#since;
  }

  /**
   * `lastChange`: the latest there is, as a heartbeat tells; `knownBefore`: what we knew when it was sent.
   * true: the platform has forgotten some that we know.
   */
  follow(lastChange: number, knownBefore: number | null): boolean {
    if (this.#isStopped) return false;
    if (this.#since === null) {
      this.#since = lastChange;
      void this.#listen();
      return false;
    }
    if (knownBefore === null || lastChange >= knownBefore) return false;
    this.#since = lastChange;
    this.#ending?.abort();
    return true;
  }

  stop(): void {
    this.#isStopped = true;
    this.#ending?.abort();
    this.#waiting?.cancel();
    this.#silence?.cancel();
  }

  async #listen(): Promise<void> {
    const { clock, link, onChange } = this.#options;
    const ending = new AbortController();
    this.#ending = ending;
    try {
      const body = await link.changes(this.#since ?? 0, ending.signal);
      this.#backoff = afterConnect(this.#backoff, clock.monotonic());
      const onChunk = (): void => this.#heard(ending);
      onChunk();
      const reading = { maxBytes: PLATFORM_CHANGE_MAX_BYTES, signal: ending.signal, onChunk };
      for await (const line of linesIn(body, reading)) {
        if (ending.signal.aborted) break;
        const change = changeOf(line);
        if (change === null) continue;
        // A sign of life may overtake the changes that it counts.
        if (change.kind !== 'alive') this.#since = change.id;
        onChange(change);
      }
    } catch {
      // Away, cut or refused: all are tried again, and the heartbeat says so.
    }
    ending.abort();
    this.#silence?.cancel();
    this.#comeBack();
  }

  #heard(ending: AbortController): void {
    this.#silence?.cancel();
    this.#silence = this.#options.clock.setTimeout(() => ending.abort(), PLATFORM_CHANGES_SILENT_MS);
  }

  #comeBack(): void {
    if (this.#isStopped) return;
    const { clock, random } = this.#options;
    const { state, delayMs } = afterFailure(this.#backoff, clock.monotonic(), random(), RULES);
    this.#backoff = state;
    this.#waiting = clock.setTimeout(() => void this.#listen(), delayMs);
  }
}

/** A line of a kind that is not known here is passed over. */
const changeOf = (line: string): EdgeChange | null => {
  try {
    const parsed = edgeChange.safeParse(JSON.parse(line));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
};

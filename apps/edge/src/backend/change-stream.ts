// Keeps the platform's stream of changes open. Reconnects when the stream ends or falls silent, and requests the missed changes.
import { type EdgeChange, edgeChange } from '@tunnel/contract';
import { afterConnect, afterFailure, type BackoffState, CALM } from '@tunnel/rules/rate';
import type { Clock, Timer } from '@tunnel/runtime';
import type { PlatformLink } from './platform-link.ts';
import { linesIn } from './stream-lines.ts';

/** Maximum silence of the change stream. A longer silence means that the connection is dead, and the edge reconnects. */
export const PLATFORM_CHANGES_SILENT_MS = 25_000;
/** Maximum size of a line in the change stream. */
const PLATFORM_CHANGE_MAX_BYTES = 64 * 1024;
/** First pause before reconnecting to the change stream. */
const PLATFORM_RETRY_MIN_MS = 200;
/** Maximum pause before reconnecting. Short, so that the edge learns about revoked keys soon after the platform has returned. */
export const PLATFORM_RETRY_MAX_MS = 2000;
/** Minimum lifetime of a stable change stream. The end of a stable stream resets the pauses to the minimum. */
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

  /** Id of the latest change known to the edge. Null before the first heartbeat response. */
  get since(): number | null {
    return this.#since;
  }

  /**
   * Follows the change stream after a heartbeat response. `lastChange` is the id of the latest change in the response; `knownBefore` is
   * the latest id that the edge knew when sending the heartbeat. Returns true if the platform has lost changes that the edge knows.
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
        // The id in a keep-alive is ignored, because the keep-alive can overtake changes with lower ids.
        if (change.kind !== 'alive') this.#since = change.id;
        onChange(change);
      }
    } catch {
      // The platform is unreachable, or has closed or rejected the stream. The edge reconnects in all cases, and the heartbeat logs the
      // problem.
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

/** Parses a line of the stream. Returns null for an unknown kind of change, which is skipped. */
const changeOf = (line: string): EdgeChange | null => {
  try {
    const parsed = edgeChange.safeParse(JSON.parse(line));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
};

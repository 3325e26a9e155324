// Recent and current output of a run for callers of the agent's socket: the lines for people, and the events of `--json`.
import type { Client, StatusEvent, Tunnel } from '@tunnel/client';
import type { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import type { ReloadOutcome } from '@tunnel/tunnel-spec';
import type { LogEntry } from '../../agent/answers.ts';
import type { ExitCode } from '../../io/exit-codes.ts';
import { CLI_LIMITS } from '../../limits.ts';
import { type JsonEvent, JsonEvents, requestEvent } from '../../output/json.ts';
import { type FinishedRequest, LineOutput, requestLine } from '../../output/lines.ts';
import type { Output, RemovedTunnel, ShownRequest } from '../../output/output.ts';

/** Receives new log entries. Null marks the end of the log. */
type Listener = (entry: LogEntry | null) => void;

export class LogKeeper implements Partial<Output> {
  readonly #clock: Clock;
  /** Recent log entries. Requests are kept as events and formatted only for a reader, because formatting would slow down every request. */
  #kept: (LogEntry | FinishedRequest)[] = [];
  readonly #listeners = new Set<Listener>();
  readonly #lines: LineOutput;
  readonly #events: JsonEvents;
  #text = '';
  #told: JsonEvent[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
    const write = (text: string): void => {
      this.#text += text;
    };
    this.#lines = new LineOutput({ stdout: { write }, stderr: { write } });
    this.#events = new JsonEvents(clock, (event) => this.#told.push(event));
  }

  /** Returns the last `count` entries, oldest first. */
  last(count: number): LogEntry[] {
    return count === 0 ? [] : this.#kept.slice(-count).map((kept) => entryOf(kept, this.#clock));
  }

  /** Adds a listener for new entries. Returns a function that removes the listener. */
  follow(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Ends the log and tells all its listeners. */
  close(): void {
    for (const listener of this.#listeners) listener(null);
    this.#listeners.clear();
  }

  onRequest(event: ShownRequest): void {
    const kept = event.type === 'request-finished' ? event : entryOf(event, this.#clock);
    this.#keep(kept);
    if (this.#listeners.size > 0) this.#tell(entryOf(kept, this.#clock));
  }

  onClient(client: Pick<Client, 'session'>): void {
    this.#events.onClient(client);
  }

  onStatus(event: StatusEvent): void {
    this.#both((output) => output.onStatus(event));
  }

  onInspector(url: string | null): void {
    this.#both((output) => output.onInspector(url));
  }

  /** Logs notices on stderr, which report problems of hooks. Notices on stdout are left out, because they can contain secrets. */
  onNotice(text: string, channel: 'stdout' | 'stderr'): void {
    if (channel === 'stderr') this.#both((output) => output.onNotice(text, channel));
  }

  onReloaded(outcome: ReloadOutcome): void {
    this.#both((output) => output.onReloaded(outcome));
  }

  onReloadRefused(fault: Fault): void {
    this.#both((output) => output.onReloadRefused(fault));
  }

  onRemoved(removed: RemovedTunnel): void {
    this.#both((output) => output.onRemoved(removed));
  }

  onFailure(fault: Fault): void {
    this.#both((output) => output.onFailure(fault));
  }

  onDrain(open: number, seconds: number): void {
    this.#both((output) => output.onDrain(open, seconds));
  }

  onEnd(code: ExitCode, tunnels: readonly Tunnel[]): void {
    this.#both((output) => output.onEnd(code, tunnels));
  }

  #both(show: (output: Output) => void): void {
    show(this.#lines);
    show(this.#events);
    const text = this.#text.trimEnd();
    const [event = null, ...more] = this.#told.splice(0);
    this.#text = '';
    const at = event?.at ?? new Date(this.#clock.now()).toISOString();
    if (text !== '' || event !== null) this.#add({ at, text, event });
    for (const other of more) this.#add({ at: other.at, text: '', event: other });
  }

  #add(entry: LogEntry): void {
    this.#keep(entry);
    this.#tell(entry);
  }

  #tell(entry: LogEntry): void {
    for (const listener of this.#listeners) listener(entry);
  }

  /**
   * Adds an entry to the recent entries. Old entries are dropped in batches, because a shift for every entry would move the whole array.
   */
  #keep(entry: LogEntry | FinishedRequest): void {
    this.#kept.push(entry);
    if (this.#kept.length >= 2 * CLI_LIMITS.AGENT_LOG_LINES_MAX) {
      this.#kept = this.#kept.slice(-CLI_LIMITS.AGENT_LOG_LINES_MAX);
    }
  }
}

const entryOf = (kept: LogEntry | ShownRequest, clock: Pick<Clock, 'now'>): LogEntry => {
  if ('text' in kept) return kept;
  const event = requestEvent(kept, clock);
  return { at: event.at, text: requestLine(kept, { named: true, untimed: true }), event };
};

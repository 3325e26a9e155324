// What a run has said lately, and says now, for whoever asks over the socket: the lines that people read, and the events of `--json`.
import type { Client, RequestEvent, StatusEvent, Tunnel } from '@tunnel/client';
import type { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import type { ReloadOutcome } from '@tunnel/tunnel-spec';
import type { LogEntry } from '../../agent/answers.ts';
import type { ExitCode } from '../../io/exit-codes.ts';
import { CLI_LIMITS } from '../../limits.ts';
import { type JsonEvent, JsonEvents, requestEvent } from '../../output/json.ts';
import { type FinishedRequest, LineOutput, requestLine, type ShownRequest } from '../../output/lines.ts';
import type { Output, RemovedTunnel } from '../../output/output.ts';

/** null: it was the last. */
type Listener = (entry: LogEntry | null) => void;

export class LogKeeper implements Partial<Output> {
  readonly #clock: Clock;
  /** Requests are kept as they came, and put into words when somebody asks: on their way that would cost each of them. */
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

  /** The last ones, oldest first. */
  last(count: number): LogEntry[] {
    return count === 0 ? [] : this.#kept.slice(-count).map((kept) => entryOf(kept, this.#clock));
  }

  /** Returns what ends the listening. */
  follow(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Nothing more will be said. */
  close(): void {
    for (const listener of this.#listeners) listener(null);
    this.#listeners.clear();
  }

  onRequest(event: RequestEvent): void {
    if (event.type === 'request-started') return;
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

  /** Trouble of what goes with the run. What it prints for people may be a secret of theirs. */
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

  /** Cut in one go now and then: a shift for each would move them all. */
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

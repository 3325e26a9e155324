// Reports about the work of a model: problems on stderr for people, and all events and tool calls in the log file.
import type { StatusEvent } from '@tunnel/client';
import type { ToolOutcome } from '@tunnel/mcp/tools';
import { loadConfig } from '../config/file.ts';
import { findLogFile } from '../config/settings.ts';
import type { Io } from '../io/io.ts';
import { problemLines } from '../io/problem-report.ts';
import { JsonEvents } from '../output/json.ts';
import { eventLine, LineOutput } from '../output/lines.ts';
import type { Output } from '../output/output.ts';
import { type EventLog, openEventLog } from '../run/hooks/log-file.ts';

export interface McpLog {
  readonly outputs: readonly Partial<Output>[];
  toolCalled(outcome: ToolOutcome): void;
  close(): void;
}

export const openMcpLog = (flags: { readonly logFile?: string; readonly config?: string }, io: Io): McpLog => {
  const warn = (text: string): void => void io.stderr.write(`${text}\n`);
  const path = findLogFile(flags.logFile, loadConfig(flags.config, io), io);
  const file: EventLog | null = path === undefined ? null : openEventLog(path, io, warn);
  return {
    outputs: [new Warnings(io), ...(file === null ? [] : [new JsonEvents(io.clock, (event) => file.write(event))])],
    // The input shows which tunnel or request was used. Captured content is never logged.
    toolCalled: ({ tool, outcome, input, fault }) =>
      file?.write({
        event: 'tool_call',
        at: new Date(io.clock.now()).toISOString(),
        tool,
        outcome,
        input,
        error: fault === null ? null : { code: fault.code, message: fault.message },
      }),
    close: () => file?.close(),
  };
};

/** Prints problems, and the loss and return of the connection to the edge. Successful events are not printed. */
class Warnings extends LineOutput {
  readonly #stderr: Io['stderr'];

  constructor({ stderr }: Pick<Io, 'stderr'>) {
    super({ stdout: { write: () => {} }, stderr });
    this.#stderr = stderr;
  }

  override onStatus(event: StatusEvent): void {
    super.onStatus(event);
    if (event.type === 'reconnecting' || event.type === 'reconnected') this.#say([`tunnel: ${eventLine(event)}`]);
    // The client has closed permanently. A new client connects for the next requested tunnel.
    if (event.type === 'closed' && event.fault !== undefined) this.#say(problemLines(event.fault));
  }

  #say(lines: readonly string[]): void {
    this.#stderr.write(`${lines.join('\n')}\n`);
  }
}

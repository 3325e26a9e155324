// Who hears of what happens while a model works: people on stderr of what goes wrong, the log file of all of it, its calls too.
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
    // Which tunnel or request was meant; what was captured is nowhere in it.
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

/** Problems, and that the edge is away and back; what goes well is nobody's business here. */
class Warnings extends LineOutput {
  readonly #stderr: Io['stderr'];

  constructor({ stderr }: Pick<Io, 'stderr'>) {
    super({ stdout: { write: () => {} }, stderr });
    this.#stderr = stderr;
  }

  override onStatus(event: StatusEvent): void {
    super.onStatus(event);
    if (event.type === 'reconnecting' || event.type === 'reconnected') this.#say([`tunnel: ${eventLine(event)}`]);
    // For good: the next tunnel that is asked for connects anew.
    if (event.type === 'closed' && event.fault !== undefined) this.#say(problemLines(event.fault));
  }

  #say(lines: readonly string[]): void {
    this.#stderr.write(`${lines.join('\n')}\n`);
  }
}

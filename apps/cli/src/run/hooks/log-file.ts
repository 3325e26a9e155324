// The log file of a run with the events of `--json`, one per line. A write failure is reported once, and ends no tunnel.
import { Fault } from '@tunnel/errors';
import { openLogFile } from '@tunnel/runtime';
import type { Io } from '../../io/io.ts';
import { problemLines } from '../../io/problem-report.ts';
import { droppedEvent, JsonEvents, jsonLine } from '../../output/json.ts';
import type { RunHook, RunningClient, TunnelRun } from './running-client.ts';

export interface EventLog {
  write(event: object): void;
  close(): void;
}

/** Opens a log file for events. `onProblem` is called with an error message when writing starts to fail. */
export const openEventLog = (
  path: string,
  { clock }: Pick<Io, 'clock'>,
  onProblem: (text: string) => void,
): EventLog => {
  const file = openLogFile({
    path,
    clock,
    onProblem: (reason) => onProblem(problemLines(new Fault('CLIENT_LOG_FILE', { file: path, reason })).join('\n')),
    droppedLine: (lines) => jsonLine(droppedEvent(lines, clock)),
  });
  return { write: (event) => file.write(jsonLine(event)), close: () => file.close() };
};

export const logFile = ({ settings: { logFile: path } }: TunnelRun, io: Io): RunHook | null => {
  if (path === undefined) return null;
  let running: RunningClient | null = null;
  const log = openEventLog(path, io, (text) => {
    // Before the run shows any output, a line on stderr cannot disturb the display.
    if (running === null) io.stderr.write(`${text}\n`);
    else running.notice(text, 'stderr');
  });
  return {
    onRunning: (client) => {
      running = client;
    },
    output: new JsonEvents(io.clock, (event) => log.write(event)),
    close: () => Promise.resolve(log.close()),
  };
};

// The log file of a run: the events of `--json`, one a line. That it cannot be written is said once, and ends no tunnel.
import { Fault } from '@tunnel/errors';
import { openLogFile } from '@tunnel/runtime';
import type { Io } from '../io.ts';
import { JsonEvents } from '../output/json.ts';
import { problemLines } from '../problem-report.ts';
import type { Companion, RunningClient, TunnelRun } from '../running-client.ts';

export const logFile = ({ settings: { logFile: path } }: TunnelRun, io: Io): Companion | null => {
  if (path === undefined) return null;
  let running: RunningClient | null = null;
  const onProblem = (reason: string): void => {
    const text = problemLines(new Fault('CLIENT_LOG_FILE', { file: path, reason })).join('\n');
    // Before the run shows anything itself, there is nothing that a line could disturb.
    if (running === null) io.stderr.write(`${text}\n`);
    else running.notice(text, 'stderr');
  };
  const lineOf = (event: object): string => `${JSON.stringify(event)}\n`;
  const droppedLine = (lines: number): string =>
    lineOf({ event: 'log_dropped', at: new Date(io.clock.now()).toISOString(), lines });
  const file = openLogFile({ path, clock: io.clock, onProblem, droppedLine });
  return {
    onRunning: (client) => {
      running = client;
    },
    output: new JsonEvents(io.clock, (event) => file.write(lineOf(event))),
    close: () => Promise.resolve(file.close()),
  };
};

// `tunnel replay`: sends a captured request to the local service again, through the live tunnel that captured the request.
import { Command } from 'commander';
import { type AccountFlags, addAccountFlags, openAccountTunnels, replayAnywhere } from '../api/account-tunnels.ts';
import { FLAG_GROUPS } from '../config/flags.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { oneLine } from '../io/problem-report.ts';
import { durationText } from '../output/lines.ts';

interface ReplayFlags extends AccountFlags {
  readonly json?: boolean;
}

const EXAMPLES = `
Request ids are shown by \`tunnel requests\`, the inspector and the dashboard.

Examples:
  $ tunnel requests web
  $ tunnel replay req_9wm4k2z01c`;

export const replayCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addAccountFlags(
    new Command('replay')
      .description('Send a captured request to the local service again')
      .argument('<id>', 'Id of the request')
      .optionsGroup(FLAG_GROUPS.output)
      .option('--json', 'Print the new request as JSON'),
  )
    .addHelpText('after', EXAMPLES)
    .action(async (id: string, { json, ...flags }: ReplayFlags) => {
      const request = await replayAnywhere(openAccountTunnels(flags, io), id);
      const { status, duration_ms: ms } = request;
      const outcome = `${status ?? 'no response'}${ms === null ? '' : ` in ${durationText(ms)}`}`;
      const text = json === true ? JSON.stringify(request) : `Replayed: ${outcome}. New id: ${oneLine(request.id)}`;
      io.stdout.write(`${text}\n`);
      finish(EXIT.endedAsAsked);
    });

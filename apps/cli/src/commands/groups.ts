// `tunnel groups`: shows the load-balanced groups of an edge, once or continuously. `tunnel group-key`: generates the key shared by the
// members of a group.
import { Fault } from '@tunnel/errors';
import { randomToken } from '@tunnel/runtime';
import { Command, Option } from 'commander';
import { edgeSource } from '../api/account-tunnels.ts';
import { type EdgeSource, readGroups } from '../api/edge-api.ts';
import { addServerFlags, type ServerFlags, wholeNumber } from '../config/flags.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { listenForStop, pause } from '../io/until-stopped.ts';
import { chooseGroupOutput, type GroupOutput } from '../output/groups.ts';

interface GroupFlags extends ServerFlags {
  readonly api?: string;
  readonly watch?: boolean;
  readonly json?: boolean;
  readonly interval: number;
}

const EXAMPLES = `
Examples:
  $ tunnel groups --watch
  $ tunnel groups --json --api https://edge.example.com/rest`;

export const groupsCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addServerFlags(new Command('groups').alias('pools').description('Show load-balanced groups and their members'))
    .option('--api <url>', 'REST API of the edge (default: from config.yml, or port 4041 of the server)')
    .option('--watch', 'Refresh until Ctrl-C')
    .addOption(
      new Option('--interval <seconds>', 'Seconds between refreshes with --watch')
        .default(1)
        .argParser(wholeNumber(1, 3600)),
    )
    .option('--json', 'Print JSON (with --watch, one line per change)')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: GroupFlags) => {
      const source = edgeSource(flags, io);
      const output = chooseGroupOutput(io, { json: flags.json === true, watch: flags.watch === true });
      if (flags.watch === true) await watchGroups(source, output, flags.interval * 1000, io);
      else output.show(await readGroups(source));
      finish(EXIT.endedAsAsked);
    });

/**
 * Shows the groups until the user stops the command, or until an error that a retry cannot fix. An edge that has responded before is
 * expected to come back. An edge that never responded is probably a wrong address.
 */
const watchGroups = async (source: EdgeSource, output: GroupOutput, everyMs: number, io: Io): Promise<void> => {
  const stop = listenForStop(io);
  let state: 'unseen' | 'seen' | 'lost' = 'unseen';
  while (!stop.aborted) {
    try {
      const read = await readGroups(source, stop);
      if (state === 'lost') output.back();
      state = 'seen';
      output.show(read);
    } catch (error) {
      if (stop.aborted) return;
      const fault = Fault.from(error);
      if (state === 'unseen' || !isPassing(fault)) throw error;
      if (state === 'seen') output.lost(fault);
      state = 'lost';
    }
    await pause(everyMs, stop, io);
  }
};

/** Returns true for an error that may pass: an error of the edge, not an internal error of this program. */
const isPassing = (fault: Fault): boolean =>
  fault.retryable && (fault.code !== 'INTERNAL' || fault.cause === undefined);

const KEY_EXAMPLES = `
Examples:
  $ tunnel group-key > group-key    # then copy the file to every computer
  $ tunnel http 3000 --group shop --group-key-file group-key`;

export const groupKeyCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  new Command('group-key')
    .description('Generate the shared key of a group')
    .option('--json', 'Print the key as JSON')
    .addHelpText('after', KEY_EXAMPLES)
    .action(({ json }: { json?: boolean }) => {
      const key = randomToken(GROUP_KEY_BYTES);
      io.stdout.write(`${json === true ? JSON.stringify({ group_key: key }) : key}\n`);
      if (json !== true) io.stderr.write(`${useLines(key, io).join('\n')}\n`);
      finish(EXIT.endedAsAsked);
    });

const GROUP_KEY_BYTES = 32;

/**
 * Returns the instructions printed to stderr. stdout has only the key, so that the key can be redirected to a file. In this case the
 * instructions do not show the key again.
 */
const useLines = (key: string, { stdout }: Io): string[] => [
  'On every computer in the group:',
  ...(stdout.isTTY === true ? [`  (umask 077 && echo ${key} > group-key)`] : ['  (save the key as group-key)']),
  '  tunnel http 3000 --group shop --group-key-file group-key',
];

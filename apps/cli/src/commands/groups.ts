// `tunnel groups`: the load-balanced groups of an edge, once or as they change. `tunnel group-key`: the key that their members share.
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
 * Ends when it is told to, or for a reason that waiting cannot heal. An edge that was there comes back; one that was never
 * reached is rather a mistake in the address.
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

/** What went wrong on the edge's side passes; what went wrong in here does not. */
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

/** Beside the key, and not with it: the output is the key alone, so that it can go into a file. There it is not shown a second time. */
const useLines = (key: string, { stdout }: Io): string[] => [
  'On every computer in the group:',
  ...(stdout.isTTY === true ? [`  (umask 077 && echo ${key} > group-key)`] : ['  (save the key as group-key)']),
  '  tunnel http 3000 --group shop --group-key-file group-key',
];

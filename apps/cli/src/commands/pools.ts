// `tunnel pools`: the load-balanced pools of an edge, once or as they change.
import { Fault } from '@tunnel/errors';
import { Command, Option } from 'commander';
import { edgeSource } from '../api/account-tunnels.ts';
import { type EdgeSource, readGroups } from '../api/edge-api.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { addServerFlags, type ServerFlags, wholeNumber } from '../flags.ts';
import type { Io } from '../io.ts';
import { choosePoolOutput, type PoolOutput } from '../output/pools.ts';
import { listenForStop, pause } from '../until-stopped.ts';

interface PoolFlags extends ServerFlags {
  readonly api?: string;
  readonly watch?: boolean;
  readonly json?: boolean;
  readonly interval: number;
}

const EXAMPLES = `
Examples:
  $ tunnel pools --watch
  $ tunnel pools --json --api https://edge.example.com/rest`;

export const poolsCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addServerFlags(new Command('pools').description('Show groups of tunnels and their members'))
    .option('--api <url>', 'REST API of the edge (default: config.yml, else port 4041 of the server)')
    .option('--watch', 'Refresh until Ctrl-C')
    .addOption(new Option('--interval <seconds>', 'With --watch: how often').default(1).argParser(wholeNumber(1, 3600)))
    .option('--json', 'Print JSON; with --watch one line per change')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: PoolFlags) => {
      const source = edgeSource(flags, io);
      const output = choosePoolOutput(io, { json: flags.json === true, watch: flags.watch === true });
      if (flags.watch === true) await watchPools(source, output, flags.interval * 1000, io);
      else output.show(await readGroups(source));
      finish(EXIT.endedAsAsked);
    });

/**
 * Ends when it is told to, or for a reason that waiting cannot heal. An edge that was there comes back; one that was never
 * reached is rather a mistake in the address.
 */
const watchPools = async (source: EdgeSource, output: PoolOutput, everyMs: number, io: Io): Promise<void> => {
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

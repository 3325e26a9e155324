// `tunnel list`: lists the live tunnels of the account on all computers.
import { Command } from 'commander';
import { type AccountFlags, addAccountFlags, openAccountTunnels } from '../api/account-tunnels.ts';
import { FLAG_GROUPS } from '../config/flags.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { type ListLook, liveTunnelLines } from '../output/live-tunnels.ts';
import { coloursOf } from '../output/text.ts';

interface ListFlags extends AccountFlags {
  readonly json?: boolean;
}

const EXAMPLES = `
Examples:
  $ tunnel list
  $ tunnel list --json | jq -r '.[].public_url'`;

export const listCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addAccountFlags(
    new Command('list')
      .description('List open tunnels of your account')
      .optionsGroup(FLAG_GROUPS.output)
      .option('--json', 'Print a JSON array'),
  )
    .addHelpText('after', EXAMPLES)
    .action(async ({ json, ...flags }: ListFlags) => {
      const tunnels = await openAccountTunnels(flags, io).live();
      const lines = json === true ? [JSON.stringify(tunnels, null, 2)] : liveTunnelLines(tunnels, listLook(io));
      io.stdout.write(`${lines.join('\n')}\n`);
      finish(EXIT.endedAsAsked);
    });

/** Returns the layout for lists of tunnels, with the width of the terminal if there is one. */
export const listLook = (io: Io): ListLook => ({
  now: io.clock.now(),
  width: io.stdout.isTTY === true ? io.stdout.columns || 80 : null,
  colours: coloursOf(io),
});

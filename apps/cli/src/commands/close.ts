// `tunnel close`: closes live tunnels of the account on any computer.
import { Fault } from '@tunnel/errors';
import { Command } from 'commander';
import {
  type AccountFlags,
  type AccountTunnels,
  addAccountFlags,
  type LiveTunnel,
  openAccountTunnels,
} from '../api/account-tunnels.ts';
import { fittingTunnels } from '../api/choose-tunnel.ts';
import { FLAG_GROUPS } from '../config/flags.ts';
import { EXIT, type ExitCode, exitCodeOf } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { oneLine, problemLines } from '../io/problem-report.ts';
import { ADD_YES, askYesOrNo, requireTerminal } from '../io/terminal-prompt.ts';
import { liveTunnelLines } from '../output/live-tunnels.ts';
import { counted } from '../output/text.ts';
import { listLook } from './list.ts';

interface CloseFlags extends AccountFlags {
  readonly yes?: boolean;
  readonly json?: boolean;
}

const EXAMPLES = `
<tunnel> is an id, name, label or URL from \`tunnel list\`. If several computers
have a tunnel with the same name, all of them are closed; use an id to close
only one.

Examples:
  $ tunnel close web
  $ tunnel close tun_0Zk3nQ7pXw9LbR5tYc2e --yes

Open connections can finish. The client does not reopen a closed tunnel; if it
was the last one, the client exits with code 4. \`tunnel close\` exits with code
1 if no open tunnel matched.`;

export const closeCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addAccountFlags(
    new Command('close')
      .description('Close tunnels of your account on any computer')
      .argument('<tunnel...>', 'Ids, names, labels or URLs of tunnels')
      .option('--yes', 'Skip the confirmation')
      .optionsGroup(FLAG_GROUPS.output)
      .option('--json', 'Print the closed tunnels as a JSON array'),
  )
    .addHelpText('after', EXAMPLES)
    .action(async (wanted: string[], { yes, json, ...flags }: CloseFlags) => {
      const source = openAccountTunnels(flags, io);
      const { tunnels, unknown } = matchAll(await source.live(), wanted);
      for (const tunnel of unknown) tell(new Fault('CLIENT_TUNNEL_UNKNOWN', { tunnel }), io);
      if (tunnels.length === 0) return finish(EXIT.unexpected);
      if (yes !== true && !(await confirm(tunnels, io))) {
        io.stdout.write('Nothing closed.\n');
        return finish(EXIT.endedAsAsked);
      }
      const { closed, problem } = await closeAll(source, tunnels, io);
      if (json === true) io.stdout.write(`${JSON.stringify(closed, null, 2)}\n`);
      else for (const tunnel of closed) io.stdout.write(`${titleOf(tunnel)}: closed\n`);
      finish(problem === null ? EXIT.endedAsAsked : exitCodeOf(problem));
    });

/** Finds the tunnels for the typed words. A tunnel is listed once, even if several words match. */
const matchAll = (live: readonly LiveTunnel[], wanted: readonly string[]) => {
  const found = wanted.map((word) => ({ word, fitting: fittingTunnels(live, word) }));
  return {
    tunnels: [...new Set(found.flatMap(({ fitting }) => fitting))],
    unknown: found.filter(({ fitting }) => fitting.length === 0).map(({ word }) => word),
  };
};

const confirm = async (tunnels: readonly LiveTunnel[], io: Io): Promise<boolean> => {
  requireTerminal(io, ADD_YES);
  io.stderr.write(`${liveTunnelLines(tunnels, listLook(io)).join('\n')}\n`);
  return askYesOrNo(io, `Close ${counted(tunnels.length, 'tunnel', 'tunnels')}?`);
};

/** Closes tunnels. If the edge of a tunnel does not respond, the remaining tunnels are closed nevertheless. */
const closeAll = async (source: AccountTunnels, tunnels: readonly LiveTunnel[], io: Io) => {
  const closed: LiveTunnel[] = [];
  let problem: Fault | null = null;
  for (const tunnel of tunnels) {
    try {
      await source.close(tunnel.tunnel_id);
      closed.push(tunnel);
    } catch (error) {
      problem = Fault.from(error);
      if (problem.code === 'INTERNAL') throw error;
      tell(problem, io, `${titleOf(tunnel)}: `);
    }
  }
  return { closed, problem };
};

const tell = (fault: Fault, io: Io, about = ''): void => {
  const [first = '', ...rest] = problemLines(fault, { platformUrl: io.platformUrl() });
  io.stderr.write(`${[first.replace('tunnel: ', `tunnel: ${about}`), ...rest].join('\n')}\n`);
};

/** Returns the name of a tunnel and its computer, because two computers can have tunnels with the same name. */
const titleOf = ({ name, label, client_name: computer }: LiveTunnel): string =>
  oneLine(`${name ?? label}${computer === null ? '' : ` (${computer})`}`);

// `tunnel close`: ends live tunnels of the account, on whichever computer they run.
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
import { lookOf } from './list.ts';

interface CloseFlags extends AccountFlags {
  readonly yes?: boolean;
  readonly json?: boolean;
}

const EXAMPLES = `
<tunnel> is an id, a name, a label or a URL of \`tunnel list\`. A name that several computers use
closes the tunnel on each of them; to close one of them, give its id.

Examples:
  $ tunnel close web
  $ tunnel close tun_0Zk3nQ7pXw9LbR5tYc2e --yes

The client of a closed tunnel does not open it again. Connections that are open may finish. A client
without another tunnel ends with exit code 4. Exit code 1: no live tunnel matched.`;

export const closeCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addAccountFlags(
    new Command('close')
      .description('Close live tunnels of your account, on any computer')
      .argument('<tunnel...>', 'Ids, names, labels or URLs of tunnels')
      .option('--yes', 'Do not ask')
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

/** Each tunnel once, however many of the words mean it. */
const matchAll = (live: readonly LiveTunnel[], wanted: readonly string[]) => {
  const found = wanted.map((word) => ({ word, fitting: fittingTunnels(live, word) }));
  return {
    tunnels: [...new Set(found.flatMap(({ fitting }) => fitting))],
    unknown: found.filter(({ fitting }) => fitting.length === 0).map(({ word }) => word),
  };
};

const confirm = async (tunnels: readonly LiveTunnel[], io: Io): Promise<boolean> => {
  requireTerminal(io, ADD_YES);
  io.stderr.write(`${liveTunnelLines(tunnels, lookOf(io)).join('\n')}\n`);
  return askYesOrNo(io, `Close ${counted(tunnels.length, 'tunnel', 'tunnels')}?`);
};

/** A tunnel whose edge does not answer does not keep the others open. */
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
  const [first = '', ...rest] = problemLines(fault);
  io.stderr.write(`${[first.replace('tunnel: ', `tunnel: ${about}`), ...rest].join('\n')}\n`);
};

/** With the computer, because two computers can call their tunnels the same. */
const titleOf = ({ name, label, client_name: computer }: LiveTunnel): string =>
  oneLine(`${name ?? label}${computer === null ? '' : ` (${computer})`}`);

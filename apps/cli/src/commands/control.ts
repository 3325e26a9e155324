// `tunnel remove`, `tunnel reload`, `tunnel stop`: change a running client. A command makes a single call to the client.
import type { ReloadOutcome } from '@tunnel/tunnel-spec';
import { Command } from 'commander';
import { addClientFlag, type ClientFlags, chooseClient } from '../agent/choose-client.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { oneLine } from '../io/problem-report.ts';
import { reloadLines } from '../output/lines.ts';
import { counted } from '../output/text.ts';

type Finish = (code: ExitCode) => void;

export const removeCommand = (io: Io, finish: Finish): Command =>
  addClientFlag(
    new Command('remove')
      .description('Close a tunnel of a running client')
      .argument('<name>', 'Name of the tunnel (see `tunnel status`)'),
  )
    .addHelpText('after', '\nExamples:\n  $ tunnel remove http-3000')
    .action(async (name: string, flags: ClientFlags) => {
      const client = await chooseClient(flags, io);
      const path = `/tunnels/${encodeURIComponent(name)}`;
      const { json } = await client.ask({ method: 'DELETE', path, isSlow: true });
      const { open_connections: open } = json as { readonly open_connections: number };
      const rest = open === 0 ? '' : `, ${counted(open, 'connection', 'connections')} can finish`;
      io.stdout.write(`${oneLine(name)}: removed${rest}\n`);
      finish(EXIT.endedAsAsked);
    });

export const reloadCommand = (io: Io, finish: Finish): Command =>
  addClientFlag(new Command('reload').description('Reload config.yml in a running client'))
    .option('--json', 'Print the result as JSON')
    .addHelpText('after', '\nExamples:\n  $ tunnel check && tunnel reload')
    .action(async (flags: ClientFlags & { readonly json?: boolean }) => {
      const client = await chooseClient(flags, io);
      const { json } = await client.ask({ method: 'POST', path: '/reload', isSlow: true });
      const outcome = json as ReloadOutcome;
      const lines = flags.json === true ? [JSON.stringify(outcome)] : reloadLines(outcome);
      io.stdout.write(`${lines.join('\n  ')}\n`);
      finish(EXIT.endedAsAsked);
    });

export const stopCommand = (io: Io, finish: Finish): Command =>
  addClientFlag(new Command('stop').description('Stop a running client; open connections can finish'))
    .addHelpText('after', '\nExamples:\n  $ tunnel stop --client ~/.tunnel/config.yml')
    .action(async (flags: ClientFlags) => {
      const client = await chooseClient(flags, io);
      await client.ask({ method: 'POST', path: '/stop' });
      io.stdout.write(`Client ${client.pid} is stopping.\n`);
      finish(EXIT.endedAsAsked);
    });

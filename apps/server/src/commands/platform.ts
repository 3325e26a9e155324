// `tunnel-server platform`: the platform API alone; edges elsewhere connect to it with credentials.
import type { Command } from 'commander';
import { runServer } from '../run-server.ts';
import { loadConfig, type ServerFlags, serverCommand } from './server-flags.ts';

export const platform = (finish: (code: number) => void): Command =>
  serverCommand('platform', 'Run the platform API alone.')
    .addHelpText('after', '\nExample:\n  tunnel-server platform --config /etc/tunnel/server.toml')
    .action(async (flags: ServerFlags) => {
      finish(await runServer('platform', loadConfig(flags, process.env), process));
    });

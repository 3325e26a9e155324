// `tunnel-server edge`: an edge that runs alone: with a platform elsewhere, or on its admin token and [[auth.keys]].
import type { Command } from 'commander';
import { runServer } from '../run-server.ts';
import { loadConfig, type ServerFlags, serverCommand } from './server-flags.ts';

export const edge = (finish: (code: number) => void): Command =>
  serverCommand('edge', 'Run an edge alone.')
    .addHelpText('after', '\nExample:\n  tunnel-server edge --config /etc/tunnel/server.toml')
    .action(async (flags: ServerFlags) => {
      finish(await runServer('edge', loadConfig(flags, process.env), process));
    });

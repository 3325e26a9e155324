// `tunnel-server stack`: the platform, an edge and a database on this machine, supervised.
import type { Command } from 'commander';
import { runServer } from '../run-server.ts';
import { Stack } from '../stack/stack.ts';
import { loadStackConfig, type ServerFlags, serverCommand } from './shared.ts';

export const stack = (finish: (code: number) => void): Command =>
  serverCommand('stack', 'Run everything on this machine: the platform, an edge, and a database.')
    .addHelpText('after', '\nExample:\n  tunnel-server stack --config server.toml --data-dir /var/lib/tunnel')
    .action(async (flags: ServerFlags) => {
      const config = loadStackConfig(flags, process.env);
      finish(await runServer('stack', config, process, { make: (deps) => new Stack(config, deps) }));
    });

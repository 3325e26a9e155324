// `tunnel-server stack`: the platform, an edge and a database on this machine, supervised.
import type { Command } from 'commander';
import { runServer } from '../run-server.ts';
import { Stack } from '../stack/stack.ts';
import { loadConfig, type ServerFlags, serverCommand } from './shared.ts';

/** The file that `npm start` stands for when it is given none: one machine, nothing held back. */
const STACK_DEFAULTS = {
  load_balancing: { enabled: true },
  platform: { plans: { free: { tunnel_limit: 100 } } },
};

export const stack = (finish: (code: number) => void): Command =>
  serverCommand('stack', 'Run everything on this machine: the platform, an edge, and a database.')
    .addHelpText('after', '\nExample:\n  tunnel-server stack --config server.toml --data-dir /var/lib/tunnel')
    .action(async (flags: ServerFlags) => {
      const config = loadConfig(flags, process.env, flags.config === undefined ? { defaults: STACK_DEFAULTS } : {});
      finish(await runServer('stack', config, process, { make: (deps) => new Stack(config, deps) }));
    });

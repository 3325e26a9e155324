// `tunnel-server stack`: the platform, an edge and a database on this machine, supervised.
import type { Command } from 'commander';
import { thisProcess } from '../host.ts';
import { runServer } from '../run-server.ts';
import { Stack } from '../stack/stack.ts';
import { addPublicFlags, type PublicFlags, publicOverrides } from './public-flags.ts';
import { loadStackConfig, type ServerFlags, serverCommand } from './shared.ts';

const EXAMPLES = `
Examples:
  tunnel-server stack --config server.toml --data-dir /var/lib/tunnel
  tunnel-server stack --public tunnels.example.com --acme-email admin@example.com`;

export const stack = (finish: (code: number) => void): Command =>
  addPublicFlags(serverCommand('stack', 'Run everything on this machine: the platform, an edge, and a database.'))
    .addHelpText('after', EXAMPLES)
    .action(async (flags: ServerFlags & PublicFlags) => {
      const config = loadStackConfig(flags, process.env, publicOverrides(flags));
      finish(await runServer('stack', config, thisProcess(), { make: (deps) => new Stack(config, deps) }));
    });

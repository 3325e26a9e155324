// A real `tunnel start` with a config.yml that has an http tunnel per entry, each with a policy.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { failAtExit, startChild, stopChild, throwAwayFolder } from '../../../../bench/lib/children.mjs';
import { cleanEnvironment } from '../../../../bench/lib/server.mjs';
import { ROOT } from '../../../../scripts/lib/paths.mjs';
import { until } from '../../lib/until.mjs';

const CLI = join(ROOT, 'apps/cli/bin/tunnel.mjs');

/**
 * Starts the tunnels. `tunnels` contains `{ name, port, policy }`: the name is the subdomain, and the policy is a list of rules or null.
 * `lines` are additional lines of config.yml.
 */
export async function startTunnels(edge, tunnels, lines = []) {
  const home = throwAwayFolder();
  mkdirSync(join(home, '.tunnel'), { mode: 0o700 });
  const text = [
    `server: ${edge.run.control}`,
    `auth_token_file: ${edge.run.admin_token_file}`,
    ...lines,
    'tunnels:',
    // JSON is valid YAML.
    ...tunnels.map(({ name, port, policy }) => {
      const entry = { proto: 'http', local_port: port, subdomain: name, ...(policy === null ? {} : { policy }) };
      return `  ${name}: ${JSON.stringify(entry)}`;
    }),
  ].join('\n');
  writeFileSync(join(home, '.tunnel/config.yml'), `${text}\n`, { mode: 0o600 });
  const ready = new Map();
  const child = startChild({
    name: 'tunnel',
    command: process.execPath,
    args: [CLI, 'start', '--json', '--no-inspect'],
    env: cleanEnvironment(home),
    cwd: home,
    onLine: (line) => {
      if (!line.startsWith('{')) return;
      const event = JSON.parse(line);
      if (event.event === 'ready') ready.set(event.name, event);
    },
  });
  const isOpen = until('all tunnels are open', () => ready.size === tunnels.length, { timeoutMs: 60_000 });
  await Promise.race([isOpen, failAtExit(child)]);
  return {
    /** Returns the Host header of a tunnel, including the port. */
    hostOf: (name) => new URL(ready.get(name).public_url).host,
    stop: () => stopChild(child, 'SIGTERM'),
  };
}

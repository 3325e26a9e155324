// Writes a config.yml for alice and runs the real `tunnel start` with it.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Harness } from '../../system/harness.fixture.ts';
import type { TunnelProgram, TunnelRun } from '../../system/tunnel-program.fixture.ts';
import type { GroupEdge } from './group-edge.fixture.ts';

/** An entry of `tunnels` in flow form. JSON is valid YAML. */
type Entry = Readonly<Record<string, unknown>>;

export const configLines = (server: string, token: string, tunnels: Readonly<Record<string, Entry>>): string =>
  [
    `server: ${server}`,
    `auth_token: ${token}`,
    'tunnels:',
    ...Object.entries(tunnels).flatMap(([name, entry]) => [
      `  ${name}:`,
      ...Object.entries(entry).map(([key, value]) => `    ${key}: ${JSON.stringify(value)}`),
    ]),
    '',
  ].join('\n');

/** Runs `tunnel start --json` with the text as its configuration file. A second run in the same home directory is the same client. */
export const startFile = async (
  harness: Harness,
  text: string,
  { home: given, ...run }: Partial<Pick<TunnelRun, 'home' | 'programs' | 'clock'>> = {},
): Promise<TunnelProgram> => {
  const home = given ?? (await harness.folder());
  const file = join(home, 'config.yml');
  writeFileSync(file, text, { mode: 0o600 });
  return harness.run(['start', '--config', file, '--json', '--no-inspect'], { ...run, home });
};

export const startTunnels = (
  harness: Harness,
  edge: GroupEdge,
  tunnels: Readonly<Record<string, Entry>>,
  server = edge.server,
): Promise<TunnelProgram> => startFile(harness, configLines(server, edge.token('alice'), tunnels));

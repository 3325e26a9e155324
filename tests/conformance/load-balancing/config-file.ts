// A config.yml of alice's and the real `tunnel start` with it.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Scene } from '../../system/scene.ts';
import type { TunnelProgram } from '../../system/tunnel-program.ts';
import type { GroupEdge } from './scene.ts';

/** Flow form of one entry of `tunnels`; JSON is YAML. */
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

/** `tunnel start --json` with the text as its file. In the same home it is the same client again. */
export const startFile = async (scene: Scene, text: string, given?: string): Promise<TunnelProgram> => {
  const home = given ?? (await scene.folder());
  const file = join(home, 'config.yml');
  writeFileSync(file, text, { mode: 0o600 });
  return scene.run(['start', '--config', file, '--json', '--no-inspect'], { home });
};

export const startTunnels = (
  scene: Scene,
  edge: GroupEdge,
  tunnels: Readonly<Record<string, Entry>>,
  server = edge.server,
): Promise<TunnelProgram> => startFile(scene, configLines(server, edge.token('alice'), tunnels));

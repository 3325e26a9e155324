// A real `tunnel` client at an edge scripted by the test, with the config.yml of the client.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ScriptedEdge } from '../../../packages/client/src/scripted-edge.fixture.ts';
import type { Harness } from '../harness.fixture.ts';
import type { TunnelProgram } from '../tunnel-program.fixture.ts';

export { ScriptedEdge };

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export class ClientTrial {
  readonly edge: ScriptedEdge;
  readonly home: string;
  readonly file: string;
  readonly #harness: Harness;

  private constructor(harness: Harness, edge: ScriptedEdge, home: string) {
    this.#harness = harness;
    this.edge = edge;
    this.home = home;
    this.file = join(home, '.tunnel', 'config.yml');
    mkdirSync(join(home, '.tunnel'), { recursive: true });
  }

  static async begin(harness: Harness): Promise<ClientTrial> {
    const edge = harness.use(await new ScriptedEdge().listen());
    return new ClientTrial(harness, edge, await harness.folder());
  }

  /** Writes a file beside config.yml, and returns its path. */
  write(name: string, text: string): string {
    const path = join(this.home, '.tunnel', name);
    writeFileSync(path, text);
    return path;
  }

  /** Writes config.yml. `tunnels` contains the lines below the key of the same name. */
  config(tunnels: readonly string[], keys: readonly string[] = []): void {
    const lines = [`server: ${this.edge.address}`, 'auth_token: tnl_test', ...keys, 'tunnels:'];
    this.write('config.yml', [...lines, ...tunnels.map((line) => `  ${line}`), ''].join('\n'));
  }

  run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<TunnelProgram> {
    return this.#harness.run(args, { home: this.home, env });
  }

  start(...flags: string[]): Promise<TunnelProgram> {
    return this.run(['start', '--config', this.file, '--json', '--no-inspect', ...flags]);
  }

  /** Runs a command until it exits, and returns the exit code and output. */
  async ask(...args: string[]): Promise<Ended> {
    const program = await this.run(args);
    const code = await program.exitCode();
    return { code, out: program.stdout.join('\n'), err: program.stderr.join('\n') };
  }
}

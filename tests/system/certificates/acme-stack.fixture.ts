// The real executables with a certificate authority beside them, which really looks at their ports, and what an operator runs next to them.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AcmeServer, type AcmeServerOptions, spawnProgram } from '@tunnel/testkit';
import { cleanEnv, ROOT, SERVER_BIN } from '../../repo/checkout.fixture.ts';
import type { Harness } from '../harness.fixture.ts';
import { type Stack, type StackOptions, withoutOurEnvironment } from '../stack.fixture.ts';
import { CertifiedServer } from './certified-server.fixture.ts';

export const DOMAIN = 'tunnels.test';
export const SOON = { timeoutMs: 40_000, intervalMs: 200 };

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** `tunnel-server` with these arguments as they are. */
export const tunnelServer = async (...args: readonly string[]): Promise<Ran> => {
  const program = await spawnProgram({
    command: process.execPath,
    args: [SERVER_BIN, ...args],
    env: { ...withoutOurEnvironment(), ...cleanEnv() },
    cwd: join(ROOT, 'tests'),
  });
  const { code } = await program.waitForExit({ timeoutMs: 60_000 });
  await program.close();
  return { code, out: program.stdout.join('\n'), err: program.stderr.join('\n') };
};

interface Addresses {
  readonly http_url: string | null;
  readonly https_url: string | null;
  readonly platform_url: string | null;
}

const portOf = (url: string | null): number => Number(new URL(url ?? 'http://localhost:1').port);

export interface AcmeStackOptions extends Omit<StackOptions, 'tables'> {
  /** Lines for the table [acme]. */
  readonly acme?: string;
  readonly tables?: string;
  readonly authority?: Partial<AcmeServerOptions>;
}

export class AcmeStack extends CertifiedServer {
  readonly authority: AcmeServer;
  readonly stack: Stack;

  private constructor(authority: AcmeServer, stack: Stack) {
    super();
    this.authority = authority;
    this.stack = stack;
  }

  static async start(harness: Harness, options: AcmeStackOptions): Promise<AcmeStack> {
    const { acme = '', tables = '', authority: given = {}, ...more } = options;
    let started: Stack | null = null;
    const authority = harness.use(
      await AcmeServer.start({ addressOf: () => (started === null ? null : targetOf(started)), ...given }),
    );
    const folder = await harness.folder();
    writeFileSync(join(folder, 'ca.pem'), authority.ca);
    writeFileSync(join(folder, 'root.pem'), authority.root);
    const lines = ['[acme]', 'enabled = true', `directory = "${authority.directory}"`, `ca_file = "${folder}/ca.pem"`];
    started = await harness.stack({
      ...more,
      server: `domain = "${DOMAIN}"\n${more.server ?? ''}`,
      tables: [...lines, acme, tables].join('\n'),
    });
    return new AcmeStack(authority, started);
  }

  get tlsPort(): number {
    return portOf(this.addresses.https_url);
  }

  get addresses(): Addresses {
    return addressesOf(this.stack);
  }

  certificates(...args: readonly string[]): Promise<Ran> {
    return tunnelServer('certificates', ...args, ...this.stack.flags);
  }

  async list(): Promise<readonly { names: string[]; state: string; last_error: string | null }[]> {
    return JSON.parse((await this.certificates('list', '--json')).out) as never;
  }
}

const addressesOf = ({ dataDir }: Stack): Addresses =>
  JSON.parse(readFileSync(join(dataDir, 'run.json'), 'utf8')) as Addresses;

/** Where the test's names lead: the edge's ports, or the one of a platform that runs alone. */
const targetOf = (stack: Stack) => {
  const { http_url, https_url, platform_url } = addressesOf(stack);
  const [httpPort, tlsPort] = [portOf(http_url ?? platform_url), portOf(https_url ?? platform_url)];
  return { host: '127.0.0.1', httpPort, tlsPort };
};

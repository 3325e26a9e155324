// Servers beside a certificate authority that really connects to the servers' ports, and the commands of an operator next to the servers.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AcmeServer, type AcmeServerOptions } from '@tunnel/testkit';
import { callRest } from '../../../apps/server/src/commands/certificates.ts';
import type { Harness } from '../harness.fixture.ts';
import { runServerCommand } from '../server-command.fixture.ts';
import type { Stack, StackOptions } from '../stack.fixture.ts';
import { CertifiedServer } from './certified-server.fixture.ts';

export const DOMAIN = 'tunnels.test';
export const SOON = { timeoutMs: 40_000, intervalMs: 200 };

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs `tunnel-server` with exactly the given arguments inside the test process. */
export const tunnelServer = async (...args: readonly string[]): Promise<Ran> => {
  const { code, stdout, stderr } = await runServerCommand(args);
  return { code, out: stdout.join('\n'), err: stderr.join('\n') };
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

interface Listed {
  readonly names: string[];
  readonly state: string;
  readonly last_error: string | null;
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

  async list(): Promise<readonly Listed[]> {
    return JSON.parse((await this.certificates('list', '--json')).out) as never;
  }

  /** Returns the list of certificates from the REST API of an edge. The command finds the API only if the edge is a separate process. */
  async listByRest(): Promise<readonly Listed[]> {
    const call = { method: 'GET', domain: DOMAIN, token: readFileSync(this.stack.tokenFile, 'utf8').trim() } as const;
    const { text } = await callRest(new URL('/api/certificates', this.stack.run.api_url), { ...call, body: undefined });
    return JSON.parse(text) as readonly Listed[];
  }
}

const addressesOf = ({ dataDir }: Stack): Addresses =>
  JSON.parse(readFileSync(join(dataDir, 'run.json'), 'utf8')) as Addresses;

/** Returns the address to which the host names of the test point: the ports of the edge, or the port of a standalone platform. */
const targetOf = (stack: Stack) => {
  const { http_url, https_url, platform_url } = addressesOf(stack);
  const httpPort = portOf(http_url ?? platform_url);
  const tlsPort = portOf(https_url ?? platform_url);
  return { host: '127.0.0.1', httpPort, tlsPort };
};

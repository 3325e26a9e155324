// The real stack with an authority that really looks at its ports, and a DNS that the test fills and that hands the stack's own zone to the stack.

import { Resolver } from 'node:dns/promises';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AcmeServer, type AcmeServerOptions, type DnsServer, freePort, startDnsServer } from '@tunnel/testkit';
import type { Computer } from '../computer.fixture.ts';
import type { Harness } from '../harness.fixture.ts';
import { startPlatform } from '../platform-test.fixture.ts';
import type { Stack, StackOptions } from '../stack.fixture.ts';
import type { TunnelProgram } from '../tunnel-program.fixture.ts';
import { CertifiedServer } from './certified-server.fixture.ts';

export const DOMAIN = 'tunnels.test';
/** In the file, so that commands beside the server have it too. */
export const SERVER = `domain = "${DOMAIN}"`;

interface Ports {
  readonly http: number;
  readonly https: number;
  readonly dns: number;
}

/** Whom an installation asks: the authority, and the DNS. */
export class Outside extends CertifiedServer {
  readonly authority: AcmeServer;
  readonly dns: DnsServer;
  readonly ports: Ports;
  readonly tables: string;
  readonly env: Readonly<Record<string, string>>;
  /** What the authority's look at a record is preceded by. */
  beforeTxt: () => Promise<void> = () => Promise.resolve();

  private constructor(authority: AcmeServer, dns: DnsServer, ports: Ports, caFile: string) {
    super();
    this.authority = authority;
    this.dns = dns;
    this.ports = ports;
    this.tables = [
      '[acme]',
      'enabled = true',
      `directory = "${authority.directory}"`,
      `ca_file = "${caFile}"`,
      'dns = "builtin"',
      '[dns]',
      `resolvers = ["${dns.address}"]`,
      'host = "127.0.0.1"',
      `port = ${ports.dns}`,
    ].join('\n');
    this.env = {
      TUNNEL_SERVER__HTTP_PORT: `${ports.http}`,
      TUNNEL_SERVER__HTTPS_PORT: `${ports.https}`,
    };
  }

  get tlsPort(): number {
    return this.ports.https;
  }

  static async open(harness: Harness, options: Partial<AcmeServerOptions> = {}): Promise<Outside> {
    const dns = harness.use(await startDnsServer());
    const ports = { http: await freePort(), https: await freePort(), dns: await freePort() };
    const resolver = new Resolver({ timeout: 2000, tries: 2 });
    resolver.setServers([dns.address]);
    let opened: Outside | null = null as Outside | null;
    const authority = harness.use(
      await AcmeServer.start({
        addressOf: () => ({ host: '127.0.0.1', httpPort: ports.http, tlsPort: ports.https }),
        txt: async (name) => {
          await opened?.beforeTxt();
          return (await resolver.resolveTxt(name).catch(() => [])).map((strings) => strings.join(''));
        },
        ...options,
      }),
    );
    const caFile = join(await harness.folder(), 'ca.pem');
    writeFileSync(caFile, authority.ca);
    dns.set(DOMAIN, 'A', '127.0.0.1');
    dns.set(`*.${DOMAIN}`, 'A', '127.0.0.1');
    dns.delegate(`_acme-challenge.${DOMAIN}`, { host: '127.0.0.1', port: ports.dns });
    opened = new Outside(authority, dns, ports, caFile);
    return opened;
  }

  stack(harness: Harness, options: StackOptions = {}): Promise<Stack> {
    const { tables = '', env = {}, ...rest } = options;
    return startPlatform(harness, {
      fixedPorts: true,
      server: SERVER,
      ...rest,
      tables: `${this.tables}\n${tables}`,
      env: { ...this.env, ...env },
    });
  }

  /** For exactly these names. */
  ordersOf(...names: readonly string[]): AcmeServer['orders'] {
    return this.authority.orders.filter((order) => order.names.join() === names.join());
  }
}

/** `tunnel http PORT`, and more flags, of somebody who is logged in. The name in the control port's certificate leads nowhere here. */
export const serve = (
  harness: Harness,
  { home }: Computer,
  { control }: Pick<Stack, 'control'>,
  port: number,
  ...flags: readonly string[]
): Promise<TunnelProgram> =>
  harness.run(['http', String(port), '--json', '--server', control, '--tls', '--insecure', ...flags], { home });

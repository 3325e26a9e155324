// A real stack beside a certificate authority that really connects to its ports, and a DNS server that the test fills. The DNS server
// delegates the challenge zone to the stack.

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
/** The domain is set in the config file, so that commands beside the server read it as well. */
export const SERVER = `domain = "${DOMAIN}"`;

interface Ports {
  readonly http: number;
  readonly https: number;
  readonly dns: number;
}

/** External services of an installation: the certificate authority and the DNS server. */
export class Outside extends CertifiedServer {
  readonly authority: AcmeServer;
  readonly dns: DnsServer;
  readonly ports: Ports;
  readonly tables: string;
  readonly env: Readonly<Record<string, string>>;
  /** Called before the authority looks up a TXT record. */
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

  /** Returns the orders for exactly the given names. */
  ordersOf(...names: readonly string[]): AcmeServer['orders'] {
    return this.authority.orders.filter((order) => order.names.join() === names.join());
  }
}

/**
 * Runs `tunnel http PORT` with further flags on a computer that is signed in. Verification is off, because the host name in the
 * certificate of the control port does not resolve here.
 */
export const serve = (
  harness: Harness,
  { home }: Computer,
  { control }: Pick<Stack, 'control'>,
  port: number,
  ...flags: readonly string[]
): Promise<TunnelProgram> =>
  harness.run(['http', String(port), '--json', '--server', control, '--tls', '--insecure', ...flags], { home });

// The real stack with an authority that really looks at its ports, and a DNS that the test fills and that hands the stack's own zone to the stack.

import { Resolver } from 'node:dns/promises';
import { writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { type Agent, request } from 'node:https';
import { join } from 'node:path';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { AcmeServer, type AcmeServerOptions, type DnsServer, freePort, startDnsServer } from '@tunnel/testkit';
import type { Computer } from '../computer.fixture.ts';
import type { Harness } from '../harness.fixture.ts';
import { type Answer, wholeAnswer } from '../http-tunnels.fixture.ts';
import { startPlatform } from '../platform-test.fixture.ts';
import type { Stack, StackOptions } from '../stack.fixture.ts';
import type { TunnelProgram } from '../tunnel-program.fixture.ts';

export const DOMAIN = 'tunnels.test';
/** In the file, so that commands beside the server have it too. */
export const SERVER = `domain = "${DOMAIN}"`;

interface Ports {
  readonly http: number;
  readonly https: number;
  readonly dns: number;
}

/** Whom an installation asks: the authority, and the DNS. */
export class Outside {
  readonly authority: AcmeServer;
  readonly dns: DnsServer;
  readonly ports: Ports;
  readonly tables: string;
  readonly env: Readonly<Record<string, string>>;
  /** What the authority's look at a record is preceded by. */
  beforeTxt: () => Promise<void> = () => Promise.resolve();

  private constructor(authority: AcmeServer, dns: DnsServer, ports: Ports, caFile: string) {
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

  shakeHands(host: string, port = this.ports.https): Promise<TLSSocket> {
    return new Promise((resolve, reject) => {
      const trust = { ca: this.authority.root, servername: host };
      const socket = connectTls({ host: '127.0.0.1', port, ...trust }, () => resolve(socket));
      socket.on('error', reject);
    });
  }

  async serialOf(host: string, port?: number): Promise<string> {
    const socket = await this.shakeHands(host, port);
    const serial = socket.getPeerX509Certificate()?.serialNumber ?? '';
    socket.destroy();
    return serial.toLowerCase();
  }

  /** For a library that dials by itself. */
  dial(host: string): TLSSocket {
    return connectTls({ host: '127.0.0.1', port: this.ports.https, ca: this.authority.root, servername: host });
  }

  /** Over HTTP/1.1; the status. */
  async ask(host: string, agent: Agent | false = false, port = this.ports.https): Promise<number> {
    return (await this.#answer(host, agent, port)).status;
  }

  async textOf(host: string): Promise<string> {
    return (await this.#answer(host, false, this.ports.https)).text;
  }

  #answer(host: string, agent: Agent | false, port: number): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const trust = { ca: this.authority.root, servername: host };
      const sent = request({ hostname: '127.0.0.1', port, ...trust, headers: { host }, agent });
      sent.on('response', (response) => void wholeAnswer(response).then(resolve, reject));
      sent.on('error', reject).end();
    });
  }

  askHttp2(host: string): Promise<number> {
    return new Promise((resolve, reject) => {
      const socket = connectTls({
        ...{ host: '127.0.0.1', port: this.ports.https, servername: host },
        ...{ ca: this.authority.root, ALPNProtocols: ['h2'] },
      });
      const session = connectHttp2(`https://${host}`, { createConnection: () => socket });
      session.on('error', reject);
      const stream = session.request({ ':path': '/' });
      stream.on('response', (headers) => resolve(Number(headers[':status'])));
      stream.on('error', reject);
      stream.resume().on('end', () => session.close());
    });
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

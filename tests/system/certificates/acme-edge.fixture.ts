// An edge without a platform, beside a certificate authority that really connects to the ports of the edge.
import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Client, connect } from '@tunnel/client';
import { loadServerConfig } from '@tunnel/config/server';
import { createEdge, type Edge } from '@tunnel/edge';
import { createLogger, Secret } from '@tunnel/runtime';
import { AcmeServer, type AcmeServerOptions } from '@tunnel/testkit';
import type { Harness } from '../harness.fixture.ts';
import { CertifiedServer } from './certified-server.fixture.ts';

export const DOMAIN = 'tunnels.test';
const ADMIN = 'admin-token-of-the-test';
const logger = createLogger({ level: 'silent', format: 'json' });

type Overrides = Readonly<Record<string, object>>;

export class AcmeEdge extends CertifiedServer {
  readonly authority: AcmeServer;
  readonly dataDir: string;
  readonly #harness: Harness;
  readonly #overrides: Overrides;
  edge: Edge | null = null;

  private constructor(harness: Harness, authority: AcmeServer, dataDir: string, overrides: Overrides) {
    super();
    this.#harness = harness;
    this.authority = authority;
    this.dataDir = dataDir;
    this.#overrides = overrides;
  }

  static async open(
    harness: Harness,
    overrides: Overrides = {},
    authorityOptions: Partial<AcmeServerOptions> = {},
  ): Promise<AcmeEdge> {
    const folder = await harness.folder();
    let opened: AcmeEdge | null = null;
    const authority = harness.use(
      await AcmeServer.start({ addressOf: () => opened?.target ?? null, ...authorityOptions }),
    );
    await writeFile(join(folder, 'ca.pem'), authority.ca);
    const dataDir = await mkdtemp(join(folder, 'data-'));
    const acme = { enabled: true, directory: authority.directory, ca_file: join(folder, 'ca.pem') };
    opened = new AcmeEdge(harness, authority, dataDir, { ...overrides, acme: { ...acme, ...overrides?.['acme'] } });
    harness.use({ close: () => opened?.stop() ?? Promise.resolve() });
    return opened;
  }

  get target() {
    const { addresses } = this.running;
    return { host: '127.0.0.1', httpPort: addresses.http.port, tlsPort: addresses.https?.port ?? 0 };
  }

  get tlsPort(): number {
    return this.target.tlsPort;
  }

  get running(): Edge {
    if (this.edge === null) throw new Error('the edge does not run');
    return this.edge;
  }

  async start(): Promise<void> {
    const config = loadServerConfig({
      env: {},
      overrides: {
        data_dir: this.dataDir,
        ...this.#overrides,
        server: {
          control_port: 0,
          api_port: 0,
          metrics_port: 0,
          http_port: 0,
          https_port: 0,
          domain: DOMAIN,
          ...this.#overrides?.['server'],
        },
      },
    });
    this.edge = createEdge(config, {
      clock: this.#harness.clock,
      logger,
      adminToken: new Secret(ADMIN),
      dataDir: this.dataDir,
    });
    await this.edge.start();
  }

  async stop(): Promise<void> {
    await this.edge?.stop({ drainMs: 0 });
    this.edge = null;
  }

  /** Connects a client, which retries until the edge accepts the connection. */
  async client(token = ADMIN): Promise<Client> {
    const server = `127.0.0.1:${this.running.addresses.control.port}`;
    // The host name in the certificate does not resolve here, so the client skips verification. Other tests check the certificate.
    const client = await connect({
      server,
      token,
      tls: true,
      insecure: true,
      wait: true,
      logger,
      clock: this.#harness.clock,
    });
    this.#harness.use({ close: () => client.close() });
    return client;
  }

  async rest(path: string, body?: object): Promise<Response> {
    const { host, port } = this.running.addresses.api;
    const headers = { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json' };
    const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    return fetch(`http://${host}:${port}${path}`, { ...sent, headers });
  }

  async metrics(): Promise<string> {
    const { host, port } = this.running.addresses.metrics;
    return (await fetch(`http://${host}:${port}/metrics`)).text();
  }
}

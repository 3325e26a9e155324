// A platform and an edge of chosen builds, beside a certificate authority and a DNS server, with an account and visitors.
import { readFileSync, writeFileSync } from 'node:fs';
import { type OutgoingHttpHeaders, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { DOMAIN, Outside } from '../../../system/certificates/outside.fixture.ts';
import { Harness } from '../../../system/harness.fixture.ts';
import { type Answer, wholeAnswer } from '../../../system/http-tunnels.fixture.ts';
import { Person, startEdgeOf } from '../../../system/platform-test.fixture.ts';
import { serverCommand } from '../../../system/server-command.fixture.ts';
import type { Stack } from '../../../system/stack.fixture.ts';
import type { TunnelProgram } from '../../../system/tunnel-program.fixture.ts';

export interface Build {
  readonly version: string;
  readonly server: string;
  readonly client: string;
}

/** `allowing` and `excluding` are newer than `current`, with made-up migrations that allow or exclude `current`. */
export const BUILDS = JSON.parse(readFileSync(process.env['SKEW_BUILDS'] ?? '', 'utf8')) as Readonly<
  Record<'previous' | 'current' | 'allowing' | 'excluding', Build>
>;

export const SOON = { timeoutMs: 60_000, intervalMs: 100 };
export const SHOP = 'shop.example.com';
export const ROOM = '[platform.plans.free]\ntunnel_limit = 100\nreserved_limit = 100\ndomain_limit = 10';

interface Asked {
  readonly method?: string;
  readonly path?: string;
  readonly body?: Buffer | string;
  readonly headers?: OutgoingHttpHeaders;
}

export class World {
  readonly harness = new Harness();
  readonly outside: Outside;
  readonly platform: Stack;
  readonly edge: Stack;
  readonly person: Person;
  readonly key: string;

  private constructor(parts: Pick<World, 'harness' | 'outside' | 'platform' | 'edge' | 'person' | 'key'>) {
    this.harness = parts.harness;
    this.outside = parts.outside;
    this.platform = parts.platform;
    this.edge = parts.edge;
    this.person = parts.person;
    this.key = parts.key;
  }

  static async open({ platform, edge }: { readonly platform: Build; readonly edge: Build }): Promise<World> {
    const harness = new Harness();
    try {
      const outside = await Outside.open(harness);
      const running = await outside.stack(harness, { command: 'platform', bin: platform.server, tables: ROOM });
      const beside = await startEdgeOf(harness, running, 'west', {
        bin: edge.server,
        fixedPorts: true,
        env: { ...outside.env, TUNNEL_SERVER__DOMAIN: DOMAIN, TUNNEL_ACME__ENABLED: 'true' },
      });
      // The authority looks for its challenge at the edge. An order from before the edge's start is tried again at once.
      await eventually(
        async () => {
          await serverCommand(running, 'certificates', 'renew', DOMAIN);
          expect(await outside.serialOf(`any.${DOMAIN}`)).toMatch(/^[0-9a-f]+$/);
        },
        { timeoutMs: 120_000, intervalMs: 1000 },
      );
      const person = await Person.signUp(running);
      const { token } = await person.newKey();
      return new World({ harness, outside, platform: running, edge: beside, person, key: token });
    } catch (error) {
      await harness.close();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.harness.close();
  }

  /** Runs a client of the build with the account's key. */
  async run(
    build: Build,
    args: readonly (string | number)[],
    files: Record<string, string> = {},
  ): Promise<TunnelProgram> {
    const home = await this.harness.folder();
    for (const [name, text] of Object.entries(files)) writeFileSync(join(home, name), text, { mode: 0o600 });
    // Clients know no address for the name in the certificate, so they do not verify the certificate.
    const where = ['--server', this.edge.control, '--tls', '--insecure'];
    const env = { TUNNEL_API_KEY: this.key };
    return this.harness.run([...args.map(String), '--json', ...where], { home, bin: build.client, env });
  }

  /** Sends a request to a public URL of the edge. */
  ask(url: string, { path = '/', body, headers = {}, ...more }: Asked = {}): Promise<Answer> {
    const { protocol, hostname, host, port } = new URL(url);
    const shared = { ...more, host: '127.0.0.1', port, path, headers: { host, ...headers }, agent: false };
    return new Promise((resolve, reject) => {
      const sent =
        protocol === 'https:'
          ? requestHttps({ ...shared, servername: hostname, ca: this.outside.authority.root })
          : requestHttp(shared);
      sent.on('response', (response) => void wholeAnswer(response).then(resolve, reject));
      sent.on('error', reject).end(body);
    });
  }

  /** Proves the domain by its DNS record, and waits for its certificate. */
  async addDomain(name: string): Promise<void> {
    const added = await this.person.call<{ id: string; cname_target: string }>('/domains', {
      method: 'POST',
      body: { name },
    });
    expect(added.status).toBe(201);
    this.outside.dns.set(name, 'CNAME', added.body.cname_target);
    await this.person.call(`/domains/${added.body.id}/check`, { method: 'POST' });
    await eventually(async () => expect(await this.outside.serialOf(name)).toMatch(/^[0-9a-f]+$/), SOON);
  }
}

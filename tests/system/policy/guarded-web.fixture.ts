// A policy with every action, each below a separate path, in front of services that record their requests: in a single tunnel, or in a
// group of three.
import { writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import type { IncomingHttpStatusHeader } from 'node:http2';
import { request as secureRequest } from 'node:https';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import type { Harness } from '../harness.fixture.ts';
import { endpointOf, type PublicEndpoint, startWeb, wholeAnswer, wholeBody } from '../http-tunnels.fixture.ts';
import { dialHttp2, nameOf, TLS_FLAGS, TRUST } from '../https-visitor.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import type { TunnelProgram } from '../tunnel-program.fixture.ts';

export const PASSWORD = 'the password of me';
export const TOKEN = 'a-token-of-the-continuous-integration';
export const HOOK_SECRET = 'what the sender signs with';
export const ORIGIN = 'https://app.example';

const POLICY = `
      - { name: denied, match: { path: "/deny/**" }, deny: true }
      - { name: gone, match: { path: "/gone/**" }, deny: 410 }
      - { name: office, match: { path: "/office/**" }, allow_addresses: [192.0.2.0/24] }
      - { name: passed, match: { path: "/allow/**" }, allow: true }
      - name: people
        match: { path: "/auth/**" }
        auth: { basic: { users: { me: "${PASSWORD}" } }, tokens: [{ name: ci, token: "${TOKEN}" }] }
      - { name: hook, match: { path: "/hook/**" }, verify_webhook: { provider: github, secret: "${HOOK_SECRET}", max_bytes: 100KiB } }
      - { name: limited, match: { path: "/limit/**" }, rate_limit: { requests: 2, per_secs: 3600 } }
      - { name: small, match: { path: "/small/**" }, max_body: 1KiB }
      - { name: moved, match: { path: "/moved/**" }, redirect: { to: "/new{query}", status: 307 } }
      - { name: said, match: { path: "/said/**" }, respond: { status: 503, body: "Back at noon", content_type: text/plain } }
      - { name: shorter, match: { path: "/rewrite/**" }, rewrite: { strip_prefix: /rewrite, add_prefix: /v2 } }
      - { name: other, match: { path: "/route/**" }, route: api }
      - { name: told, match: { path: "/told/**" }, request_headers: { set: { x-told: "{address} {host}" }, remove: [x-odd] } }
      - { name: framed, match: { path: "/framed/**" }, response_headers: { set: { x-frame-options: DENY } } }
      - { name: apps, match: { path: "/cors/**" }, cors: { origins: ["${ORIGIN}"], methods: [GET, PUT] } }
      - { name: page, error_page: { body: "<h1>Back soon</h1>" } }
`;

export interface Reached {
  readonly service: 'own' | 'api';
  readonly member: number;
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface GuardedWeb {
  readonly endpoint: PublicEndpoint;
  /** Requests that reached a service of a member, in the order of completion. */
  readonly reached: Reached[];
  readonly members: readonly TunnelProgram[];
  /** Stops all services. */
  stopServices(): Promise<void>;
}

const GROUP = 'guarded';

export const startGuardedWeb = async (harness: Harness, stack: Stack, count: 1 | 3): Promise<GuardedWeb> => {
  const reached: Reached[] = [];
  const members: TunnelProgram[] = [];
  const services: { close(): Promise<void> }[] = [];
  let endpoint: PublicEndpoint | null = null;
  for (let member = 0; member < count; member += 1) {
    const [own, api] = await Promise.all(
      (['own', 'api'] as const).map((service) =>
        startWeb(async (request, response) => {
          const body = (await wholeBody(request)).toString('latin1');
          if (request.url === '/healthz') return void response.end('well');
          const { method = '', url = '', headers } = request;
          reached.push({ service, member, method, url, headers, body });
          response.setHeader('access-control-allow-origin', '*');
          response.end(`${service} ${request.url}`);
        }),
      ),
    );
    services.push(harness.use(own!), harness.use(api!));
    const home = await harness.folder();
    const group = count === 1 ? '' : `    group: ${GROUP}\n    group_key: a key that all members share\n`;
    const file = join(home, 'tunnel.yml');
    writeFileSync(
      file,
      `server: ${stack.control}\nauth_token_file: ${stack.tokenFile}\ntls: true\nca_file: ${TLS_FLAGS[2]}\ntunnels:\n  ${GROUP}:\n    proto: http\n    local_port: ${own!.port}\n${group}    services: { api: ${api!.port} }\n    policy:${POLICY}`,
    );
    const program = await harness.run(['start', '--config', file, '--json', '--quiet', '--no-inspect'], { home });
    endpoint = endpointOf((await program.ready()).public_url);
    members.push(program);
  }
  const stopServices = async (): Promise<void> => {
    for (const service of services) await service.close();
  };
  return { endpoint: endpoint!, reached, members, stopServices };
};

/** Waits until the edge lists only `left` members of the group. */
export const memberGone = async (stack: Stack, left: number): Promise<void> =>
  eventually(
    async () => {
      const [group] = (await (await stack.api('/api/groups')).json()) as { member_count: number }[];
      expect(group?.member_count).toBe(left);
    },
    { timeoutMs: 30_000 },
  );

export const VERSIONS = ['HTTP/1.1', 'HTTP/2'] as const;

export interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Told {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export type Ask = (path: string, asked?: Asked) => Promise<Told>;

/** Returns a visitor over TLS with the given HTTP version. HTTP/2 requests share a connection. */
export const visitorOf = (harness: Harness, endpoint: PublicEndpoint, version: (typeof VERSIONS)[number]): Ask => {
  if (version === 'HTTP/1.1') return (path, asked) => askHttp1(endpoint, path, asked);
  const session = dialHttp2(harness, endpoint);
  return (path, { method = 'GET', headers, body } = {}) =>
    new Promise((resolve, reject) => {
      const stream = session.request({ ':path': path, ':method': method, ...headers });
      let told: IncomingHttpHeaders & IncomingHttpStatusHeader = {};
      let text = '';
      stream.on('response', (given) => (told = given));
      stream.on('data', (piece: Buffer) => (text += piece.toString('latin1')));
      stream.on('close', () => resolve({ status: Number(told[':status']), headers: told, text }));
      stream.on('error', reject);
      stream.end(body);
    });
};

const askHttp1 = (
  endpoint: PublicEndpoint,
  path: string,
  { method = 'GET', headers, body }: Asked = {},
): Promise<Told> =>
  new Promise((resolve, reject) => {
    const sent = secureRequest({
      ...TRUST,
      hostname: '127.0.0.1',
      port: endpoint.port,
      servername: nameOf(endpoint),
      path,
      method,
      agent: false,
      headers: { host: endpoint.host, ...headers },
    });
    const answer = (told: Awaited<ReturnType<typeof wholeAnswer>>): void =>
      resolve({ status: told.status, headers: told.headers, text: told.body.toString('latin1') });
    sent.on('response', (response) => void wholeAnswer(response).then(answer, reject));
    sent.on('error', reject).end(body);
  });

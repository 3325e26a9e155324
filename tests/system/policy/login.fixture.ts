// Browsers at real tunnels with a real identity provider, over real sockets. A browser keeps cookies and follows redirects step by step.
import { writeFileSync } from 'node:fs';
import { request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http';
import { request as secureRequest } from 'node:https';
import { join } from 'node:path';
import { type IdentityProvider, startIdentityProvider } from '../../browser/identity-provider.fixture.ts';
import type { Harness } from '../harness.fixture.ts';
import { startWeb, wholeAnswer, wholeBody } from '../http-tunnels.fixture.ts';
import { TLS_FLAGS, TRUST } from '../https-visitor.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import type { TunnelProgram } from '../tunnel-program.fixture.ts';

export interface Told {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

interface Asked {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string;
  readonly trailers?: Readonly<Record<string, string>>;
}

/** Sends a request to a URL. Systems do not resolve `*.localhost`, so the name is sent only in the Host header. */
export const askUrl = (url: string, { method = 'GET', headers, body, trailers }: Asked = {}): Promise<Told> =>
  new Promise((resolve, reject) => {
    const { protocol, host, hostname, port, pathname, search } = new URL(url);
    const isSecure = protocol === 'https:';
    const sent = (isSecure ? secureRequest : httpRequest)({
      hostname: '127.0.0.1',
      port,
      path: pathname + search,
      method,
      agent: false,
      ...(isSecure && { ...TRUST, servername: hostname }),
      headers: { host, ...headers },
    });
    const answer = (told: Awaited<ReturnType<typeof wholeAnswer>>): void =>
      resolve({ status: told.status, headers: told.headers, text: told.text });
    sent.on('response', (response) => void wholeAnswer(response).then(answer, reject));
    sent.on('error', reject);
    if (body !== undefined) sent.write(body);
    if (trailers !== undefined) sent.addTrailers(trailers);
    sent.end();
  });

const PAGE = { accept: 'text/html', 'sec-fetch-mode': 'navigate' };
const STEPS_MAX = 15;

export class Browser {
  /** Cookies by host name, as in a real browser. */
  readonly #jars = new Map<string, Map<string, string>>();
  /** Login cookies set by any tunnel, and secrets in the URLs of redirects. */
  readonly secrets = new Set<string>();

  cookiesAt(url: string): Map<string, string> {
    const { hostname } = new URL(url);
    const jar = this.#jars.get(hostname) ?? new Map<string, string>();
    this.#jars.set(hostname, jar);
    return jar;
  }

  /** Sends a request with the cookies of the host. */
  async send(url: string, asked: Asked = {}): Promise<Told> {
    const jar = this.cookiesAt(url);
    const cookie = [...jar].map((pair) => pair.join('=')).join('; ');
    const told = await askUrl(url, { ...asked, headers: { ...(cookie === '' ? {} : { cookie }), ...asked.headers } });
    for (const line of told.headers['set-cookie'] ?? []) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (/Max-Age=0|Expires=Thu, 01 Jan 1970/i.test(line)) jar.delete(name);
      else jar.set(name, value);
      if (name.includes('tunnel_login') && value !== '') this.secrets.add(value);
    }
    return told;
  }

  open(url: string): Promise<Told> {
    return this.send(url, { headers: PAGE });
  }

  /** Follows redirects and signs in on the way. Returns the URL of the callback before requesting it. */
  async toCallback(url: string, email: string): Promise<string> {
    let at = url;
    for (let step = 0; step < STEPS_MAX; step += 1) {
      if (new URL(at).pathname === '/.tunnel/callback') return at;
      let told = await this.open(at);
      if (told.status === 200 && told.text.includes('<form method="post">')) {
        const body = new URLSearchParams({ email }).toString();
        told = await this.send(at, {
          method: 'POST',
          body,
          headers: { ...PAGE, 'content-type': 'application/x-www-form-urlencoded', 'content-length': body.length },
        });
      }
      const { location } = told.headers;
      if (location === undefined) throw new Error(`${at} led nowhere: ${told.status} ${told.text}`);
      at = new URL(location, at).href;
      for (const name of ['code', 'state', 'nonce']) this.secrets.add(new URL(at).searchParams.get(name) ?? at);
      this.secrets.delete(at);
    }
    throw new Error(`no end of redirects at ${at}`);
  }

  /** Completes the whole login. Returns the response of the callback, which redirects to the first URL. */
  async logIn(url: string, email: string): Promise<Told> {
    return this.open(await this.toCallback(url, email));
  }
}

export interface Reached {
  readonly url: string;
  /** Raw headers and trailers in their original order. */
  readonly raw: readonly string[];
  readonly body: string;
}

export interface LoginTunnel {
  readonly url: string;
  readonly program: TunnelProgram;
  readonly home: string;
  readonly provider: IdentityProvider;
  readonly policyFile: string;
  /** Requests received by the service. */
  readonly reached: Reached[];
}

export interface LoginTunnelOptions {
  readonly name: string;
  /** Policy lines behind `login:`. By default, people of example.com can sign in. */
  readonly rules?: string;
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Identity provider of an earlier tunnel, to be shared. */
  readonly provider?: IdentityProvider;
  /** HTTPS port of a stack with a certificate. */
  readonly httpsPort?: number;
}

const PEOPLE = 'rules: [{ name: people, auth: { login: { domains: [example.com] } } }]';

export const urlOf = (stack: Stack, name: string): string =>
  `http://${name}.localhost:${new URL(stack.run.http_url).port}`;

/** Opens a tunnel with a login in front of a service that records requests. */
export const openLoginTunnel = async (
  harness: Harness,
  stack: Stack,
  {
    name,
    rules = PEOPLE,
    flags = ['--token-file', stack.tokenFile],
    env = {},
    httpsPort,
    ...given
  }: LoginTunnelOptions,
): Promise<LoginTunnel> => {
  const reached: Reached[] = [];
  const web = harness.use(
    await startWeb(async (request, response) => {
      const body = (await wholeBody(request)).toString('latin1');
      const { url = '', rawHeaders, rawTrailers } = request;
      reached.push({ url, raw: [...rawHeaders, ...rawTrailers], body });
      response.setHeader('set-cookie', ['own=1', 'tunnel_login=of-the-service', 'TUNNEL_LOGIN=of-the-service; Path=/']);
      response.end(`served ${url}`);
    }),
  );
  web.server.on('upgrade', (request, socket) => {
    reached.push({ url: request.url ?? '', raw: request.rawHeaders, body: '' });
    socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  });
  const url = httpsPort === undefined ? urlOf(stack, name) : `https://${name}.localhost:${httpsPort}`;
  const provider = given.provider ?? harness.use(await startIdentityProvider([`${url}/.tunnel/callback`]));
  const home = await harness.folder();
  const policyFile = join(home, 'policy.yml');
  writeFileSync(policyFile, `login: ${provider.login}\n${rules}\n`, { mode: 0o600 });
  const args = ['http', String(web.port), '--json', '--subdomain', name, '--policy', policyFile];
  const tls = httpsPort === undefined ? [] : TLS_FLAGS;
  const program = await harness.run([...args, '--server', stack.control, ...tls, ...flags], { home, env });
  await program.ready();
  return { url, program, home, provider, policyFile, reached };
};

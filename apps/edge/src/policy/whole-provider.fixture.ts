// A complete provider as in production: oidc-provider in the process of the test, and a browser that submits the forms.
import { randomBytes } from 'node:crypto';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair } from 'jose';
// @ts-expect-error It brings no types; below stands what we use of it.
import UntypedProvider from 'oidc-provider';

const Provider = UntypedProvider as new (issuer: string, configuration: object) => { callback(): RequestListener };

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
/** Maximum number of steps of a login: the forms for sign-in and consent, and a redirect after each form. */
const STEPS_MAX = 12;

export class WholeProvider {
  readonly clientId = 'edge';
  readonly clientSecret = randomBytes(24).toString('base64url');
  readonly issuer: string;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /**
   * Starts the provider. `redirectUris` are the allowed callback URLs. A person who signs in as `name` has the email address
   * `name@example.com`.
   */
  static async start(redirectUris: readonly string[]): Promise<WholeProvider> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const whole = new WholeProvider(server);
    const { privateKey } = await generateKeyPair('ES256', { extractable: true });
    const provider = new Provider(whole.issuer, {
      clients: [
        {
          client_id: whole.clientId,
          client_secret: whole.clientSecret,
          redirect_uris: redirectUris,
          grant_types: ['authorization_code'],
        },
      ],
      jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig', kid: 'first' }] },
      clientDefaults: { id_token_signed_response_alg: 'ES256' },
      cookies: { keys: [randomBytes(16).toString('hex')] },
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
      pkce: { required: () => true },
      findAccount: (_context: unknown, sub: string) => ({
        accountId: sub,
        claims: () => ({ sub, email: `${sub}@example.com`, email_verified: true, name: sub }),
      }),
    });
    server.on('request', provider.callback());
    return whole;
  }

  /** Follows `location` like a browser, signs in as `name` and consents. Returns the URL of the final redirect to the client. */
  async signIn(location: string, name: string): Promise<URL> {
    const cookies = new Map<string, string>();
    let next = new URL(location);
    let form: URLSearchParams | null = null;
    for (let step = 0; step < STEPS_MAX; step += 1) {
      const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
      const sent: RequestInit = form === null ? {} : { method: 'POST', body: form.toString() };
      const response = await fetch(next, {
        ...sent,
        redirect: 'manual',
        headers: { ...(form === null ? {} : FORM), cookie },
      });
      for (const line of response.headers.getSetCookie()) {
        const [, key = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
        cookies.set(key, value);
      }
      const body = await response.text();
      const to = response.headers.get('location');
      if (to !== null) {
        form = null;
        next = new URL(to, next);
        if (next.origin !== this.issuer) return next;
        continue;
      }
      const [, prompt = ''] = /name="prompt" value="(\w+)"/.exec(body) ?? [];
      if (prompt === '') throw new Error(`no form: ${response.status} ${body.slice(0, 300)}`);
      form = new URLSearchParams({ prompt, login: name, password: 'any' });
    }
    throw new Error('the provider sends round and round');
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }
}

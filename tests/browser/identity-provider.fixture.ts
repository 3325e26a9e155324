// A real OpenID Connect provider (oidc-provider) on the loopback interface. Its sign-in page accepts every email address without a
// password.
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const CLIENT_ID = 'tunnels';
const CLIENT_SECRET = 'a secret that provider and tunnel share';

interface Grant {
  addOIDCScope(scope: string): void;
  save(): Promise<string>;
}

/** The parts of oidc-provider used here. The package has no type declarations. */
interface Provider {
  callback(): RequestListener;
  interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
  readonly Grant: new (of: { clientId: string; accountId: string }) => Grant;
}

type ProviderClass = new (issuer: string, configuration: object) => Provider;

interface GrantContext {
  readonly oidc: { readonly client: { clientId: string }; readonly session: { accountId: string } };
}

export interface IdentityProvider {
  readonly issuer: string;
  /** Value of `login` for a policy file: YAML on a single line. */
  readonly login: string;
  close(): Promise<void>;
}

/** Starts a provider. `callbacks` are the allowed redirect URIs. */
export const startIdentityProvider = async (callbacks: readonly string[]): Promise<IdentityProvider> => {
  let provider: Provider | undefined;
  const server = createServer((request, response) => {
    if (provider === undefined) response.writeHead(503).end();
    else if (request.url?.startsWith('/interaction/') === true) void signIn(provider, request, response);
    else provider.callback()(request, response);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  provider = await createProvider(issuer, callbacks);
  return {
    issuer,
    login: JSON.stringify({ issuer, client_id: CLIENT_ID, client_secret: CLIENT_SECRET }),
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
};

const createProvider = async (issuer: string, callbacks: readonly string[]): Promise<Provider> => {
  // The import uses a variable, because the package has no declarations for the compiler.
  const name = 'oidc-provider';
  const { default: ProviderOf } = (await import(name)) as { default: ProviderClass };
  const provider: Provider = new ProviderOf(issuer, {
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: CLIENT_SECRET,
        redirect_uris: callbacks,
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
    ],
    cookies: { keys: ['for this run alone'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    // Puts the email address into the ID token, like common providers.
    conformIdTokenClaims: false,
    findAccount: (_: unknown, sub: string) => ({
      accountId: sub,
      claims: () => ({ sub, email: sub, email_verified: !sub.startsWith('unverified') }),
    }),
    // Grants access to the email address without asking the user.
    loadExistingGrant: async ({ oidc }: GrantContext) => {
      const grant = new provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
      grant.addOIDCScope('openid email profile');
      await grant.save();
      return grant;
    },
  });
  return provider;
};

const PAGE = `<!doctype html><html lang="en"><title>Sign in</title>
<form method="post"><label>Email <input name="email" type="email" autofocus></label><button>Sign in</button></form></html>`;

const signIn = async (provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  if (request.method !== 'POST') {
    response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE);
    return;
  }
  let form = '';
  for await (const piece of request) form += String(piece);
  const accountId = new URLSearchParams(form).get('email') ?? '';
  await provider.interactionFinished(request, response, { login: { accountId } });
};

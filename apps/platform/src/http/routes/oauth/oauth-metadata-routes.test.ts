import { loadServerConfig } from '@tunnel/config/server';
import { createLogger } from '@tunnel/runtime';
import { describe, expect, it } from 'vitest';
import { oauthAddresses } from '../../../services/oauth/oauth-addresses.ts';
import { createPlatformApp } from '../../server/platform-app.ts';
import { addOauthMetadataRoutes } from './oauth-metadata-routes.ts';

const appOf = (publicUrl: string, hasMcp = true) => {
  const { platform: settings } = loadServerConfig({ env: {}, overrides: { platform: { public_url: publicUrl } } });
  const app = createPlatformApp({ logger: createLogger({ level: 'silent', format: 'json' }), settings });
  addOauthMetadataRoutes(app, { addresses: oauthAddresses(settings.public_url), hasMcp });
  return app;
};

const SERVER = '/.well-known/oauth-authorization-server';
const RESOURCE = '/.well-known/oauth-protected-resource';
const SCOPES = ['tunnels:read', 'requests:read', 'requests:replay', 'tunnels:close'];

describe('OAuth metadata', () => {
  it.each([
    ['https://tunnel.example', 'https://tunnel.example'],
    ['https://tunnel.example/', 'https://tunnel.example'],
    ['https://tunnel.example/base/', 'https://tunnel.example/base'],
  ])('of %s has URLs without a doubled slash', async (publicUrl, issuer) => {
    const app = appOf(publicUrl);
    expect(await (await app.request(SERVER)).json()).toEqual({
      issuer,
      authorization_endpoint: `${issuer}/oauth/authorize`,
      token_endpoint: `${issuer}/oauth/token`,
      revocation_endpoint: `${issuer}/oauth/revoke`,
      jwks_uri: `${issuer}/.well-known/jwks.json`,
      response_types_supported: ['code'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none'],
      client_id_metadata_document_supported: true,
      authorization_response_iss_parameter_supported: true,
      scopes_supported: SCOPES,
    });
    for (const path of [RESOURCE, `${RESOURCE}/mcp`]) {
      expect(await (await app.request(path)).json()).toEqual({
        resource: `${issuer}/mcp`,
        authorization_servers: [issuer],
        scopes_supported: SCOPES,
        bearer_methods_supported: ['header'],
        resource_name: 'Hatchway MCP server',
      });
    }
  });

  it('omits /mcp if it is switched off', async () => {
    const app = appOf('https://tunnel.example', false);
    for (const path of [RESOURCE, `${RESOURCE}/mcp`]) expect((await app.request(path)).status).toBe(404);
    expect((await app.request(SERVER)).status).toBe(200);
  });

  it('is readable from any origin, even with a custom request header', async () => {
    const app = appOf('https://tunnel.example');
    for (const path of [SERVER, RESOURCE, `${RESOURCE}/mcp`]) {
      const answer = await app.request(path, { headers: { origin: 'https://host.example' } });
      expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([200, '*']);
      const headers = {
        origin: 'https://host.example',
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'mcp-protocol-version',
      };
      const preflight = await app.request(path, { method: 'OPTIONS', headers });
      const allowed = ['origin', 'headers'].map((what) => preflight.headers.get(`access-control-allow-${what}`));
      expect([preflight.status, ...allowed]).toEqual([204, '*', '*']);
    }
  });
});

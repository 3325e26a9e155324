// Metadata documents for OAuth clients: the address and abilities of the authorization server, and the protected resource.
import { createRoute } from '@hono/zod-openapi';
import { OAUTH_SCOPES, oauthResource, oauthServer } from '@tunnel/contract';
import type { MiddlewareHandler } from 'hono';
import type { OauthAddresses } from '../../../services/oauth/oauth-addresses.ts';
import type { PlatformApp, PlatformEnv } from '../../shared/platform-env.ts';
import { EXTENSIONS, json, noKey } from '../../shared/route-parts.ts';

const tags = ['oauth', EXTENSIONS];

const RESOURCE_PATH = '/.well-known/oauth-protected-resource';
const SERVER_PATH = '/.well-known/oauth-authorization-server';
const KEYS_PATH = '/.well-known/jwks.json';

const describedResource = (path: string) =>
  createRoute({
    method: 'get',
    path,
    tags,
    summary: 'Get the protected resource metadata of /mcp (RFC 9728)',
    security: noKey,
    responses: { 200: json(oauthResource, 'The metadata, readable from any origin.') },
  });

const serverRoute = createRoute({
  method: 'get',
  path: SERVER_PATH,
  tags,
  summary: 'Get the authorization server metadata (RFC 8414)',
  security: noKey,
  responses: { 200: json(oauthServer, 'The metadata, readable from any origin.') },
});

/** Middleware that allows pages from any origin to read the response, which is public and independent of cookies. */
export const forAnyPage: MiddlewareHandler<PlatformEnv> = async (context, next) => {
  context.header('access-control-allow-origin', '*');
  await next();
};

/** Headers for CORS preflight requests. MCP hosts in a browser send an MCP header, for which the browser first asks permission. */
const PREFLIGHT = {
  'access-control-allow-methods': 'GET, HEAD',
  'access-control-allow-headers': '*',
  'access-control-max-age': '86400',
} as const;

export const addOauthMetadataRoutes = (
  app: PlatformApp,
  { addresses, hasMcp }: { readonly addresses: OauthAddresses; readonly hasMcp: boolean },
): void => {
  const { issuer, resource } = addresses;
  const resourceDocument = {
    resource,
    authorization_servers: [issuer],
    scopes_supported: [...OAUTH_SCOPES],
    bearer_methods_supported: ['header' as const],
    resource_name: 'Hatchway MCP server',
  };
  const serverDocument = {
    issuer,
    authorization_endpoint: `${issuer}/oauth/authorize`,
    token_endpoint: `${issuer}/oauth/token`,
    revocation_endpoint: `${issuer}/oauth/revoke`,
    jwks_uri: `${issuer}${KEYS_PATH}`,
    response_types_supported: ['code' as const],
    grant_types_supported: ['authorization_code' as const, 'refresh_token' as const],
    code_challenge_methods_supported: ['S256' as const],
    token_endpoint_auth_methods_supported: ['none' as const],
    client_id_metadata_document_supported: true as const,
    authorization_response_iss_parameter_supported: true as const,
    scopes_supported: [...OAUTH_SCOPES],
  };
  // If /mcp is disabled, the resource is not described, because programs would only be led to a 404.
  const resourcePaths = hasMcp ? [RESOURCE_PATH, `${RESOURCE_PATH}/mcp`] : [];
  for (const path of [...resourcePaths, SERVER_PATH]) {
    app.use(path, forAnyPage);
    app.options(path, (context) => context.body(null, 204, PREFLIGHT));
  }
  for (const path of resourcePaths) {
    app.openapi(describedResource(path), (context) => context.json(resourceDocument, 200));
  }
  app.openapi(serverRoute, (context) => context.json(serverDocument, 200));
};

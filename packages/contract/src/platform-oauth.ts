// Schemas of the OAuth authorization server in the platform API: requests of a model's host app, decisions of the user, and connected
// apps.
import * as z from 'zod';

export const oauthScope = z.enum(['tunnels:read', 'requests:read', 'requests:replay', 'tunnels:close']).meta({
  id: 'OauthScope',
  description:
    '`tunnels:read`: read tunnels, groups, usage, key labels and status. `requests:read`: read captured requests. `requests:replay`: replay captured requests. `tunnels:close`: close tunnels.',
});
export type OauthScope = z.infer<typeof oauthScope>;

/** All OAuth scopes, in the order shown to users. */
export const OAUTH_SCOPES: readonly OauthScope[] = oauthScope.options;

const clientId = z.string().meta({
  description:
    "The client id: the URL of the client's metadata document, or the id of a client registered by the operator.",
  examples: ['https://app.example.com/oauth/client.json'],
});
const clientHost = z.string().meta({
  description:
    'The verified identity of the client: the host in the client id, or the name given by the operator for a registered client.',
  examples: ['app.example.com'],
});
const clientName = z.string().meta({
  description: "The client's own name (not verified), or the host if the client has no name.",
  examples: ['Example Assistant'],
});

export const oauthRequest = z
  .object({
    id: z.string().meta({ examples: ['ask_4fK2mQ9xVbT7RsLpZ0aE'] }),
    client_id: clientId,
    client_host: clientHost,
    client_name: clientName,
    redirect_host: z.string().meta({
      description: 'The host, and port if given, that receives the response.',
      examples: ['127.0.0.1:33418'],
    }),
    scopes: z.array(oauthScope).meta({ description: 'The requested scopes.' }),
    expires_at: z.iso.datetime(),
  })
  .meta({ id: 'OauthRequest', description: 'A pending request to connect an app.' });
export type OauthRequest = z.infer<typeof oauthRequest>;

export const oauthDecision = z
  .object({
    allow: z.boolean(),
    scopes: z.array(oauthScope).max(OAUTH_SCOPES.length).optional().meta({
      description: 'The granted scopes: at least one of the requested scopes. Omitted: all requested scopes.',
    }),
  })
  .meta({ id: 'OauthDecision' });
export type OauthDecision = z.infer<typeof oauthDecision>;

export const oauthDecided = z
  .object({
    redirect_to: z.url().meta({
      description: 'The redirect URL of the app, with a code or `error=access_denied`.',
      examples: ['http://127.0.0.1:33418/callback?code=Qx4vT7&state=af0ifjs&iss=https%3A%2F%2Fplatform.example.com'],
    }),
  })
  .meta({ id: 'OauthDecided' });
export type OauthDecided = z.infer<typeof oauthDecided>;

export const oauthGrant = z
  .object({
    id: z.string().meta({ examples: ['0b6f3a54-6a0e-4f0e-9a53-0d7c3a1f5b11'] }),
    client_id: clientId,
    client_host: clientHost,
    client_name: clientName,
    scopes: z.array(oauthScope),
    created_at: z.iso.datetime(),
    last_used_at: z.iso.datetime().nullable().meta({ description: 'The time of the last token request.' }),
  })
  .meta({ id: 'OauthGrant', description: 'An app connected to the account.' });
export type OauthGrant = z.infer<typeof oauthGrant>;

export const oauthGrants = z
  .object({
    grants: z.array(oauthGrant),
    mcp: z
      .literal(false)
      .optional()
      .meta({ description: 'False if `/mcp` is turned off, so no app can connect. Omitted if `/mcp` is on.' }),
  })
  .meta({ id: 'OauthGrants' });
export type OauthGrants = z.infer<typeof oauthGrants>;

export const oauthTokens = z
  .object({
    access_token: z.string().meta({ description: 'The access token (a JWT), valid only for `/mcp`.' }),
    token_type: z.literal('Bearer'),
    expires_in: z
      .int()
      .min(1)
      .meta({ examples: [900] }),
    refresh_token: z.string(),
    scope: z
      .string()
      .meta({ description: 'The granted scopes, separated by spaces.', examples: ['tunnels:read requests:read'] }),
  })
  .meta({ id: 'OauthTokens' });
export type OauthTokens = z.infer<typeof oauthTokens>;

export const oauthError = z
  .object({
    error: z.string().meta({ description: 'The error code defined in RFC 6749.', examples: ['invalid_grant'] }),
    error_description: z.string(),
  })
  .meta({ id: 'OauthError' });
export type OauthError = z.infer<typeof oauthError>;

/** Metadata of an OAuth protected resource (RFC 9728). */
export const oauthResource = z
  .object({
    resource: z.url(),
    authorization_servers: z.array(z.url()),
    scopes_supported: z.array(oauthScope),
    bearer_methods_supported: z.array(z.literal('header')),
    resource_name: z.string(),
  })
  .meta({
    id: 'OauthResource',
    description: 'Metadata of the protected resource /mcp, including the authorization server.',
  });

/** Metadata of an OAuth authorization server (RFC 8414). */
export const oauthServer = z
  .object({
    issuer: z.url(),
    authorization_endpoint: z.url(),
    token_endpoint: z.url(),
    revocation_endpoint: z.url(),
    jwks_uri: z.url(),
    response_types_supported: z.array(z.literal('code')),
    grant_types_supported: z.array(z.enum(['authorization_code', 'refresh_token'])),
    code_challenge_methods_supported: z.array(z.literal('S256')),
    token_endpoint_auth_methods_supported: z.array(z.literal('none')),
    client_id_metadata_document_supported: z.literal(true),
    authorization_response_iss_parameter_supported: z.literal(true),
    scopes_supported: z.array(oauthScope),
  })
  .meta({ id: 'OauthServer', description: 'Metadata of the authorization server: endpoints and capabilities.' });

export const oauthTokenForm = z
  .object({
    grant_type: z.enum(['authorization_code', 'refresh_token']),
    client_id: clientId,
    code: z.string().optional(),
    redirect_uri: z
      .string()
      .optional()
      .meta({ description: 'With a code: the redirect URI of the authorization request.' }),
    code_verifier: z.string().optional().meta({ description: 'With a code: the verifier for the code challenge.' }),
    refresh_token: z.string().optional(),
    scope: z.string().optional().meta({ description: 'With a refresh token: a subset of the granted scopes.' }),
    resource: z.string().optional().meta({ description: 'If given, the resource of the authorization request.' }),
  })
  .meta({ id: 'OauthTokenForm', description: 'A token request with a `code` or a `refresh_token`.' });

export const oauthRevokeForm = z
  .object({ token: z.string().optional(), token_type_hint: z.string().optional(), client_id: z.string().optional() })
  .meta({ id: 'OauthRevokeForm' });

// The authorization server in the platform API: what a model's host asks for, what its user decides, and which apps are connected.
import * as z from 'zod';

export const oauthScope = z.enum(['tunnels:read', 'requests:read', 'requests:replay', 'tunnels:close']).meta({
  id: 'OauthScope',
  description:
    '`tunnels:read`: tunnels, pools, usage, labels of keys, status. `requests:read`: captured requests. `requests:replay`: send a captured request again. `tunnels:close`: close a tunnel.',
});
export type OauthScope = z.infer<typeof oauthScope>;

/** All that there are, in the order in which people read them. */
export const OAUTH_SCOPES: readonly OauthScope[] = oauthScope.options;

const clientId = z.string().meta({
  description: 'The URL of its metadata document, or the id of a client that the operator registered.',
  examples: ['https://app.example.com/oauth/client.json'],
});
const clientHost = z.string().meta({
  description:
    'Who that is, as far as anybody knows: the host of the client id; of a client that the operator registered, the name that the operator gave it.',
  examples: ['app.example.com'],
});
const clientName = z.string().meta({
  description: 'What it calls itself. Nobody has checked it; without a name of its own the host.',
  examples: ['Example Assistant'],
});

export const oauthRequest = z
  .object({
    id: z.string().meta({ examples: ['ask_4fK2mQ9xVbT7RsLpZ0aE'] }),
    client_id: clientId,
    client_host: clientHost,
    client_name: clientName,
    redirect_host: z.string().meta({
      description: 'Where the answer goes: host, and port if it is named.',
      examples: ['127.0.0.1:33418'],
    }),
    scopes: z.array(oauthScope).meta({ description: 'What it asks for.' }),
    expires_at: z.iso.datetime(),
  })
  .meta({ id: 'OauthRequest', description: 'An app asks to be connected, and waits for its user.' });
export type OauthRequest = z.infer<typeof oauthRequest>;

export const oauthDecision = z
  .object({
    allow: z.boolean(),
    scopes: z
      .array(oauthScope)
      .max(OAUTH_SCOPES.length)
      .optional()
      .meta({ description: 'Some of those that were asked for, at least one; absent: all of them.' }),
  })
  .meta({ id: 'OauthDecision' });
export type OauthDecision = z.infer<typeof oauthDecision>;

export const oauthDecided = z
  .object({
    redirect_to: z.url().meta({
      description: 'Where the browser goes next: the app, with a code or `error=access_denied`.',
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
    last_used_at: z.iso.datetime().nullable().meta({ description: 'When it last came for a token.' }),
  })
  .meta({ id: 'OauthGrant', description: 'An app that is connected to the account.' });
export type OauthGrant = z.infer<typeof oauthGrant>;

export const oauthGrants = z
  .object({
    grants: z.array(oauthGrant),
    mcp: z
      .literal(false)
      .optional()
      .meta({ description: 'false: `/mcp` is switched off here, so that no app can be connected. Absent: it is on.' }),
  })
  .meta({ id: 'OauthGrants' });
export type OauthGrants = z.infer<typeof oauthGrants>;

export const oauthTokens = z
  .object({
    access_token: z.string().meta({ description: 'A JWT for `/mcp` alone.' }),
    token_type: z.literal('Bearer'),
    expires_in: z
      .int()
      .min(1)
      .meta({ examples: [900] }),
    refresh_token: z.string(),
    scope: z.string().meta({ description: 'Separated by spaces.', examples: ['tunnels:read requests:read'] }),
  })
  .meta({ id: 'OauthTokens' });
export type OauthTokens = z.infer<typeof oauthTokens>;

export const oauthError = z
  .object({
    error: z.string().meta({ description: 'As RFC 6749 names it.', examples: ['invalid_grant'] }),
    error_description: z.string(),
  })
  .meta({ id: 'OauthError' });
export type OauthError = z.infer<typeof oauthError>;

/** RFC 9728. */
export const oauthResource = z
  .object({
    resource: z.url(),
    authorization_servers: z.array(z.url()),
    scopes_supported: z.array(oauthScope),
    bearer_methods_supported: z.array(z.literal('header')),
    resource_name: z.string(),
  })
  .meta({ id: 'OauthResource', description: 'What /mcp is, and who gives tokens for it.' });

/** RFC 8414. */
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
  .meta({ id: 'OauthServer', description: 'The authorization server: its addresses, and what it can do.' });

export const oauthTokenForm = z
  .object({
    grant_type: z.enum(['authorization_code', 'refresh_token']),
    client_id: clientId,
    code: z.string().optional(),
    redirect_uri: z.string().optional().meta({ description: 'With a code: that of the authorization request.' }),
    code_verifier: z.string().optional().meta({ description: 'With a code: what its challenge was made of.' }),
    refresh_token: z.string().optional(),
    scope: z.string().optional().meta({ description: 'With a refresh token: fewer than were allowed.' }),
    resource: z.string().optional().meta({ description: 'If it is named, that of the authorization request.' }),
  })
  .meta({ id: 'OauthTokenForm', description: 'The fields of `code` or of `refresh_token`.' });

export const oauthRevokeForm = z
  .object({ token: z.string().optional(), token_type_hint: z.string().optional(), client_id: z.string().optional() })
  .meta({ id: 'OauthRevokeForm' });

// Public addresses of the authorization server and of the protected resource. Tokens and metadata must contain the same addresses.

export interface OauthAddresses {
  /** Setting public_url without a trailing slash. */
  readonly issuer: string;
  /** Audience of access tokens: the only resource that accepts the tokens. */
  readonly resource: string;
  /** Address of the resource's metadata, announced in a 401 response of the resource. */
  readonly resourceMetadata: string;
}

export const oauthAddresses = (publicUrl: string): OauthAddresses => {
  const issuer = publicUrl.replace(/\/+$/, '');
  return {
    issuer,
    resource: `${issuer}/mcp`,
    resourceMetadata: `${issuer}/.well-known/oauth-protected-resource/mcp`,
  };
};

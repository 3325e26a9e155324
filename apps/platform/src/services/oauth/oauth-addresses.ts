// Where the authorization server and what it guards are, as the outside sees them: the words that tokens and metadata must agree on.

export interface OauthAddresses {
  /** public_url without a slash at its end. */
  readonly issuer: string;
  /** Whom access tokens are for: the one thing that they open. */
  readonly resource: string;
  /** Of the resource, which a 401 there leads to. */
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

// Which certificates an edge without a platform wants, by its configuration.
import type { ServerConfig } from '@tunnel/runtime';

export interface WantedHere {
  readonly names: readonly string[];
  /** Of the operator's own names; others are tenants'. */
  readonly isOperators: boolean;
}

export const wantedHere = (
  { server, auth, policy }: Pick<ServerConfig, 'server' | 'auth' | 'policy'>,
  canWildcard: boolean,
): readonly WantedHere[] => {
  const { domain } = server;
  const reserved = auth.keys.flatMap((key) => key.reserved).filter((label) => !label.includes('/'));
  const isWildcard = (name: string): boolean => name.startsWith('*.');
  const needsEdgeHost = policy.login.length > 0 && !canWildcard;
  return [
    { names: [domain], isOperators: true },
    ...(canWildcard ? [{ names: [`*.${domain}`], isOperators: true }] : []),
    ...(needsEdgeHost ? [{ names: [`edge.${domain}`], isOperators: true }] : []),
    ...reserved
      .filter((label) => isWildcard(label) === canWildcard)
      .map((label) => ({ names: [`${label}.${domain}`], isOperators: false })),
    ...auth.keys
      .flatMap((key) => key.domains)
      .filter((name) => canWildcard || !isWildcard(name))
      .map((name) => ({ names: [name], isOperators: false })),
  ];
};

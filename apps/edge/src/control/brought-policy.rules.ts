// Validates the policy of a registration. Faults use the wording of the policy file's author. Pure functions without side effects.
import { Fault } from '@tunnel/errors';
import { type Policy, problemsOfIssues, problemsOfPolicy, problemText, wirePolicySchema } from '@tunnel/policy';
import { shownText } from '@tunnel/rules/names';
import type { TunnelProtocol } from '@tunnel/rules/tunnels';

export interface BroughtFields {
  /** Policy as received with a registration. Undefined or null if the tunnel has no policy. */
  readonly policy?: unknown;
  /** Names of the client's services that the policy's action `route` can choose. */
  readonly services?: readonly string[] | undefined;
  readonly proxyProtocol?: string | undefined;
}

export interface PolicyFacts {
  readonly protocol: TunnelProtocol;
  /** Names of the operator's login providers. */
  readonly loginProviders: readonly string[];
}

/** Returns the policy, null if the tunnel has no policy and is open to the public, or a fault. */
export const judgePolicy = (
  { policy: brought, services = [], proxyProtocol }: BroughtFields,
  { protocol, loginProviders }: PolicyFacts,
): Policy | null | Fault => {
  const shape = SHAPES[protocol];
  if (services.length > 0 && shape !== 'http') return invalid('services are for http tunnels');
  const twice = services.find((name, at) => services.indexOf(name) !== at);
  if (twice !== undefined) return invalid(`services: '${twice}' is listed twice`);
  if (proxyProtocol !== undefined && (shape === null || shape === 'http')) {
    return invalid('proxy_protocol is for tcp and udp tunnels');
  }
  if (brought === undefined || brought === null) return null;
  if (shape === null) return invalid('policy is for http, tcp and udp tunnels');
  const parsed = wirePolicySchema.safeParse(brought);
  if (!parsed.success) return invalid(problemText(problemsOfIssues(brought, parsed.error.issues)[0]));
  const policy: Policy = parsed.data;
  const [problem] = problemsOfPolicy(policy, { protocol: shape, services });
  if (problem !== undefined) return invalid(problemText(problem));
  const { login } = policy;
  if (login !== null && 'provider' in login && !loginProviders.includes(login.provider)) {
    return invalid(`policy login: provider '${shownText(login.provider)}' is not known to this edge`);
  }
  return policy;
};

/** Kind of traffic a policy sees on each protocol. Null for protocols without a public address. */
const SHAPES: Readonly<Record<TunnelProtocol, 'http' | 'tcp' | 'udp' | null>> = {
  http: 'http',
  https: 'http',
  tcp: 'tcp',
  tls: 'tcp',
  udp: 'udp',
  p2p: null,
};

const invalid = (reason: string): Fault => new Fault('POLICY_INVALID', { reason });

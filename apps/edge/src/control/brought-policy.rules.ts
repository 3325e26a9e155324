// The policy that a registration brings: whether this edge takes it, in the words of the one who wrote it. Says; never does.
import { Fault } from '@tunnel/errors';
import { type Policy, problemsOfIssues, problemsOfPolicy, problemText, wirePolicySchema } from '@tunnel/policy';
import { shownText } from '@tunnel/rules/names';
import type { TunnelProtocol } from '@tunnel/rules/tunnels';

export interface BroughtFields {
  /** As it came; undefined and null: none. */
  readonly policy?: unknown;
  /** What `route` may name. */
  readonly services?: readonly string[] | undefined;
  readonly proxyProtocol?: string | undefined;
}

export interface PolicyFacts {
  readonly protocol: TunnelProtocol;
  /** The operator's, by name. */
  readonly loginProviders: readonly string[];
}

/** null: there is none, and the tunnel is open to everyone. */
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

/** What rules are asked about on it; null: it has no public to be asked about. */
const SHAPES: Readonly<Record<TunnelProtocol, 'http' | 'tcp' | 'udp' | null>> = {
  http: 'http',
  https: 'http',
  tcp: 'tcp',
  tls: 'tcp',
  udp: 'udp',
  p2p: null,
};

const invalid = (reason: string): Fault => new Fault('POLICY_INVALID', { reason });

// The policy that a registration brings: whether this edge takes it, in the words of the one who wrote it. Says; never does.
import { Fault } from '@tunnel/errors';
import type * as z from 'zod';
import { shownText } from '../names.ts';
import type { TunnelProtocol } from '../tunnel-protocols.ts';
import type { Policy } from './policy.ts';
import { problemsOfPolicy } from './policy-checks.ts';
import { wirePolicySchema } from './policy-schema.ts';

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
  if (twice !== undefined) return invalid(`services: '${twice}' is there twice`);
  if (proxyProtocol !== undefined && (shape === null || shape === 'http')) {
    return invalid('proxy_protocol is for tcp and udp tunnels');
  }
  if (brought === undefined || brought === null) return null;
  if (shape === null) return invalid('policy is for http, tcp and udp tunnels');
  const parsed = wirePolicySchema.safeParse(brought);
  if (!parsed.success) return invalid(lineOfIssue(brought, parsed.error.issues[0]));
  const policy: Policy = parsed.data;
  const [problem] = problemsOfPolicy(policy, { protocol: shape, services });
  if (problem !== undefined) return invalid(lineOf(brought, problem.path, problem.message));
  const { login } = policy;
  if (login !== null && 'provider' in login && !loginProviders.includes(login.provider)) {
    return invalid(`policy login: provider '${shownText(login.provider)}' is not known to this edge`);
  }
  return policy;
};

/** What rules are asked about on it; null: it has no public to be asked about. */
const SHAPES: Readonly<Record<TunnelProtocol, 'http' | 'tcp' | 'udp' | null>> = {
  ...{ http: 'http', https: 'http', tcp: 'tcp', udp: 'udp', p2p: null },
};

type Path = readonly PropertyKey[];

const lineOfIssue = (brought: unknown, issue: z.core.$ZodIssue | undefined): string => {
  const path = issue?.path ?? [];
  const within = pathWithin(path);
  return lineOf(brought, path, `${within === '' ? '' : `${within}: `}${issue?.message ?? 'not valid'}`);
};

/** People count rules from 1. */
const lineOf = (brought: unknown, path: Path, message: string): string => {
  const [first, index] = path;
  if (first === 'login') return `policy login: ${message}`;
  if (first !== 'rules' || typeof index !== 'number') return `policy: ${message}`;
  const name = nameOfRule(brought, index);
  return `policy rule ${index + 1}${name === null ? '' : ` (${name})`}: ${message}`;
};

/** Inside its rule, or inside `login`: what stands before is said in words. */
const pathWithin = (path: Path): string => {
  const [first, index] = path;
  const from = first === 'login' ? 1 : first === 'rules' && typeof index === 'number' ? 2 : 0;
  return path.slice(from).map(String).join('.');
};

/** Of what may be no policy at all. */
const nameOfRule = (brought: unknown, index: number): string | null => {
  const rules = (brought as { rules?: unknown } | null)?.rules;
  const rule: unknown = Array.isArray(rules) ? rules[index] : null;
  const name = (rule as { name?: unknown } | null)?.name;
  return typeof name === 'string' && name !== '' ? shownText(name) : null;
};

const invalid = (reason: string): Fault => new Fault('POLICY_INVALID', { reason });

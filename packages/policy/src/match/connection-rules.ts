// Rules that depend only on the address and can therefore be decided for a connection before its first byte.
import { type ActionName, actionOf, type Match, type Rule } from '../policy.ts';

const ON_CONNECTIONS: ReadonlySet<ActionName> = new Set<ActionName>(['allow', 'deny', 'allow_addresses', 'rate_limit']);

export const isConnectionAction = (action: ActionName): boolean => ON_CONNECTIONS.has(action);

export const REQUEST_FIELDS = ['method', 'path', 'header'] as const;

/** Returns the first condition, also inside `not`, that needs a request. Undefined if the match works for connections. */
export const requestFieldOf = (match: Match | undefined): (typeof REQUEST_FIELDS)[number] | undefined =>
  match === undefined
    ? undefined
    : (REQUEST_FIELDS.find((field) => match[field] !== undefined) ?? requestFieldOf(match.not));

export const isOfConnections = (rule: Rule): boolean =>
  isConnectionAction(actionOf(rule)) && requestFieldOf(rule.match) === undefined;

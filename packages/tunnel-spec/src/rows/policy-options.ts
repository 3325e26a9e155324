// Options for access rules, and for the local services that a policy can route requests to.
import * as z from 'zod';
import { SERVICE_NAME_EXPECTED, serviceName } from '../names.ts';
import { GROUPED, GUARDED, HTTP, rows } from '../option.ts';
import { conceal, wholeNumber } from '../values.ts';

/** Schema of a policy: the path of a policy file, or the content of such a file. The policy package checks the content. */
const policyValue = () => {
  const error = 'a file, a list of rules, or a table of `login` and `rules`';
  const isOne = (value: unknown): boolean =>
    typeof value === 'string' ? value.trim() !== '' : typeof value === 'object' && value !== null;
  return conceal(z.unknown().refine(isOne, { error }));
};

const HOST_AND_PORT = /^(?:(?:\[[0-9a-f:.%]+\]|[^\s:/?#@[\]]+):)?(\d{1,5})$/i;

/** Schema of an additional local service's address: a port, or `host:port`. */
const portOrAddress = () => {
  const error = 'a port, or "host:port"';
  return z.union([z.int(), z.string()], { error }).refine(
    (value) => {
      const port = Number(typeof value === 'number' ? value : HOST_AND_PORT.exec(value)?.[1]);
      return port >= 1 && port <= 65_535;
    },
    { error },
  );
};

const SERVICES = 'a table of at most 16 names, each with its port';

const services = () =>
  z
    .record(serviceName(), portOrAddress(), {
      error: (issue) => (issue.code === 'invalid_key' ? SERVICE_NAME_EXPECTED : SERVICES),
    })
    .refine((names) => Object.keys(names).length <= 16, { error: SERVICES });

export const POLICY_OPTIONS = rows({
  policy: {
    protos: GUARDED,
    schema: () => policyValue().optional(),
    reload: 'update',
    flag: {
      shown: '<file>',
      value: { kind: 'path' },
      help: 'Policy file with rules for visitors and requests',
      heading: 'access',
    },
    docs: {
      type: 'path, rules, table',
      meaning: 'rules for visitors and requests: a file, a list of rules, or `{ login, rules }`',
    },
  },
  policy_revision: {
    protos: GROUPED,
    schema: () => wholeNumber(0, Number.MAX_SAFE_INTEGER).optional(),
    reload: 'update',
    docs: {
      type: '0 and up',
      meaning: 'in a group, the policy with the highest revision replaces the others; without a revision: 0',
    },
  },
  services: {
    protos: HTTP,
    schema: () => services().optional(),
    reload: 'update',
    flag: {
      long: 'service',
      shown: '<name=port>',
      value: { kind: 'named ports' },
      help: 'Local service for `route` in the policy (repeatable)',
      heading: 'access',
    },
    fields: {
      '<name>': {
        docs: {
          type: 'port, `host:port`',
          meaning: 'HTTP: additional local service for `route` in the policy; at most 16',
        },
      },
    },
  },
});

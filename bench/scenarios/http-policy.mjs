// The cost of policy rules for a small GET: no rules compared with an earlier build, ten rules, and each way to authenticate a visitor
// compared with the same request without a check.
import { measureSmallRequests, PER_REQUEST } from './http.mjs';

/** Description of each authentication method. */
const KNOWN_BY = { basic: 'a password', login: 'the cookie of a login', token: 'a token', jwt: 'a JWT' };

const policyScenario = ({ name, title, paths, yardstick, targets }) => ({
  name,
  title: `HTTP, ${title}: small GETs on 50 keep-alive connections`,
  protocol: 'http',
  needs: ['wrk'],
  figures: PER_REQUEST,
  paths,
  yardstick,
  targets,
  measure: (stage) =>
    measureSmallRequests(stage, { connections: 50, keepAlive: true, headers: stage.account?.headers ?? [] }),
});

export const httpPolicyScenarios = [
  policyScenario({
    name: 'http-policy-none',
    title: 'a tunnel without rules, compared with an earlier build (--baseline)',
    paths: ['ours'],
    yardstick: 'before',
    targets: [{ path: 'ours', figure: 'cpuPerRequestUs', ratioAtMost: 1.02 }],
  }),
  policyScenario({
    name: 'http-policy-10',
    title: 'cost of ten rules',
    paths: ['ours', 'ours-policy-10'],
    yardstick: 'ours',
    targets: [{ path: 'ours-policy-10', figure: 'cpuPerRequestUs', ratioAtMost: 1.15 }],
  }),
  // Compared with the same requests through a tunnel without rules, so that the cost of a longer head is not part of the result.
  ...Object.entries(KNOWN_BY).map(([method, words]) =>
    policyScenario({
      name: `http-policy-auth-${method}`,
      title: `cost of authenticating a visitor by ${words}`,
      paths: [`ours-open-${method}`, `ours-${method}`],
      yardstick: `ours-open-${method}`,
      targets: [{ path: `ours-${method}`, figure: 'cpuPerRequestUs', ratioAtMost: 1.2 }],
    }),
  ),
];

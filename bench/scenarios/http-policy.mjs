// What rules cost a small GET: none at all beside the state before, ten of them, and each way to know a visitor.
import { measureSmallRequests, PER_REQUEST } from './http.mjs';

const KNOWN_VISITORS = ['ours-basic', 'ours-login', 'ours-token', 'ours-jwt'];

const policyScenario = ({ name, title, paths, yardstick, targets }) => ({
  name,
  title: `HTTP, ${title}: small GETs on 50 connections that stay open`,
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
    title: 'a tunnel without rules beside the state before (--baseline)',
    paths: ['ours'],
    yardstick: 'before',
    targets: [{ path: 'ours', figure: 'cpuPerRequestUs', ratioAtMost: 1.02 }],
  }),
  policyScenario({
    name: 'http-policy-10',
    title: 'what ten rules cost',
    paths: ['ours', 'ours-policy-10'],
    yardstick: 'ours',
    targets: [{ path: 'ours-policy-10', figure: 'cpuPerRequestUs', ratioAtMost: 1.15 }],
  }),
  policyScenario({
    name: 'http-policy-auth',
    title: 'what it costs to know a visitor by password, login, token or JWT',
    paths: ['ours', ...KNOWN_VISITORS],
    yardstick: 'ours',
    targets: KNOWN_VISITORS.map((path) => ({ path, figure: 'cpuPerRequestUs', ratioAtMost: 1.2 })),
  }),
];

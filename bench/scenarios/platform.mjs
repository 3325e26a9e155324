// The platform API: what calls cost beside a bare route of the same framework, and how fast /health is while people log in.
import { perUnitUs } from './figures.mjs';

const CONNECTIONS = 20;
const LOGINS_PER_SECOND = 20;
const PROBES_PER_SECOND = 100;

/** @param {string} path of a call with an access token; the bare route has one path for all */
const calls = ({ name, path, targets = [] }) => ({
  name: `platform-${name}`,
  title: `Platform API, GET ${path} on ${CONNECTIONS} connections that stay open`,
  needs: ['wrk'],
  paths: ['bare-hono', 'platform'],
  yardstick: 'bare-hono',
  figures: ['requestsPerCpuSecond', 'cpuPerRequestUs', 'requestsPerSecond', 'p50Ms', 'p99Ms'],
  targets,
  async measure(stage) {
    const { requests, seconds, p50Ms, p99Ms, cpu, window } = await stage.measure('wrk', {
      command: stage.tools.wrk.command,
      connections: CONNECTIONS,
      keepAlive: true,
      path: stage.pathName === 'bare-hono' ? '/auth/me' : path,
      headers: [`Authorization: Bearer ${stage.account.access_token}`],
      warmUpRequests: stage.quick ? 2000 : 20_000,
      seconds: stage.quick ? 1 : 4,
    });
    return {
      requestsPerCpuSecond: requests / cpu.both,
      cpuPerRequestUs: perUnitUs(cpu.both, requests),
      requestsPerSecond: requests / seconds,
      p50Ms,
      p99Ms,
      window,
    };
  },
});

const health = {
  name: 'platform-health',
  title: `Platform API, GET /health ${PROBES_PER_SECOND} times a second while ${LOGINS_PER_SECOND} people a second log in`,
  paths: ['platform'],
  yardstick: 'platform',
  figures: ['p50Ms', 'p99Ms', 'loginsPerSecond', 'loginP99Ms'],
  targets: [{ path: 'platform', figure: 'p99Ms', atMost: 50 }],
  async measure(stage) {
    const seconds = stage.quick ? 2 : 8;
    const { email, password } = stage.account;
    const [logins, probes] = await Promise.all([
      stage.beginBeside('paced', {
        ...{ method: 'POST', path: '/auth/login', body: { email, password }, status: 200, orStatus: 503 },
        ...{ perSecond: LOGINS_PER_SECOND, seconds },
      }),
      stage.begin('paced', { path: '/health', status: 200, perSecond: PROBES_PER_SECOND, seconds }),
    ]);
    const [login, probe] = await Promise.all([logins.finish(), probes.finish()]);
    const { p50Ms, p99Ms } = probe;
    return { p50Ms, p99Ms, loginsPerSecond: login.requests / login.seconds, loginP99Ms: login.p99Ms };
  },
};

export const platformScenarios = [
  // At least a quarter of the bare route's requests in a second of CPU.
  calls({ name: 'me', path: '/auth/me', targets: [{ path: 'platform', figure: 'cpuPerRequestUs', ratioAtMost: 4 }] }),
  calls({ name: 'keys', path: '/keys' }),
  calls({ name: 'usage', path: '/usage' }),
  health,
];

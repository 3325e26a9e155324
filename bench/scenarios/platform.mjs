// The platform API: the cost of calls compared with a bare route of the same framework, and the speed of /health during sign-ins.
import { perUnitUs } from './figures.mjs';

const CONNECTIONS = 20;
const LOGINS_PER_SECOND = 20;
const PROBES_PER_SECOND = 100;

const CALL_FIGURES = ['requestsPerCpuSecond', 'cpuPerRequestUs', 'requestsPerSecond', 'p50Ms', 'p99Ms'];

/** @param {{ path: string, headers: string[], body?: string }} call */
async function measureCalls(stage, call) {
  const { requests, seconds, p50Ms, p99Ms, cpu, window } = await stage.measure('wrk', {
    command: stage.tools.wrk.command,
    connections: CONNECTIONS,
    keepAlive: true,
    name: null,
    ...call,
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
}

/** @param {string} path path of a call with an access token; the bare route uses the same path for all calls */
const calls = ({ name, path, targets = [] }) => ({
  name: `platform-${name}`,
  title: `Platform API, GET ${path} on ${CONNECTIONS} keep-alive connections`,
  needs: ['wrk'],
  paths: ['bare-hono', 'platform'],
  yardstick: 'bare-hono',
  figures: CALL_FIGURES,
  targets,
  measure: (stage) =>
    measureCalls(stage, { ...asPerson(stage.account), path: stage.path.name === 'bare-hono' ? '/auth/me' : path }),
});

/** A request of the newest MCP revision, in which each request carries all client information. */
const LIST_TOOLS = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/list',
  params: {
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
});

const asModel = ({ api_key: key }) => ({
  path: '/mcp',
  headers: [
    ...[`Authorization: Bearer ${key}`, 'Content-Type: application/json'],
    ...['Accept: application/json, text/event-stream', 'MCP-Protocol-Version: 2026-07-28', 'Mcp-Method: tools/list'],
  ],
  body: LIST_TOOLS,
});

const asPerson = ({ access_token: token }) => ({ path: '/auth/me', headers: [`Authorization: Bearer ${token}`] });

const mcp = {
  name: 'platform-mcp',
  title: `MCP at the platform, tools/list with a key on ${CONNECTIONS} keep-alive connections, compared with GET /auth/me`,
  needs: ['wrk'],
  paths: ['platform', 'platform-mcp'],
  yardstick: 'platform',
  figures: CALL_FIGURES,
  // At least a third of the requests of GET /auth/me per second of processor time.
  targets: [{ path: 'platform-mcp', figure: 'cpuPerRequestUs', ratioAtMost: 3 }],
  measure: (stage) =>
    measureCalls(stage, stage.path.name.endsWith('platform-mcp') ? asModel(stage.account) : asPerson(stage.account)),
};

const health = {
  name: 'platform-health',
  title: `Platform API, GET /health ${PROBES_PER_SECOND} times a second during ${LOGINS_PER_SECOND} sign-ins a second`,
  paths: ['platform'],
  yardstick: 'platform',
  figures: ['p50Ms', 'p99Ms', 'loginsPerSecond', 'loginP99Ms'],
  targets: [{ path: 'platform', figure: 'p99Ms', atMost: 50 }],
  async measure(stage) {
    const seconds = stage.quick ? 2 : 8;
    const { email, password } = stage.account;
    const [logins, probes] = await Promise.all([
      stage.beginBeside('paced', {
        method: 'POST',
        path: '/auth/login',
        body: { email, password },
        status: 200,
        orStatus: 503,
        perSecond: LOGINS_PER_SECOND,
        seconds,
      }),
      stage.begin('paced', { path: '/health', status: 200, perSecond: PROBES_PER_SECOND, seconds }),
    ]);
    const [login, probe] = await Promise.all([logins.finish(), probes.finish()]);
    const { p50Ms, p99Ms } = probe;
    return { p50Ms, p99Ms, loginsPerSecond: login.requests / login.seconds, loginP99Ms: login.p99Ms };
  },
};

export const platformScenarios = [
  // At least a quarter of the bare route's requests per second of processor time.
  calls({ name: 'me', path: '/auth/me', targets: [{ path: 'platform', figure: 'cpuPerRequestUs', ratioAtMost: 4 }] }),
  calls({ name: 'keys', path: '/keys' }),
  calls({ name: 'usage', path: '/usage' }),
  mcp,
  health,
];

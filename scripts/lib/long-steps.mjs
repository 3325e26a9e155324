// The steps of `npm run test:long`: tests that take too long for `.ci/run`, or need programs that most machines do not have.
// CONTRIBUTING.md has the same list with the last result of each step; a test in tests/repo compares the two lists.
import { extname, join } from 'node:path';
import { fetchNode } from './fetch-package.mjs';
import { ROOT } from './paths.mjs';
import { check, suiteStep } from './steps.mjs';
import { testStep } from './test-step.mjs';

/**
 * Test suites by Node.js version. `.ci/run` runs all suites on the oldest version, and the unit tests on the newest. Versions between them
 * run the suites with sockets and timers, which depend most on Node.js.
 */
const SUITES = {
  22: ['slow', 'system'],
  24: ['slow', 'system'],
  26: ['slow', 'database', 'system', 'load'],
};

const nodes = Object.entries(SUITES).flatMap(([major, suites]) =>
  suites.map((suite) => ({
    name: `nodes/${major}/${suite}`,
    make: async (name) => ({ ...suiteStep(suite, await fetchNode(major)), name }),
  })),
);

const vitest = (name, args, env) => ({ name, make: () => testStep(name, name.replaceAll('/', '-'), args, { env }) });

/**
 * A step that runs a script with arguments, and passes or fails as a whole. Shows the parts that this machine cannot run, and the
 * script's last line.
 */
const script = (name, path, ...args) => ({
  name,
  make: () => ({
    ...check(name, undefined, [join(ROOT, path), ...args]),
    command: extname(path) === '.sh' ? 'bash' : undefined,
    count: (code, output) => {
      if (code !== 0) return [0, 1];
      return /^skipped: /m.test(output) ? [0, 0, 1] : [1, 0];
    },
    notes: (output) => {
      const lines = output.trimEnd().split('\n');
      return [...lines.slice(0, -1).filter((line) => line.startsWith('skipped')), ...lines.slice(-1)];
    },
  }),
});

const tool = (name, path, ...args) => script(name, `tests/tools/${path}`, ...args);

/**
 * Runs the stalled-readers test in a separate network namespace with small socket buffers. With normal buffers, the test's sockets would
 * use up the kernel's TCP memory. Requires root.
 */
const OWN_NETWORK = [
  'ip link set lo up',
  'sysctl -qw net.ipv4.tcp_wmem="4096 16384 131072" net.ipv4.tcp_rmem="4096 65536 131072"',
  'exec node node_modules/vitest/vitest.mjs run --project soak tests/soak/stalled-readers.test.ts',
].join(' && ');
const stalledReaders = {
  name: 'stalled-readers',
  make: (name) => ({ ...check(name, undefined, ['-n', 'sh', '-c', OWN_NETWORK]), command: 'unshare' }),
};

export const LONG_STEPS = [
  ...nodes,
  vitest('settings', ['--project', 'long']),
  vitest('browser', ['--project', 'long-browser']),
  script('random', 'scripts/test-random.mjs'),
  script('nat', 'tests/nat/run.mjs'),
  tool('soak', 'soak/soak.mjs', '--minutes', '10'),
  vitest('fuzz/frames', ['--project', 'soak', 'tests/soak/fuzz.test.ts'], { FUZZ_RUNS: '100000' }),
  vitest('fuzz/http1', ['--project', 'soak', 'tests/soak/http1-fuzz.test.ts'], { FUZZ_RUNS: '100000' }),
  vitest('fuzz/differential', ['--project', 'system', 'tests/http-differential'], { DIFFERENTIAL_RUNS: '50000' }),
  tool('fuzz/heads', 'http/fuzz-heads.mjs'),
  tool('fuzz/paths', 'policy/path-corpus.mjs'),
  tool('fuzz/openapi', 'platform/fuzz-openapi.sh', '100'),
  vitest('http-large', ['--project', 'soak', 'tests/soak/http-large.test.ts']),
  stalledReaders,
  vitest('colors', ['--project', 'browser', 'tests/browser/accessibility.test.ts'], { TUNNEL_ALL_COLOURS: '1' }),
  tool('public', 'public/try.mjs'),
  tool('caddy', 'acme/try-caddy.mjs'),
  tool('openapi', 'openapi/try.mjs'),
  tool('executables', 'executables/try.mjs'),
  tool('image', 'image/try.mjs'),
  tool('deploy', 'deploy/try.mjs'),
  tool('packages', 'packages/try.mjs'),
  tool('backup', 'backup/try.mjs'),
  tool('helm', 'helm/try.mjs'),
  tool('monitoring', 'monitoring/try.mjs'),
  tool('pgbouncer', 'pgbouncer/try.mjs'),
  tool('skew', 'skew/try.mjs'),
  tool('traces', 'traces/try.mjs'),
  tool('tools/http', 'http/try-tools.sh'),
  tool('tools/tls', 'tls/scan.sh'),
  tool('tools/mcp', 'mcp/try.sh'),
  tool('tools/completion', 'completion/tab.mjs'),
  tool('platform/seed-usage', 'platform/seed-usage.mjs'),
  tool('platform/part-kill', 'platform/part-kill.mjs'),
  tool('platform/api-flood', 'platform/api-flood.mjs'),
  tool('platform/fault-run', 'platform/fault-run.mjs'),
  tool('billing/metering-kill', 'billing/metering-kill.mjs'),
  tool('billing/stripe-mock', 'billing/stripe-mock.sh'),
  tool('first-hour', 'first-hour/first-hour.mjs'),
  ...['noise-peer', 'edge-kill', 'hostile-edge', 'stalled-readers'].map((name) =>
    tool(`p2p/${name}`, `p2p/${name}.mjs`),
  ),
  ...['spread', 'failover', 'scale', 'webhooks', 'flood', 'flapping'].map((name) =>
    tool(`groups/${name}`, `groups/${name}.mjs`),
  ),
  ...['dns', 'http3', 'wireguard', 'iperf', 'stall', 'blocked', 'flood', 'rough'].map((name) =>
    tool(`udp/${name}`, `udp/${name}.mjs`),
  ),
];

/**
 * Chooses steps by name. A name is the name of a step or of a folder of steps; without names, all steps are chosen. Returns null if a
 * name matches no step.
 */
export function chooseSteps(names) {
  const isChosen = (step, name) => step.name === name || step.name.startsWith(`${name}/`);
  if (names.some((name) => !LONG_STEPS.some((step) => isChosen(step, name)))) return null;
  return LONG_STEPS.filter((step) => names.length === 0 || names.some((name) => isChosen(step, name)));
}

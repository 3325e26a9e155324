// Paths of rows that have no equal among the peers, or need more than one client: many tunnels, many clients, and the commands that a
// person runs.
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../../scripts/lib/paths.mjs';
import { failAtExit, startChild, stopChild, untilExit } from '../../lib/children.mjs';
import { freePort } from '../../lib/free-ports.mjs';
import { cleanEnvironment, startServer } from '../../lib/server.mjs';
import { HTTP_NAME } from '../../lib/wrk.mjs';
import { bareNode, startEdge } from '../../paths/ours.mjs';
import { HOST, writeFileIn } from '../peer-process.mjs';
import { manyTunnels } from './many-tunnels.mjs';

const CLI = join(ROOT, 'apps/cli/bin/tunnel.mjs');
const CLIENTS = join(ROOT, 'bench/peers/many-clients.mjs');

async function startHttpEdge(settings) {
  const port = await freePort();
  const { child, run } = await startEdge({ ...settings, root: ROOT, protocol: 'http', port, captures: true });
  return { edge: child, run, address: { host: HOST, port } };
}

/** Resolves with the milliseconds from the start of the child to the first line that matches. */
async function untilLine({ matches, ...what }) {
  let said;
  const heard = new Promise((resolve) => {
    said = resolve;
  });
  const child = startChild({ ...what, onLine: (line) => matches.test(line) && said() });
  await Promise.race([heard, failAtExit(child)]);
  return { child, ms: performance.now() - child.startedAt };
}

/** `tunnelsEach` is the number of tunnels of each client. All clients run in one process of the client library. */
const many = ({ name, protocol, tunnelsEach, note }) => ({
  name,
  protocol,
  note,
  carrier: 'plain',
  isOurs: true,
  programs: [],
  async start({ ground, folder, node }) {
    const { edge, run, address } = await startHttpEdge({ ground, folder, node });
    const fill = async ({ count }) => {
      const words = [run.control, run.admin_token_file, ground.originPort, count, tunnelsEach].map(String);
      const what = { name: 'client', command: node, args: [CLIENTS, ...words], cwd: folder };
      return (await untilLine({ ...what, env: cleanEnvironment(folder), matches: /^open$/ })).child;
    };
    return manyTunnels({ address, edge, fill });
  },
});

const SERVER_CONFIG = `
[server]
control_port = 0
api_port = 0
metrics_port = 0
http_port = 0
https_port = 0
[platform]
port = 0
[limits]
tcp_port_range = [61500, 61501]
`;

/** Commands as a person runs them. `node` in PATH is the measured Node.js. */
const commands = {
  name: 'ours-commands',
  protocol: 'commands',
  carrier: 'plain',
  isOurs: true,
  programs: [],
  async start({ ground, folder, node }) {
    const { edge, run } = await startHttpEdge({ ground, folder, node });
    const bin = join(folder, 'bin');
    mkdirSync(bin);
    symlinkSync(node, join(bin, 'node'));
    const dataDir = join(folder, 'stack');
    const config = writeFileIn(folder, 'stack.toml', SERVER_CONFIG);
    const npm = ['--prefix', ROOT, 'start', '--', '--config', config, '--data-dir', dataDir];
    const tunnel = ['http', String(ground.originPort), '--subdomain', HTTP_NAME, '--no-tls'];
    const reach = ['--server', run.control, '--token-file', run.admin_token_file];
    const common = { cwd: folder, env: cleanEnvironment(folder) };
    return {
      address: null,
      processes: { edge },
      /** Starts the stack, and stops it after `use(pid)`. @returns {Promise<number>} milliseconds until it was up */
      async npmStart(use = async () => {}) {
        rmSync(join(dataDir, 'run.json'), { force: true });
        const env = { PATH: `${bin}:${process.env.PATH}` };
        const child = await startServer({ name: 'npm start', command: 'npm', args: npm, dataDir, cwd: folder, env });
        const ms = performance.now() - child.startedAt;
        await use(child.pid);
        await stopChild(child, 'SIGTERM');
        return ms;
      },
      async untilUrl() {
        const what = { name: 'tunnel http', command: node, args: [CLI, ...tunnel, ...reach], ...common };
        const { child, ms } = await untilLine({ ...what, matches: new RegExp(`https?://${HTTP_NAME}\\.`) });
        await stopChild(child, 'SIGTERM');
        return ms;
      },
      help: () => untilExit({ name: 'tunnel --help', command: node, args: [CLI, '--help'], ...common }),
      bareNode: bareNode(node, common),
    };
  },
};

export const oursAlone = [
  many({
    name: 'ours-names',
    protocol: 'names',
    tunnelsEach: 100,
    note: 'clients of 100 tunnels each, all in one process',
  }),
  many({
    name: 'ours-clients',
    protocol: 'clients',
    tunnelsEach: 1,
    note: 'clients of one HTTP tunnel each, all in one process',
  }),
  commands,
];

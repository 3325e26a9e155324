// Runs HTTP/3 with aioquic as client and server through a udp tunnel: small GETs and a large download, on the UDP path and on carriers
// only.
import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { failAtExit, startChild, stopChild, throwAwayFolder } from '../../../bench/lib/children.mjs';
import { ROOT } from '../../../scripts/lib/paths.mjs';
import { runScript } from '../lib/script.mjs';
import { dropsOf, freeUdpPort, needs, startUdpEdge, UdpTunnel } from './lib/stand.mjs';

const USAGE = `usage: node tests/tools/udp/http3.mjs [--megabytes N] [--gets N]
Needs python3 with venv and PyPI, or in PYTHON one that has aioquic.`;
const lib = (name) => fileURLToPath(new URL(`lib/${name}`, import.meta.url));
const CERTIFICATE = join(ROOT, 'packages/testkit/fixtures/tls/cert.pem');
const KEY = join(ROOT, 'packages/testkit/fixtures/tls/key.pem');

function pythonWithAioquic() {
  if (process.env.PYTHON) return process.env.PYTHON;
  const folder = join(throwAwayFolder(), 'venv');
  const run = (program, ...args) => spawnSync(program, args, { encoding: 'utf8' }).status === 0;
  if (run('python3', '-m', 'venv', folder) && run(join(folder, 'bin/pip'), 'install', '--quiet', 'aioquic'))
    return join(folder, 'bin/python');
  process.stdout.write('skipped: aioquic cannot be installed from PyPI\n');
  process.exit(0);
}

async function startService(python) {
  const port = await freeUdpPort();
  let opened;
  const ready = new Promise((resolve) => {
    opened = resolve;
  });
  const args = [lib('h3-server.py'), String(port), CERTIFICATE, KEY];
  const child = startChild({ name: 'h3 server', command: python, args, onLine: () => opened() });
  await Promise.race([ready, failAtExit(child)]);
  return { port, child };
}

/** Downloads the given sizes. Returns [{ bytes, status, seconds }]. */
async function get(python, port, sizes) {
  const child = spawn(python, [lib('h3-client.py'), String(port), ...sizes.map(String)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const answers = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const [bytes, status, seconds] = line.split(' ');
    answers.push({ bytes: Number(bytes), status, seconds: Number(seconds) });
  }
  return answers;
}

needs(['python3', '--version']);
await runScript(
  {
    name: 'http3',
    usage: USAGE,
    options: { megabytes: 100, gets: 20 },
    limitSecs: ({ megabytes }) => 120 + 8 * megabytes,
  },
  async ({ values: { megabytes, gets }, say, check }) => {
    const python = pythonWithAioquic();
    const service = await startService(python);
    for (const path of ['auto', 'carrier']) {
      const edge = await startUdpEdge({ udp: `path = "${path}"` });
      const tunnel = await new UdpTunnel(edge, service.port).start();
      await tunnel.settle(path === 'auto' ? 'udp' : 'carrier');
      const small = await get(
        python,
        tunnel.port,
        Array.from({ length: gets }, () => 1000),
      );
      const areRight = small.length === gets && small.every(({ bytes, status }) => bytes === 1000 && status === '200');
      const times = small.map(({ seconds }) => seconds).sort((a, b) => a - b);
      check(
        areRight,
        `${path}: ${small.length} GETs of 1,000 bytes, half of them within ${(1000 * times[times.length >> 1]).toFixed(1)} ms`,
      );
      const [large] = await get(python, tunnel.port, [megabytes * 1e6]);
      check(large?.bytes === megabytes * 1e6, `${path}: ${megabytes} MB in ${large?.seconds} s`);
      const { flows, dropped } = await tunnel.flows();
      say(
        `${path}: ${flows.length} flows, ${flows[0]?.datagrams_out} datagrams to the visitor, dropped: ${dropsOf(dropped)}`,
      );
      await tunnel.close();
      await edge.close();
    }
    await stopChild(service.child);
    return `GETs and ${megabytes} MB on the UDP path and on carriers`;
  },
);

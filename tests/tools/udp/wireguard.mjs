// Runs WireGuard (wireguard-go) between two network namespaces that are connected only by a udp tunnel, with ping and iperf3 inside.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startChild, throwAwayFolder } from '../../../bench/lib/children.mjs';
import { runScript } from '../lib/script.mjs';
import { until } from '../lib/until.mjs';
import { inOwnNetwork } from './lib/own-network.mjs';
import { dropsOf, freeUdpPort, needs, startUdpEdge, UdpTunnel } from './lib/stand.mjs';

const USAGE = `usage: node tests/tools/udp/wireguard.mjs [--seconds N]
As root, with /dev/net/tun: two ends of WireGuard with MTU = 1280, iperf3 between them for 10 s.`;
const MTU = 1280;
const PINGS = 20;
/** Addresses of the end in the separate namespace, and of the end beside edge and client. */
const ENDS = { far: '10.77.0.1', near: '10.77.0.2' };

const run = (command, ...args) => {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr || stdout}`);
  return stdout.trim();
};

/** Creates a second namespace, kept open by a process; `inside` returns the command line that enters it. */
function openNamespace() {
  const holder = startChild({ name: 'namespace', command: 'unshare', args: ['-n', 'sleep', '600'] });
  return { holder, inside: (...command) => ['nsenter', '-n', '-t', String(holder.pid), ...command] };
}

/**
 * Starts an end of WireGuard. wireguard-go opens its socket in the namespace where it starts, so both ends start here beside edge and
 * client, and the network device of the far end moves away afterwards.
 */
async function startEnd(name, { folder, listenPort }) {
  startChild({ name: `wireguard-go ${name}`, command: 'wireguard-go', args: ['-f', name] });
  await until(`${name} is there`, () => existsSync(`/var/run/wireguard/${name}.sock`));
  const key = run('wg', 'genkey');
  const file = join(folder, `${name}.key`);
  writeFileSync(file, key, { mode: 0o600 });
  const { stdout } = spawnSync('wg', ['pubkey'], { input: key, encoding: 'utf8' });
  run('wg', 'set', name, 'listen-port', String(listenPort), 'private-key', file);
  return stdout.trim();
}

/** Pings the far end. The first ping starts with the WireGuard handshake. */
function tryPing(path, check) {
  const { stdout } = spawnSync('ping', ['-n', '-c', String(PINGS), '-i', '0.2', '-W', '5', ENDS.far], {
    encoding: 'utf8',
  });
  const received = Number(/(\d+) received/.exec(stdout)?.[1] ?? 0);
  const [, fastest, average] = /= ([\d.]+)\/([\d.]+)\//.exec(stdout) ?? [];
  check(
    received === PINGS,
    `${path}: ${received} of ${PINGS} pings inside answered, fastest ${fastest} ms, on average ${average} ms`,
  );
}

needs(
  ['ip', '-V'],
  ['ping', '-V'],
  ['unshare', '--version'],
  ['wg', '--version'],
  ['wireguard-go', '--version'],
  ['iperf3', '--version'],
);
if (!existsSync('/dev/net/tun')) {
  process.stdout.write('skipped: there is no /dev/net/tun\n');
  process.exit(0);
}
inOwnNetwork();
await runScript(
  { name: 'wireguard', usage: USAGE, options: { seconds: 10 }, limitSecs: ({ seconds }) => 4 * seconds + 120 },
  async ({ values: { seconds }, say, check }) => {
    const folder = throwAwayFolder();
    mkdirSync('/var/run/wireguard', { recursive: true });
    const names = { far: `trf${process.pid}`, near: `trn${process.pid}` };
    const ports = { far: await freeUdpPort(), near: await freeUdpPort() };
    const { inside } = openNamespace();
    const keys = {};
    for (const end of ['far', 'near']) keys[end] = await startEnd(names[end], { folder, listenPort: ports[end] });
    for (const path of ['auto', 'carrier']) {
      const edge = await startUdpEdge({ udp: `path = "${path}"` });
      // Visitors reach the tunnel, and the local service of the tunnel is the far end.
      const tunnel = await new UdpTunnel(edge, ports.far).start();
      await tunnel.settle(path === 'auto' ? 'udp' : 'carrier');
      run('wg', 'set', names.far, 'peer', keys.near, 'allowed-ips', `${ENDS.near}/32`);
      const endpoint = `127.0.0.1:${tunnel.port}`;
      run('wg', 'set', names.near, 'peer', keys.far, 'allowed-ips', `${ENDS.far}/32`, 'endpoint', endpoint);
      if (path === 'auto') {
        const holder = inside().at(-1);
        run('ip', 'link', 'set', names.far, 'netns', holder);
        const far = (...args) => run(...inside('ip', ...args));
        far('address', 'add', `${ENDS.far}/24`, 'dev', names.far);
        far('link', 'set', 'mtu', String(MTU), 'up', 'dev', names.far);
        run('ip', 'address', 'add', `${ENDS.near}/24`, 'dev', names.near);
        run('ip', 'link', 'set', 'mtu', String(MTU), 'up', 'dev', names.near);
        const [command, ...args] = inside('iperf3', '-s', '-B', ENDS.far);
        startChild({ name: 'iperf3', command, args });
      }
      tryPing(path, check);
      for (const flags of [[], ['-R']]) {
        const { stdout } = spawnSync('iperf3', ['-c', ENDS.far, '-t', String(seconds), '-J', ...flags], {
          encoding: 'utf8',
        });
        const { end, error } = JSON.parse(stdout || '{"error":"nothing"}');
        const mbits = (end?.sum_received?.bits_per_second ?? 0) / 1e6;
        check(
          mbits > 1,
          `${path}: iperf3 inside ${flags.join(' ')} ${mbits.toFixed(0)} Mbit/s, ${end?.sum_sent?.retransmits ?? error} segments again`,
        );
      }
      const { flows, dropped } = await tunnel.flows();
      say(
        `${path}: ${flows.length} flow, ${flows[0]?.datagrams_in} in, ${flows[0]?.datagrams_out} out, dropped: ${dropsOf(dropped)}`,
      );
      await tunnel.close();
      await edge.close();
    }
    return 'ping and iperf3 inside, on the UDP path and on carriers';
  },
);

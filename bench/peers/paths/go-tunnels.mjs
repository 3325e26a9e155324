// Tunnels written in Go: frp, chisel, piko, gost, with their defaults and only warnings in the log.
import { freePort } from '../../lib/free-ports.mjs';
import { HTTP_HOST, HTTP_NAME, hostOf } from '../../lib/wrk.mjs';
import { CERTIFICATE, KEY } from '../../paths/certificate.mjs';
import { HOST, startPeer, untilListening, writeFileIn } from '../peer-process.mjs';
import { manyTunnels } from './many-tunnels.mjs';

const frpServer = ({ control, port, protocol }) => `
bindAddr = "${HOST}"
bindPort = ${control}
proxyBindAddr = "${HOST}"
${protocol === 'http' ? `vhostHTTPPort = ${port}` : ''}
auth.token = "bench"
log.level = "warn"
`;

const frpClient = ({ control, tls, proxies }) => `
serverAddr = "${HOST}"
serverPort = ${control}
auth.token = "bench"
log.level = "warn"
transport.tls.enable = ${tls}
${proxies.join('')}`;

const frpProxy = ({ name = 'bench', protocol, port, target, host = HTTP_HOST }) => `[[proxies]]
name = "${name}"
type = "${protocol}"
localIP = "${HOST}"
localPort = ${target}
${protocol === 'http' ? `customDomains = ["${host}"]` : `remotePort = ${port}`}
`;

async function startFrpServer(folder, { protocol }) {
  const settings = { control: await freePort(), port: await freePort(), protocol };
  const file = writeFileIn(folder, 'frps.toml', frpServer(settings));
  const edge = startPeer({ folder, program: 'frps', args: ['-c', file] });
  await untilListening(settings.control, edge);
  return { edge, settings };
}

const startFrpClient = (folder, settings) =>
  startPeer({ folder, program: 'frpc', args: ['-c', writeFileIn(folder, 'frpc.toml', frpClient(settings))] });

/** frp with TLS, which is its default, or without TLS, which is faster. */
const frp = ({ name, protocol = 'tcp', tls = true }) => ({
  name,
  protocol,
  carrier: tls ? 'TLS' : 'plain',
  programs: ['frps', 'frpc'],
  async start({ ground, folder }) {
    const { edge, settings } = await startFrpServer(folder, { protocol });
    const proxies = [frpProxy({ ...settings, target: ground.originPort })];
    const client = startFrpClient(folder, { ...settings, tls, proxies });
    return { address: { host: HOST, port: settings.port }, processes: { edge, client } };
  },
});

/** frp with many http tunnels of one client. */
const frpNames = {
  name: 'frp-names',
  protocol: 'names',
  carrier: 'TLS',
  programs: ['frps', 'frpc'],
  async start({ ground, folder }) {
    const { edge, settings } = await startFrpServer(folder, { protocol: 'http' });
    const proxyOf = (number) =>
      frpProxy({ name: `t${number}`, protocol: 'http', target: ground.originPort, host: hostOf(number) });
    return manyTunnels({
      address: { host: HOST, port: settings.port },
      edge,
      fill: ({ count }) => {
        const proxies = Array.from({ length: count }, (_, number) => proxyOf(number));
        return startFrpClient(folder, { ...settings, tls: true, proxies });
      },
    });
  },
};

const chisel = ({ name, protocol = 'tcp' }) => ({
  name,
  protocol,
  carrier: 'SSH',
  programs: ['chisel'],
  async start({ ground, folder }) {
    const control = await freePort();
    const port = await freePort();
    const args = ['server', '--host', HOST, '-p', String(control), '--reverse'];
    const edge = startPeer({ folder, program: 'chisel', args });
    await untilListening(control, edge);
    const remote = `R:${HOST}:${port}:${HOST}:${ground.originPort}${protocol === 'udp' ? '/udp' : ''}`;
    const client = startPeer({ folder, program: 'chisel', args: ['client', `http://${HOST}:${control}`, remote] });
    return { address: { host: HOST, port }, processes: { edge, client } };
  },
});

/** piko for HTTP only, because for TCP its visitors need a third process. */
const pikoHttp = {
  name: 'piko-http',
  protocol: 'http',
  carrier: 'plain',
  programs: ['piko'],
  async start({ ground, folder }) {
    const port = await freePort();
    const control = await freePort();
    const free = async () => `${HOST}:${await freePort()}`;
    const quiet = ['--log.level', 'warn'];
    const server = [
      ...['server', '--proxy.bind-addr', `${HOST}:${port}`, '--upstream.bind-addr', `${HOST}:${control}`],
      ...['--admin.bind-addr', await free(), '--cluster.gossip.bind-addr', await free()],
      ...['--usage.disable', '--proxy.access-log.disable', ...quiet],
    ];
    const edge = startPeer({ folder, program: 'piko', args: server });
    await untilListening(control, edge);
    const agent = [
      ...['agent', 'http', HTTP_NAME, `${HOST}:${ground.originPort}`, '--connect.url', `http://${HOST}:${control}`],
      ...['--server.bind-addr', await free(), '--access-log.disable', ...quiet],
    ];
    const client = startPeer({ folder, program: 'piko', args: agent });
    return { address: { host: HOST, port }, processes: { edge, client } };
  },
};

const gost = ({ name, tls = false }) => ({
  name,
  protocol: 'tcp',
  carrier: tls ? 'TLS' : 'plain',
  programs: ['gost'],
  async start({ ground, folder }) {
    const control = await freePort();
    const port = await freePort();
    const env = { GOST_LOGGER_LEVEL: 'warn' };
    const relay = `${tls ? 'relay+tls' : 'relay'}://${HOST}:${control}`;
    const shown = tls ? `&certFile=${CERTIFICATE}&keyFile=${KEY}` : '';
    const edge = startPeer({ folder, program: 'gost', args: ['-L', `${relay}?bind=true${shown}`], env });
    await untilListening(control, edge);
    const remote = `rtcp://${HOST}:${port}/${HOST}:${ground.originPort}`;
    const client = startPeer({ folder, program: 'gost', args: ['-L', remote, '-F', relay], env });
    return { address: { host: HOST, port }, processes: { edge, client } };
  },
});

export const goTunnels = [
  frp({ name: 'frp' }),
  frp({ name: 'frp-plain', tls: false }),
  frp({ name: 'frp-http', protocol: 'http' }),
  frp({ name: 'frp-http-plain', protocol: 'http', tls: false }),
  frp({ name: 'frp-udp', protocol: 'udp' }),
  frpNames,
  ...[
    chisel({ name: 'chisel' }),
    chisel({ name: 'chisel-udp', protocol: 'udp' }),
    pikoHttp,
    gost({ name: 'gost' }),
    gost({ name: 'gost-tls', tls: true }),
  ],
];

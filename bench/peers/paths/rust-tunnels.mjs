// Tunnels written in Rust: rathole, bore, rustunnel, with their defaults and only warnings in the log.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { freePort } from '../../lib/free-ports.mjs';
import { HTTP_NAME } from '../../lib/wrk.mjs';
import { CERTIFICATE, KEY } from '../../paths/certificate.mjs';
import { HOST, startPeer, untilListening, writeFileIn } from '../peer-process.mjs';
import { databaseUrl } from './rustunnel-database.mjs';

const QUIET = { RUST_LOG: 'warn' };

/** Writes key and certificate in the only format that rathole reads. */
function makeIdentity(folder) {
  const file = join(folder, 'identity.pfx');
  const args = ['pkcs12', '-export', '-out', file, '-inkey', KEY, '-in', CERTIFICATE, '-passout', 'pass:bench'];
  const { status, stderr } = spawnSync('openssl', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`openssl cannot make the identity: ${stderr}`);
  return file;
}

const ratholeServer = ({ control, port, protocol, identity }) => `
[server]
bind_addr = "${HOST}:${control}"
default_token = "bench"
${identity ? `[server.transport]\ntype = "tls"\n[server.transport.tls]\npkcs12 = "${identity}"\npkcs12_password = "bench"` : ''}
[server.services.bench]
type = "${protocol}"
bind_addr = "${HOST}:${port}"
`;

const ratholeClient = ({ control, target, protocol, identity }) => `
[client]
remote_addr = "${HOST}:${control}"
default_token = "bench"
${identity ? `[client.transport]\ntype = "tls"\n[client.transport.tls]\ntrusted_root = "${CERTIFICATE}"\nhostname = "localhost"` : ''}
[client.services.bench]
type = "${protocol}"
local_addr = "${HOST}:${target}"
`;

const rathole = ({ name, protocol = 'tcp', tls = false }) => ({
  name,
  protocol,
  carrier: tls ? 'TLS' : 'plain',
  programs: ['rathole'],
  async start({ ground, folder }) {
    const identity = tls ? makeIdentity(folder) : null;
    const ports = { control: await freePort(), port: await freePort(), target: ground.originPort };
    const settings = { ...ports, protocol, identity };
    const server = writeFileIn(folder, 'server.toml', ratholeServer(settings));
    const edge = startPeer({ folder, program: 'rathole', args: ['--server', server], env: QUIET });
    await untilListening(settings.control, edge);
    const file = writeFileIn(folder, 'client.toml', ratholeClient(settings));
    const client = startPeer({ folder, program: 'rathole', args: ['--client', file], env: QUIET });
    return { address: { host: HOST, port: settings.port }, processes: { edge, client } };
  },
});

const BORE_CONTROL_PORT = 7835;

const bore = {
  name: 'bore',
  protocol: 'tcp',
  carrier: 'plain',
  programs: ['bore'],
  async start({ ground, folder }) {
    const port = await freePort();
    const server = ['server', '--bind-addr', HOST, '--min-port', '1024'];
    const edge = startPeer({ folder, program: 'bore', args: server, env: QUIET });
    await untilListening(BORE_CONTROL_PORT, edge);
    const local = ['local', String(ground.originPort), '--local-host', HOST, '--to', HOST, '--port', String(port)];
    const client = startPeer({ folder, program: 'bore', args: local, env: QUIET });
    return { address: { host: HOST, port }, processes: { edge, client } };
  },
};

const rustunnelServer = ({ protocol, port, control, spare, database, folder }) => `
[server]
domain = "localhost"
http_port = ${spare[0]}
https_port = ${protocol === 'http' ? port : spare[1]}
control_port = ${control}
dashboard_port = ${spare[2]}
[tls]
cert_path = "${CERTIFICATE}"
key_path = "${KEY}"
[auth]
admin_token = "bench-admin-token"
require_auth = false
[database]
url = "${database}"
captured_path = "${join(folder, 'captured.db')}"
[logging]
level = "warn"
format = "json"
[limits]
max_tunnels_per_session = 10
max_connections_per_tunnel = 20000
rate_limit_rps = 1000000000
ip_rate_limit_rps = 0
request_body_max_bytes = 1073741824
tcp_port_range = [${protocol === 'tcp' ? `${port}, ${port}` : `${spare[3]}, ${spare[3]}`}]
${protocol === 'udp' ? `udp_port_range = [${port}, ${port}]` : ''}
`;

/** rustunnel, with TLS carriers and HTTPS visitors, because its plain HTTP port only redirects. */
const rustunnel = ({ name, protocol = 'tcp' }) => ({
  name,
  protocol,
  carrier: 'TLS',
  programs: ['rustunnel-server', 'rustunnel'],
  visitorsTls: protocol === 'http',
  idleMax: 450,
  note:
    protocol === 'tcp'
      ? 'measured with 450 idle connections, because rustunnel fails above 512 streams per client'
      : undefined,
  async start({ ground, folder }) {
    const [port, control, ...spare] = await Promise.all(Array.from({ length: 6 }, freePort));
    const database = await databaseUrl();
    const text = rustunnelServer({ protocol, port, control, spare, database, folder });
    const config = writeFileIn(folder, 'server.toml', text);
    const edge = startPeer({ folder, program: 'rustunnel-server', args: ['--config', config] });
    await untilListening(control, edge);
    const args = [
      ...[protocol, String(ground.originPort), '--server', `localhost:${control}`, '--token', 'bench-admin-token'],
      ...['--local-host', HOST, '--insecure', ...(protocol === 'http' ? ['--subdomain', HTTP_NAME] : [])],
    ];
    const client = startPeer({ folder, program: 'rustunnel', args, env: QUIET });
    const address = { host: HOST, port, tls: protocol === 'http' };
    return { address, processes: { edge, client } };
  },
});

export const rustTunnels = [
  rathole({ name: 'rathole' }),
  rathole({ name: 'rathole-tls', tls: true }),
  rathole({ name: 'rathole-udp', protocol: 'udp' }),
  bore,
  rustunnel({ name: 'rustunnel' }),
  rustunnel({ name: 'rustunnel-https', protocol: 'http' }),
  rustunnel({ name: 'rustunnel-udp', protocol: 'udp' }),
];

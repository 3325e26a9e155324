// The yardstick that is available on every machine: two plain nginx hops in series, with a worker each, without tunnel and TLS.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { failAtExit, removeFolder, startChild, throwAwayFolder } from '../lib/children.mjs';
import { freePort } from '../lib/free-ports.mjs';
import { CERTIFICATE, KEY } from './certificate.mjs';

const COMMANDS = ['nginx', '/usr/sbin/nginx'];
const MODULE_FOLDERS = ['/usr/lib/nginx/modules', '/usr/lib64/nginx/modules', '/usr/share/nginx/modules'];
const START_TIMEOUT_MS = 5000;

/** Returns where nginx is and which features it has, or a message about what is missing. */
export function findNginx() {
  const command = COMMANDS.find((name) => spawnSync(name, ['-v']).status === 0);
  if (command === undefined)
    return { missing: 'nginx is not installed (Debian: apt install nginx-light libnginx-mod-stream)' };
  const build = spawnSync(command, ['-V'], { encoding: 'utf8' }).stderr;
  const version = /nginx\/(\S+)/.exec(build)?.[1] ?? 'unknown';
  const inside = /--with-stream(?!=dynamic|_)/.test(build);
  const folders = [/--modules-path=(\S+)/.exec(build)?.[1], ...MODULE_FOLDERS].filter(Boolean);
  const module_ = folders.map((folder) => join(folder, 'ngx_stream_module.so')).find((file) => existsSync(file));
  if (!inside && module_ === undefined) {
    return { missing: `nginx ${version} has no stream module (Debian: apt install libnginx-mod-stream)` };
  }
  const found = { command, version, module: inside ? null : module_, halfClose: true };
  return { ...found, halfClose: accepts(found) };
}

/** Whether nginx accepts proxy_half_close, which came with nginx 1.21.4. */
function accepts(nginx) {
  const folder = throwAwayFolder();
  try {
    const args = prepareHop(nginx, { folder, name: 'probe', ports: { listen: 1, target: 1 } });
    return spawnSync(nginx.command, ['-t', ...args]).status === 0;
  } finally {
    removeFolder(folder);
  }
}

/**
 * Returns a hop's configuration. `tls` is 'accept' for the hop that accepts TLS from the other hop, and 'dial' for the hop that dials
 * with TLS.
 */
const configOf = (nginx, ports, protocol, tls) => `
${nginx.module ? `load_module ${nginx.module};` : ''}
daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid nginx.pid;
error_log stderr error;
events { worker_connections 16384; }
${protocol === 'http' ? httpServer(ports) : streamServer(nginx, ports, protocol, tls)}
`;

const TLS_WORDS = {
  accept: `ssl_certificate ${CERTIFICATE}; ssl_certificate_key ${KEY};`,
  dial: 'proxy_ssl on; proxy_ssl_session_reuse on;',
};

const streamServer = ({ halfClose }, { listen, target }, protocol, tls) => `
stream {
  ${TLS_WORDS[tls] ?? ''}
  server {
    listen 127.0.0.1:${listen} ${tls === 'accept' ? 'ssl ' : ''}${protocol === 'udp' ? 'udp rcvbuf=4m' : 'backlog=4096'};
    proxy_pass 127.0.0.1:${target};
    proxy_timeout 1h;
    ${halfClose && protocol !== 'udp' ? 'proxy_half_close on;' : ''}
  }
}`;

// Connections to the next hop stay open like ours; nothing is logged or written to a file.
const httpServer = ({ listen, target }) => `
http {
  access_log off;
  keepalive_requests 1000000000;
  upstream next {
    server 127.0.0.1:${target};
    keepalive 256;
    keepalive_requests 1000000000;
  }
  server {
    listen 127.0.0.1:${listen} backlog=4096;
    location / {
      proxy_pass http://next;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_max_temp_file_size 0;
    }
  }
}`;

function prepareHop(nginx, { folder, name, ports, protocol = 'tcp', tls }) {
  const prefix = join(folder, name);
  mkdirSync(prefix, { recursive: true });
  writeFileSync(join(prefix, 'nginx.conf'), configOf(nginx, ports, protocol, tls));
  return ['-p', prefix, '-c', 'nginx.conf', '-e', 'stderr'];
}

async function startHop(nginx, hop) {
  const { ground, folder, name } = hop;
  const { command, args } = ground.network.wrap(nginx.command, prepareHop(nginx, hop));
  const child = startChild({ name: `nginx (${name})`, command, args, cwd: folder });
  // nginx writes the pid file when it listens.
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (!existsSync(join(folder, name, 'nginx.pid'))) {
    if (Date.now() > deadline) throw new Error(`nginx (${name}) did not start: ${child.output}`);
    await Promise.race([delay(20), failAtExit(child)]);
  }
  return child;
}

/**
 * The nginx path. `edge` is the hop near the visitor and `client` the hop near the origin, like the processes of these names in our
 * paths.
 */
export const nginxPath = (nginx, { name = 'nginx', tls = false } = {}) => ({
  name,
  async start({ ground, folder, protocol }) {
    const outer = await freePort();
    const inner = await freePort();
    const common = { ground, folder, protocol };
    const inside = { ports: { listen: inner, target: ground.originPort }, ...(tls && { tls: 'accept' }) };
    const client = await startHop(nginx, { ...common, name: 'inner', ...inside });
    const outside = { ports: { listen: outer, target: inner }, ...(tls && { tls: 'dial' }) };
    const edge = await startHop(nginx, { ...common, name: 'outer', ...outside });
    return { address: { host: '127.0.0.1', port: outer }, processes: { edge, client } };
  },
});

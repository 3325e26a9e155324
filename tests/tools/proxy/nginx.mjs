// nginx with TLS of its own in front of the edge: of http_port, passing upgrades (clients come by the path), and of https_port, passing bytes (by ALPN).
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stopChild } from '../../../bench/lib/children.mjs';
import { freePort } from '../../../bench/lib/free-ports.mjs';
import { runScript } from '../groups/lib/script.mjs';
import { Client, DOMAIN, makeCertificate, needs, startProgram, startStand, tryProxy } from './lib/stand.mjs';

const USAGE = 'usage: node tests/tools/proxy/nginx.mjs';
const STREAM = '/usr/lib/nginx/modules/ngx_stream_module.so';

needs(['nginx', '-v'], ['openssl', 'version'], ['ss', '-V']);

const stream = (port, httpsPort) =>
  existsSync(STREAM) ? `stream { server { listen 127.0.0.1:${port}; proxy_pass 127.0.0.1:${httpsPort}; } }` : '';

const configOf = ({ folder, tls, port, streamPort, httpPort, httpsPort }) => `
${existsSync(STREAM) ? `load_module ${STREAM};` : ''}
daemon off;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events { worker_connections 256; }
http {
  access_log ${folder}/access.log;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  server {
    listen 127.0.0.1:${port} ssl http2;
    ssl_certificate ${tls.cert};
    ssl_certificate_key ${tls.key};
    location / {
      proxy_pass http://127.0.0.1:${httpPort};
      proxy_http_version 1.1;
      proxy_set_header Host $host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection "upgrade";
      proxy_read_timeout 300s;
      proxy_buffering off;
    }
  }
}
${stream(streamPort, httpsPort)}
`;

await runScript({ name: 'nginx', usage: USAGE, options: {}, limitSecs: () => 300 }, async ({ say, check }) => {
  const stand = await startStand();
  const { edge, httpsPort } = stand;
  const folder = join(stand.folder, 'nginx');
  mkdirSync(folder);
  const tls = makeCertificate(folder, 'front', DOMAIN, 'localhost', '127.0.0.1');
  const [port, streamPort] = [await freePort(), await freePort()];
  const config = join(folder, 'nginx.conf');
  writeFileSync(config, configOf({ folder, tls, port, streamPort, httpPort: edge.httpPort, httpsPort }));
  const start = () =>
    startProgram('nginx', 'nginx', ['-c', config, '-p', folder, '-e', join(folder, 'error.log')], port);
  let nginx = await start();
  const restart = async () => {
    await stopChild(nginx, 'SIGTERM');
    nginx = await start();
  };
  say('TLS of nginx, upgrades passed to http_port');
  // The edge knows its own name, or an address: that is where the control plane is.
  const byPath = new Client(stand, [`server: 127.0.0.1:${port}`, 'tls: true', `ca_file: ${tls.cert}`]);
  await tryProxy({ client: byPath, proxyPort: port, targetPort: edge.httpPort, restart }, { say, check });
  await byPath.stop();
  if (existsSync(STREAM)) {
    say('bytes passed to https_port');
    const byAlpn = new Client(stand, [`server: 127.0.0.1:${streamPort}`, 'tls: true']);
    await tryProxy({ client: byAlpn, proxyPort: streamPort, targetPort: httpsPort }, { say, check });
    await byAlpn.stop();
  } else say('passed over: nginx has no stream module here');
  await stopChild(nginx, 'SIGTERM');
  return 'clients behind nginx by the path, also after its restart, and by ALPN';
});

// Debian's squid with Basic authentication between client and edge: tunnels, carriers, its restart, a wrong password, a port that it does not allow.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stopChild } from '../../../bench/lib/children.mjs';
import { freePort } from '../../../bench/lib/free-ports.mjs';
import { runScript } from '../groups/lib/script.mjs';
import { until } from '../groups/lib/until.mjs';
import {
  Client,
  connectionsTo,
  DOMAIN,
  needs,
  readText,
  startProgram,
  startStand,
  tryProxy,
  tryRefused,
} from './lib/stand.mjs';

const USAGE = 'usage: node tests/tools/proxy/squid.mjs';
const AUTH = '/usr/lib/squid/basic_ncsa_auth';

needs(['squid', '-v'], ['openssl', 'version'], ['ss', '-V'], [AUTH, '/dev/null']);

function writeConfig(folder, port, allowedPort) {
  const { stdout } = spawnSync('openssl', ['passwd', '-apr1', 'sesame'], { encoding: 'utf8' });
  writeFileSync(join(folder, 'users'), `ann:${stdout}`);
  // A name that nobody else on this machine knows.
  writeFileSync(join(folder, 'hosts'), `127.0.0.1 ${DOMAIN}\n`);
  writeFileSync(
    join(folder, 'squid.conf'),
    `http_port 127.0.0.1:${port}
pid_filename ${folder}/squid.pid
access_log stdio:${folder}/access.log
cache_log ${folder}/cache.log
cache deny all
coredump_dir ${folder}
hosts_file ${folder}/hosts
shutdown_lifetime 0 seconds
auth_param basic program ${AUTH} ${folder}/users
acl users proxy_auth REQUIRED
acl edge port ${allowedPort}
http_access deny !users
http_access allow CONNECT edge
http_access deny all
`,
  );
}

await runScript({ name: 'squid', usage: USAGE, options: {}, limitSecs: () => 300 }, async ({ say, check }) => {
  const stand = await startStand();
  const folder = join(stand.folder, 'squid');
  mkdirSync(folder);
  // Squid gives up root for a user of its own.
  for (const one of [stand.folder, folder]) chmodSync(one, 0o777);
  const port = await freePort();
  writeConfig(folder, port, stand.httpsPort);
  const start = () =>
    startProgram('squid', 'squid', ['-N', '-n', `try${port}`, '-f', join(folder, 'squid.conf')], port, { cwd: folder });
  let squid = await start();
  const asked = () =>
    readText(join(folder, 'access.log'))
      .split('\n')
      .filter((line) => line.includes('CONNECT')).length;

  const server = `server: ${DOMAIN}:${stand.httpsPort}`;
  const client = new Client(stand, [server, `proxy: http://127.0.0.1:${port}`, 'proxy_auth_file: auth'], {
    files: { auth: 'ann:sesame\n' },
  });
  const restart = async () => {
    await stopChild(squid, 'SIGTERM');
    squid = await start();
  };
  await tryProxy({ client, proxyPort: port, targetPort: stand.httpsPort, restart }, { say, check });
  await client.stop();
  await until('all connections are over', () => connectionsTo(port) === 0);

  const elsewhere = `server: ${DOMAIN}:${stand.edge.controlPort}`;
  for (const [where, proxy, secret, words] of [
    [server, `ann:wrong-word@127.0.0.1:${port}`, 'wrong-word', 'does not accept the user name and the password'],
    [server, `127.0.0.1:${port}`, 'sesame', 'asks for a user name and a password'],
    [elsewhere, `ann:sesame@127.0.0.1:${port}`, 'sesame', '403 Forbidden'],
  ]) {
    const before = asked();
    const requests = () => asked() - before;
    const config = [where, `proxy: http://${proxy}`];
    await tryRefused({ stand, config, secret, words, requests }, { say, check });
  }
  await stopChild(squid, 'SIGTERM');
  return 'http and tcp tunnels through squid, its restart, and three refusals';
});

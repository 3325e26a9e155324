// Debian's microsocks with user and password between client and edge, as socks5:// and as socks5h://.

import { stopChild } from '../../../bench/lib/children.mjs';
import { freePort } from '../../../bench/lib/free-ports.mjs';
import { runScript } from '../groups/lib/script.mjs';
import { until } from '../groups/lib/until.mjs';
import { Client, connectionsTo, needs, startProgram, startStand, tryProxy, tryRefused } from './lib/stand.mjs';

const USAGE = 'usage: node tests/tools/proxy/socks.mjs';

needs(['microsocks', '-h'], ['openssl', 'version'], ['ss', '-V']);
await runScript({ name: 'socks', usage: USAGE, options: {}, limitSecs: () => 300 }, async ({ say, check }) => {
  const stand = await startStand();
  const port = await freePort();
  const start = () =>
    startProgram(
      'microsocks',
      'microsocks',
      ['-i', '127.0.0.1', '-p', String(port), '-u', 'ann', '-P', 'sesame'],
      port,
    );
  let socks = await start();
  // It knows the names of this machine alone.
  const server = [`server: localhost:${stand.httpsPort}`, 'tls: true'];
  const restart = async () => {
    await stopChild(socks);
    socks = await start();
  };
  for (const [kind, again] of [
    ['socks5', undefined],
    ['socks5h', restart],
  ]) {
    say(`${kind}://`);
    const client = new Client(stand, [...server, `proxy: ${kind}://ann:sesame@127.0.0.1:${port}`]);
    await tryProxy({ client, proxyPort: port, targetPort: stand.httpsPort, restart: again }, { say, check });
    await client.stop();
    await until('all connections are over', () => connectionsTo(port) === 0);
  }
  const wrong = `proxy: socks5h://ann:wrong-word@127.0.0.1:${port}`;
  await tryRefused(
    {
      stand,
      config: [...server, wrong],
      secret: 'wrong-word',
      words: 'does not accept the user name and the password',
    },
    { say, check },
  );
  await tryRefused(
    {
      stand,
      config: [...server, `proxy: socks5://127.0.0.1:${port}`],
      secret: 'sesame',
      words: 'asks for a user name and a password',
    },
    { say, check },
  );
  const dead = [`server: localhost:${await freePort()}`, 'tls: true', `proxy: socks5h://ann:sesame@127.0.0.1:${port}`];
  await tryRefused({ stand, config: dead, secret: 'sesame', words: 'does not lead to localhost' }, { say, check });
  await stopChild(socks);
  return 'http and tcp tunnels through microsocks, its restart, and three refusals';
});

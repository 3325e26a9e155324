// A proxy that opens TLS, as companies have them: it shows a certificate of its own and lets no ALPN through. With `ca_file` clients come by the path.

import { freePort } from '../../../bench/lib/free-ports.mjs';
import { runScript } from '../groups/lib/script.mjs';
import { until } from '../groups/lib/until.mjs';
import { startOpeningProxy } from './lib/opening-proxy.mjs';
import { Client, connectionsTo, DOMAIN, makeCertificate, needs, readText, startStand, tryProxy } from './lib/stand.mjs';

const USAGE = 'usage: node tests/tools/proxy/tls-opening.mjs';

needs(['openssl', 'version'], ['ss', '-V']);
await runScript({ name: 'tls-opening', usage: USAGE, options: {}, limitSecs: () => 300 }, async ({ say, check }) => {
  const stand = await startStand();
  const port = await freePort();
  const tls = makeCertificate(stand.folder, 'company', DOMAIN);
  const given = { port, key: readText(tls.key), cert: readText(tls.cert), targetPort: stand.httpsPort };
  let proxy = await startOpeningProxy(given);
  const restart = async () => {
    await proxy.close();
    proxy = await startOpeningProxy(given);
  };
  const lines = [`server: ${DOMAIN}:443`, `proxy: http://127.0.0.1:${port}`];
  const client = new Client(stand, [...lines, `ca_file: ${tls.cert}`]);
  await tryProxy({ client, proxyPort: port, targetPort: stand.httpsPort, restart }, { say, check });
  say(`ALPN that the edge took: ${[...proxy.alpn].join(', ')}`);
  check(!proxy.alpn.has('tunnel/1'), 'the edge was asked by the path alone');
  await client.stop();
  await until('all connections are over', () => connectionsTo(port) === 0);
  // Without it the certificate is a stranger's.
  const stranger = new Client(stand, lines);
  const exit = await stranger.child.exited;
  const [line = ''] = stranger.child.output.split('\n').filter((one) => one.startsWith('tunnel: '));
  say(`${exit}: ${line}`);
  check(
    exit === 'exit code 2' && line.includes('certificate'),
    'without ca_file it is refused as a certificate that nobody vouches for',
  );
  await proxy.close();
  return 'http and tcp tunnels through a proxy that opens TLS, and its restart';
});

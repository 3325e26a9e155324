// A group of two members on one computer: node failover.mjs [SERVER]. One app stops and comes back while a visitor keeps visiting.
// Exits with 1 if a visit failed.
import { randomBytes } from 'node:crypto';
import { lookup } from 'node:dns';
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import { connect } from 'hatchway-client';

const SERVER = process.argv[2] ?? '127.0.0.1:4040';
const TOKEN = process.env.TUNNEL_API_KEY ?? '';
/** Members of a group prove with the key that they belong together. */
const GROUP = { group: 'failover-example', groupKey: randomBytes(32).toString('base64url') };
/** A failed app is unhealthy after 2 s. By default, the interval is 10 s and the limit 3 failures. */
const HEALTH_CHECK = { type: 'http', path: '/healthz', intervalSecs: 1, timeoutSecs: 3, maxFailed: 2 };
const PAUSE_MS = 20;
const PATIENCE_MS = 30_000;

const startApp = async (name, port = 0) => {
  const app = http.createServer((request, response) => response.end(name));
  await once(app.listen(port, '127.0.0.1'), 'listening');
  return app;
};

/** In real life, each member runs on its own computer, with `tunnel http 3000 --group …`. */
const join = async (name) => {
  const app = await startApp(name);
  const { port } = app.address();
  const client = await connect({ server: SERVER, token: TOKEN, clientName: name });
  const tunnel = await client.open({ protocol: 'http', localPort: port, ...GROUP, healthCheck: HEALTH_CHECK });
  return { name, app, port, client, tunnel };
};

const reached = async ({ name, tunnel }, health) => {
  for (const start = performance.now(); tunnel.health !== health; await pause(PAUSE_MS)) {
    if (performance.now() - start > PATIENCE_MS) throw new Error(`${name} is ${tunnel.health}, not ${health}`);
  }
  console.log(`${name} is ${health}`);
};

/** Names below localhost belong to this computer, but not every system finds their address. */
const find = (host, options, done) => lookup(host.endsWith('.localhost') ? 'localhost' : host, options, done);

const visit = async (url) => {
  const { get } = url.startsWith('https:') ? https : http;
  const [response] = await once(get(url, { lookup: find, agent: false, timeout: PATIENCE_MS }), 'response');
  const parts = await response.setEncoding('utf8').toArray();
  if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`);
  return parts.join('');
};

/** Visits without a break until the signal. Returns the number of visits by name of the member, and of failed visits. */
const keepVisiting = async (url, signal) => {
  const counts = { failed: 0 };
  while (!signal.aborted) {
    const name = await visit(url).catch((error) => {
      console.error(`visit failed: ${error.message}`);
      return 'failed';
    });
    counts[name] = (counts[name] ?? 0) + 1;
    await pause(PAUSE_MS);
  }
  return counts;
};

const [a, b] = [await join('a'), await join('b')];
console.log(a.tunnel.publicUrl);
await Promise.all([reached(a, 'healthy'), reached(b, 'healthy')]);

const stop = new AbortController();
const visits = keepVisiting(a.tunnel.publicUrl, stop.signal);
await pause(500);

console.log('the app of a stops');
a.app.close();
a.app.closeAllConnections();
await reached(a, 'unhealthy');
await pause(500);

console.log('the app of a starts again');
a.app = await startApp('a', a.port);
await reached(a, 'healthy');
await pause(500);

stop.abort();
const counts = await visits;
console.log(`visits: ${counts.a ?? 0} by a, ${counts.b ?? 0} by b, ${counts.failed} failed`);
for (const { app, client } of [a, b]) {
  await client.close();
  app.close();
}
process.exitCode = counts.failed === 0 ? 0 : 1;

// Publishes its web app: node publish.mjs [SERVER]. Prints the public URL, then a line for each request, until Ctrl-C.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'hatchway-client';

const SERVER = process.argv[2] ?? '127.0.0.1:4040';
const PORT = Number(process.env.PORT ?? 3000);
/** Time for open requests to finish after Ctrl-C. */
const DRAIN_MS = 5000;

const app = createServer((request, response) => {
  response.end(`Hello, ${request.headers['x-real-ip'] ?? 'neighbor'}\n`);
});
await once(app.listen(PORT, '127.0.0.1'), 'listening');

/** Reports a failed connection or tunnel by its message and the remedy. */
const giveUp = ({ message, next }) => {
  console.error(`${message}. ${next ?? ''}`);
  process.exit(1);
};

const client = await connect({
  server: SERVER,
  token: process.env.TUNNEL_API_KEY ?? '',
  // The next start requests the same public URL.
  stateDir: '.state',
}).catch(giveUp);

client.onStatus((event) => {
  if (event.type === 'reconnecting') console.log(`connection lost: ${event.reason}`);
  if (event.type === 'reconnected') console.log('connected again');
  if (event.type === 'tunnel-moved') console.log(tunnel.publicUrl);
});
client.onRequest((event) => {
  if (event.type !== 'request-finished') return;
  console.log(`${event.method} ${event.path} ${event.status ?? 'aborted'} ${Math.round(event.durationMs)} ms`);
});

const tunnel = await client.open({ protocol: 'http', localPort: PORT }).catch(giveUp);
console.log(tunnel.publicUrl);

await once(process, 'SIGINT');
await client.close({ drainMs: DRAIN_MS });
process.exit();

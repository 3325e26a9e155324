// Many clients of the client library in one process: `node many-clients.mjs SERVER TOKEN_FILE LOCAL_PORT TUNNELS TUNNELS_EACH`.
// Prints `open` when all tunnels are open, and keeps them open.
import { readFileSync } from 'node:fs';
import { connect } from '../../packages/client/dist/index.js';
import { hostOf } from '../lib/wrk.mjs';

const [, , server, tokenFile, localPort, tunnels, tunnelsEach] = process.argv;
const count = Number(tunnels);
const each = Number(tunnelsEach);
const token = readFileSync(tokenFile, 'utf8').trim();
/** Number of tunnels that are opened at the same time, at least those of one client. */
const AT_ONCE = 20;

async function open(first) {
  const client = await connect({ server, token, tls: false });
  const numbers = Array.from({ length: Math.min(each, count - first) }, (_, at) => first + at);
  const specOf = (number) => ({
    protocol: 'http',
    name: `t${number}`,
    localPort: Number(localPort),
    subdomain: hostOf(number).split('.')[0],
  });
  await Promise.all(numbers.map((number) => client.open(specOf(number))));
}

const firsts = Array.from({ length: Math.ceil(count / each) }, (_, at) => at * each);
const together = Math.max(1, Math.floor(AT_ONCE / each));
for (let at = 0; at < firsts.length; at += together) await Promise.all(firsts.slice(at, at + together).map(open));
process.stdout.write('open\n');
setInterval(() => {}, 1000);

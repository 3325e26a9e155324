// A service for files larger than memory, and its visitor.
// `serve`: a visitor sends a line with the number of bytes, and optionally with the number of bytes per second.
// `down PORT BYTES [PER_SECOND]` prints `ok` if every byte was correct; with a pace it also prints `begun` at the first byte.
// The sender sets the pace, because a slow reader would continue for seconds with data in kernel buffers.
import { createCipheriv, createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { pipeline, Readable } from 'node:stream';

const CHUNK = 1024 * 1024;
const PACED_CHUNK = 64 * 1024;

/** Yields the same bytes in every run, different at each position. */
function* bytes(total) {
  const cipher = createCipheriv('aes-128-ctr', Buffer.alloc(16, 7), Buffer.alloc(16));
  const zeros = Buffer.alloc(CHUNK);
  for (let left = total; left > 0; left -= CHUNK) yield cipher.update(left < CHUNK ? zeros.subarray(0, left) : zeros);
}

async function* pacedBytes(total, perSecond) {
  const begunAt = Date.now();
  let sent = 0;
  for (const chunk of bytes(total)) {
    for (let at = 0; at < chunk.length; at += PACED_CHUNK) {
      const part = chunk.subarray(at, at + PACED_CHUNK);
      yield part;
      sent += part.length;
      const aheadMs = (sent / perSecond) * 1000 - (Date.now() - begunAt);
      if (aheadMs > 5) await new Promise((resolve) => setTimeout(resolve, aheadMs));
    }
  }
}

function hashOf(total) {
  const hash = createHash('sha256');
  for (const chunk of bytes(total)) hash.update(chunk);
  return hash.digest('hex');
}

async function serveOne(socket) {
  let asked = '';
  // The socket stays open, because the response is still to be written.
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    asked += chunk.toString('latin1');
    if (asked.includes('\n')) break;
  }
  const [total, perSecond] = asked.split('\n')[0].split(' ').map(Number);
  const source = perSecond === undefined ? bytes(total) : pacedBytes(total, perSecond);
  await new Promise((done) => pipeline(Readable.from(source), socket, done));
}

async function serve() {
  const server = createServer({ allowHalfOpen: true }, (socket) => void serveOne(socket).catch(() => socket.destroy()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.stdout.write(`${server.address().port}\n`);
}

async function down(port, total, ...perSecond) {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.write(`${[total, ...perSecond].join(' ')}\n`);
  const hash = createHash('sha256');
  let got = 0;
  for await (const chunk of socket) {
    if (got === 0 && perSecond.length > 0) process.stdout.write('begun\n');
    hash.update(chunk);
    got += chunk.length;
  }
  socket.end();
  return got === total && hash.digest('hex') === hashOf(total) ? 'ok' : `wrong: ${got} of ${total} bytes`;
}

const [what, ...given] = process.argv.slice(2);
if (what === 'serve') await serve();
else {
  try {
    process.stdout.write(`${await down(...given.map(Number))}\n`);
  } catch (error) {
    process.stdout.write(`wrong: ${error.message}\n`);
  }
}

// As many bytes as asked for, both ways at once over one connection, the same on every run and compared by their hashes.
// usage: node bulk.mjs serve PORT    node bulk.mjs send PORT BYTES: prints `in HASH out HASH`, ends with 0 when both ends saw the same
import { createCipheriv, createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

const CHUNK = Buffer.alloc(256 * 1024);
const LINE = 65;

/** Bytes that repeat nowhere: nothing between can put one piece in the place of another unseen. */
async function* stream(bytes, seed) {
  const cipher = createCipheriv('aes-128-ctr', Buffer.alloc(16, seed), Buffer.alloc(16));
  for (let left = bytes; left > 0; left -= CHUNK.length)
    yield cipher.update(CHUNK.subarray(0, Math.min(left, CHUNK.length)));
}

async function pour(socket, bytes, seed) {
  const hash = createHash('sha256');
  for await (const piece of stream(bytes, seed)) {
    hash.update(piece);
    if (!socket.write(piece)) await once(socket, 'drain');
  }
  return hash.digest('hex');
}

/** `take(n)`: the hash of the next n bytes, or those bytes themselves. */
function reader(socket) {
  const pieces = socket[Symbol.asyncIterator]();
  let rest = Buffer.alloc(0);
  return async (bytes, isText) => {
    const hash = createHash('sha256');
    const kept = [];
    for (let left = bytes; left > 0; ) {
      if (rest.length === 0) {
        const { value, done } = await pieces.next();
        if (done) throw new Error(`ended ${left} bytes before ${bytes}`);
        rest = value;
      }
      const piece = rest.subarray(0, left);
      rest = rest.subarray(piece.length);
      left -= piece.length;
      if (isText) kept.push(piece);
      else hash.update(piece);
    }
    return isText ? Buffer.concat(kept).toString() : hash.digest('hex');
  };
}

/** Each end sends its bytes, then the hash of what it got. */
async function exchange(socket, take, bytes, seed) {
  const [sent, got] = await Promise.all([pour(socket, bytes, seed), take(bytes)]);
  socket.write(`${got}\n`);
  const seen = (await take(LINE, true)).trim();
  return { sent, got, isSame: seen === sent };
}

const [mode, port, bytes] = process.argv.slice(2);
if (mode === 'serve') {
  const serve = async (socket) => {
    socket.on('error', () => {});
    const take = reader(socket);
    try {
      await exchange(socket, take, Number(await take(16, true)), 2);
      socket.end();
    } catch {
      socket.destroy();
    }
  };
  createServer((socket) => void serve(socket)).listen(Number(port), '127.0.0.1');
} else {
  const socket = connect(Number(port), '127.0.0.1');
  await once(socket, 'connect');
  const take = reader(socket);
  socket.write(bytes.padStart(16, '0'));
  const { sent, got, isSame } = await exchange(socket, take, Number(bytes), 1);
  const expected = createHash('sha256');
  for await (const piece of stream(Number(bytes), 2)) expected.update(piece);
  process.stdout.write(`out ${sent.slice(0, 12)} in ${got.slice(0, 12)}\n`);
  socket.end();
  process.exitCode = isSame && got === expected.digest('hex') ? 0 : 1;
}

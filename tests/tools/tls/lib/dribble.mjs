// A relay that passes on the first bytes of each visitor one by one, each in a segment of its own, and says how large the first flight was.
// usage: node dribble.mjs PORT TARGET_PORT BYTES
import { connect, createServer } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';

const [port, target, slowly] = process.argv.slice(2).map(Number);

const relay = async (visitor) => {
  const onward = connect({ port: target, host: '127.0.0.1', noDelay: true });
  for (const socket of [visitor, onward]) socket.on('error', () => {});
  onward.pipe(visitor);
  let left = slowly;
  let isFirst = true;
  for await (const chunk of visitor) {
    if (isFirst) process.stdout.write(`flight ${chunk.length}\n`);
    isFirst = false;
    let at = 0;
    for (; at < chunk.length && left > 0; at += 1, left -= 1) {
      onward.write(chunk.subarray(at, at + 1));
      // What is written in one turn of the loop leaves in one segment.
      await turn();
    }
    if (at < chunk.length) onward.write(chunk.subarray(at));
  }
  onward.end();
};
createServer({ noDelay: true }, (visitor) => void relay(visitor)).listen(port, '127.0.0.1');

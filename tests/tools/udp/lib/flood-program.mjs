// Sends datagrams from many addresses in 10.64.0.0/10, each from a short-lived separate socket: flood-program.mjs PORT ADDRESSES
// PER_SECOND SECONDS
// Prints the numbers of sent and received datagrams as a line of JSON.
import { createSocket } from 'node:dgram';
import { setTimeout as pause } from 'node:timers/promises';

const [port, addresses, perSecond, seconds] = process.argv.slice(2).map(Number);
/** Maximum number of open sockets. The oldest is closed first. */
const OPEN_MAX = 400;

const addressOf = (n) => `10.${64 + ((n >> 16) & 63)}.${(n >> 8) & 255}.${n & 255}`;
const open = [];
const got = new Map();
let sent = 0;
let heard = 0;

function sendFrom(n) {
  const address = addressOf(n);
  const socket = createSocket('udp4');
  socket.on('error', () => {});
  socket.on('message', (bytes) => {
    heard += 1;
    got.set(address, (got.get(address) ?? 0) + bytes.length);
  });
  socket.bind(0, address, () => socket.send('a word of nobody', port, '127.0.0.1'));
  sent += 1;
  open.push(socket);
  if (open.length > OPEN_MAX) open.shift().close();
}

const begun = performance.now();
while (performance.now() - begun < seconds * 1000) {
  const due = Math.min(500, Math.floor(((performance.now() - begun) * perSecond) / 1000) - sent);
  for (let n = 0; n < due; n += 1) sendFrom(1000 + (sent % addresses));
  await pause(5);
}
await pause(1000);
const report = { sent, heard, addresses: Math.min(sent, addresses), most: Math.max(0, ...got.values()) };
process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit());

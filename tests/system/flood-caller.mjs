// A separate program that holds many connections, each with one request after another, so that its work does not slow down the process that
// measures. Prints `flooding` once all connections are open, and the number of responses per status at SIGTERM.
import { connect } from 'node:net';

const [url, count, from, path, token = ''] = process.argv.slice(2);
const { hostname, port, host } = new URL(url);
const statuses = {};
let open = 0;
let isOver = false;
const random = () => Math.random().toString(36).slice(2).padEnd(43, 'x').slice(0, 43);
const request = () =>
  [
    `GET ${path.replace('RANDOM', random())} HTTP/1.1`,
    `host: ${host}`,
    ...(token === '' ? [] : [`authorization: Bearer ${token}`]),
    '\r\n',
  ].join('\r\n');

const count1 = (what) => {
  statuses[what] = (statuses[what] ?? 0) + 1;
};

/** Reads responses, all of which have a content-length, and sends the next request after each. */
const call = () => {
  if (isOver) return;
  const socket = connect({ host: hostname, port: Number(port), localAddress: from });
  let text = '';
  let left = 0;
  let isNew = true;
  socket.setEncoding('latin1');
  socket.on('connect', () => {
    if (isNew) open += 1;
    isNew = false;
    if (open === Number(count)) console.log('flooding');
    socket.write(request());
  });
  socket.on('data', (chunk) => {
    if (left > 0) {
      left -= chunk.length;
    } else {
      text += chunk;
      const end = text.indexOf('\r\n\r\n');
      if (end === -1) return;
      count1(text.slice(9, 12));
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, end))?.[1] ?? 0);
      left = length - (text.length - end - 4);
      text = '';
    }
    if (left <= 0) socket.write(request());
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    count1('closed');
    setTimeout(call, 100);
  });
};

for (let index = 0; index < Number(count); index += 1) setTimeout(call, index / 2);

process.on('SIGTERM', () => {
  isOver = true;
  console.log(JSON.stringify(statuses));
  process.exit(0);
});

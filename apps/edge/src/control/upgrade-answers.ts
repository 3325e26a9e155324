// What the control port says to those it does not let in: one line of plain text, then the end.
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

export const refuseUpgrade = (socket: Duplex, status: number, line: string): void => {
  const body = `${line}\n`;
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Connection: close',
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(status === 426 ? ['Upgrade: websocket, tunnel-carrier/1'] : []),
    '\r\n',
  ];
  // The peer may be gone; nobody is left to be told.
  socket.on('error', () => {});
  socket.end(head.join('\r\n') + body, () => socket.destroy());
};

// The probe of type http: one GET, of whose answer only the status line is read.
import type { Socket } from 'node:net';
import { bad, converse, GOOD, type Probe, type ProbeOptions, type ProbeResult } from './probe.ts';
import { readStatusLine } from './status-line.ts';

export interface HttpProbeOptions extends ProbeOptions {
  readonly path: string;
  /** Of the service, as a Host header names it. */
  readonly localAddress: string;
  /** false: any answer will do. */
  readonly expect2xx: boolean;
}

export const httpProbe = (options: HttpProbeOptions): Probe => {
  const request = requestText(options);
  return (signal) =>
    converse({
      ...options,
      signal,
      talk: (socket, done) => {
        socket.write(request, 'latin1');
        listen(socket, (status) => done(status === null ? bad('the answer is not HTTP/1') : judge(status, options)));
      },
    });
};

/** HTTP/1.0: no answer in chunks, no interim answers, and the service closes by itself. */
const requestText = ({ path, localAddress }: HttpProbeOptions): string =>
  [
    `GET ${inAscii(path)} HTTP/1.0`,
    `Host: ${localAddress}`,
    'User-Agent: tunnel-probe',
    'Connection: close',
    '',
    '',
  ].join('\r\n');

/** As a browser would send it. */
const inAscii = (path: string): string =>
  Buffer.from(path, 'utf8')
    .toString('latin1')
    .replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);

/** Tells the status as soon as its line is whole; null for what is no status line. */
const listen = (socket: Socket, tell: (status: number | null) => void): void => {
  let text = '';
  socket.on('data', (piece: Buffer) => {
    text += piece.toString('latin1');
    const line = readStatusLine(text);
    if (line === 'unfinished') return;
    tell(line === 'not-http' ? null : line.status);
  });
};

const judge = (status: number, { expect2xx }: HttpProbeOptions): ProbeResult =>
  !expect2xx || (status >= 200 && status < 300) ? GOOD : bad(`status ${status}`);

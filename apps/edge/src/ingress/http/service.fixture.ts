// Local services with a record of their requests, and clients with scripted behavior for streams. Used by tests only.
import * as http from 'node:http';
import * as http2 from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { MuxStream } from '@tunnel/mux';
import { hashOf, rethrow } from '@tunnel/testkit';

export interface Asked {
  readonly method: string;
  readonly url: string;
  readonly host: string;
  readonly bodyHash: string;
}

export interface RecordingService {
  readonly port: number;
  /** Complete requests, in the order in which they ended. */
  readonly asked: Asked[];
  close(): void;
}

/** Starts a service. The response to a request is the name, sent after the end of the request. */
export const startRecordingService = async (
  name: string,
  listener?: (request: http.IncomingMessage, response: http.ServerResponse) => void,
): Promise<RecordingService> => {
  const asked: Asked[] = [];
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      asked.push({ method, url, host: headers.host ?? '', bodyHash: hashOf(Buffer.concat(chunks)) });
      if (listener === undefined) response.end(name);
      else listener(request, response);
    });
    request.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { port: (server.address() as AddressInfo).port, asked, close };
};

type OnStream = (stream: http2.ServerHttp2Stream) => void;

/**
 * Starts a recording service for HTTP/2 without TLS. The listener is called at the start of a request, and returns true if it has
 * answered.
 */
export const startRecordingH2c = async (
  name: string,
  listener: (...given: Parameters<OnStream>) => boolean = () => false,
): Promise<RecordingService> => {
  const asked: Asked[] = [];
  const sessions = new Set<http2.ServerHttp2Session>();
  const server = http2.createServer();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    if (listener(stream)) return;
    const chunks: Buffer[] = [];
    let trailers = '';
    stream.on('trailers', (given: http2.IncomingHttpHeaders) => {
      trailers = String(given['x-check']);
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      // The end event also comes for a stream that was cut off.
      if (stream.aborted || stream.rstCode !== 0) return;
      const { ':method': method = '', ':path': url = '', ':authority': host = '' } = headers;
      asked.push({ method, url, host, bodyHash: hashOf(Buffer.concat(chunks)) });
      if (stream.destroyed) return;
      stream.respond({ ':status': 200 });
      stream.end(name + trailers);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): void => {
    for (const session of sessions) session.destroy();
    server.close();
  };
  return { port: (server.address() as AddressInfo).port, asked, close };
};

export interface Taking {
  /** Text sent once the request head has arrived. By default, no text is sent. */
  readonly answer?: string;
  /** Whether the client hangs up after the answer. */
  readonly ends?: boolean;
  /** Called for every piece of the request, with the text received so far. */
  readonly onText?: (text: string) => void;
}

/** Acts as a client without a service: accepts a stream and answers directly. */
export const takeStream = (stream: MuxStream, { answer = '', ends = false, onText }: Taking = {}): void => {
  let text = '';
  stream.accept();
  stream.read({
    onData: (bytes, start, end) => {
      const isFirst = !text.includes('\r\n\r\n');
      text += bytes.toString('latin1', start, end);
      onText?.(text);
      if (!isFirst || !text.includes('\r\n\r\n')) return true;
      const said = Buffer.from(answer, 'latin1');
      stream.write(said, 0, said.length, false);
      if (ends) stream.end();
      return true;
    },
    onDrain: () => {},
    onEnd: () => {},
    onReset: () => {},
    abandon: rethrow,
  });
};

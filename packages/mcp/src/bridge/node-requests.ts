// Converts requests of Node's HTTP server to web requests, and web responses back. Aborts the request when the caller disconnects, and
// respects backpressure.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Bridge } from './bridge.ts';

/** Path of the MCP endpoint of a published server. */
const PATH = '/mcp';

/** Handles one request. Never rejects because of the caller's behavior. */
export const serveBridge = async (
  bridge: Pick<Bridge, 'fetch'>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  response.on('error', () => {});
  request.on('error', () => {});
  if (request.url?.split('?', 1)[0] !== PATH) return answerPlainly(response, 404, `the MCP server is at ${PATH}`);
  let answer: Response;
  try {
    answer = await bridge.fetch(webRequest(request, gone.signal));
  } catch (error) {
    if (gone.signal.aborted) return;
    throw error;
  }
  if (response.destroyed) return answer.body?.cancel();
  // If a request is rejected before its body is read, the unread rest would block the connection, so the connection is closed.
  if (!request.complete) response.setHeader('connection', 'close');
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body === null) return void response.end();
  // Sends the headers before there is any data, so that the caller sees that the request was received.
  response.flushHeaders();
  await pipeline(Readable.fromWeb(answer.body as never), response).catch(() => {});
};

const webRequest = (request: IncomingMessage, signal: AbortSignal): Request => {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  // Methods other than POST are passed on as GET: all are rejected alike, and web requests do not support every method.
  const hasBody = request.method === 'POST';
  // `duplex: 'half'` is required for streamed bodies but missing from the type definitions.
  const body = hasBody ? { body: bodyOf(request), duplex: 'half' as const } : {};
  return new Request(`http://localhost${PATH}`, { method: hasBody ? 'POST' : 'GET', headers, signal, ...body });
};

/**
 * Streams the body of a request. If the reader cancels, the rest is read and discarded: closing the connection while the caller still
 * writes could lose the response.
 */
const bodyOf = (request: IncomingMessage): ReadableStream<Uint8Array> => {
  let isDone = false;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      request.on('data', (chunk: Buffer) => {
        if (isDone) return;
        controller.enqueue(chunk);
        if ((controller.desiredSize ?? 0) <= 0) request.pause();
      });
      request.once('end', () => {
        if (!isDone) controller.close();
        isDone = true;
      });
      request.once('close', () => {
        if (!isDone) controller.error(new Error('the caller disconnected'));
        isDone = true;
      });
    },
    pull: () => void request.resume(),
    cancel: () => {
      isDone = true;
      request.resume();
    },
  });
};

const answerPlainly = (response: ServerResponse, status: number, text: string): void => {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' });
  response.end(`${text}\n`);
};

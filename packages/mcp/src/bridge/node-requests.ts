// Requests of Node's HTTP server as the web knows them, and responses back: whoever leaves is noticed, and a slow reader is waited for.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Bridge } from './bridge.ts';

/** The one path of a published server. */
const PATH = '/mcp';

/** Answers one request. Never rejects for what a caller does. */
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
  // What was refused unread would hold the connection up.
  if (!request.complete) response.setHeader('connection', 'close');
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body === null) return void response.end();
  // The head goes out before there is anything to say: whoever waits sees that it was heard.
  response.flushHeaders();
  await pipeline(Readable.fromWeb(answer.body as never), response).catch(() => {});
};

const webRequest = (request: IncomingMessage, signal: AbortSignal): Request => {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  // All that are not POST are the same to whoever answers, and the web knows not all of them.
  const hasBody = request.method === 'POST';
  // `duplex`: a body that is read as it comes; the types of the web leave it out.
  const body = hasBody ? { body: bodyOf(request), duplex: 'half' as const } : {};
  return new Request(`http://localhost${PATH}`, { method: hasBody ? 'POST' : 'GET', headers, signal, ...body });
};

/** As it is read. Cancelled, the rest is read to nobody: a connection that is cut while its caller writes would lose our answer. */
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

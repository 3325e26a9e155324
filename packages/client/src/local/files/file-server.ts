// The HTTP server of a folder: chooses the file, page or error for a request. The `send` package handles ranges and conditional requests;
// it gets an opened and verified file and opens nothing itself.
import type { ReadStream } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { sep } from 'node:path';
import type { ByteDuplex } from '@tunnel/mux';
import send from 'send';
import { LISTING_POLICY, listFolder, listingPage } from './listing.ts';
import { acceptsHtml, folderTarget, type RequestPath, readRequestPath } from './request-path.ts';
import { type Opened, type OpenedFile, type OpenedFolder, openBelow } from './safe-open.ts';
import { ServerConnection } from './server-connection.ts';

/** Maximum size of a request head, including fields added by the edge for HTTP/2. */
export const FILES_HEAD_MAX_BYTES = 128 * 1024;
/** Size of a file read. A visitor who does not read holds about three reads in memory. */
const FILES_READ_BYTES = 256 * 1024;

export interface FolderOptions {
  readonly spa: boolean;
  readonly listing: boolean;
}

const INDEX = 'index.html';

export class FileServer {
  readonly #root: string;
  readonly #options: FolderOptions;
  readonly #server: Server;

  /** `root` is the path of the published folder without symbolic links. */
  constructor(root: string, options: FolderOptions) {
    this.#root = root;
    this.#options = options;
    // The server never listens. The edge already enforces timeouts for requests and idle connections, so Node's timeouts are off.
    this.#server = createServer({
      maxHeaderSize: FILES_HEAD_MAX_BYTES,
      keepAliveTimeout: 0,
      requestTimeout: 0,
      headersTimeout: 0,
    });
    this.#server.on('request', (request, response) => {
      const connection = request.socket as unknown as ServerConnection;
      connection.inTurn(() => this.#answer(request, response));
    });
    this.#server.on('clientError', (error: NodeJS.ErrnoException, connection) =>
      refuseBytes(connection as unknown as ServerConnection, error.code ?? ''),
    );
  }

  /** Opens an in-process connection to the file server and returns the end to join with a visitor. */
  connect(): ByteDuplex {
    const connection = new ServerConnection();
    this.#server.emit('connection', connection);
    return connection.visitorEnd;
  }

  /** Answers a request. Resolves when the response is closed, complete or not. Never rejects. */
  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const closed = new Promise<void>((resolve) => response.once('close', resolve));
    try {
      await this.#choose(request, response);
    } catch {
      // An error such as no free descriptors or a broken disk: visitors get a temporary error without details.
      if (response.headersSent) response.destroy();
      else answerShortly(response, 503, { 'Retry-After': '5' });
    }
    await closed;
  }

  async #choose(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request;
    if (method !== 'GET' && method !== 'HEAD') return answerShortly(response, 405, ALLOWED);
    const path = readRequestPath(url, sep);
    const opened = path === null ? REFUSED : await this.#open(path);
    if (opened.kind === 'file') return sendFile(opened, request, response);
    if (opened.kind === 'folder') return this.#showFolder(opened, path as RequestPath, response);
    if (opened.kind === 'redirect')
      return answerShortly(response, 301, { Location: folderTarget(path as RequestPath) });
    if (opened.kind === 'refused' || !this.#options.spa) return answerShortly(response, 404);
    return this.#showApp(request, response, headers.accept);
  }

  /** Opens the file, the index of a folder, or the folder itself if listings are on. */
  async #open(path: RequestPath): Promise<Found> {
    const opened = await this.#below(path.names);
    if (opened.kind === 'file' && path.isFolder) return leave(opened, NOTHING);
    if (opened.kind !== 'folder') return opened;
    const index = await this.#below([...path.names, INDEX]).catch((error: unknown) => {
      void opened.handle.close();
      throw error;
    });
    if (index.kind === 'file') {
      await opened.handle.close();
      // Redirects to the path with a slash, because relative links on the page are resolved against the folder.
      return path.isFolder ? index : leave(index, REDIRECT);
    }
    if ('handle' in index) await index.handle.close();
    if (!this.#options.listing) return leave(opened, NOTHING);
    return path.isFolder ? opened : leave(opened, REDIRECT);
  }

  #below(names: readonly string[]): Promise<Opened> {
    return openBelow(this.#root, names);
  }

  async #showFolder(folder: OpenedFolder, { names }: RequestPath, response: ServerResponse): Promise<void> {
    try {
      const page = listingPage(await listFolder(this.#root, names, folder));
      response.writeHead(200, {
        'Content-Type': 'text/html; charset=utf-8',
        'Content-Length': Buffer.byteLength(page),
        'Content-Security-Policy': LISTING_POLICY,
        'X-Content-Type-Options': 'nosniff',
        'Cache-Control': 'no-cache',
      });
      response.end(page);
    } finally {
      await folder.handle.close();
    }
  }

  /** Sends index.html for a path that the single-page app routes in the browser. */
  async #showApp(request: IncomingMessage, response: ServerResponse, accept = ''): Promise<void> {
    response.setHeader('Vary', 'Accept');
    const index = acceptsHtml(accept) ? await this.#below([INDEX]) : NOTHING;
    if (index.kind === 'file') return sendFile(index, request, response);
    if ('handle' in index) await index.handle.close();
    answerShortly(response, 404, { Vary: 'Accept' });
  }
}

type Found = Opened | { readonly kind: 'redirect' };

const NOTHING: Found = { kind: 'nothing' };
const REFUSED: Found = { kind: 'refused' };
const REDIRECT: Found = { kind: 'redirect' };

const leave = async ({ handle }: { readonly handle: FileHandle }, found: Found): Promise<Found> => {
  await handle.close();
  return found;
};

/** Type of the stream returned by the `send` package, with the response, which its type declarations lack. */
type SendTo = ReturnType<typeof send> & { res: ServerResponse };

const sendFile = ({ handle, stat, name }: OpenedFile, request: IncomingMessage, response: ServerResponse): void => {
  // The visitor left while the file was being opened, so the file is closed here.
  if (response.destroyed) return void handle.close();
  // The only place that closes the file. Closing waits for a read in progress, so the descriptor number is not reused too early.
  response.once('close', () => void handle.close());
  // The `send` package passes `fd` to its read stream, so no path is opened.
  const options: object = { fd: handle, highWaterMark: FILES_READ_BYTES };
  const { range = '' } = request.headers;
  // A suffix range longer than the file means the whole file. `send` would reject it.
  if (Number(/^bytes=\s*-(\d+)\s*$/.exec(range)?.[1]) > stat.size && stat.size > 0) request.headers.range = 'bytes=0-';
  const sending = send(request, name, options) as SendTo;
  sending.res = response;
  sending.on('error', (error: Error & { status?: number; headers?: Record<string, string> }) => {
    if (response.headersSent) response.destroy();
    else answerShortly(response, error.status ?? 503, error.headers);
  });
  sending.on('stream', (bytes: ReadStream) => watchLength(bytes, response));
  sending.send(name, stat);
};

/**
 * Keeps a response at its announced length although the file may change while being read. A file that became shorter cuts off the response.
 */
const watchLength = (bytes: ReadStream, response: ServerResponse): void => {
  const length = Number(response.getHeader('content-length'));
  // Nothing is read of an empty file: the `send` package would read one byte, which may exist by now.
  if (length === 0) {
    bytes.destroy();
    response.end();
    return;
  }
  bytes.once('end', () => {
    if (bytes.bytesRead < length) response.destroy();
  });
};

/** Sends a one-line text response, for everything except files. */
const answerShortly = (response: ServerResponse, status: number, headers: Headers = {}): void => {
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  const text = shortText(status);
  response.writeHead(status, { ...shortHeaders(text), ...headers });
  response.end(text);
};

type Headers = Readonly<Record<string, string>>;

const shortText = (status: number): string => `${status} ${STATUS_CODES[status] ?? ''}\n`;

const shortHeaders = (text: string): Headers => ({
  'Content-Type': 'text/plain; charset=utf-8',
  'Content-Length': String(Buffer.byteLength(text)),
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-cache',
});

/**
 * Responds to data that Node's parser rejects, such as an unknown method, and closes the connection in order, so that the response arrives.
 */
const refuseBytes = (connection: ServerConnection, code: string): void => {
  // More invalid data arrived from the visitor after the response.
  if (connection.writableEnded) return;
  // If a response is in progress, the connection is cut off, because an error would be mixed up with it.
  if (!connection.writable || connection.isAnswering) return void connection.destroy();
  const status = UNREADABLE[code] ?? 400;
  const text = shortText(status);
  const headers = { ...shortHeaders(text), ...(status === 405 ? ALLOWED : {}), Connection: 'close' };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  connection.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${text}`);
};

const UNREADABLE: Readonly<Record<string, number>> = { HPE_INVALID_METHOD: 405, HPE_HEADER_OVERFLOW: 431 };
const ALLOWED: Headers = { Allow: 'GET, HEAD' };

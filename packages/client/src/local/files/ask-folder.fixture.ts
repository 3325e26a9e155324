// Sends requests to a served folder over a separate connection, joined as the stream of a visitor would be.
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import { PeerStream } from '../../peers/peer-stream.ts';
import type { ServedFolder } from './served-folder.ts';

export interface FolderAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly text: string;
}

export const connectTo = async (folder: ServedFolder): Promise<Duplex> => new PeerStream(await folder.dial(), () => {});

export const askFolder = async (
  folder: ServedFolder,
  path: string,
  { method = 'GET', headers = {} }: { method?: string; headers?: Record<string, string> } = {},
): Promise<FolderAnswer> => {
  const connection = await connectTo(folder);
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ path, method, headers, createConnection: () => connection });
    sent.on('error', reject);
    sent.on('response', (response) => {
      const pieces: Buffer[] = [];
      response.on('error', reject);
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('end', () => {
        const body = Buffer.concat(pieces);
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body, text: body.toString() });
        connection.destroy();
      });
    });
    sent.end();
  });
};

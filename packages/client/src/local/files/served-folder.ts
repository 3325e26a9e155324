// A folder that a tunnel publishes: where it is, for good, and the server in this process that answers for it.
import { realpathSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { ByteDuplex } from '@tunnel/mux';
import type { FileServer } from './file-server.ts';

/** A folder to publish. */
export interface FilesSpec {
  /** Seen from the working directory. Where it leads when the tunnel is opened is what is served, also when it is a link. */
  readonly dir: string;
  /** true: a page that is not there is answered with `index.html`, for programs that route in the browser. */
  readonly spa?: boolean | undefined;
  /** true: a folder without an `index.html` shows what is in it. */
  readonly listing?: boolean | undefined;
}

export class ServedFolder {
  /** As its owner named it, from the root of the file system on. */
  readonly dir: string;
  readonly #options: { readonly spa: boolean; readonly listing: boolean };
  /** Without links. Whatever takes the place of the folder later, what is not below this path is not served. */
  #root: string | null;
  #server: Promise<FileServer> | null = null;

  constructor({ dir, spa = false, listing = false }: FilesSpec) {
    this.dir = resolve(dir);
    this.#options = { spa, listing };
    this.#root = realPathNow(this.dir);
  }

  /** A connection to the server, with no socket below it. Rejects while there is no such folder. */
  async dial(): Promise<ByteDuplex> {
    this.#root ??= await realpath(this.dir);
    this.#server ??= startServer(this.#root, this.#options);
    return (await this.#server).connect();
  }
}

/** null: it is not there yet. Whoever builds it may be slower than we are. */
const realPathNow = (dir: string): string | null => {
  try {
    return realpathSync.native(dir);
  } catch {
    return null;
  }
};

/** Loaded with the first visitor of the first folder: other clients need none of it. */
const startServer = async (root: string, options: ConstructorParameters<typeof FileServer>[1]): Promise<FileServer> => {
  const { FileServer: Server } = await import('./file-server.ts');
  return new Server(root, options);
};

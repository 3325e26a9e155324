// A folder published by a tunnel: its fixed location, and the server in this process.
import { realpathSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { ByteDuplex } from '@tunnel/mux';
import type { FileServer } from './file-server.ts';

/** Settings of a published folder. */
export interface FilesSpec {
  /** Path relative to the working directory. A link is resolved when the tunnel is opened; later changes of the link have no effect. */
  readonly dir: string;
  /** If true, a missing page is answered with `index.html`, for apps that route in the browser. */
  readonly spa?: boolean | undefined;
  /** If true, visitors of a folder without an `index.html` get a listing. */
  readonly listing?: boolean | undefined;
}

export class ServedFolder {
  /** Absolute path of the published folder as given by the owner, with symbolic links. */
  readonly dir: string;
  readonly #options: { readonly spa: boolean; readonly listing: boolean };
  /**
   * Path without links. Only files below this path are served, even if the folder is replaced later. Null while the folder does not exist.
   */
  #root: string | null;
  #server: Promise<FileServer> | null = null;

  constructor({ dir, spa = false, listing = false }: FilesSpec) {
    this.dir = resolve(dir);
    this.#options = { spa, listing };
    this.#root = realPathNow(this.dir);
  }

  /** Opens an in-process connection to the server. Rejects while the folder does not exist. */
  async dial(): Promise<ByteDuplex> {
    this.#root ??= await realpath(this.dir);
    this.#server ??= startServer(this.#root, this.#options);
    return (await this.#server).connect();
  }
}

/** Returns the path without links, or null if the folder does not exist yet, for example because a build creates it later. */
const realPathNow = (dir: string): string | null => {
  try {
    return realpathSync.native(dir);
  } catch {
    return null;
  }
};

/** Loads the server with the first visitor, because most clients serve no files. */
const startServer = async (root: string, options: ConstructorParameters<typeof FileServer>[1]): Promise<FileServer> => {
  const { FileServer: Server } = await import('./file-server.ts');
  return new Server(root, options);
};
